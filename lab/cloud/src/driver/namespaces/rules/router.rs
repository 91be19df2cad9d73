//! Rules of one router's namespace: source translation, floating addresses, and the return path for clients that call a
//! floating address from behind the same router.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::super::names::EXTERNAL;
use super::addresses::Addresses;
use super::{TABLE, renew};
use crate::topology::Router;

/// The rules of a router. Translation is for IPv4 alone, as IPv6 needs none.
pub(in super::super) fn router(router: &Router) -> String {
    let mut text = renew("ip");
    // Writing into a String cannot fail.
    let _ = writeln!(text, "table ip {TABLE} {{");
    let _ = writeln!(text, "  chain prerouting {{");
    let _ = writeln!(text, "    type nat hook prerouting priority -100; policy accept;");
    let floating: Vec<(IpAddr, IpAddr)> = router
        .floating
        .iter()
        .filter(|(outside, inside)| outside.is_ipv4() && inside.is_ipv4())
        .map(|(outside, inside)| (*outside, *inside))
        .collect();
    for (outside, inside) in &floating {
        let _ = writeln!(text, "    ip daddr {outside} dnat to {inside}");
    }
    let _ = writeln!(text, "  }}\n  chain postrouting {{");
    let _ = writeln!(text, "    type nat hook postrouting priority 100; policy accept;");
    for (outside, inside) in &floating {
        let _ = writeln!(text, "    oifname \"{EXTERNAL}\" ip saddr {inside} snat to {outside}");
        // Back in without having left: the answer must come back here to be translated too.
        let _ = writeln!(
            text,
            "    oifname != \"{EXTERNAL}\" ct status dnat ip saddr {inside} snat to {outside}"
        );
    }
    if let (Some(IpAddr::V4(external)), true) = (router.external_address, router.translates_source) {
        let _ = writeln!(text, "    oifname \"{EXTERNAL}\" snat to {external}");
        let addresses = router.interfaces.values().flat_map(|interface| interface.addresses.iter().copied());
        let inside = Addresses::of(addresses).family(false).join(", ");
        if !inside.is_empty() {
            let _ = writeln!(
                text,
                "    oifname != \"{EXTERNAL}\" ct status dnat ip saddr {{ {inside} }} snat to {external}"
            );
        }
    }
    let _ = writeln!(text, "  }}\n}}");
    text
}
