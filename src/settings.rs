//! Boot settings and the first-run seed: `conf/mcp-manager.yaml`, then the environment, which
//! wins. The doc comments of the fields are the comments of that file; a test compares them.
//!
//! Leaves to others: what listens and whether the files named here can be read.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use catalog::Secret;
use serde::Deserialize;

mod env;
mod error;
mod place;
mod seed;
mod text;

pub(crate) use env::Env;
pub(crate) use error::Error;
pub(crate) use seed::{SeedGroup, Upstream};
pub(crate) use text::{Format, Level};

/// Where the conf file is looked for when none is named.
const CONF: &str = "conf/mcp-manager.yaml";

/// All settings, checked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// How the manager starts. Environment variables named below win over this file.
    #[serde(deserialize_with = "text::section")]
    pub(crate) boot: Boot,
    /// What requests and clients may cost.
    #[serde(deserialize_with = "text::section")]
    pub(crate) limits: Limits,
    /// What is written to standard error.
    #[serde(deserialize_with = "text::section")]
    pub(crate) log: Log,
    /// Prometheus metrics at /metrics.
    #[serde(deserialize_with = "text::section")]
    pub(crate) metrics: Metrics,
    /// Sessions of apps with the manager, and of the manager with servers.
    #[serde(deserialize_with = "text::section")]
    pub(crate) sessions: Sessions,
    /// Search for tools by what they mean; without a model, words are matched.
    #[serde(deserialize_with = "text::section")]
    pub(crate) search: Search,
    /// First-run seed: the servers of a fresh database. After the first start the database is
    /// the truth, and this is not read again.
    #[serde(deserialize_with = "text::section")]
    pub(crate) upstreams: Vec<Upstream>,
    /// First-run seed: the groups of a fresh database, beside `default` and `full`, which are
    /// always made.
    #[serde(deserialize_with = "text::section")]
    pub(crate) groups: Vec<SeedGroup>,
    /// From the environment or a file only; without it every call of the API answers 503.
    #[serde(skip)]
    pub(crate) admin_token: Option<Secret>,
    /// From the environment or a file only; opens /metrics and nothing else.
    #[serde(skip)]
    pub(crate) metrics_token: Option<Secret>,
    /// The environment with the `.env` files in it, for `${NAME}` in servers' values.
    #[serde(skip)]
    pub(crate) env: Env,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            boot: Boot::default(),
            limits: Limits::default(),
            log: Log::default(),
            metrics: Metrics::default(),
            sessions: Sessions::default(),
            search: Search::default(),
            upstreams: Vec::new(),
            groups: SeedGroup::usual(),
            admin_token: None,
            metrics_token: None,
            env: Env::default(),
        }
    }
}

/// How the manager starts.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Boot {
    /// The address to listen on: this computer only. 0.0.0.0 (or ::) serves your network, one
    /// of your addresses a single one. MCPM_HOST
    #[serde(deserialize_with = "text::value")]
    pub(crate) host: IpAddr,
    /// The port of everything: /mcp, the API, the portal, /metrics. MCPM_PORT
    #[serde(deserialize_with = "text::value")]
    pub(crate) port: u16,
    /// The database file, made when it is not there. MCPM_DB
    pub(crate) db: PathBuf,
    /// The group of keys made without one, and of callers without a key. MCPM_DEFAULT_GROUP
    pub(crate) default_group: String,
    /// false lets anyone who reaches /mcp in, with the default group's view: for clients that
    /// cannot send an Authorization header. MCPM_REQUIRE_KEY
    #[serde(deserialize_with = "text::value")]
    pub(crate) require_key_for_mcp: bool,
    /// Names that clients may use for this manager when it serves a network, such as
    /// ["myhost:*", "mcp.lan:8899"]; null takes any. MCPM_ALLOWED_HOSTS, separated by commas
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// Web pages of other origins that may call, such as ["https://chat.lan"]; null lets only
    /// local ones reach /mcp, and any reach the API, which has its token.
    /// MCPM_ALLOWED_ORIGINS, separated by commas
    pub(crate) allowed_origins: Option<Vec<String>>,
    /// The certificate chain (PEM) to serve HTTPS with; both or neither. MCPM_TLS_CERT
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM). MCPM_TLS_KEY
    pub(crate) tls_key: Option<PathBuf>,
}

