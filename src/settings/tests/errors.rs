//! What operators are told. Each snapshot holds one line per text, in order.

use std::path::Path;

use super::{Settings, env, load, parse};

/// What is told about each file.
fn told(texts: &[&str]) -> String {
    let lines: Vec<_> = texts.iter().map(|text| parse(text).unwrap_err().to_string()).collect();
    lines.join("\n")
}

#[test]
fn unknown_settings_are_named_with_the_nearest_known_one() {
    let texts = [
        "boot:\n  host: 127.0.0.1\n  prot: 9000\n",
        "upstreams:\n  - {name: x, url: http://x}\n  - {name: y, header: {}}\n",
        "log: {colour: true}",
        "bot: {}",
        "boot: {port: 1, port: 2}",
    ];
    insta::assert_snapshot!(told(&texts), @"
    conf.yaml:3:3: unknown setting `prot` in `boot`; did you mean `port`?
    conf.yaml:3:15: unknown setting `header` in `upstreams[1]`; did you mean `headers`?
    conf.yaml:1:7: unknown setting `colour` in `log`; known here: format, level
    conf.yaml:1:1: unknown setting `bot`; did you mean `boot`?
    conf.yaml:1:17: `port` stands here twice; remove one of them
    ");
}

#[test]
fn wrong_values_are_named_with_what_is_expected() {
    let texts = [
        "boot:\n  port: 70000\n",
        "boot: {host: myhost.lan}",
        "boot: {require_key_for_mcp: maybe}",
        "boot: {allowed_hosts: myhost}",
        "boot: {db: [x]}",
        "boot: {default_group: }",
        "boot: 8899",
        "limits: {body: lots}",
        "sessions: {idle: 30}",
        "log: {level: inof}",
        "groups:\n  - name: a\n    adaptive_cap: 51\n",
        "groups: [{name: a, mode: fast}]",
        "upstreams: {browser: {url: http://x}}",
        "- boot",
        "boot: {host: 'x",
        "boot:\n\tport: 1",
    ];
    insta::assert_snapshot!(told(&texts), @"
    conf.yaml:2:3: `boot.port` must be a whole number from 0 to 65535, not `70000`
    conf.yaml:1:8: `boot.host` must be an IP address such as 127.0.0.1 or 0.0.0.0, not `myhost.lan`
    conf.yaml:1:8: `boot.require_key_for_mcp` must be true or false, not `maybe`
    conf.yaml:1:23: `boot.allowed_hosts` must be a list
    conf.yaml:1:12: `boot.db` must be text
    conf.yaml:1:21: `boot.default_group` must be text, not nothing
    conf.yaml:1:7: `boot` must be a mapping
    conf.yaml:1:10: `limits.body` must be a size from 1KiB to 1GiB, such as 16MiB, not `lots`
    conf.yaml:1:12: `sessions.idle` must be a time from 1s to 7d, such as 30s, 30m or 2h, not `30`
    conf.yaml:1:7: `log.level` must be error, warn, info, debug or trace, or such as info,mcpm_upstream=debug, not `inof`
    conf.yaml:3:5: `groups[0].adaptive_cap` must be a whole number from 1 to 50, or null, not `51`
    conf.yaml:1:20: `groups[0].mode` must be direct, hybrid or adaptive, not `fast`
    conf.yaml:1:12: `upstreams` must be a list
    conf.yaml:1:1: the file must be a mapping
    conf.yaml:1:14: unclosed quote
    conf.yaml:2:2: tabs disallowed within this context (block indentation)
    ");
}

#[test]
fn the_seed_must_fit_together() {
    let texts = [
        "upstreams:\n  - {name: a}\n",
        "upstreams: [{name: a, url: a:80}]",
        "upstreams: [{url: http://a}]",
        "upstreams:\n  - {name: a, command: x}\n  - {name: a, command: y}\n",
        "upstreams: [{name: browser, command: x}]\ngroups: [{name: g, servers: [browsr]}]",
        "groups: [{name: g, servers: [x]}]",
    ];
    insta::assert_snapshot!(told(&texts), @"
    conf.yaml:2:5: `upstreams[0]` has neither `url` nor `command`; add one
    conf.yaml:1:28: `upstreams[0].url` must start with http:// or https://
    conf.yaml:1:13: `upstreams[0].name` is missing or empty
    conf.yaml:3:12: `upstreams[1].name` is the name of an earlier entry too; names are unique
    conf.yaml:2:30: `groups[0].servers[0]` names `browsr`, which is not in `upstreams`; did you mean `browser`?
    conf.yaml:1:30: `groups[0].servers[0]` names `x`, which is not in `upstreams`; add it to `upstreams`
    ");
}

#[test]
fn secrets_have_no_place_in_the_file_and_none_in_an_error() {
    let texts = [
        "boot: {admin_token: hunter2}",
        "metrics: {token: hunter2}",
        "upstreams: [{name: a, headers: hunter2}]",
        "upstreams: [{name: a, env: {A: [hunter2]}}]",
    ];
    insta::assert_snapshot!(told(&texts), @"
    conf.yaml:1:8: `admin_token` does not belong in this file; set `MCPM_ADMIN_TOKEN` in the environment or in `.env`, or name a file in `MCPM_ADMIN_TOKEN_FILE`
    conf.yaml:1:11: `token` does not belong in this file; set `MCPM_METRICS_TOKEN` in the environment or in `.env`, or name a file in `MCPM_METRICS_TOKEN_FILE`
    conf.yaml:1:32: `upstreams[0].headers` must be a mapping
    conf.yaml:1:32: `upstreams[0].env.A` must be text
    ");
    let settings = load(&[("MCPM_ADMIN_TOKEN", "hunter2")]).unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
}

#[test]
fn wrong_variables_are_named() {
    let cases: [&[(&str, &str)]; 5] = [
        &[("MCPM_PORT", "http")],
        &[("MCPM_REQUIRE_KEY", "maybe")],
        &[("MCPM_TLS_CERT", "c.pem")],
        &[("MCPM_TLS_KEY", "k.pem")],
        &[("MCPM_ADMIN_TOKEN", "x"), ("MCPM_ADMIN_TOKEN_FILE", "y")],
    ];
    let lines: Vec<_> = cases.iter().map(|case| load(case).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    `MCPM_PORT` must be a whole number from 0 to 65535, not `http`
    `MCPM_REQUIRE_KEY` must be true or false, not `maybe`
    `boot.tls_cert` is set but `boot.tls_key` is not; set it (or `MCPM_TLS_KEY`), or unset both
    `boot.tls_key` is set but `boot.tls_cert` is not; set it (or `MCPM_TLS_CERT`), or unset both
    `MCPM_ADMIN_TOKEN` and `MCPM_ADMIN_TOKEN_FILE` are both set; unset one of them
    ");
}

#[test]
fn a_named_file_must_be_there() {
    let error = Settings::load(Some(Path::new("nowhere.yaml")), &env(&[])).unwrap_err();
    insta::assert_snapshot!(error, @"`nowhere.yaml` cannot be read: No such file or directory (os error 2)");
}
