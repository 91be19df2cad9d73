//! The environment's resolver: it knows the wildcard name of the Gateway and names that spell an address, and asks the private network's gateway for the
//! rest, where the machine crate's relay forwards queries to the host's resolver.
//!
//! It is the pinned CoreDNS, run by the supervisor of the management machine on that machine's address, which
//! everything that needs it can reach: the machine itself and its pods, other machines, the host. The host's own
//! resolver is not changed. This module only decides what to run and with which settings; all of it is pure.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use hangar_machine::{FileContent, Name, Service};

/// Where the settings lie in the machine. Changing them there is enough: they are read again.
pub const COREFILE_PATH: &str = "/etc/hangar/resolver/Corefile";

/// The standard port of DNS.
pub const PORT: u16 = 53;

/// Below it, `100-72-1-16` is the name of 100.72.1.16: for whatever has an address and needs a name, such as a load
/// balancer that reports no address.
pub const SPELLED: &str = "addresses.hangar.test";

/// What the resolver answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolverOptions {
    pub address: Ipv4Addr,
    /// The port, [`PORT`] except in tests.
    pub port: u16,
    /// Resolver of all other names; none where the host has no way out.
    pub upstream: Option<SocketAddr>,
    /// The names that lead to one address, if there is a Gateway.
    pub wildcard: Option<Wildcard>,
}

/// Names that all lead to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    /// Every name below this one, at any depth, but not this one itself.
    pub domain: String,
    pub address: Ipv4Addr,
}

/// The settings of CoreDNS.
pub fn corefile(options: &ResolverOptions) -> String {
    let mut text = String::new();
    if let Some(wildcard) = &options.wildcard {
        block(&mut text, options, &wildcard.domain, &wildcard_lines(wildcard));
    }
    block(&mut text, options, SPELLED, &spelled_lines());
    block(&mut text, options, ".", &upstream_lines(options.upstream));
    text
}

/// The file to write into the machine.
pub fn file(options: &ResolverOptions) -> FileContent {
    FileContent {
        path: PathBuf::from(COREFILE_PATH),
        content: corefile(options),
        mode: 0o644,
        only_if_missing: false,
    }
}

/// What the machine's supervisor runs. `program` is CoreDNS as the machine sees it.
pub fn service(program: &Path) -> hangar_machine::Result<Service> {
    let command = [program.to_string_lossy().into_owned(), "-conf".to_owned(), COREFILE_PATH.to_owned()];
    Ok(Service {
        when_exists: Some(PathBuf::from(COREFILE_PATH)),
        ..Service::new(Name::new("resolver")?, command)
    })
}

fn block(text: &mut String, options: &ResolverOptions, zone: &str, lines: &[String]) {
    let ResolverOptions { address, port, .. } = options;
    // Writing into a String cannot fail.
    let _ = writeln!(text, "{zone}:{port} {{\n    bind {address}\n    errors");
    for line in lines {
        let _ = writeln!(text, "    {line}");
    }
    // Shortest intervals that CoreDNS accepts.
    let _ = writeln!(text, "    reload 2s 1s\n}}");
}

fn wildcard_lines(wildcard: &Wildcard) -> Vec<String> {
    known_lines(&wildcard.domain, "([^.]+[.])+", &wildcard.address.to_string())
}

fn spelled_lines() -> Vec<String> {
    let digits = ["a", "b", "c", "d"].map(|name| format!("(?P<{name}>[0-9]{{1,3}})")).join("-");
    let address = ["a", "b", "c", "d"].map(|name| format!("{{{{ .Group.{name} }}}}")).join(".");
    known_lines(SPELLED, &format!("{digits}[.]"), &address)
}

/// Answers names that begin with the pattern and end with the domain.
fn known_lines(domain: &str, begin: &str, address: &str) -> Vec<String> {
    let end = domain.replace('.', "[.]");
    vec![
        "template IN A {".to_owned(),
        format!("    match \"^(?i:{begin}{end}[.])$\""),
        format!("    answer \"{{{{ .Name }}}} 60 IN A {address}\""),
        "    fallthrough".to_owned(),
        "}".to_owned(),
        // Other types, and the domain itself: they exist, with nothing in them. An error would make clients that ask
        // for both families give up.
        "template ANY ANY {".to_owned(),
        "    rcode NOERROR".to_owned(),
        format!(
            "    authority \"{domain}. 60 IN SOA ns.{domain}. hostmaster.{domain}. 1 3600 600 86400 60\""
        ),
        "}".to_owned(),
    ]
}

fn upstream_lines(upstream: Option<SocketAddr>) -> Vec<String> {
    let Some(upstream) = upstream else {
        return vec!["template ANY ANY {".to_owned(), "    rcode SERVFAIL".to_owned(), "}".to_owned()];
    };
    vec![
        format!("forward . {upstream} {{"),
        "    max_concurrent 1000".to_owned(),
        "}".to_owned(),
        "cache 30".to_owned(),
    ]
}