impl Default for Boot {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8899,
            db: PathBuf::from("mcp_manager.db"),
            default_group: "default".to_owned(),
            require_key_for_mcp: true,
            allowed_hosts: None,
            allowed_origins: None,
            tls_cert: None,
            tls_key: None,
        }
    }
}

/// What requests and clients may cost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// The largest body of a request, as bytes or with a unit: 1KiB to 1GiB. More is answered
    /// 413.
    #[serde(deserialize_with = "text::size")]
    pub(crate) body: usize,
    /// Time for a whole body, however slowly it comes: 1s to 7d. Later is answered 408.
    #[serde(deserialize_with = "text::time")]
    pub(crate) body_time: Duration,
    /// The largest head of a request, its address and headers; more is answered 431. Above
    /// 1MiB nothing is read.
    #[serde(deserialize_with = "text::size")]
    pub(crate) head: usize,
    /// Connections that may be open at a time: 1 to 1000000. One more is answered 503.
    #[serde(deserialize_with = "text::count")]
    pub(crate) connections: usize,
    /// A connection is closed when it has waited so long for another request: 1s to 7d.
    /// Keep it above that of a proxy in front.
    #[serde(deserialize_with = "text::time")]
    pub(crate) idle: Duration,
    /// Calls that may run at a time for one key: 1 to 1000000. One more is answered 429.
    #[serde(deserialize_with = "text::count")]
    pub(crate) calls_per_key: usize,
    /// Sessions of one key that are kept in memory: 1 to 1000000. Beyond that, those unused
    /// for the longest time leave it; they go on when they are used again.
    #[serde(deserialize_with = "text::count")]
    pub(crate) sessions_per_key: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 << 20,
            body_time: Duration::from_secs(60),
            head: 64 << 10,
            connections: 16_384,
            idle: Duration::from_secs(75),
            calls_per_key: 1024,
            sessions_per_key: 1000,
        }
    }
}

/// What is written to standard error.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    /// text, json, or auto: text on a terminal, json elsewhere. MCPM_LOG_FORMAT
    #[serde(deserialize_with = "text::value")]
    pub(crate) format: Format,
    /// error, warn, info, debug or trace; also for one part each, as in
    /// info,mcpm_upstream=debug. MCPM_LOG_LEVEL
    #[serde(deserialize_with = "text::value")]
    pub(crate) level: Level,
}

/// Prometheus metrics.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Metrics {
    /// true shows them to anyone; false asks for the admin token or MCPM_METRICS_TOKEN.
    #[serde(deserialize_with = "text::value")]
    pub(crate) public: bool,
}

/// Sessions that the manager holds on servers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sessions {
    /// An app's session on a server is closed when unused for so long: 1s to 7d.
    #[serde(deserialize_with = "text::time")]
    pub(crate) idle: Duration,
    /// An app's own session leaves memory when unused for so long, unless a stream is open; it
    /// goes on when it is used again: 1s to 7d.
    #[serde(deserialize_with = "text::time")]
    pub(crate) client_idle: Duration,
}

impl Default for Sessions {
    fn default() -> Self {
        let idle = Duration::from_secs(30 * 60);
        Self { idle, client_idle: idle }
    }
}

/// Search for tools by what they mean.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Search {
    /// The folder of an embedding model: model.onnx and tokenizer.json. MCPM_SEARCH_MODEL
    pub(crate) model: Option<PathBuf>,
    /// The file of ONNX Runtime, 1.24 or newer; null looks beside the model, beside this
    /// program, beside the database. MCPM_ONNXRUNTIME
    pub(crate) onnxruntime: Option<PathBuf>,
}

