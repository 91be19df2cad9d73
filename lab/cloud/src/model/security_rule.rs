//! Rules of security groups: each allows some traffic.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Caller, Model, Refusal, Standard};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityRule {
    pub id: Uuid,
    /// Description and so on.
    #[serde(flatten)]
    pub standard: Standard,
    pub group: Uuid,
    /// Towards the machine, or away from it.
    pub ingress: bool,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Name or number; any without.
    pub protocol: Option<String>,
    /// First port, or ICMP's type.
    pub port_min: Option<u16>,
    /// Last port, or ICMP's code.
    pub port_max: Option<u16>,
    /// The other side by address.
    pub remote: Option<IpNet>,
    /// The other side by group.
    pub remote_group: Option<Uuid>,
}

impl SecurityRule {
    /// A rule that lets everything of one family through in one direction.
    pub fn anything(id: Uuid, standard: Standard, group: Uuid, ingress: bool, ipv6: bool) -> Self {
        Self {
            id,
            standard,
            group,
            ingress,
            ipv6,
            protocol: None,
            port_min: None,
            port_max: None,
            remote: None,
            remote_group: None,
        }
    }

    fn is_same(&self, rule: &Self) -> bool {
        self.group == rule.group
            && self.ingress == rule.ingress
            && self.ipv6 == rule.ipv6
            && number_in(self.ipv6, self.protocol.as_deref())
                == number_in(rule.ipv6, rule.protocol.as_deref())
            && self.port_min == rule.port_min
            && self.port_max == rule.port_max
            && restriction(self.remote) == restriction(rule.remote)
            && self.remote_group == rule.remote_group
    }

    /// As Neutron keeps it: every port is no ports, and ICMP over IPv6 has one name.
    fn normalized(mut self) -> Self {
        let number = number_in(self.ipv6, self.protocol.as_deref());
        if matches!(number, Some(6 | 17 | 33 | 132 | 136))
            && self.port_min == Some(1)
            && self.port_max == Some(u16::MAX)
        {
            (self.port_min, self.port_max) = (None, None);
        }
        if self.ipv6 && matches!(self.protocol.as_deref(), Some("icmp" | "icmpv6")) {
            self.protocol = Some("ipv6-icmp".into());
        }
        self
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.remote.is_some() && self.remote_group.is_some() {
            let words =
                "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.";
            return Err(Refusal::invalid("SecurityGroupMultipleRemoteEntites", words));
        }
        if let Some(remote) = self.remote.filter(|remote| remote.addr().is_ipv6() != self.ipv6) {
            let family = if self.ipv6 { "IPv6" } else { "IPv4" };
            let words = format!("Conflicting value ethertype {family} for CIDR {remote}");
            return Err(Refusal::invalid("SecurityGroupRuleParameterConflict", words));
        }
        let is_of_ipv6 = |name: &&str| *name == "icmpv6" || name.starts_with("ipv6-");
        if let Some(protocol) = self.protocol.as_deref().filter(is_of_ipv6).filter(|_| !self.ipv6) {
            let words = format!("Invalid ethertype IPv4 for protocol {protocol}.");
            return Err(Refusal::invalid("SecurityGroupEthertypeConflictWithProtocol", words));
        }
        let has_ports = self.port_min.is_some() || self.port_max.is_some();
        if has_ports { self.check_ports() } else { Ok(()) }
    }

    fn check_ports(&self) -> Result<(), Refusal> {
        let Some(protocol) = self.protocol.as_deref() else {
            let words = "Must also specify protocol if port range is given.";
            return Err(Refusal::invalid("SecurityGroupProtocolRequiredWithPorts", words));
        };
        match protocol_number(Some(protocol)) {
            Some(6 | 17 | 33 | 132 | 136) if self.port_min == Some(0) || self.port_max == Some(0) => {
                Err(Refusal::invalid("SecurityGroupInvalidPortValue", "Invalid value for port 0"))
            }
            Some(6 | 17 | 33 | 132 | 136) => match (self.port_min, self.port_max) {
                (Some(first), Some(last)) if first <= last => Ok(()),
                _ => {
                    let words = "For TCP/UDP protocols, port_range_min must be <= port_range_max";
                    Err(Refusal::invalid("SecurityGroupInvalidPortRange", words))
                }
            },
            Some(1 | 58) if self.port_min.is_none() => {
                let words = format!(
                    "ICMP code (port-range-max) {} is provided but ICMP type (port-range-min) is missing.",
                    self.port_max.unwrap_or_default()
                );
                Err(Refusal::invalid("SecurityGroupMissingIcmpType", words))
            }
            Some(1 | 58) => {
                let parts =
                    [("type", "port_range_min", self.port_min), ("code", "port_range_max", self.port_max)];
                let bad = parts.iter().find(|(_, _, value)| value.is_some_and(|value| value > 255));
                bad.map_or(Ok(()), |(field, attribute, value)| {
                    let words = format!(
                        "Invalid value for ICMP {field} ({attribute}) {}. It must be 0 to 255.",
                        value.unwrap_or_default()
                    );
                    Err(Refusal::invalid("SecurityGroupInvalidIcmpValue", words))
                })
            }
            _ => {
                let words = format!(
                    "Ports cannot be specified for protocol {}. Ports are only supported for DCCP, SCTP, TCP, UDP, UDPLITE.",
                    protocol_number(Some(protocol)).unwrap_or_default()
                );
                Err(Refusal::invalid("SecurityGroupInvalidProtocolForPort", words))
            }
        }
    }
}

