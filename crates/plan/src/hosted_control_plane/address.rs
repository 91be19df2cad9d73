//! URLs that users give and that pods of the control plane call: read once, strictly, so that the host that is checked
//! is the host that is called.

use std::net::Ipv6Addr;

/// The longest URL.
const LONGEST: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

/// The parts of a URL that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) scheme: Scheme,
    /// A name or an address, of IPv6 without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) has_query: bool,
}

impl Address {
    /// Reads a URL with a host. A user and a fragment have no meaning here, and are refused.
    pub(super) fn parse(url: &str) -> Result<Self, &'static str> {
        if url.len() > LONGEST {
            return Err("it has more than 2048 bytes");
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains(['\\', '"', '<', '>', '`']) {
            return Err("it has characters that a URL cannot have");
        }
        let (scheme, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (Scheme::Https, rest),
            (_, Some(rest)) => (Scheme::Http, rest),
            _ => return Err("it must be an https URL"),
        };
        if rest.contains('#') {
            return Err("it must have no fragment");
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("it must have no user");
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or("its host has a bracket that does not end")?;
                host.parse::<Ipv6Addr>().map_err(|_| "its host is no address")?;
                (host, port)
            }
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let default = if scheme == Scheme::Https { 443 } else { 80 };
        let port = match port.strip_prefix(':') {
            Some(text) => text.parse().ok().filter(|port| *port != 0).ok_or("its port is none")?,
            None if port.is_empty() => default,
            None => return Err("its host has something behind it"),
        };
        let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let is_name = |label: &str| {
            is_edge(label.as_bytes().first())
                && is_edge(label.as_bytes().last())
                && label.len() <= 63
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        let is_ipv6 = authority.starts_with('[');
        let trimmed = host.strip_suffix('.').unwrap_or(host);
        if !is_ipv6 && (host.len() > 253 || !trimmed.split('.').all(is_name)) {
            return Err("its host is no host name");
        }
        Ok(Self { scheme, host: host.to_ascii_lowercase(), port, has_query: path.contains('?') })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_one_meaning_or_none() {
        let read = |url: &str| Address::parse(url).map(|found| (found.host, found.port));
        assert_eq!(read("https://Issuer.example.org"), Ok(("issuer.example.org".to_owned(), 443)));
        assert_eq!(read("https://a.example:8443/x?y"), Ok(("a.example".to_owned(), 8443)));
        assert_eq!(read("http://[2001:db8::1]:80/x"), Ok(("2001:db8::1".to_owned(), 80)));
        assert_eq!(read("http://192.0.2.1"), Ok(("192.0.2.1".to_owned(), 80)));
        for bad in [
            "ftp://a",
            "a.example",
            "https://",
            "https://user@a.example",
            "https://a.example#x",
            "https://a.example:0",
            "https://a.example:x",
            "https://[::1]x",
            "https://[::1",
            "https://a..b",
            "https://a._b.svc",
            "https://a-.example",
            "https://a b",
            "https://a\\b",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
