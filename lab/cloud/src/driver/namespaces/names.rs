//! Kernel names, made from ids alone, so that what a killed driver left is found again without a record.

use hangar_machine::Name;
use uuid::Uuid;

/// The bridge in a network's namespace.
pub(super) const BRIDGE: &str = "br0";
/// A router's leg in the external network.
pub(super) const EXTERNAL: &str = "external";

const NETWORK: &str = "network-";
const ROUTER: &str = "router-";
const SERVER: &str = "server-";

/// A network's namespace.
pub(super) fn network(id: Uuid) -> hangar_machine::Result<Name> {
    Name::new(format!("{NETWORK}{id}"))
}

/// A router's namespace.
pub(super) fn router(id: Uuid) -> hangar_machine::Result<Name> {
    Name::new(format!("{ROUTER}{id}"))
}

pub(super) fn server(id: Uuid) -> hangar_machine::Result<Name> {
    Name::new(format!("{SERVER}{id}"))
}

/// What a name of ours stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Network(Uuid),
    Router(Uuid),
    Server(Uuid),
}

/// Reads a name; others' names mean nothing.
pub(super) fn meaning(name: &Name) -> Option<Meaning> {
    let id = |prefix: &str| name.as_str().strip_prefix(prefix)?.parse::<Uuid>().ok();
    id(NETWORK)
        .map(Meaning::Network)
        .or_else(|| id(ROUTER).map(Meaning::Router))
        .or_else(|| id(SERVER).map(Meaning::Server))
}

/// A router's link to a network, inside the router: from the port's id.
pub(super) fn leg(port: Uuid) -> String {
    link('q', port)
}

/// Whether a link in a router's namespace is such a leg.
pub(super) fn is_leg(name: &str) -> bool {
    name.starts_with("q-")
}

/// The other end of a leg: a port of the network's bridge.
pub(super) fn leg_port(port: Uuid) -> String {
    link('r', port)
}

/// The other end of a router's external leg: a port of the private network's bridge.
pub(super) fn external_port(router: Uuid) -> String {
    link('x', router)
}

fn link(letter: char, id: Uuid) -> String {
    // A link's name has 15 characters at most.
    let digits: String = id.simple().to_string().chars().take(12).collect();
    format!("{letter}-{digits}")
}

/// A locally administered hardware address that stays the same for the same id.
pub(super) fn mac(id: Uuid) -> [u8; 6] {
    let bytes = id.as_bytes();
    [0x02, bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]]
}

/// A host name from a server's name, as Nova makes it: what a host name cannot hold becomes a hyphen or goes.
pub(super) fn host_name(name: &str, id: Uuid) -> String {
    let kept: String = name
        .chars()
        .filter_map(|c| match c {
            ' ' | '_' => Some('-'),
            c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect();
    let kept: String = kept.trim_matches(['-', '.']).chars().take(63).collect();
    let kept = kept.trim_end_matches(['-', '.']);
    if kept.split('.').any(str::is_empty) { format!("{SERVER}{id}") } else { kept.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rename would orphan what an older version made.
    #[test]
    fn names_are_pinned_and_read_back() {
        let id: Uuid = "0b1c2d3e-4f50-4162-8374-95a6b7c8d9e0".parse().unwrap();
        for (name, text, means) in [
            (network(id), "network-0b1c2d3e-4f50-4162-8374-95a6b7c8d9e0", Meaning::Network(id)),
            (router(id), "router-0b1c2d3e-4f50-4162-8374-95a6b7c8d9e0", Meaning::Router(id)),
            (server(id), "server-0b1c2d3e-4f50-4162-8374-95a6b7c8d9e0", Meaning::Server(id)),
        ] {
            let name = name.unwrap();
            assert_eq!(name.as_str(), text);
            assert_eq!(meaning(&name), Some(means));
        }
        for other in ["management", "server-x", "private"] {
            assert_eq!(meaning(&Name::new(other).unwrap()), None);
        }
        assert_eq!(
            [leg(id), leg_port(id), external_port(id)],
            ["q-0b1c2d3e4f50", "r-0b1c2d3e4f50", "x-0b1c2d3e4f50"]
        );
        assert!(is_leg(&leg(id)) && !is_leg(EXTERNAL));
        assert_eq!(mac(id), [2, 0x0b, 0x1c, 0x2d, 0x3e, 0x4f]);
    }

    #[test]
    fn any_server_name_becomes_a_host_name() {
        let id = Uuid::nil();
        for (name, host) in [
            ("demo-md-0-x7k2p", "demo-md-0-x7k2p"),
            ("My server_1", "my-server-1"),
            ("a.b", "a.b"),
            ("-x-", "x"),
            ("schön", "schn"),
        ] {
            assert_eq!(host_name(name, id), host);
        }
        assert_eq!(host_name("äöü", id), format!("server-{id}"));
        assert_eq!(host_name("a..b", id), format!("server-{id}"));
        assert_eq!(host_name(&"x".repeat(80), id).len(), 63);
    }
}
