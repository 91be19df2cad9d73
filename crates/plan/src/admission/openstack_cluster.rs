//! Admission of OpenStackClusters and their templates: values that the cloud would refuse later are refused now, by
//! field.

use serde_json::Value;

use super::network::{check_address, check_network, items};
use super::{FieldError, Judgement, Lookup, Request, template};

/// The lists of rules in `managedSecurityGroups`.
const RULE_LISTS: [&str; 3] =
    ["allNodesSecurityGroupRules", "controlPlaneNodesSecurityGroupRules", "workerNodesSecurityGroupRules"];

pub(super) fn validate(request: &Request<'_>, _: &dyn Lookup) -> Judgement {
    request.object.get("spec").map_or_else(Vec::new, |spec| check("spec", spec)).into()
}

pub(super) fn validate_template(request: &Request<'_>, _: &dyn Lookup) -> Judgement {
    let spec = request.object.pointer("/spec/template/spec");
    let mut errors = spec.map_or_else(Vec::new, |spec| check("spec.template.spec", spec));
    errors.extend(template::unchanged(request, |_| {}));
    errors.into()
}

fn check(path: &str, spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["apiServerFixedIP", "apiServerFloatingIP"] {
        errors.extend(check_address(format!("{path}.{field}"), spec.get(field)));
    }
    for (index, network) in items(spec.pointer("/apiServerLoadBalancer/allowedCIDRs")).iter().enumerate() {
        let path = format!("{path}.apiServerLoadBalancer.allowedCIDRs[{index}]");
        errors.extend(check_network(path, Some(network)));
    }
    for (index, subnet) in items(spec.get("managedSubnets")).iter().enumerate() {
        errors.extend(check_subnet(&format!("{path}.managedSubnets[{index}]"), subnet));
    }
    for list in RULE_LISTS {
        for (index, rule) in items(spec.pointer(&format!("/managedSecurityGroups/{list}"))).iter().enumerate()
        {
            errors.extend(check_rule(&format!("{path}.managedSecurityGroups.{list}[{index}]"), rule));
        }
    }
    errors
}

fn check_subnet(path: &str, subnet: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(check_network(format!("{path}.cidr"), subnet.get("cidr")));
    for (index, server) in items(subnet.get("dnsNameservers")).iter().enumerate() {
        errors.extend(check_address(format!("{path}.dnsNameservers[{index}]"), Some(server)));
    }
    for (index, pool) in items(subnet.get("allocationPools")).iter().enumerate() {
        for end in ["start", "end"] {
            errors.extend(check_address(format!("{path}.allocationPools[{index}].{end}"), pool.get(end)));
        }
    }
    errors
}

fn check_rule(path: &str, rule: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(check_network(format!("{path}.remoteIPPrefix"), rule.get("remoteIPPrefix")));
    // For ICMP the two are type and code, which have no order.
    let is_icmp = rule.get("protocol").and_then(Value::as_str).is_some_and(|name| name.contains("icmp"));
    let port = |field: &str| rule.get(field).and_then(Value::as_i64);
    if let (Some(first), Some(last), false) = (port("portRangeMin"), port("portRangeMax"), is_icmp)
        && first > last
    {
        let why = format!("it must not be above portRangeMax, which is {last}");
        errors.push(FieldError::invalid(format!("{path}.portRangeMin"), first, why));
    }
    errors
}
