//! Clones templates, of any kind, into the objects that Machines refer to.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Machine, MachineSpec};
use hangar_api::conditions::{Actor, Waiting};
use hangar_api::names;
use hangar_api::reference::ContractVersionedObjectReference;
use kube::core::{DynamicObject, ObjectMeta, TypeMeta};
use serde_json::{Value, json};

use super::{Clones, Observed, Template, desired};
use crate::conditions::shared::unreadable;
use crate::flow::Read;
use crate::hosted_control_plane::KubernetesVersion;
use crate::referred;

pub fn kind(template_kind: &str) -> Option<&str> {
    template_kind.strip_suffix("Template").filter(|kind| !kind.is_empty())
}

/// What has to happen before Machines can be made from the templates that this names; none when they can.
pub(crate) fn obstacle<T>(
    spec: &MachineSpec,
    bootstrap: Option<&Read<T>>,
    infrastructure: &Read<T>,
) -> Option<Waiting> {
    let templates = [
        ("bootstrap.configRef", spec.bootstrap.config_ref.as_ref(), bootstrap),
        ("infrastructureRef", Some(&spec.infrastructure_ref), Some(infrastructure)),
    ];
    templates.into_iter().find_map(|(field, reference, template)| {
        let (reference, template) = (reference?, template?);
        let owner = |on: String| Some(Waiting::new(Actor::ClusterOwner, on));
        let what = format!("{} {}", reference.kind, reference.name);
        if kind(&reference.kind).is_none() {
            return owner(format!(
                "a reference to a template instead of {what} in spec.template.spec.{field}"
            ));
        }
        match template {
            Read::One(_) => None,
            Read::Unknown(unknown) => Some(unreadable(&what, unknown)),
            Read::Absent | Read::Many(_) => {
                owner(format!("{what}, which spec.template.spec.{field} names, to be created"))
            }
        }
    })
}

/// What has to happen before Machines of this version can be made: a kubelet is never of a newer minor than its API
/// servers.
pub(crate) fn version_obstacle(spec: &MachineSpec, served: &Read<String>) -> Option<Waiting> {
    let text = spec.version.as_deref()?;
    let wanted = KubernetesVersion::parse(text)?;
    let served = match served {
        Read::Unknown(unknown) => return Some(unreadable("the version of the control plane", unknown)),
        read => read.iter().next()?,
    };
    let is_newer = KubernetesVersion::parse(served).is_some_and(|served| wanted.minor() > served.minor());
    let on = || format!("the control plane to serve {text}, which spec.template.spec.version asks for");
    is_newer.then(|| {
        Waiting::new(Actor::ClusterOwner, on())
            .because(format!("it serves {served}, and kubelets must not be newer"))
    })
}

/// The objects of a Machine that do not exist and never did: one that was there and is gone is not made again, since
/// the server behind it may hold data, or may still run.
pub(super) fn missing(observed: &Observed, machine: &Machine, clones: &Clones) -> Vec<DynamicObject> {
    let reached =
        machine.status.as_ref().and_then(|status| status.initialization.clone()).unwrap_or_default();
    let template = &observed.set.spec.template.spec;
    let mut objects = Vec::new();
    if reached.bootstrap_data_secret_created != Some(true)
        && clones.bootstrap == Some(Read::Absent)
        && let (Some(reference), Some(source)) =
            (&machine.spec.bootstrap.config_ref, &template.bootstrap.config_ref)
        && let Some(Read::One(template)) = &observed.bootstrap_template
    {
        objects.extend(clone(observed, machine, reference, source, template));
    }
    if reached.infrastructure_provisioned != Some(true)
        && clones.infrastructure == Read::Absent
        && let Read::One(found) = &observed.infrastructure_template
    {
        let (reference, source) = (&machine.spec.infrastructure_ref, &template.infrastructure_ref);
        objects.extend(clone(observed, machine, reference, source, found));
    }
    objects
}

/// None where the Machine refers to something else than a clone of this template under its own name.
fn clone(
    observed: &Observed,
    machine: &Machine,
    reference: &ContractVersionedObjectReference,
    source: &ContractVersionedObjectReference,
    template: &Template,
) -> Option<DynamicObject> {
    let is_ours = reference.api_group == source.api_group
        && kind(&source.kind) == Some(&reference.kind)
        && machine.metadata.name.as_ref() == Some(&reference.name);
    if !is_ours {
        return None;
    }
    let inner = &template.template;
    let texts = |field: &str| {
        let map = inner.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        map.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
    };
    let mut labels: BTreeMap<String, String> = texts("labels").collect();
    labels.extend(desired::labels(&observed.set));
    let mut annotations: BTreeMap<String, String> = texts("annotations").collect();
    annotations.extend(desired::annotations(&observed.set));
    annotations.retain(|name, _| desired::travels(name));
    annotations.insert(names::CLONED_FROM_NAME_ANNOTATION.to_owned(), source.name.clone());
    let group_kind = format!("{}.{}", source.kind, source.api_group);
    annotations.insert(names::CLONED_FROM_GROUP_KIND_ANNOTATION.to_owned(), group_kind);
    Some(DynamicObject {
        types: Some(TypeMeta { api_version: template.api_version.clone(), kind: reference.kind.clone() }),
        metadata: ObjectMeta {
            name: Some(reference.name.clone()),
            namespace: machine.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![referred::owner::<Machine>(&machine.metadata, true)]),
            ..ObjectMeta::default()
        },
        data: json!({ "spec": inner.get("spec").cloned().unwrap_or_else(|| json!({})) }),
    })
}
