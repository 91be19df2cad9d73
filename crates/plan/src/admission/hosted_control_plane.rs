//! Admission of HostedControlPlanes and their templates: it refuses what is beyond the limits, flags that are not users'
//! to set, changes of Hangar's records and of the way in that nodes use, versions that cannot follow the one that served,
//! and a deletion that would delete the etcd of a Cluster that stays.

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::controlplane::v1alpha1::{
    ExposureType, HostedControlPlane, HostedControlPlaneSettings, HostedControlPlaneSpec,
};
use hangar_api::names::{ALLOW_DELETION_ANNOTATION, CLUSTER_NAME_LABEL, DELETE_FOR_MOVE_ANNOTATION};
use hangar_api::reference;
use kube::Resource as _;
use serde::Deserialize;
use serde_json::Value;

use super::template::unchanged;
use super::{CLEANERS, FieldError, Judgement, Lookup, Request, has_annotation, is_given, text};
use crate::flow::Read;
use crate::hosted_control_plane::exposure::{RecordedWay, asked};
use crate::hosted_control_plane::names::{
    EPOCH_ANNOTATION, ETCD_ANNOTATION, ETCD_VERSION_ANNOTATION, IDENTITY_ANNOTATION, KEYS_ANNOTATION,
    RESTORE_ANNOTATION, SERVED_VERSION_ANNOTATION, WAY_ANNOTATION,
};
use crate::hosted_control_plane::{
    DEFAULT_DOMAIN, KubernetesVersion, Names, backup_errors, placement_errors, refused, refused_flags,
    upgrade,
};
use crate::limits::{Limits, excess};

const RECORDS: [&str; 8] = [
    EPOCH_ANNOTATION,
    IDENTITY_ANNOTATION,
    ETCD_ANNOTATION,
    KEYS_ANNOTATION,
    WAY_ANNOTATION,
    SERVED_VERSION_ANNOTATION,
    ETCD_VERSION_ANNOTATION,
    RESTORE_ANNOTATION,
];

/// Most control planes have no record of etcd's version, and a young one none at all. Nobody else adds one: it has no way
/// back.
const OF_VERSIONS: [&str; 2] = [SERVED_VERSION_ANNOTATION, ETCD_VERSION_ANNOTATION];

/// What a template's fields are in.
const TEMPLATE: &str = "spec.template";

/// What was there before is not held against who writes now, nor against Hangar's own writes: it has a condition.
pub(super) fn validate(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let mut judgement = judged(request, |object| {
        specification(object)
            .map(|spec| opinion(&spec, lookup.limits(), &Surroundings::of(object, request, lookup)))
    });
    judgement.errors.extend(changed_records(request, lookup));
    judgement.errors.extend(changed_way(request));
    judgement.errors.extend(changed_version(request));
    judgement
}

/// Minors are not skipped, what served is not left for something older, and living kubelets are not left behind. What
/// served is on record, and status tells what serves now; what they do not tell yet, the plan sees and waits for.
fn changed_version(request: &Request<'_>) -> Vec<FieldError> {
    let Some(old) = request.old else { return Vec::new() };
    let Some((path, wanted)) = api_server_version(request.object) else { return Vec::new() };
    if api_server_version(old).is_some_and(|(_, before)| before.number() == wanted.number()) {
        return Vec::new();
    }
    let read = |text: &str| KubernetesVersion::parse(text);
    let record = old.pointer("/metadata/annotations").and_then(|all| all.get(SERVED_VERSION_ANNOTATION));
    let lowest = read(text(old, "/status/version"));
    // An earlier Hangar kept no record.
    let is_initialized = old.pointer("/status/initialized").and_then(Value::as_bool) == Some(true);
    let told = || lowest.clone().filter(|_| is_initialized);
    let Some(served) = record.and_then(Value::as_str).and_then(read).or_else(told) else {
        return Vec::new();
    };
    // While the last upgrade goes on, the oldest API server is what the next one would skip from.
    let skipped =
        lowest.filter(|lowest| lowest.minor() < served.minor() && wanted.number() > served.number());
    let error = upgrade::refusal(path, &wanted, skipped.as_ref().unwrap_or(&served));
    // What serves already can be returned to.
    let is_new_minor = wanted.minor() > served.minor();
    let kubelet = read(text(old, "/status/oldestKubeletVersion")).filter(|_| is_new_minor);
    let kubelets = kubelet.and_then(|oldest| upgrade::kubelets_refusal(path, &wanted, &oldest));
    error.into_iter().chain(kubelets).collect()
}

