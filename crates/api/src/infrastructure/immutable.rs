//! CEL rules that say which fields of an existing object can still be changed.
//!
//! A change of a field does not change what was made from it in the cloud: the old network, router or port would stay
//! behind. So every field of a spec is fixed unless it is listed here; that includes fields that are added to the types
//! later. A field that names something that was not found yet can be corrected, and a field that a condition asks to
//! remove can be removed.
//!
//! The rules are on the root of a kind, because the spec types are used elsewhere too: in bastions, which can be
//! changed, and in templates, where the webhook refuses changes because CEL rules cannot see dry runs.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, ValidationRule,
};

/// Fields that can always be changed: the credentials, and settings that only affect what is created later.
const FREE: [&str; 4] =
    ["identityRef", "tags", "controlPlaneAvailabilityZones", "controlPlaneOmitAvailabilityZone"];

/// The object has no endpoint yet.
const NO_ENDPOINT: &str = "oldSelf.spec.?controlPlaneEndpoint.?host.orValue('') == '' || oldSelf.spec.?controlPlaneEndpoint.?port.orValue(0) == 0";
/// A reference is replaced by another, or there is no network of ours that would stay behind.
const NOTHING_MADE: &str =
    "self.spec.?managedSubnets.orValue([]).size() == 0 || (has(self.spec.$) && has(oldSelf.spec.$))";
/// Fields that the load balancer is created with.
const LOAD_BALANCER: [&str; 7] =
    ["enabled", "additionalPorts", "provider", "network", "subnets", "availabilityZone", "flavor"];

const FOUND: &str = "cannot be changed: what it names is in use";
const REMOVABLE: &str = "can be removed, but not changed";

/// A field and when it can be changed, with `$` for its name, and the message otherwise.
type Exception = (&'static str, String, &'static str);

/// The rules of an OpenStackMachine.
pub(super) fn of_machine(definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let why = "cannot be changed: the server was made with it; change the template and replace the machine";
    let provider_id = "cannot be changed once it is set: it names the server";
    fixed(
        definition,
        &["identityRef"],
        &[("providerID", "!has(oldSelf.spec.$)".to_owned(), provider_id)],
        ("false", why),
    )
}

/// The rules of an OpenStackCluster.
pub(super) fn of_cluster(definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let unless = |status: &str| format!("!self.?status.?{status}.hasValue()");
    let made = unless("network");
    let ranges = ["subnet.cidr", "has(subnet.allocationPools) ? subnet.allocationPools : []"];
    let ranges = ranges.map(|range| same_or("[]", &format!(".map(subnet, {range})")));
    let balancer = LOAD_BALANCER.map(|member| same(&format!("$.{member}"))).join(" && ");
    let id = "has(self.spec.$) && has(self.spec.$.id) && self.spec.$.id == self.status.network.id";
    let id_at = |index: usize| {
        format!(
            "has(self.spec.$[{index}].id) && self.spec.$[{index}].id == self.status.network.$[{index}].id"
        )
    };
    let ids = format!(
        "has(self.spec.$) && has(self.status.network.$) && self.spec.$.size() == self.status.network.$.size() && {} && (self.spec.$.size() == 1 || ({}))",
        id_at(0),
        id_at(1)
    );
    let exceptions: [Exception; 13] = [
        (
            "managedSubnets",
            ranges.join(" && "),
            "cannot be added or removed, and only dnsNameservers can be changed: the network exists",
        ),
        ("network", format!("{made} ? {NOTHING_MADE} : {id}"), FOUND),
        ("subnets", format!("{made} || ({ids})"), FOUND),
        ("router", format!("{} && ({NOTHING_MADE})", unless("router")), FOUND),
        ("externalNetwork", unless("externalNetwork"), FOUND),
        (
            "managedSecurityGroups",
            format!("has(self.spec.$) || {}", unless("workerSecurityGroup")),
            "cannot be removed: the security groups exist",
        ),
        (
            "bastion",
            format!("has(self.spec.$) || {}", unless("bastion")),
            "cannot be removed while the bastion exists: set enabled to false first",
        ),
        (
            "apiServerLoadBalancer",
            format!(
                "{} || (has(self.spec.$) && has(oldSelf.spec.$) && {balancer})",
                unless("apiServerLoadBalancer")
            ),
            "only allowedCIDRs and monitor can be changed: the load balancer exists",
        ),
        (
            "controlPlaneEndpoint",
            NO_ENDPOINT.to_owned(),
            "cannot be changed once it is set: nodes and kubeconfigs use it",
        ),
        ("disableAPIServerFloatingIP", NO_ENDPOINT.to_owned(), "cannot be changed once the endpoint is set"),
        ("apiServerFloatingIP", format!("!has(self.spec.$) || {NO_ENDPOINT}"), REMOVABLE),
        ("apiServerFixedIP", format!("!has(self.spec.$) || {NO_ENDPOINT}"), REMOVABLE),
        ("apiServerPort", format!("!has(self.spec.$) || {NO_ENDPOINT}"), REMOVABLE),
    ];
    fixed(definition, &FREE, &exceptions, (&made, "cannot be changed: the network was made with it"))
}

/// A field is the same, or absent both times. Optionals would be shorter, but their cost counts as unbounded.
fn same(field: &str) -> String {
    let (new, old) = (format!("self.spec.{field}"), format!("oldSelf.spec.{field}"));
    format!("(has({new}) ? has({old}) && {new} == {old} : !has({old}))")
}

/// What follows from a field is the same, where no value counts as the empty one.
fn same_or(empty: &str, derived: &str) -> String {
    let of = |spec: &str| format!("(has({spec}.$) ? {spec}.$ : {empty}){derived}");
    format!("{} == {}", of("self.spec"), of("oldSelf.spec"))
}

/// A rule for each field of the spec that is not free.
fn fixed(
    mut definition: CustomResourceDefinition,
    free: &[&str],
    exceptions: &[Exception],
    (otherwise, why): (&str, &str),
) -> CustomResourceDefinition {
    for version in &mut definition.spec.versions {
        let Some(root) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) else {
            continue;
        };
        let spec = root.properties.as_ref().and_then(|properties| properties.get("spec"));
        let fields = spec.iter().flat_map(|spec| spec.properties.iter().flatten());
        let rules = fields.filter(|(name, _)| !free.contains(&name.as_str())).map(|(name, field)| {
            let listed = exceptions.iter().find(|(listed, ..)| listed == name);
            let (unless, message) =
                listed.map_or((otherwise, why), |(_, unless, message)| (unless.as_str(), *message));
            let unchanged = match field.type_.as_deref() {
                Some("array") => same_or("[]", ""),
                Some("boolean") => same_or("false", ""),
                _ => same("$"),
            };
            ValidationRule {
                rule: format!("{unchanged} || ({unless})").replace('$', name),
                message: Some(message.to_owned()),
                field_path: Some(format!(".spec.{name}")),
                reason: Some("FieldValueForbidden".to_owned()),
                ..ValidationRule::default()
            }
        });
        let rules: Vec<ValidationRule> = rules.collect();
        root.x_kubernetes_validations.get_or_insert_default().extend(rules);
    }
    definition
}
