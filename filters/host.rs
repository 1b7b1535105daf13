//! Who may be talked to under which name: the guard against DNS rebinding (P2, F2–F4).

use std::net::{IpAddr, Ipv6Addr};

use http::{HeaderMap, Uri, header};

/// What the manager listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bind {
    /// This computer only.
    Loopback,
    /// A network.
    Network,
}

/// The rules for `Host` and `Origin`.
#[derive(Debug, Clone)]
pub struct Hosts {
    bind: Bind,
    hosts: Option<Vec<Pattern>>,
    origins: Option<Vec<String>>,
}

/// What the check of a request says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Come in.
    Pass,
    /// The name in `Host` (or `:authority`) is not ours.
    Host,
    /// The page that sends the request is not allowed to.
    Origin,
}

/// `name`, `name:port` or `name:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    name: String,
    port: Option<String>,
}

impl Hosts {
    /// `hosts` and `origins` are `allowed_hosts` and `allowed_origins` of the settings.
    pub fn new(bind: Bind, hosts: Option<Vec<String>>, origins: Option<Vec<String>>) -> Self {
        let hosts = hosts.map(|list| list.iter().map(|entry| Pattern::read(entry)).collect());
        let origins = origins.map(|list| {
            list.iter().map(|o| o.trim_end_matches('/').to_ascii_lowercase()).collect()
        });
        Self { bind, hosts, origins }
    }

    /// Checks the name that the request was sent to.
    pub fn host(&self, uri: &Uri, headers: &HeaderMap) -> Verdict {
        let Some((name, port)) = authority(uri, headers) else { return Verdict::Host };
        if self.is_ours(&name, port.as_deref()) { Verdict::Pass } else { Verdict::Host }
    }

    /// Checks the origin of a request to `/mcp`. A request without one passes: it does not
    /// come from a web page.
    pub fn origin(&self, headers: &HeaderMap) -> Verdict {
        let mut sent = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = sent.next() else { return Verdict::Pass };
        if sent.next().is_some() {
            return Verdict::Origin;
        }
        let Ok(origin) = origin.to_str() else { return Verdict::Origin };
        let origin = origin.to_ascii_lowercase();
        if self.origins.iter().flatten().any(|allowed| *allowed == "*" || *allowed == origin) {
            return Verdict::Pass;
        }
        let Some((_, rest)) = origin.split_once("://") else { return Verdict::Origin };
        let Some((name, port)) = split(rest) else { return Verdict::Origin };
        // With no list of our names, a network bind knows only loopback ones for its own.
        let ours =
            is_loopback(&name) || (self.hosts.is_some() && self.is_ours(&name, port.as_deref()));
        if ours { Verdict::Pass } else { Verdict::Origin }
    }

    fn is_ours(&self, name: &str, port: Option<&str>) -> bool {
        if let Some(patterns) = &self.hosts
            && patterns.iter().any(|pattern| pattern.fits(name, port))
        {
            return true;
        }
        match self.bind {
            Bind::Loopback => is_loopback(name),
            // Health checks and scrapers on the machine itself always may.
            Bind::Network => self.hosts.is_none() || is_loopback(name),
        }
    }
}

impl Pattern {
    fn read(entry: &str) -> Self {
        let entry = entry.to_ascii_lowercase();
        // Any port fits a pattern without one.
        match split(entry.strip_suffix(":*").unwrap_or(&entry)) {
            Some((name, port)) => Self { name, port },
            None => Self { name: entry, port: None },
        }
    }

    fn fits(&self, name: &str, port: Option<&str>) -> bool {
        // A proxy may strip the port, so a request without one fits any pattern of its name.
        self.name == name && (self.port.is_none() || port.is_none() || self.port.as_deref() == port)
    }
}

/// The name and port that the request was sent to, lower-case and without brackets.
/// HTTP/2 has them in `:authority`; both present must agree.
fn authority(uri: &Uri, headers: &HeaderMap) -> Option<(String, Option<String>)> {
    let mut sent = headers.get_all(header::HOST).iter();
    let host = sent.next().map(|value| value.to_str().unwrap_or("\u{0}"));
    if sent.next().is_some() {
        return None;
    }
    match (uri.authority().map(|authority| authority.as_str()), host) {
        (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(host) => None,
        (Some(name), _) | (None, Some(name)) => split(&name.to_ascii_lowercase()),
        (None, None) => None,
    }
}

/// `name`, `name:port`, `[v6]`, `[v6]:port`, lower-case; anything else is no authority.
fn split(text: &str) -> Option<(String, Option<String>)> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, after) = rest.split_once(']')?;
            let (address, zone) = name.split_once('%').unwrap_or((name, ""));
            if address.parse::<Ipv6Addr>().is_err() || !zone.chars().all(plain) {
                return None;
            }
            (name, if after.is_empty() { None } else { Some(after.strip_prefix(':')?) })
        }
        None => {
            let (name, port) = match text.split_once(':') {
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            };
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() || !name.chars().all(plain) {
                return None;
            }
            (name, port)
        }
    };
    if port.is_some_and(|port| !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    Some((name.to_owned(), port.filter(|port| !port.is_empty()).map(str::to_owned)))
}

