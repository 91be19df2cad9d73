//! Plans the objects in the tenant: everything that a node needs to join and to run pods, except the pod network.
//!
//! Objects are independent: one that is refused, or that somebody else owns, stops no other. During an upgrade they are
//! rendered for the oldest API server, so that none is newer than the API server that serves it; add-ons also wait for
//! the controller manager and the scheduler.

use std::slice;
use std::time::Duration;

use hangar_api::conditions::Finding;
use kube::core::DynamicObject;

use super::conditions::workload_ready;
use super::exposure::{Reach, reach};
use super::material::Material;
use super::names::DESIRED_ANNOTATION;
use super::observed::{ObjectIdentity, Observed, TenantFacts, TenantObject};
use super::step::{Step, TenantStep};
use super::validate::Validated;
use super::version::KubernetesVersion;
use super::{
    Draft, access, controllers, core_dns, join, konnectivity, kube_proxy, kubeconfigs, tenant_rbac, trust,
    upgrade,
};
use crate::flow::{Identified as _, Read, Unknown, dynamic};
use crate::inventory;

/// A tenant that does not answer tells nobody when it does.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Everything, as far as what it needs was seen. Each object carries a hash of itself, by which it is told whether it was
/// applied.
pub(super) fn objects(observed: &Observed, validated: &Validated<'_>) -> Vec<DynamicObject> {
    // First whom people wait for, or who is to be gone.
    let serial = kubeconfigs::serial(observed, validated);
    let administration = serial.map(|serial| tenant_rbac::administration(validated.epoch, &serial));
    let mut objects = Vec::from_iter(administration);
    objects.extend(tenant_rbac::objects(validated.epoch));
    objects.extend(konnectivity::rights(validated.epoch));
    objects.push(dynamic(&join::kubelet_config(validated)));
    let authority = trust::bundle(observed, validated, Material::ClusterAuthority);
    if let (Ok(reach), Some(authority), Ok(versions)) =
        (reach(observed, validated), authority, versions(observed, validated))
    {
        objects.extend(addressed(observed, validated, &versions, (&reach, &authority)));
    }
    objects.into_iter().map(|object| inventory::marked(object, DESIRED_ANNOTATION)).collect()
}

/// The versions that objects are rendered for.
struct Versions {
    /// Of nodes that join.
    nodes: KubernetesVersion,
    addons: KubernetesVersion,
}

fn versions<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
) -> Result<Versions, &'observed Unknown> {
    let serving = controllers::serving_version(observed)?;
    let serving = serving.filter(|serving| serving.number() < validated.version.number());
    let nodes = serving.unwrap_or_else(|| validated.version.clone());
    Ok(Versions { nodes, addons: upgrade::addons(observed, validated)? })
}

/// Whether the administrator's kubeconfig of this serial works.
pub(super) fn is_bound(observed: &Observed, validated: &Validated<'_>, serial: &str) -> bool {
    let binding = tenant_rbac::administration(validated.epoch, serial);
    let binding = inventory::marked(binding, DESIRED_ANNOTATION);
    observed.tenant.iter().any(|tenant| !tenant.lacks_rights && tenant.has(slice::from_ref(&binding)))
}

/// What needs to know where the API server is, of which version, and whom to trust.
fn addressed(
    observed: &Observed,
    validated: &Validated<'_>,
    Versions { nodes: joining, addons }: &Versions,
    (reach, authority): (&Reach, &str),
) -> Vec<DynamicObject> {
    let nodes = observed.tenant.iter().map(|tenant| tenant.nodes).next().unwrap_or_default();
    let endpoint = &reach.nodes;
    let mut objects = vec![
        dynamic(&join::cluster_info(validated.epoch, endpoint, authority)),
        dynamic(&join::kubeadm_config(validated, joining, endpoint)),
    ];
    objects.extend(join::kubernetes_endpoints(validated.epoch, reach));
    if !kube_proxy::is_disabled(validated) {
        objects.extend(kube_proxy::objects(validated, addons, endpoint));
    }
    if let Ok(agents) = &reach.agents {
        objects.extend(konnectivity::agents(validated, (agents, endpoint), authority, nodes));
    }
    if !core_dns::is_disabled(validated) {
        objects.extend(core_dns::objects(validated, addons, endpoint, nodes));
    }
    objects
}