/// Any address is no restriction.
fn restriction(remote: Option<IpNet>) -> Option<IpNet> {
    remote.filter(|range| range.prefix_len() > 0)
}

/// The same within a family: over IPv6 there is only one ICMP, whatever it is called.
fn number_in(ipv6: bool, protocol: Option<&str>) -> Option<u16> {
    protocol_number(protocol).map(|number| if ipv6 && number == 1 { 58 } else { number })
}

/// The number of a protocol by name or number. `None` is any, `Some(256)` an unknown one.
pub(crate) fn protocol_number(protocol: Option<&str>) -> Option<u16> {
    let protocol = protocol?;
    let number = match protocol.to_ascii_lowercase().as_str() {
        "any" | "0" => return None,
        "icmp" => 1,
        "igmp" => 2,
        "ipip" => 4,
        "tcp" => 6,
        "egp" => 8,
        "udp" => 17,
        "dccp" => 33,
        "ipv6-encap" => 41,
        "ipv6-route" => 43,
        "ipv6-frag" => 44,
        "rsvp" => 46,
        "gre" => 47,
        "esp" => 50,
        "ah" => 51,
        "ipv6-icmp" | "icmpv6" => 58,
        "ipv6-nonxt" => 59,
        "ipv6-opts" => 60,
        "ospf" => 89,
        "vrrp" => 112,
        "pgm" => 113,
        "sctp" => 132,
        "udplite" => 136,
        other => other.parse().ok().filter(|number| *number <= 255).unwrap_or(256),
    };
    Some(number)
}

impl Model {
    /// Makes a rule.
    pub fn create_security_rule(&mut self, new: SecurityRule) -> Result<(), Refusal> {
        if let Some(protocol) = new.protocol.as_deref().filter(|it| protocol_number(Some(it)) == Some(256)) {
            let words = format!(
                "Security group rule protocol {protocol} not supported. Only protocol values [None, 'ah', 'dccp', 'egp', 'esp', 'gre', 'icmp', 'icmpv6', 'igmp', 'ipip', 'ipv6-encap', 'ipv6-frag', 'ipv6-icmp', 'ipv6-nonxt', 'ipv6-opts', 'ipv6-route', 'ospf', 'pgm', 'rsvp', 'sctp', 'tcp', 'udp', 'udplite', 'vrrp'] and integer representations [0 to 255] are supported."
            );
            return Err(Refusal::invalid("SecurityGroupRuleInvalidProtocol", words));
        }
        new.check()?;
        let new = new.normalized();
        self.check_network_quota(&new.standard.project, "security_group_rule")?;
        if let Some(twin) = self.security_rules.values().find(|rule| new.is_same(rule)) {
            let words = format!("Security group rule already exists. Rule id is {}.", twin.id);
            return Err(Refusal::conflict("SecurityGroupRuleExists", words));
        }
        self.security_rules.insert(new.id, new);
        Ok(())
    }

    /// A rule that the caller may see.
    pub fn security_rule(&self, caller: &Caller, id: &str) -> Result<&SecurityRule, Refusal> {
        let rule = Uuid::parse_str(id).ok().and_then(|id| self.security_rules.get(&id));
        rule.filter(|rule| rule.standard.is_of(caller)).ok_or_else(|| {
            Refusal::not_found(
                "SecurityGroupRuleNotFound",
                format!("Security group rule {id} does not exist"),
            )
        })
    }

    /// Deletes a rule.
    pub fn delete_security_rule(&mut self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let id = self.security_rule(caller, id)?.id;
        self.security_rules.remove(&id);
        Ok(())
    }
}