fn is_loopback(name: &str) -> bool {
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Uri};
    use proptest::prelude::*;

    use super::{Bind, Hosts, Verdict};

    fn host(rules: &Hosts, host: &str) -> Verdict {
        let mut headers = HeaderMap::new();
        headers.insert("host", host.parse().expect("a header value"));
        rules.host(&Uri::from_static("/mcp"), &headers)
    }

    fn origin(rules: &Hosts, origin: &str) -> Verdict {
        let mut headers = HeaderMap::new();
        headers.insert("origin", origin.parse().expect("a header value"));
        rules.origin(&headers)
    }

    #[test]
    fn http_07_loopback_takes_only_loopback_names() {
        let rules = Hosts::new(Bind::Loopback, None, None);
        for name in [
            "localhost",
            "LOCALHOST:8899",
            "127.0.0.1:8899",
            "[::1]:8899",
            "[::1]",
            "127.0.0.1",
            "127.8.8.8",
            "localhost.",
            "a.localhost:1",
            "[::ffff:127.0.0.1]:80",
        ] {
            assert_eq!(host(&rules, name), Verdict::Pass, "{name}");
        }
        for name in [
            "evil.example",
            "evil.example:8899",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost@evil.example",
            "[::1",
            "",
            "evil.example#localhost",
            "0.0.0.0",
            "::1",
            "localhost:80:80",
            "localhost:x",
        ] {
            assert_eq!(host(&rules, name), Verdict::Host, "{name}");
        }
    }

    #[test]
    fn http_07_network_takes_any_name_or_the_listed() {
        assert_eq!(host(&Hosts::new(Bind::Network, None, None), "any.lan"), Verdict::Pass);
        let listed = ["my.lan:*".to_owned(), "mcp.lan:8899".to_owned(), "bare".to_owned()];
        let rules = Hosts::new(Bind::Network, Some(listed.to_vec()), None);
        for name in ["MY.lan:1", "my.lan", "mcp.lan:8899", "mcp.lan", "bare:5", "localhost:1"] {
            assert_eq!(host(&rules, name), Verdict::Pass, "{name}");
        }
        for name in ["mcp.lan:8900", "other.lan", "xmy.lan"] {
            assert_eq!(host(&rules, name), Verdict::Host, "{name}");
        }
    }

    #[test]
    fn plt_07_authority_of_http_2_counts() {
        let rules = Hosts::new(Bind::Loopback, None, None);
        let own = Uri::from_static("https://localhost:8899/mcp");
        assert_eq!(rules.host(&own, &HeaderMap::new()), Verdict::Pass);
        let evil = Uri::from_static("https://evil.example/mcp");
        let mut headers = HeaderMap::new();
        headers.insert("host", "localhost".parse().expect("a header value"));
        assert_eq!(rules.host(&evil, &headers), Verdict::Host);
        assert_eq!(rules.host(&Uri::from_static("/"), &HeaderMap::new()), Verdict::Host);
    }

    #[test]
    fn origins() {
        let rules = Hosts::new(Bind::Loopback, None, Some(vec!["https://chat.lan".to_owned()]));
        for name in ["http://localhost:3000", "https://CHAT.lan", "http://[::1]:1"] {
            assert_eq!(origin(&rules, name), Verdict::Pass, "{name}");
        }
        for name in ["null", "https://evil.example", "http://chat.lan", "https://chat.lan.evil"] {
            assert_eq!(origin(&rules, name), Verdict::Origin, "{name}");
        }
        assert_eq!(rules.origin(&HeaderMap::new()), Verdict::Pass);
    }

    proptest! {
        #[test]
        fn no_name_but_a_loopback_one_passes(name in "[a-z0-9.:@\\[\\]-]{0,20}") {
            let rules = Hosts::new(Bind::Loopback, None, None);
            if host(&rules, &name) == Verdict::Pass {
                let loopback = name.contains("localhost") || name.contains("127.") || name.contains("::")
                    || name.contains("[0:");
                prop_assert!(loopback, "{}", name);
            }
        }
    }
}
