//! Admission of Machines: the version gets its `v`, and the cluster's name cannot change.

use serde_json::Value;

use super::{FieldError, Judgement, Lookup, Request, is_missing, text};

pub(super) fn default(object: &mut Value) {
    prefix_version(object, "/spec/version");
}

/// `1.34.0` becomes `v1.34.0`, as image tags and Nodes spell it.
pub(super) fn prefix_version(object: &mut Value, pointer: &str) {
    if let Some(Value::String(version)) = object.pointer_mut(pointer)
        && version.starts_with(|first: char| first.is_ascii_digit())
    {
        version.insert(0, 'v');
    }
}

/// The name of the cluster stays. That there is none yet is no mistake: it may come next.
pub(super) fn validate(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let mut judgement = Judgement::default();
    let cluster = text(request.object, "/spec/clusterName");
    match request.old {
        Some(old) if text(old, "/spec/clusterName") != cluster => {
            judgement.errors.push(FieldError::forbidden("spec.clusterName", "it cannot be changed"));
        }
        None if !cluster.is_empty()
            && is_missing(lookup, request.group, "Cluster", request.namespace, cluster) =>
        {
            judgement.warn(format!("spec.clusterName: there is no Cluster {cluster:?} in this namespace"));
        }
        _ => {}
    }
    judgement
}