impl Settings {
    /// Reads the named conf file, or `conf/mcp-manager.yaml` if there is one, or takes the
    /// defaults; then lets the environment win. `.env` files beside the conf file and in the
    /// working directory count as environment, after the real one.
    ///
    /// # Errors
    /// Says what is wrong where, and what to write instead.
    pub(crate) fn load(config: Option<&Path>, env: &Env) -> Result<Self, Error> {
        let usual = env.at(Path::new(CONF));
        let path = config.map(Path::to_owned).or_else(|| usual.is_file().then_some(usual));
        let mut settings = match &path {
            Some(path) => Self::read(path)?,
            None => Self::default(),
        };
        let beside = path.as_deref().and_then(Path::parent);
        settings.env = env.with_files(beside)?;
        settings.override_from_env()?;
        settings.check_pairs()?;
        Ok(settings)
    }

    /// The certificate and the key to serve HTTPS with.
    pub(crate) fn tls(&self) -> Option<(&Path, &Path)> {
        self.boot.tls_cert.as_deref().zip(self.boot.tls_key.as_deref())
    }

    fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Unreadable { path: path.to_owned(), why: error.to_string() })?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let text = text.trim_start_matches('\u{feff}');
        // `yes` and `off` are words here; those settings that are true or false know them.
        let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
        // A file of comments only is an empty document.
        let settings = serde_saphyr::from_str_with_options::<Option<Self>>(text, options)
            .map_err(|error| Error::of(path, text, &error))?
            .unwrap_or_default();
        settings.check_seed().map_err(|fault| fault.in_file(path, text))?;
        Ok(settings)
    }

    fn override_from_env(&mut self) -> Result<(), Error> {
        let env = &self.env;
        let boot = &mut self.boot;
        env.set("MCPM_HOST", &mut boot.host)?;
        env.set("MCPM_PORT", &mut boot.port)?;
        env.set("MCPM_DB", &mut boot.db)?;
        env.set("MCPM_DEFAULT_GROUP", &mut boot.default_group)?;
        env.set("MCPM_REQUIRE_KEY", &mut boot.require_key_for_mcp)?;
        env.set_some("MCPM_ALLOWED_HOSTS", &mut boot.allowed_hosts)?;
        env.set_some("MCPM_ALLOWED_ORIGINS", &mut boot.allowed_origins)?;
        env.set_some("MCPM_TLS_CERT", &mut boot.tls_cert)?;
        env.set_some("MCPM_TLS_KEY", &mut boot.tls_key)?;
        env.set_some("MCPM_SEARCH_MODEL", &mut self.search.model)?;
        env.set_some("MCPM_ONNXRUNTIME", &mut self.search.onnxruntime)?;
        env.set("MCPM_LOG_FORMAT", &mut self.log.format)?;
        env.set("MCPM_LOG_LEVEL", &mut self.log.level)?;
        self.admin_token = env.secret("MCPM_ADMIN_TOKEN", "MCPM_ADMIN_TOKEN_FILE")?;
        self.metrics_token = env.secret("MCPM_METRICS_TOKEN", "MCPM_METRICS_TOKEN_FILE")?;
        Ok(())
    }

    /// Half a TLS pair must not end as plain HTTP on a network that expects `https`.
    fn check_pairs(&self) -> Result<(), Error> {
        match (&self.boot.tls_cert, &self.boot.tls_key) {
            (Some(_), None) => Err(Error::HalfTls {
                given: "boot.tls_cert",
                missing: "boot.tls_key",
                variable: "MCPM_TLS_KEY",
            }),
            (None, Some(_)) => Err(Error::HalfTls {
                given: "boot.tls_key",
                missing: "boot.tls_cert",
                variable: "MCPM_TLS_CERT",
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
