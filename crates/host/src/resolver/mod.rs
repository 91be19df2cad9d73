//! The environment's resolver: it knows the wildcard name of the Gateway and asks the host's resolvers for the rest.
//!
//! It is the pinned CoreDNS, run by the supervisor of the management machine on that machine's address, because
//! everything that needs it can reach that address: the machine itself and its pods, other machines, the host. The
//! host's own resolver stays as it is. It asks by TCP, since nothing else leaves the private network. This module only says what to run and with which settings; all of it is pure.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use hangar_machine::{FileContent, Name, Service};

/// Where the settings lie in the machine. Changing them there is enough: they are read again.
pub const COREFILE_PATH: &str = "/etc/hangar/resolver/Corefile";

/// The port that everybody asks.
pub const PORT: u16 = 53;

/// Where a host with systemd-resolved keeps the resolvers behind its loopback one.
pub const RESOLVED_PATH: &str = "/run/systemd/resolve/resolv.conf";

/// What the resolver answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolverOptions {
    /// Where it listens.
    pub address: Ipv4Addr,
    /// The port, [`PORT`] except in tests.
    pub port: u16,
    /// Who is asked about everything else, in order; none where the host has no way out.
    pub upstreams: Vec<IpAddr>,
    /// The names that lead to one address, if there is a Gateway.
    pub wildcard: Option<Wildcard>,
}

/// Names that all lead to one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    /// Every name below this one, at any depth, but not this one itself.
    pub domain: String,
    /// Where they lead.
    pub address: Ipv4Addr,
}

/// The settings of CoreDNS.
pub fn corefile(options: &ResolverOptions) -> String {
    let mut text = String::new();
    if let Some(wildcard) = &options.wildcard {
        block(&mut text, options, &wildcard.domain, &wildcard_lines(wildcard));
    }
    block(&mut text, options, ".", &upstream_lines(&options.upstreams));
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

/// The resolvers that a `resolv.conf` names and that can be reached from elsewhere: a loopback address means somebody
/// else in a machine. Give it [`RESOLVED_PATH`]'s text where /etc/resolv.conf yields none.
pub fn upstreams(resolv_conf: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in resolv_conf.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        let Some(address) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
            // A link-local one (`fe80::1%eth0`) is of no use elsewhere either.
            continue;
        };
        if !address.is_loopback() && !address.is_unspecified() && !found.contains(&address) {
            found.push(address);
        }
    }
    found
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
    let Wildcard { domain, address } = wildcard;
    let pattern = domain.replace('.', "[.]");
    vec![
        "template IN A {".to_owned(),
        format!("    match \"^(?i:([^.]+[.])+{pattern}[.])$\""),
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

fn upstream_lines(upstreams: &[IpAddr]) -> Vec<String> {
    if upstreams.is_empty() {
        return vec!["template ANY ANY {".to_owned(), "    rcode SERVFAIL".to_owned(), "}".to_owned()];
    }
    let addresses: Vec<String> = upstreams.iter().map(ToString::to_string).collect();
    vec![
        format!("forward . {} {{", addresses.join(" ")),
        // The way out of the private network carries TCP alone.
        "    force_tcp".to_owned(),
        "    policy sequential".to_owned(),
        "    max_concurrent 1000".to_owned(),
        "}".to_owned(),
        "cache 30".to_owned(),
    ]
}
