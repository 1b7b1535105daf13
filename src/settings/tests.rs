//! The conf file and the environment as operators write them, and what they are told.

use std::path::{Path, PathBuf};
use std::time::Duration;

use catalog::{GroupId, Mode, Pinned, Reach, Secret, Server, ServerId, Transport};

use super::{Boot, Env, Error, Format, Level, Settings};

/// The committed file.
const COMMITTED: &str = include_str!("../../conf/mcp-manager.yaml");

/// The `config.yaml` that users of the Python manager have.
const OLD: &str = r#"
boot:
  host: 127.0.0.1          # 0.0.0.0 to serve your network; Docker compose sets MCPM_HOST for you
  port: 8899
  db: mcp_manager.db
  default_group: default   # the group for keys created without one, and for keyless access
  require_key_for_mcp: true  # false = /mcp accepts anyone with the default group's view, for
                             # clients that cannot send an Authorization header
  allowed_hosts: null      # e.g. ["myhost:*"] turns on DNS-rebinding protection

upstreams:
  - name: browser
    url: http://browser:8940/mcp
    description: Drives a real browser.   # optional: what the model is told it is for
    headers: {Authorization: "Bearer …"}  # optional: sent with every request, for servers behind auth
    shared: false                         # optional: true = one session per group, not per app

groups:
  - name: everything
    mode: direct
  - name: pi
    mode: hybrid
    defaults: [navigate, screenshot]
  - name: me
    mode: adaptive
    adaptive_cap: 20                      # optional: learned tools listed, 1-50 (default 10)
    servers: [browser]                    # optional: only these (default: all, new ones too)
"#;

fn parse(text: &str) -> Result<Settings, Error> {
    Settings::parse(Path::new("conf.yaml"), text)
}

fn env(variables: &[(&str, &str)]) -> Env {
    env_in(variables, PathBuf::new())
}

fn env_in(variables: &[(&str, &str)], folder: PathBuf) -> Env {
    Env::new(
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        folder,
    )
}

/// The settings of a process with these variables, in an empty directory.
fn load(variables: &[(&str, &str)]) -> Result<Settings, Error> {
    let folder = tempfile::tempdir().unwrap();
    Settings::load(None, &env_in(variables, folder.path().to_owned()))
}

#[test]
fn p90_the_config_of_the_python_manager_works_unchanged() {
    let settings = parse(OLD).unwrap();
    assert_eq!(settings.boot, Boot::default());
    let [server] = settings.seed_servers().try_into().unwrap();
    assert_eq!(
        server,
        Server {
            id: ServerId(0),
            name: "browser".to_owned(),
            transport: Transport::Http {
                url: "http://browser:8940/mcp".to_owned(),
                headers: vec![("Authorization".to_owned(), Secret::new("Bearer …"))],
                ca_file: None,
            },
            description: "Drives a real browser.".to_owned(),
            enabled: true,
            shared: false,
            timeout: Server::TIMEOUT,
            call_timeout: Server::CALL_TIMEOUT,
            protocol: Pinned::Auto,
        }
    );
    let id_of = |name: &str| (name == "browser").then_some(ServerId(5));
    let groups: Vec<_> = settings.seed_groups().iter().map(|group| group.to_group(id_of)).collect();
    assert_eq!(groups[0].reach, Reach::All);
    assert_eq!(
        (groups[1].mode, groups[1].defaults.as_slice()),
        (Mode::Hybrid, &["navigate".to_owned(), "screenshot".to_owned()][..])
    );
    assert_eq!(
        (groups[2].adaptive_cap, &groups[2].reach),
        (Some(20), &Reach::Only(vec![ServerId(5)]))
    );
    assert!(groups.iter().all(|group| group.id == GroupId(0)));
}

#[test]
fn every_way_to_write_a_server() {
    let settings = parse(
        r#"
upstreams:
  - {name: a, serverUrl: "https://a/mcp", timeout_ms: 1500, call_timeout_ms: 100, protocol: legacy}
  - name: b
    command: npx
    url: http://not-used
    args: [-y, 1.0, "x y"]
    env: {Z: 1, A: "${A:-x}"}
    enabled: no
    description:
    headers:
"#,
    );
    let [a, b] = settings.unwrap().seed_servers().try_into().unwrap();
    assert_eq!(
        (a.timeout, a.call_timeout),
        (Duration::from_millis(1500), Duration::from_millis(100))
    );
    assert_eq!(a.protocol, Pinned::Legacy);
    assert!(matches!(a.transport, Transport::Http { url, .. } if url == "https://a/mcp"));
    assert!(!b.enabled && b.description.is_empty());
    assert_eq!(
        b.transport,
        Transport::Stdio {
            command: "npx".to_owned(),
            args: ["-y", "1.0", "x y"].map(str::to_owned).to_vec(),
            env: vec![("Z".to_owned(), Secret::new("1")), ("A".to_owned(), Secret::new("${A:-x}"))],
            cwd: None,
        }
    );
}

#[test]
fn nothing_written_is_all_defaults() {
    for text in ["", "# only comments\n", "boot:\nlimits:\nupstreams:\n", "{}"] {
        let settings = parse(text).unwrap();
        assert_eq!(settings.boot, Boot::default(), "{text}");
        assert_eq!(settings.upstreams, [], "{text}");
    }
    assert_eq!(load(&[]).unwrap().boot, Boot::default());
}

