//! Rules of one network's namespace: they drop forged senders and enforce the security groups.
//!
//! Packets between ports of a bridge have no routed interface, and the kernel's bridge family has no connection
//! tracking. So the work is shared: a `bridge` table knows the ports, drops packets with a forged sender, and marks
//! each forwarded packet with the numbers of the ports it comes from (upper half) and goes to (lower half). An `inet`
//! table, which sees bridged packets because `bridge-nf-call-iptables` is set, reads the mark and knows the connection.
//! Marks end where a packet leaves the namespace.
//!
//! Ports without rules (routers' legs, ports that are not secured) have number 0 and pass.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use uuid::Uuid;

use super::addresses::{Addresses, short};
use super::{TABLE, renew};
use crate::topology::{Port, SecurityRule, Topology};

const ICMP: u8 = 1;
const ICMP_OF_IPV6: u8 = 58;

/// A secured port and the bridge's end of its link.
struct Secured<'a> {
    number: usize,
    link: String,
    port: &'a Port,
}

/// The rules of a network. `link_of` tells the bridge's end of a port's link, if something is plugged into it.
pub(in super::super) fn network(
    topology: &Topology,
    network: Uuid,
    link_of: impl Fn(Uuid) -> Option<String>,
) -> String {
    let ports: Vec<Secured<'_>> = topology
        .ports
        .iter()
        .filter(|(_, port)| port.network == network && port.secured)
        .filter_map(|(id, port)| Some((link_of(*id)?, port)))
        .zip(1..)
        .map(|((link, port), number)| Secured { number, link, port })
        .collect();
    let mut text = renew("bridge");
    bridge_table(&mut text, &ports);
    text.push_str(&renew("inet"));
    inet_table(&mut text, topology, &ports);
    text
}

