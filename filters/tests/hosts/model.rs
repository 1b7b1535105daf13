//! Which names pass, said the long way.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::{HeaderMap, HeaderValue, Uri};
use mcpm_filters::{Bind, Hosts, Verdict};

const LISTED: [&str; 4] = ["my.lan:*", "mcp.lan:8899", "bare", "[fd00::1]:8899"];

/// Checks a `Host` against each kind of rules; panics where the model says otherwise.
pub(crate) fn check(host: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(host) else { return };
    let mut headers = HeaderMap::new();
    headers.insert("host", value);
    for (bind, listed) in [
        (Bind::Loopback, false),
        (Bind::Loopback, true),
        (Bind::Network, false),
        (Bind::Network, true),
    ] {
        let list = listed.then(|| LISTED.map(str::to_owned).to_vec());
        let verdict = Hosts::new(bind, list, None).host(&Uri::from_static("/mcp"), &headers);
        let passes = std::str::from_utf8(host).ok().and_then(Name::read).is_some_and(|name| {
            name.is_loopback() || (bind == Bind::Network && !listed) || (listed && name.is_listed())
        });
        let text = String::from_utf8_lossy(host);
        assert_eq!(verdict == Verdict::Pass, passes, "{text:?}, {bind:?}, listed: {listed}");
    }
}

struct Name {
    /// Lower-case, without brackets and without a last dot.
    name: String,
    /// Digits.
    port: Option<String>,
}

impl Name {
    /// Letters, digits, `.`, `-` and `_`, or an IPv6 address in brackets; then, if anything, a
    /// colon and digits, of which there may be none.
    fn read(host: &str) -> Option<Self> {
        let host = host.to_ascii_lowercase();
        let (name, rest) = match host.strip_prefix('[') {
            Some(inside) => {
                let close = inside.find(']')?;
                let address = &inside[..close];
                let (bare, zone) = address.split_once('%').unwrap_or((address, ""));
                bare.parse::<Ipv6Addr>().ok()?;
                if !zone.chars().all(is_plain) {
                    return None;
                }
                (address.to_owned(), &inside[close + 1..])
            }
            None => {
                let end = host.find(|c| !is_plain(c)).unwrap_or(host.len());
                let name = host[..end].strip_suffix('.').unwrap_or(&host[..end]);
                if name.is_empty() {
                    return None;
                }
                (name.to_owned(), &host[end..])
            }
        };
        if rest.is_empty() {
            return Some(Self { name, port: None });
        }
        let digits = rest.strip_prefix(':')?;
        if !digits.chars().all(|c| c.is_ascii_digit()) {
            return None;
        }
        Some(Self { name, port: Some(digits.to_owned()).filter(|digits| !digits.is_empty()) })
    }

    fn is_loopback(&self) -> bool {
        let v4 = self.name.parse::<Ipv4Addr>();
        let v6 = self.name.parse::<Ipv6Addr>();
        self.name == "localhost"
            || self.name.ends_with(".localhost")
            || v4.is_ok_and(|address| address.octets()[0] == 127)
            || v6.is_ok_and(|address| match address.to_ipv4_mapped() {
                Some(mapped) => mapped.octets()[0] == 127,
                None => address == Ipv6Addr::LOCALHOST,
            })
    }

    fn is_listed(&self) -> bool {
        let port = |wanted: &str| self.port.as_deref().is_none_or(|port| port == wanted);
        match self.name.as_str() {
            "my.lan" | "bare" => true,
            "mcp.lan" | "fd00::1" => port("8899"),
            _ => false,
        }
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}