#[test]
fn sizes_and_times_have_units() {
    let body = |text: &str| parse(&format!("limits: {{body: {text}}}")).map(|s| s.limits.body);
    for (text, bytes) in
        [("16MiB", 16 << 20), ("4096", 4096), ("\"2 kb\"", 2000), ("1GiB", 1 << 30)]
    {
        assert_eq!(body(text), Ok(bytes));
    }
    let idle = |text: &str| parse(&format!("sessions: {{idle: {text}}}")).map(|s| s.sessions.idle);
    for (text, seconds) in [("30m", 1800), ("90s", 90), ("2h", 7200), ("7d", 604_800)] {
        assert_eq!(idle(text), Ok(Duration::from_secs(seconds)));
    }
    for text in ["0", "2GiB", "16 miles", "-1", "1.5MiB", "MiB"] {
        assert!(body(text).is_err(), "{text}");
    }
    for text in ["30", "500ms", "8d", "[1s]", "99999999999999999999d"] {
        assert!(idle(text).is_err(), "{text}");
    }
}

#[test]
fn the_environment_wins() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.yaml");
    std::fs::write(&file, "boot: {port: 1, host: 10.0.0.1, tls_cert: a, tls_key: b}").unwrap();
    let variables = [
        ("MCPM_HOST", "[::]"),
        ("MCPM_PORT", " 9000 "),
        ("MCPM_DB", "/data/x.db"),
        ("MCPM_ADMIN_TOKEN", "a token\n"),
        ("MCPM_METRICS_TOKEN", "m"),
        ("MCPM_DEFAULT_GROUP", "full"),
        ("MCPM_REQUIRE_KEY", "0"),
        ("MCPM_ALLOWED_HOSTS", "a:*, b,"),
        ("MCPM_ALLOWED_ORIGINS", "https://a"),
        ("MCPM_TLS_CERT", "c.pem"),
        ("MCPM_TLS_KEY", ""),
        ("MCPM_LOG_FORMAT", "json"),
        ("MCPM_LOG_LEVEL", "warn,mcpm_upstream=debug"),
    ];
    let settings = Settings::load(Some(&file), &env(&variables)).unwrap();
    assert_eq!(
        settings.boot,
        Boot {
            host: "::".parse().unwrap(),
            port: 9000,
            db: "/data/x.db".into(),
            default_group: "full".to_owned(),
            require_key_for_mcp: false,
            allowed_hosts: Some(vec!["a:*".to_owned(), "b".to_owned()]),
            allowed_origins: Some(vec!["https://a".to_owned()]),
            tls_cert: Some("c.pem".into()),
            tls_key: Some("b".into()),
        }
    );
    assert_eq!(settings.tls(), Some((Path::new("c.pem"), Path::new("b"))));
    assert_eq!(settings.admin_token, Some(Secret::new("a token")));
    assert_eq!(settings.metrics_token, Some(Secret::new("m")));
    assert_eq!(settings.log.format, Format::Json);
    assert_eq!(settings.log.level, Level("warn,mcpm_upstream=debug".to_owned()));
}

#[test]
fn tokens_may_stand_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let load = |variables| Settings::load(None, &env_in(variables, folder.path().to_owned()));
    std::fs::write(folder.path().join("admin"), "from a file\n").unwrap();
    let settings = load(&[("MCPM_ADMIN_TOKEN_FILE", "admin")]).unwrap();
    assert_eq!(settings.admin_token, Some(Secret::new("from a file")));
    let missing = load(&[("MCPM_METRICS_TOKEN_FILE", "nowhere")]).unwrap_err().to_string();
    assert!(missing.contains("(named by `MCPM_METRICS_TOKEN_FILE`)"), "{missing}");
    std::fs::write(folder.path().join("empty"), "\n").unwrap();
    let empty = load(&[("MCPM_ADMIN_TOKEN_FILE", "empty")]).unwrap_err().to_string();
    assert!(empty.contains("it is empty"), "{empty}");
}

#[test]
fn dotenv_files_stand_behind_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("conf");
    std::fs::create_dir(&conf).unwrap();
    std::fs::write(conf.join("mcp-manager.yaml"), "boot: {port: 1}").unwrap();
    std::fs::write(conf.join(".env"), "MCPM_PORT=2\nMCPM_DB=beside.db\nBROWSER='s e'\n").unwrap();
    let behind = "\u{feff}# a comment\nMCPM_DB=cwd.db\nexport MCPM_ADMIN_TOKEN=\"t\"\n";
    std::fs::write(folder.path().join(".env"), behind).unwrap();
    let load = |variables| Settings::load(None, &env_in(variables, folder.path().to_owned()));

    let settings = load(&[]).unwrap();
    assert_eq!((settings.boot.port, settings.boot.db), (2, PathBuf::from("beside.db")));
    assert_eq!(settings.admin_token, Some(Secret::new("t")));
    assert_eq!(settings.env.get("BROWSER"), Some("s e"));
    assert_eq!(load(&[("MCPM_PORT", "3")]).unwrap().boot.port, 3);
    assert_eq!(load(&[("MCPM_PORT", "")]).unwrap().boot.port, 1);

    std::fs::write(conf.join(".env"), "A=1\nMCPM_ADMIN_TOKEN=two hunters\n").unwrap();
    let error = load(&[]).unwrap_err().to_string();
    assert!(
        error.ends_with(".env:2: this line must be `NAME=value`; quote a value that has spaces"),
        "{error}"
    );
}

mod committed;
mod errors;
