//! Admission of HostedControlPlanes: it refuses what is beyond the limits and flags that are not users' to set, warns of
//! settings without effect, and refuses a deletion that would delete the etcd of a Cluster that stays.

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::controlplane::v1alpha1::{HostedControlPlaneSettings, HostedControlPlaneSpec};
use hangar_api::names::{ALLOW_DELETION_ANNOTATION, CLUSTER_NAME_LABEL, DELETE_FOR_MOVE_ANNOTATION};
use hangar_api::reference;
use kube::Resource as _;
use serde::Deserialize;
use serde_json::Value;

use super::{CLEANERS, FieldError, Judgement, Lookup, Request, has_annotation, is_given, text};
use crate::flow::Read;
use crate::hosted_control_plane::{refused_flags, without_effect};
use crate::limits::{Limits, excess};

/// What was there before is not held against who writes now, nor against Hangar's own writes: it has a condition.
pub(super) fn validate(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let before = request.old.map(|old| refused(old, lookup.limits())).unwrap_or_default();
    let mut errors = refused(request.object, lookup.limits());
    errors.retain(|error| !before.contains(error));
    let mut judgement = Judgement::from(errors);
    let before = request.old.map(idle).unwrap_or_default();
    for words in idle(request.object) {
        if !before.contains(&words) {
            judgement.warn(words);
        }
    }
    judgement
}

/// What the object must not ask for. What cannot be read is the schema's to refuse.
fn refused(object: &Value, limits: &Limits) -> Vec<FieldError> {
    let spec = object.get("spec").and_then(|spec| HostedControlPlaneSpec::deserialize(spec).ok());
    let Some(spec) = spec else { return Vec::new() };
    excess(limits, &spec).into_iter().chain(refused_flags(&spec.settings)).collect()
}

/// What the object asks for and does not get. What cannot be read is the schema's to refuse.
fn idle(object: &Value) -> Vec<&'static str> {
    let settings = object.get("spec").and_then(|spec| HostedControlPlaneSettings::deserialize(spec).ok());
    settings.map(|settings| without_effect(&settings)).unwrap_or_default()
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
