//! Reads a MachineSet, its Machines and the objects that they refer to from the stores. Nothing is read live.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Machine, MachineDeployment, MachineSet};
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_kit::ObjectKey;
use hangar_kit::watch::Kept;
use hangar_plan::flow::Read;
use hangar_plan::machine_set::{Clones, Observed, Template, clone_kind};
use hangar_plan::referred;

use crate::context::Context;
use crate::referring::{self, of_cluster, served_version};

/// Whether the store of a template, of what is made from it, or of control planes has only just been started.
pub(super) fn is_starting(context: &Context, set: &MachineSet) -> bool {
    let templates = referring::of_machine(&set.spec.template.spec);
    let clones: Vec<ContractVersionedObjectReference> = templates
        .clone()
        .filter_map(|template| {
            let kind = clone_kind(&template.kind)?.to_owned();
            Some(ContractVersionedObjectReference { kind, ..template.clone() })
        })
        .collect();
    referring::is_version_starting(context, &cluster_of(set))
        || referring::is_starting(&context.foreign, templates.chain(&clones))
}

fn cluster_of(set: &MachineSet) -> ObjectKey {
    ObjectKey { namespace: set.metadata.namespace.clone(), name: set.spec.cluster_name.clone() }
}

/// What the stores show now.
pub(super) fn observe(context: &Context, root: &Kept<MachineSet>) -> Observed {
    let (key, set, watches) = (&root.key, &root.value, &context.watches);
    let spec = &set.spec.template.spec;
    let cluster = cluster_of(set);
    let template = |reference| template_of(context, key, reference);
    let mut observed = Observed {
        cluster: watches.clusters().get(&cluster).map(|kept| kept.value.clone()),
        served_version: served_version(context, &cluster),
        deployment: deployment(context, set),
        machines: of_cluster(watches.machines(), &cluster),
        bootstrap_template: spec.bootstrap.config_ref.as_ref().map(template),
        infrastructure_template: template(&spec.infrastructure_ref),
        clones: BTreeMap::new(),
        refusals: BTreeMap::new(),
        now: context.ambient.now(),
        set: set.clone(),
    };
    let incomplete: Vec<(String, Clones)> = observed
        .members()
        .into_iter()
        .filter(|machine| is_incomplete(machine))
        .map(|machine| (machine.metadata.name.clone().unwrap_or_default(), clones(context, key, machine)))
        .collect();
    observed.clones = incomplete.into_iter().collect();
    observed
}

fn deployment(context: &Context, set: &MachineSet) -> Option<MachineDeployment> {
    let owner =
        referred::controller(&set.metadata).filter(|owner| referred::is_kind::<MachineDeployment>(owner))?;
    let key = ObjectKey { namespace: set.metadata.namespace.clone(), name: owner.name.clone() };
    let read = context.watches.machine_deployments().get(&key);
    read.iter().find(|kept| kept.uid == owner.uid).map(|kept| kept.value.clone())
}

/// A template, in the version that its clones are written in.
fn template_of(
    context: &Context,
    key: &ObjectKey,
    reference: &ContractVersionedObjectReference,
) -> Read<Template> {
    let foreign = &context.foreign;
    let found = foreign.kept(key.namespace_or_empty(), reference);
    let Some(kind) = clone_kind(&reference.kind) else { return Read::Absent };
    let resource = match foreign.resource(&reference.api_group, kind) {
        Read::One(resource) => resource,
        Read::Unknown(unknown) => return Read::Unknown(unknown),
        Read::Absent | Read::Many(_) => {
            let group = &reference.api_group;
            return Read::unknown(format!(
                "the CRD of {kind}.{group} is not installed, or names no contract"
            ));
        }
    };
    found.map(|(kept, _)| Template {
        api_version: resource.api_version.clone(),
        metadata: kept.metadata.clone(),
        template: kept.data.pointer("/spec/template").cloned().unwrap_or_default(),
    })
}

fn clones(context: &Context, key: &ObjectKey, machine: &Machine) -> Clones {
    let exists = |reference| context.foreign.kept(key.namespace_or_empty(), reference).map(|_| ());
    Clones {
        bootstrap: machine.spec.bootstrap.config_ref.as_ref().map(exists),
        infrastructure: exists(&machine.spec.infrastructure_ref),
    }
}

/// Machines that have everything are not looked at again.
fn is_incomplete(machine: &Machine) -> bool {
    let reached =
        machine.status.as_ref().and_then(|status| status.initialization.clone()).unwrap_or_default();
    let is_complete = reached.bootstrap_data_secret_created == Some(true)
        && reached.infrastructure_provisioned == Some(true);
    !is_complete && machine.metadata.deletion_timestamp.is_none()
}