/// What an object asks API servers to be, and where it says so. The tag that is given for their image comes first.
fn api_server_version(object: &Value) -> Option<(&'static str, KubernetesVersion)> {
    let paths = [
        ("spec.deployment.apiServer.image.tag", "/spec/deployment/apiServer/image/tag"),
        ("spec.version", "/spec/version"),
    ];
    paths
        .into_iter()
        .find_map(|(path, pointer)| Some((path, KubernetesVersion::parse(text(object, pointer))?)))
}

/// Nodes and kubeconfigs keep the endpoint that was published, so the way to it stays; unless it is a name that people
/// gave, which they can let lead elsewhere. To go back to the recorded way is no change.
fn changed_way(request: &Request<'_>) -> Vec<FieldError> {
    let record =
        request.old.and_then(|old| old.pointer("/metadata/annotations")?.get(WAY_ANNOTATION)?.as_str());
    let Some(recorded) = record.and_then(RecordedWay::parse) else { return Vec::new() };
    let (before, after) = (request.old.and_then(specification), specification(request.object));
    let (Some(before), Some(after)) = (before, after) else { return Vec::new() };
    let (asked, was) = (asked(&after.settings), asked(&before.settings));
    let mut errors = Vec::new();
    if asked != was && asked != recorded.type_ && !recorded.is_name_given {
        let given = after.settings.exposure.as_ref().is_some_and(|exposure| exposure.type_.is_some());
        let field = if given { "spec.exposure.type" } else { "spec.gateway" };
        let why = format!(
            "the control plane is reached by {:?}, and nodes and kubeconfigs keep the endpoint that they have: this \
             would make it {asked:?}. It can change only under an endpoint whose host is a name that you gave",
            recorded.type_
        );
        errors.push(FieldError::forbidden(field, why));
    }
    let port = |spec: &HostedControlPlaneSpec| spec.settings.exposure.as_ref()?.node_port.as_ref()?.port;
    let endpoint = before.settings.control_plane_endpoint.clone().unwrap_or_default().port;
    let is_node_port = recorded.type_ == ExposureType::NodePort && asked == ExposureType::NodePort;
    if is_node_port && port(&after).is_some_and(|now| Some(now) != port(&before) && now != endpoint) {
        let why = format!("nodes and kubeconfigs keep port {endpoint}");
        errors.push(FieldError::forbidden("spec.exposure.nodePort.port", why));
    }
    errors
}

/// Hangar's records are Hangar's to change: names, members and keys follow from them.
fn changed_records(request: &Request<'_>, lookup: &dyn Lookup) -> Vec<FieldError> {
    let record =
        |object: Option<&Value>, name: &str| object?.pointer("/metadata/annotations")?.get(name).cloned();
    let is_changed = |name: &&str| {
        let before = record(request.old, name);
        // The others are there from the beginning, and one that was lost is put back by hand.
        let is_known = before.is_some() || (request.old.is_some() && OF_VERSIONS.contains(name));
        is_known && before != record(Some(request.object), name)
    };
    let changed: Vec<&str> = RECORDS.into_iter().filter(is_changed).collect();
    if changed.is_empty() || lookup.manager().as_deref() == Some(request.user) {
        return Vec::new();
    }
    let why = "Hangar recorded it, and everything of this control plane depends on it: it can be neither changed nor removed";
    let refusal = |name: &str| FieldError::forbidden(format!("metadata.annotations[{name}]"), why);
    changed.into_iter().map(refusal).collect()
}

/// A template is checked as the control planes that are made from it. Version and replicas are none of its fields. Like
/// other templates it cannot be changed, so that it still says how its control planes were made.
pub(super) fn validate_template(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let mut judgement = judged(request, |object| {
        let settings =
            HostedControlPlaneSettings::deserialize(object.pointer("/spec/template/spec")?).ok()?;
        let spec = HostedControlPlaneSpec { version: String::new(), replicas: 1, settings };
        let errors = opinion(&spec, lookup.limits(), &Surroundings::default());
        Some(errors.into_iter().map(|error| error.within(TEMPLATE)).collect())
    });
    judgement.errors.extend(unchanged(request, |_| ()));
    judgement
}