fn bridge_table(text: &mut String, ports: &[Secured<'_>]) {
    // Writing into a String cannot fail.
    let _ = writeln!(text, "table bridge {TABLE} {{");
    for Secured { number, port, .. } in ports {
        let mac = port.mac.map(|byte| format!("{byte:02x}")).join(":");
        let addresses = Addresses::of_port(port);
        let _ = writeln!(text, "  chain from-{number} {{");
        let _ = writeln!(text, "    ether saddr != {mac} drop");
        // 0.0.0.0 and :: ask whether an address is free; a link-local address follows from the hardware address.
        let v4 = [vec!["0.0.0.0".to_owned()], addresses.family(false)].concat().join(", ");
        let v6 = [vec!["::".to_owned(), "fe80::/10".to_owned()], addresses.family(true)].concat().join(", ");
        let _ = writeln!(text, "    ether type arp arp saddr ip != {{ {v4} }} drop");
        let _ = writeln!(text, "    ether type ip ip saddr != {{ {v4} }} drop");
        let _ = writeln!(text, "    ether type ip6 ip6 saddr != {{ {v6} }} drop");
        let _ = writeln!(text, "  }}");
    }
    let _ = writeln!(text, "  chain spoofing {{");
    let _ = writeln!(text, "    type filter hook prerouting priority -300; policy accept;");
    for Secured { number, link, .. } in ports {
        let _ = writeln!(text, "    iifname \"{link}\" jump from-{number}");
    }
    let _ = writeln!(text, "  }}\n  chain ports {{");
    // Before the bridge hands the packet to the inet family, at priority 0.
    let _ = writeln!(text, "    type filter hook forward priority -300; policy accept;");
    let _ = writeln!(text, "    meta mark set 0x0");
    for Secured { number, link, .. } in ports {
        let _ = writeln!(text, "    iifname \"{link}\" meta mark set meta mark or {:#x}", number << 16);
        let _ = writeln!(text, "    oifname \"{link}\" meta mark set meta mark or {number:#x}");
    }
    let _ = writeln!(text, "  }}\n}}");
}

fn inet_table(text: &mut String, topology: &Topology, ports: &[Secured<'_>]) {
    let _ = writeln!(text, "table inet {TABLE} {{");
    for (group, ipv6) in remote_groups(topology, ports) {
        let kind = if ipv6 { "ipv6_addr" } else { "ipv4_addr" };
        let _ = writeln!(text, "  set {} {{", set_name(group, ipv6));
        let _ = writeln!(text, "    type {kind}; flags interval;");
        let elements = Addresses::of_group(topology, group).family(ipv6).join(", ");
        if !elements.is_empty() {
            let _ = writeln!(text, "    elements = {{ {elements} }}");
        }
        let _ = writeln!(text, "  }}");
    }
    for Secured { number, port, .. } in ports {
        for (direction, ingress) in [("out", false), ("in", true)] {
            let _ = writeln!(text, "  chain {direction}-{number} {{");
            for rule in rules_of(topology, port).filter(|rule| rule.ingress == ingress) {
                let _ = writeln!(text, "    {} return", condition(rule));
            }
            let _ = writeln!(text, "    drop\n  }}");
        }
    }
    let _ = writeln!(text, "  chain forward {{");
    let _ = writeln!(text, "    type filter hook forward priority 0; policy accept;");
    let _ = writeln!(text, "    ct state established,related accept");
    // Without these nobody finds anybody's hardware address.
    let discovery = "nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, nd-router-advert";
    let _ = writeln!(text, "    icmpv6 type {{ {discovery} }} accept");
    for Secured { number, .. } in ports {
        let _ = writeln!(text, "    meta mark and 0xffff0000 == {:#x} jump out-{number}", number << 16);
    }
    for Secured { number, .. } in ports {
        let _ = writeln!(text, "    meta mark and 0xffff == {number:#x} jump in-{number}");
    }
    let _ = writeln!(text, "  }}\n}}");
}

/// All rules of a port's groups.
pub(super) fn rules_of<'a>(topology: &'a Topology, port: &'a Port) -> impl Iterator<Item = &'a SecurityRule> {
    let groups = port.security_groups.iter().filter_map(|group| topology.security_groups.get(group));
    groups.flat_map(|group| &group.rules)
}

fn remote_groups(topology: &Topology, ports: &[Secured<'_>]) -> BTreeSet<(Uuid, bool)> {
    let rules = ports.iter().flat_map(|secured| rules_of(topology, secured.port));
    rules.filter_map(|rule| Some((rule.remote_group?, rule.ipv6))).collect()
}

fn set_name(group: Uuid, ipv6: bool) -> String {
    format!("group-{}-v{}", group.simple(), if ipv6 { 6 } else { 4 })
}

/// What a packet must be for a rule to let it through.
pub(super) fn condition(rule: &SecurityRule) -> String {
    let mut parts = vec![format!("meta nfproto {}", if rule.ipv6 { "ipv6" } else { "ipv4" })];
    let family = if rule.ipv6 { "ip6" } else { "ip" };
    let side = if rule.ingress { "saddr" } else { "daddr" };
    if let Some(net) = rule.remote.filter(|net| net.prefix_len() > 0) {
        parts.push(format!("{family} {side} {}", short(net.trunc())));
    }
    if let Some(group) = rule.remote_group {
        parts.push(format!("{family} {side} @{}", set_name(group, rule.ipv6)));
    }
    parts.extend(protocol(rule));
    parts.join(" ")
}

fn protocol(rule: &SecurityRule) -> Vec<String> {
    let Some(number) = rule.protocol else { return Vec::new() };
    // ICMP has a type and a code where others have ports; the family decides which of the two it is.
    if matches!(number, ICMP | ICMP_OF_IPV6) {
        let keyword = if rule.ipv6 { "icmpv6" } else { "icmp" };
        let Some((kind, code)) = rule.ports else {
            return vec![format!("meta l4proto {}", if rule.ipv6 { ICMP_OF_IPV6 } else { ICMP })];
        };
        let code = code.map(|code| format!("{keyword} code {code}"));
        return [format!("{keyword} type {kind}")].into_iter().chain(code).collect();
    }
    let mut parts = vec![format!("meta l4proto {number}")];
    match rule.ports {
        Some((first, last)) if last.is_none_or(|last| last == first) => {
            parts.push(format!("th dport {first}"));
        }
        Some((first, Some(last))) => parts.push(format!("th dport {first}-{last}")),
        Some((_, None)) | None => {}
    }
    parts
}
