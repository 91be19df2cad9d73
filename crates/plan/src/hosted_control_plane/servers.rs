//! The servers that a specification names by URL and that an API server connects to by itself: issuers of tokens, and
//! receivers of audit records. There are no more of them than the CRD allows.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use hangar_api::controlplane::v1alpha1::HostedControlPlaneSettings;

/// The longest name that a name server knows.
const NAME_LIMIT: usize = 253;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Server {
    pub(super) host: Host,
    pub(super) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    Address(IpAddr),
    /// A Service of the management cluster, written `<service>.<namespace>.svc`.
    Service {
        namespace: String,
    },
    Name(String),
}

/// All of them, each once.
pub(super) fn servers(settings: &HostedControlPlaneSettings) -> BTreeSet<Server> {
    let api_server = settings.deployment.as_ref().and_then(|deployment| deployment.api_server.as_ref());
    let webhook = api_server.and_then(|api_server| api_server.audit.as_ref()?.webhook.as_ref());
    let targets = webhook.into_iter().flat_map(|webhook| &webhook.targets).map(|target| &target.server);
    settings.oidc_providers.keys().chain(targets).filter_map(|url| server(url)).collect()
}

/// Nothing for what is no URL of a server: nobody connects to it either.
fn server(url: &str) -> Option<Server> {
    let (scheme, rest) = url.split_once("://")?;
    let default = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        (Host::Address(address.parse::<Ipv6Addr>().ok()?.into()), port)
    } else {
        let end = authority.find(':').unwrap_or(authority.len());
        let (name, port) = authority.split_at(end);
        (host(name)?, port)
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        None if port.is_empty() => default,
        None => return None,
    };
    Some(Server { host, port })
}

fn host(text: &str) -> Option<Host> {
    if let Ok(address) = text.parse() {
        return Some(Host::Address(address));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.bytes().all(is_letter)
    };
    if name.len() > NAME_LIMIT || !name.split('.').all(is_label) {
        return None;
    }
    let inside = name.strip_suffix(".svc").or_else(|| name.strip_suffix(".svc.cluster.local"));
    match inside.and_then(|inside| inside.split_once('.')) {
        Some((_, namespace)) if !namespace.contains('.') => {
            Some(Host::Service { namespace: namespace.to_owned() })
        }
        _ => Some(Host::Name(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_or_none() {
        let name = |host: &str, port| Some(Server { host: Host::Name(host.to_owned()), port });
        let address = |host: &str, port| Some(Server { host: Host::Address(host.parse().unwrap()), port });
        let service = |namespace: &str, port| {
            Some(Server { host: Host::Service { namespace: namespace.to_owned() }, port })
        };
        for (url, expected) in [
            ("https://Issuer.Example.org", name("issuer.example.org", 443)),
            ("https://issuer.example.org.:8443/realms/a?b#c", name("issuer.example.org", 8443)),
            ("http://audit.example.org/", name("audit.example.org", 80)),
            ("https://192.0.2.7:9443", address("192.0.2.7", 9443)),
            ("https://[2001:db8::7]/x", address("2001:db8::7", 443)),
            ("https://[2001:db8::7]:1", address("2001:db8::7", 1)),
            ("https://audit.logging.svc:8443/", service("logging", 8443)),
            ("https://audit.logging.svc.cluster.local", service("logging", 443)),
            ("https://a.b.c.svc", name("a.b.c.svc", 443)),
            ("https://svc", name("svc", 443)),
        ] {
            assert_eq!(server(url), expected, "{url}");
        }
        let long = format!("https://{}", "a.".repeat(200));
        for url in [
            "",
            "x",
            "https://",
            "https://:1",
            "https://a:0",
            "https://a:65536",
            "https://a:b",
            "ldap://a",
            "https://user@host",
            "https://a b",
            "https://a..b",
            "https://[::1",
            "https://[::1]x",
            "https://[a]",
            "https://*.a",
            &long,
        ] {
            assert_eq!(server(url), None, "{url}");
        }
    }
}