/// What must not be there.
pub(super) fn leftovers(validated: &Validated<'_>) -> Vec<ObjectIdentity> {
    let mut leftovers = vec![tenant_rbac::leftover()];
    if kube_proxy::is_disabled(validated) {
        leftovers.extend(kube_proxy::leftovers());
    }
    if core_dns::is_disabled(validated) {
        leftovers.extend(core_dns::leftovers());
    }
    leftovers
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let not_reached = workload_ready::NOT_REACHED.waits("an answer of the tenant's API server");
    let tenant = match &observed.tenant {
        Read::One(tenant) => tenant,
        Read::Unknown(unknown) => {
            draft.say(not_reached.because(&unknown.why));
            if matches!(&observed.api_server, Read::One(facts) if facts.ready > 0) {
                draft.again(LOOK_AGAIN);
            }
            return;
        }
        Read::Absent | Read::Many(_) => return draft.say(not_reached),
    };
    let mut foreign = Vec::new();
    let mut pending = Vec::new();
    let mut troubles = Vec::new();
    let objects =
        if tenant.lacks_rights { access::objects(validated.epoch) } else { objects(observed, validated) };
    for object in objects {
        let identity = ObjectIdentity::of(&object);
        match needed(tenant, &identity, &object) {
            Need::Nothing => {}
            Need::Unread => pending.push(identity.to_string()),
            Need::Foreign => foreign.push(identity.to_string()),
            Need::Apply(uid) => {
                let step = Step::Tenant(TenantStep::Apply { object: Box::new(object), uid });
                troubles.extend(observed.troubles.get(&step.id()).cloned());
                pending.push(identity.to_string());
                draft.step(step);
            }
        }
    }
    if tenant.lacks_rights {
        // Whoever gets rights has to wait a moment until the API server knows.
        draft.again(LOOK_AGAIN);
        let lacking = workload_ready::NO_RIGHTS.waits("Hangar's own rights in the tenant");
        let taken = name_taken(&foreign);
        return draft.say(taken.unwrap_or_else(|| lacking.because_of(troubles.first())));
    }
    for object in leftovers(validated) {
        if let Some(TenantObject::Ours { uid, .. }) = tenant.objects.get(&object) {
            pending.push(object.to_string());
            draft.step(Step::Tenant(TenantStep::Delete { object, uid: uid.clone() }));
        }
    }
    if trust::bundle(observed, validated, Material::ClusterAuthority).is_none() {
        pending.push("everything that needs to know the cluster's authority".to_owned());
    }
    if versions(observed, validated).is_err() {
        pending.push("everything that depends on the version of the API servers".to_owned());
    }
    draft.say(judged(observed, validated, &foreign, (&pending, &troubles)));
}

pub(super) enum Need {
    Nothing,
    Unread,
    Foreign,
    Apply(Option<String>),
}

pub(super) fn needed(tenant: &TenantFacts, identity: &ObjectIdentity, desired: &DynamicObject) -> Need {
    let hash =
        desired.metadata.annotations.as_ref().and_then(|annotations| annotations.get(DESIRED_ANNOTATION));
    match tenant.objects.get(identity) {
        None => Need::Unread,
        Some(TenantObject::Foreign) => Need::Foreign,
        Some(TenantObject::Absent) => Need::Apply(None),
        Some(TenantObject::Ours { uid, applied, is_drifted }) => {
            if *is_drifted || applied.as_ref() != hash {
                Need::Apply(Some(uid.clone()))
            } else {
                Need::Nothing
            }
        }
    }
}

fn judged(
    observed: &Observed,
    validated: &Validated<'_>,
    foreign: &[String],
    (pending, troubles): (&[String], &[String]),
) -> Finding {
    if let Some(taken) = name_taken(foreign) {
        taken
    } else if let Err(waiting) = reach(observed, validated).and_then(|reach| reach.agents) {
        workload_ready::NO_ADDRESS.waiting(waiting)
    } else if reach(observed, validated).is_ok_and(|reach| reach.targets.is_empty()) {
        workload_ready::NO_ADDRESS
            .waits("an address of the load balancer, or one that its name leads to")
            .because("pods of the tenant reach the API server by an address only")
    } else if let Some(first) = pending.first() {
        let on = match pending.len() - 1 {
            0 => format!("{first} in the tenant"),
            more => format!("{first} and {more} more in the tenant"),
        };
        workload_ready::APPLYING.waits(on).because_of(troubles.first())
    } else {
        workload_ready::APPLIED.into()
    }
}

fn name_taken(foreign: &[String]) -> Option<Finding> {
    let taken = workload_ready::NAME_TAKEN.waits("these objects to be deleted, so that they can be made");
    let names = format!("these names are taken in the tenant: {}", foreign.join(", "));
    (!foreign.is_empty()).then(|| taken.because(names))
}
