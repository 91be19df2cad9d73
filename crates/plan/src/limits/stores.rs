//! Which addresses the manager connects to for backups.
//!
//! The store's host comes from a Secret that a tenant wrote, and the manager has ways that tenants have not: to other
//! pods, to nodes, to what a cloud tells its servers. So addresses that are everybody's are allowed, and all others only
//! where the operator named their network. What is only of a host, of a link or the API server's has to be named for
//! itself: a network that is larger does not allow it.
//!
//! It is asked for each connection with the address that a name led to (`hangar_etcd::AddressRule`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::Limits;

/// Addresses that mean something else for everybody who uses them: whole networks, and what allows one of their
/// addresses lies within them.
const OWN: [&str; 8] = [
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/3",
    "::/127",
    "fe80::/10",
    "ff00::/8",
    // What AWS tells its servers.
    "fd00:ec2::/32",
];

/// Addresses of networks that are not everybody's.
const PRIVATE: [&str; 14] = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "fc00::/7",
    "fec0::/10",
];

fn networks(of: &[&str]) -> Vec<IpNet> {
    of.iter().filter_map(|text| text.parse().ok()).collect()
}

impl Limits {
    /// Why a store at this address is not connected to; nothing where it may be.
    pub fn store_refusal(&self, address: IpAddr) -> Option<String> {
        let address = inner(address);
        let allowed = || self.backup_networks.iter().filter(|network| network.contains(&address));
        let refused = |why: &str| {
            Some(format!(
                "{address} {why}, and the limits of the manager do not allow it (setting backupNetworks)"
            ))
        };
        if self.api_servers.iter().any(|server| inner(*server) == address) {
            let is_named = allowed().any(|network| network.prefix_len() == network.max_prefix_len());
            return if is_named { None } else { refused("is the management cluster's API server") };
        }
        if let Some(own) = networks(&OWN).into_iter().find(|network| network.contains(&address)) {
            let is_named = allowed().any(|network| own.contains(network));
            return if is_named { None } else { refused("is an address of a host or of its link") };
        }
        let is_private = networks(&PRIVATE).iter().any(|network| network.contains(&address));
        if is_private && allowed().next().is_none() { refused("is no public address") } else { None }
    }
}

/// The address of IPv4 that one of IPv6 leads to, where it does: by mapping, by 6to4, or by a translator.
fn inner(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [first, second, third, .., seventh, eighth] = v6.segments();
    let four = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    if let Some(v4) = v6.to_ipv4_mapped() {
        return IpAddr::V4(v4);
    }
    let translated: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, seventh, eighth);
    // The oldest notation, ::192.0.2.1; the first two are addresses of IPv6.
    let is_compatible = v6.segments()[..6] == [0; 6] && (seventh, eighth) > (0, 1);
    match first {
        0x2002 => four(second, third),
        _ if v6 == translated || is_compatible => four(seventh, eighth),
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(networks: &str, address: &str) -> Option<String> {
        let mut limits = Limits::parse(&format!("backupNetworks: [{networks}]")).unwrap();
        limits.api_servers = vec!["10.96.0.1".parse().unwrap(), "203.0.113.9".parse().unwrap()];
        limits.store_refusal(address.parse().unwrap())
    }

    #[test]
    fn public_addresses_are_allowed_and_no_other() {
        for public in
            ["1.1.1.1", "52.216.0.1", "192.0.1.1", "223.255.255.1", "2a00:1450::1", "2606:4700::1111"]
        {
            assert_eq!(refused("", public), None, "{public}");
        }
        for inside in [
            "10.0.0.1",
            "100.64.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "198.18.0.1",
            "fd12::1",
            "2001:db8::1",
            "127.0.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "255.255.255.255",
            "239.1.1.1",
            "240.0.0.1",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            // The same by other ways.
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "2002:7f00:1::",
        ] {
            assert!(refused("", inside).unwrap().contains("(setting backupNetworks)"), "{inside}");
        }
    }

    #[test]
    fn networks_are_allowed_by_name_and_those_of_a_host_only_by_their_own() {
        assert_eq!(refused("10.1.0.0/16", "10.1.2.3"), None);
        assert!(refused("10.1.0.0/16", "10.2.2.3").is_some());
        assert_eq!(refused("\"fd12::/16\"", "fd12::1"), None);
        for (networks, address) in [
            ("0.0.0.0/0, \"::/0\"", "127.0.0.1"),
            ("0.0.0.0/0, \"::/0\"", "169.254.169.254"),
            ("0.0.0.0/0, \"::/0\"", "::1"),
            ("\"fd00::/8\"", "fd00:ec2::254"),
            // The API server, by each of its addresses.
            ("10.0.0.0/8", "10.96.0.1"),
            ("10.0.0.0/8", "::ffff:10.96.0.1"),
            ("0.0.0.0/0", "203.0.113.9"),
        ] {
            assert!(refused(networks, address).is_some(), "{networks} {address}");
        }
        assert_eq!(refused("127.0.0.0/8", "127.0.0.1"), None);
        assert_eq!(refused("127.0.0.1/32", "::ffff:127.0.0.1"), None);
        assert_eq!(refused("10.96.0.1/32", "10.96.0.1"), None);
    }

    #[test]
    fn every_network_here_can_be_read() {
        assert_eq!((networks(&OWN).len(), networks(&PRIVATE).len()), (OWN.len(), PRIVATE.len()));
    }
}
