//! The pinned CoreDNS with our settings, queried over the network.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use hangar_host::resolver::{ResolverOptions, Wildcard, corefile};
use hangar_parts::{Parts, Process, ProcessSpec, Set};
use hangar_testbed::Port;

const ADDRESS: u16 = 1;
const ADDRESS_6: u16 = 28;
const NO_ERROR: u8 = 0;
const SERVER_FAILURE: u8 = 2;

/// An answer: its code, and the addresses in it.
#[derive(Debug, PartialEq)]
struct Reply {
    code: u8,
    addresses: Vec<Ipv4Addr>,
}

/// A resolver on a loopback port of its own.
struct Resolver {
    port: u16,
    directory: tempfile::TempDir,
    _process: Process,
    _held: Port,
}

/// One that stays ours for TCP, and that nobody has for UDP either.
fn free_port() -> Port {
    let is_free = |port: &Port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port.number())).is_ok();
    std::iter::repeat_with(|| Port::reserve().unwrap()).find(is_free).unwrap()
}

fn options(port: u16, upstream: Option<SocketAddr>, wildcard: Option<Ipv4Addr>) -> ResolverOptions {
    ResolverOptions {
        address: Ipv4Addr::LOCALHOST,
        port,
        upstream,
        wildcard: wildcard.map(|address| Wildcard { domain: "clusters.hangar.test".to_owned(), address }),
    }
}

impl Resolver {
    fn start(text: impl Fn(u16) -> String) -> Self {
        let parts = Parts::from_env().unwrap();
        parts.ensure(&[Set::Coredns]).unwrap();
        let held = free_port();
        let port = held.number();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("Corefile");
        std::fs::write(&file, text(port)).unwrap();
        let program = parts.program(Set::Coredns, "coredns").unwrap();
        let process = spec(&program, directory.path())
            .arguments(["-conf".to_owned(), file.display().to_string()])
            .start()
            .unwrap();
        let resolver = Self { port, directory, _process: process, _held: held };
        // Any answer means that it listens.
        for _ in 0..6000 {
            if resolver.try_ask("ready.clusters.hangar.test", ADDRESS).is_some() {
                return resolver;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("CoreDNS did not answer: {}", resolver.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("coredns.log")).unwrap_or_default()
    }

    fn ask(&self, name: &str, kind: u16) -> Reply {
        (0..10).find_map(|_| self.try_ask(name, kind)).unwrap_or_else(|| panic!("no answer: {}", self.log()))
    }

    fn try_ask(&self, name: &str, kind: u16) -> Option<Reply> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        socket.send_to(&question(name, kind), server).ok()?;
        let mut bytes = [0; 1500];
        let (length, _) = socket.recv_from(&mut bytes).ok()?;
        Some(reply(&bytes[..length]))
    }
}

fn spec(program: &Path, directory: &Path) -> ProcessSpec {
    ProcessSpec::new("coredns", program, directory.join("coredns.log"))
}

fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(1_u16.to_be_bytes());
    bytes
}

/// Reads an answer whose names are all pointers or plain labels, as CoreDNS writes them.
fn reply(bytes: &[u8]) -> Reply {
    let number = |at: usize| usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1]);
    let after_name = |mut at: usize| loop {
        match bytes[at] {
            0 => return at + 1,
            length if length >= 0xc0 => return at + 2,
            length => at += usize::from(length) + 1,
        }
    };
    let mut at = after_name(12) + 4;
    let mut addresses = Vec::new();
    for _ in 0..number(6) {
        at = after_name(at);
        let (kind, length) = (number(at), number(at + 8));
        if kind == usize::from(ADDRESS) {
            addresses.push(Ipv4Addr::new(bytes[at + 10], bytes[at + 11], bytes[at + 12], bytes[at + 13]));
        }
        at += 10 + length;
    }
    Reply { code: bytes[3] & 0xf, addresses }
}

#[test]
fn names_below_the_domain_lead_to_the_gateway_at_any_depth() {
    let gateway = Ipv4Addr::new(100, 72, 0, 200);
    let resolver = Resolver::start(|port| corefile(&options(port, None, Some(gateway))));
    for name in
        ["a.clusters.hangar.test", "konnectivity.a.clusters.hangar.test", "x.y.z.Clusters.Hangar.TEST"]
    {
        assert_eq!(resolver.ask(name, ADDRESS), Reply { code: NO_ERROR, addresses: vec![gateway] }, "{name}");
    }
    // No address of the other family, which is not an error: a client would stop at one.
    let nothing = Reply { code: NO_ERROR, addresses: Vec::new() };
    assert_eq!(resolver.ask("a.clusters.hangar.test", ADDRESS_6), nothing);
    assert_eq!(resolver.ask("clusters.hangar.test", ADDRESS), nothing);
    // Nobody to ask about the rest.
    for name in ["example.com", "notclusters.hangar.test"] {
        assert_eq!(
            resolver.ask(name, ADDRESS),
            Reply { code: SERVER_FAILURE, addresses: Vec::new() },
            "{name}"
        );
    }
}

#[test]
fn names_that_spell_an_address_lead_to_it() {
    let resolver = Resolver::start(|port| corefile(&options(port, None, None)));
    let spelled = Reply { code: NO_ERROR, addresses: vec![Ipv4Addr::new(100, 72, 1, 16)] };
    assert_eq!(resolver.ask("100-72-1-16.addresses.hangar.test", ADDRESS), spelled);
    let nothing = Reply { code: NO_ERROR, addresses: Vec::new() };
    assert_eq!(resolver.ask("100-72-1-16.addresses.hangar.test", ADDRESS_6), nothing);
    for name in ["100-72-1.addresses.hangar.test", "a.addresses.hangar.test", "addresses.hangar.test"] {
        assert_eq!(resolver.ask(name, ADDRESS), nothing, "{name}");
    }
}

#[test]
fn the_rest_is_forwarded_and_changed_settings_are_noticed() {
    let far = Ipv4Addr::new(192, 0, 2, 7);
    let upstream = Resolver::start(|port| {
        format!(
            ".:{port} {{\n bind 127.0.0.1\n template IN A {{\n answer \"{{{{ .Name }}}} 60 IN A {far}\"\n }}\n}}\n"
        )
    });
    let asked = SocketAddr::from((Ipv4Addr::LOCALHOST, upstream.port));
    let settings = |port, gateway| corefile(&options(port, Some(asked), gateway));
    let resolver = Resolver::start(|port| settings(port, None));
    let from_upstream = Reply { code: NO_ERROR, addresses: vec![far] };
    assert_eq!(resolver.ask("example.com", ADDRESS), from_upstream);
    assert_eq!(resolver.ask("b.clusters.hangar.test", ADDRESS), from_upstream);

    let gateway = Ipv4Addr::new(100, 72, 0, 200);
    std::fs::write(resolver.directory.path().join("Corefile"), settings(resolver.port, Some(gateway)))
        .unwrap();
    let is_changed = || resolver.ask("c.clusters.hangar.test", ADDRESS).addresses == [gateway];
    assert!((0..3000).any(|_| is_changed() || {
        std::thread::sleep(Duration::from_millis(100));
        false
    }));
    assert_eq!(resolver.ask("example.org", ADDRESS), from_upstream);
}
