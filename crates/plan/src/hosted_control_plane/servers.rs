//! The servers that a specification names by URL and that an API server connects to by itself: issuers of tokens, and
//! receivers of audit records. There are no more of them than the CRD allows.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hangar_api::controlplane::v1alpha1::HostedControlPlaneSettings;

use super::address::Address;
use super::traffic::{Peer, Ports};

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

impl Server {
    /// As policies know it.
    pub(super) fn rule(self) -> (Peer, Ports) {
        match self.host {
            Host::Address(address) => (Peer::Address(address), Ports::One(self.port)),
            Host::Service { namespace } => (Peer::Namespace(namespace), Ports::All),
            Host::Name(name) => (Peer::Name(name), Ports::One(self.port)),
        }
    }
}

/// All of them, each once.
pub(super) fn servers(settings: &HostedControlPlaneSettings) -> BTreeSet<Server> {
    let api_server = settings.deployment.as_ref().and_then(|deployment| deployment.api_server.as_ref());
    let webhook = api_server.and_then(|api_server| api_server.audit.as_ref()?.webhook.as_ref());
    let targets = webhook.into_iter().flat_map(|webhook| &webhook.targets).map(|target| &target.server);
    settings.oidc_providers.keys().chain(targets).filter_map(|url| server(url)).collect()
}

/// Nothing for what is no URL of a server: nobody connects to it either.
pub(super) fn server(url: &str) -> Option<Server> {
    let Address { host: name, port, .. } = Address::parse(url).ok()?;
    Some(Server { host: host(&name), port })
}

fn host(text: &str) -> Host {
    if let Ok(address) = text.parse() {
        return Host::Address(address);
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let inside = name.strip_suffix(".svc").or_else(|| name.strip_suffix(".svc.cluster.local"));
    match inside.and_then(|inside| inside.split_once('.')) {
        Some((_, namespace)) if !namespace.contains('.') => Host::Service { namespace: namespace.to_owned() },
        _ => Host::Name(name.to_owned()),
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
            ("https://issuer.example.org.:8443/realms/a?b", name("issuer.example.org", 8443)),
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