/// `kubectl scale` sends a number alone.
pub(super) fn scale(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    judged(request, |scale| {
        let replicas = scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
        let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
        let settings = HostedControlPlaneSettings::default();
        let spec = HostedControlPlaneSpec { version: String::new(), replicas, settings };
        Some(opinion(&spec, lookup.limits(), &Surroundings::default()))
    })
}

/// What is said of the object and was not to be said before. What cannot be read is the schema's to refuse.
fn judged(request: &Request<'_>, opinion: impl Fn(&Value) -> Option<Vec<FieldError>>) -> Judgement {
    let before = request.old.and_then(&opinion).unwrap_or_default();
    let mut now = opinion(request.object).unwrap_or_default();
    now.retain(|error| !before.contains(error));
    now.into()
}

fn specification(object: &Value) -> Option<HostedControlPlaneSpec> {
    HostedControlPlaneSpec::deserialize(object.get("spec")?).ok()
}

/// What is known of a control plane beside its specification. What is not known here, the plan knows and refuses.
#[derive(Default)]
struct Surroundings {
    /// Domain of the Cluster's services.
    domain: Option<String>,
    names: Option<Names>,
}

impl Surroundings {
    fn of(object: &Value, request: &Request<'_>, lookup: &dyn Lookup) -> Self {
        let Some(name) = cluster_of(object) else { return Self::default() };
        let found = lookup.seen(&Cluster::group(&()), &Cluster::kind(&()), request.namespace, name);
        let domain = found.iter().next().map(|cluster| {
            let given = text(cluster, "/spec/clusterNetwork/serviceDomain");
            if given.is_empty() { DEFAULT_DOMAIN } else { given }.to_owned()
        });
        let control_plane = HostedControlPlane::deserialize(object).ok();
        let names = control_plane.and_then(|control_plane| Names::of(&control_plane, name).ok());
        Self { domain, names }
    }
}

/// What the specification must not ask for.
fn opinion(spec: &HostedControlPlaneSpec, limits: &Limits, around: &Surroundings) -> Vec<FieldError> {
    let mut errors = excess(limits, spec);
    errors.extend(refused_flags(&spec.settings));
    errors.extend(placement_errors(&spec.settings));
    errors.extend(backup_errors(&spec.settings));
    errors.extend(refused(&spec.settings, around.domain.as_deref(), around.names.as_ref()));
    errors
}

/// The control plane of a Cluster goes with its Cluster. While nobody can tell whether the Cluster lives, the answer is
/// no as well: a second try costs less than an etcd.
pub(super) fn delete(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let permits = [ALLOW_DELETION_ANNOTATION, DELETE_FOR_MOVE_ANNOTATION];
    let is_permitted = permits.iter().any(|name| has_annotation(request.object, name));
    let Some(cluster) = cluster_of(request.object) else { return Judgement::default() };
    if is_permitted || CLEANERS.contains(&request.user) {
        return Judgement::default();
    }
    let why = match lookup.now(&Cluster::group(&()), &Cluster::kind(&()), request.namespace, cluster) {
        Read::Unknown(unknown) => format!("whether Cluster {cluster} still needs it is unknown ({unknown})"),
        found if found.iter().any(|found| needs(found, request)) => {
            format!("Cluster {cluster} lives and would lose its etcd")
        }
        _ => return Judgement::default(),
    };
    let way = format!("delete the Cluster, or annotate this object with {ALLOW_DELETION_ANNOTATION} first");
    vec![FieldError::forbidden("metadata.name", format!("{why}: {way}"))].into()
}

fn cluster_of(object: &Value) -> Option<&str> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner = owners
        .into_iter()
        .flatten()
        .find(|owner| reference::is_kind::<Cluster>(text(owner, "/apiVersion"), text(owner, "/kind")));
    let label = || object.pointer("/metadata/labels")?.get(CLUSTER_NAME_LABEL)?.as_str();
    owner.and_then(|owner| owner["name"].as_str()).or_else(label)
}

/// Whether the Cluster stays, and this is the control plane it names.
fn needs(cluster: &Value, request: &Request<'_>) -> bool {
    // Older versions of Cluster have no group in the reference: in doubt it is this one.
    let group = text(cluster, "/spec/controlPlaneRef/apiGroup");
    let is_named = (group.is_empty() || group == request.group)
        && text(cluster, "/spec/controlPlaneRef/kind") == request.kind
        && text(cluster, "/spec/controlPlaneRef/name") == text(request.object, "/metadata/name");
    is_named && !cluster.pointer("/metadata/deletionTimestamp").is_some_and(is_given)
}
