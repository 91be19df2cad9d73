//! The status of a HostedControlPlane: the fields of both contract versions, and all conditions.
//!
//! The status is always written, from what is known now; a field whose source could not be read keeps its value.
//! Counters are written even when zero. `initialized` means that the API server has served once; it does not wait for
//! the objects in the tenant, because nodes wait for `initialized`, and some of those objects wait for nodes.

use hangar_api::conditions::{Actor, Bad, Finding, Good, Status, Term, Waiting};
use hangar_api::controlplane::v1alpha1::HostedControlPlaneInitialization;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_api::naming;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::conditions::{
    addons_ready, api_server_ready, available, certificates_valid, controllers_ready, deleting,
    endpoint_ready, etcd_cluster_healthy, nothing_done, ready, scaling_down, scaling_up, specification_valid,
};
use super::material::Material;
use super::names::{COMPONENT_LABEL, Component};
use super::observed::{ObjectIdentity, Observed, WorkloadFacts};
use super::validate::Validated;
use super::{Draft, alarms, database, endpoint, etcd, rolling_out, upgrade, volumes};
use crate::conditions::shared::{reads, unread};
use crate::flow::Read;

/// Why nothing is done: there is nothing to serve.
pub(super) fn unavailable(draft: &mut Draft<'_>, finding: Finding) {
    draft.say(finding.clone().about(available::TYPE));
    draft.say(finding.about(ready::TYPE));
}

/// Its API servers go first: whoever asks is told so from the beginning.
pub(super) fn leaving(draft: &mut Draft<'_>) {
    unavailable(draft, nothing_done::DELETING.waits("the control plane to be gone"));
    draft.status.ready = Some(false);
}

/// The specification cannot be rendered.
pub(super) fn invalid(draft: &mut Draft<'_>, finding: Finding) {
    draft.say(finding.clone().about(specification_valid::TYPE));
    left_alone(draft, finding);
}

/// Nothing is done. What runs already stays available.
pub(super) fn left_alone(draft: &mut Draft<'_>, finding: Finding) {
    if draft.condition(available::TYPE).is_none() {
        draft.say(finding.clone().about(available::TYPE));
    }
    draft.say(finding.about(ready::TYPE));
}

/// Counters of the API server's Deployment. What was not read stays as it was, but is never absent.
pub(super) fn counters(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let facts = match &observed.api_server {
        Read::Unknown(_) => None,
        read => Some(read.iter().next().cloned().unwrap_or_default()),
    };
    let wanted = observed.control_plane.spec.replicas;
    let status = &mut draft.status;
    status.external_managed_control_plane = Some(true);
    if let Some(WorkloadFacts { existing, updated, ready, .. }) = facts {
        status.replicas = Some(existing);
        status.ready_replicas = Some(ready);
        // Ready is available: the wait after it is only for rollouts.
        status.available_replicas = Some(ready);
        status.up_to_date_replicas = Some(updated);
        status.updated_replicas = Some(updated);
        status.unavailable_replicas = Some((wanted - ready).max(0));
    }
    for count in [
        &mut status.replicas,
        &mut status.ready_replicas,
        &mut status.available_replicas,
        &mut status.up_to_date_replicas,
        &mut status.updated_replicas,
        &mut status.unavailable_replicas,
    ] {
        count.get_or_insert_default();
    }
    // The lowest of all that stay, not of those that are ready this moment: kubelets must not be newer than any of them.
    let is_served = observed.api_server_pods.iter().any(|pod| pod.is_ready && !pod.is_deleting);
    if let Ok(Some(lowest)) = upgrade::oldest(&observed.api_server_pods)
        && is_served
    {
        status.version = Some(lowest.to_string());
    }
    if let Read::One(service) = &observed.service {
        status.legacy_ip = service.ingress_ips.first().cloned();
    }
}

/// What is true of a control plane that can be rendered, after all concerns have said theirs.
pub(super) fn rendered(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    draft.say(specification_valid::VALID);
    if !draft.is_deleting() {
        draft.say(deleting::NOT_DELETING);
    }
    let cluster = naming::label_value(validated.names.cluster());
    let unavailable = unserved(draft, validated);
    let is_served = unavailable.is_none();
    let available = unavailable.or_else(|| lacks_kubeconfig(observed, validated));
    let available = available.unwrap_or_else(|| available::AVAILABLE.into());
    let (is_available, is_unknown) = (available.is_good(), available.status() == Status::Unknown);
    draft.say(available);
    let status = &mut draft.status;
    let component = Component::ApiServer.as_str();
    status.selector = Some(format!("{CLUSTER_NAME_LABEL}={cluster},{COMPONENT_LABEL}={component}"));
    // What is not known stays as it was.
    if let Some((size, _)) = volumes::smallest(observed, validated) {
        status.etcd_volume_size = Some(Quantity(size));
    }
    if let Some(usage) = database::usage(observed) {
        status.etcd_volume_usage = Some(usage);
    }
    if let Read::One(tenant) = &observed.tenant
        && !tenant.lacks_rights
    {
        status.oldest_kubelet_version = tenant.oldest_kubelet.as_ref().map(ToString::to_string);
    }
    if !is_unknown {
        status.ready = Some(is_available);
    }
    // What has served has data, which is on record first.
    let is_new = is_served && observed.is_bootstrapped();
    let is_initialized = is_new || status.initialized.unwrap_or_default();
    status.initialized = Some(is_initialized);
    status.initialization =
        Some(HostedControlPlaneInitialization { control_plane_initialized: Some(is_initialized) });
    movements(draft, validated);
    let refused = observed.troubles.iter();
    let refused = refused.filter_map(|(step, why)| Some((ObjectIdentity::applied_by(step)?, why)));
    if let Some((object, why)) = refused.min() {
        draft.say(ready::OBJECT_REFUSED.waits(format!("{object} to be accepted")).because(why));
    } else {
        let mut terms = Vec::from([
            certificates_valid::TYPE,
            etcd_cluster_healthy::TYPE,
            api_server_ready::TYPE,
            controllers_ready::TYPE,
            endpoint_ready::TYPE,
        ]);
        // Without Nodes none can run.
        let addons = draft.condition(addons_ready::TYPE);
        if addons.is_some_and(|addons| addons.reason == addons_ready::NOT_RUNNING.reason().name) {
            terms.push(addons_ready::TYPE);
        }
        let terms: Vec<Term<'_>> = terms.into_iter().map(Term::positive).collect();
        draft.summarise(ready::TYPE, &terms);
    }
}

/// Why nobody is served, if so. To be asked when etcd's health was said.
fn unserved(draft: &Draft<'_>, validated: &Validated<'_>) -> Option<Finding> {
    let observed = draft.observed;
    let ready = match &observed.api_server {
        Read::Unknown(unknown) => {
            return Some(unread(available::TYPE, "the API server's Deployment", unknown));
        }
        read => read.iter().next().map_or(0, |facts| facts.ready),
    };
    let membership = etcd::membership(validated);
    let members = membership.members;
    let healthy = match &observed.etcd {
        Read::Unknown(unknown) => return Some(unread(available::TYPE, "etcd's StatefulSet", unknown)),
        read => etcd::running(read.iter().next()),
    };
    if alarms::is_said(draft) {
        // Before what may follow from it: with some alarms neither members nor API servers are ready.
        Some(available::ETCD_ALARM.waits("etcd's alarm to be disarmed, see EtcdClusterHealthy"))
    } else if ready == 0 {
        Some(available::NO_API_SERVER.waits("an API server to be ready"))
    } else if healthy < membership.quorum() {
        Some(available::NO_QUORUM.waits(format!("etcd's members, {healthy} of {members} are ready")))
    } else if let Read::Unknown(unknown) = &observed.service {
        Some(unread(available::TYPE, "the API server's Service", unknown))
    } else if let Err(waiting) = super::exposure::reach(observed, validated) {
        // An endpoint that was given leads nowhere without it.
        Some(available::NO_ENDPOINT.waiting(waiting))
    } else if let Some(obstacle) = super::exposure::obstacle(observed, validated) {
        let reason = match obstacle.status() {
            Status::Unknown => reads::NOT_READABLE.about(available::TYPE),
            _ => available::NO_ENDPOINT,
        };
        obstacle.waiting().map(|waiting| reason.waiting(waiting.clone()))
    } else if endpoint::known(observed, validated).is_none() {
        Some(available::NO_ENDPOINT.waiting(Waiting::new(Actor::Hangar, "an endpoint")))
    } else {
        None
    }
}

/// Whether whoever waits for the control plane could not log in. A kubeconfig that is deleted later is revoked, which takes
/// nothing from others.
fn lacks_kubeconfig(observed: &Observed, validated: &Validated<'_>) -> Option<Finding> {
    let was_available = observed.control_plane.status.as_ref().and_then(|status| status.ready) == Some(true);
    if was_available || !observed.secret(Material::Kubeconfig).is_absent() {
        return None;
    }
    let secret = validated.names.secret(Material::Kubeconfig);
    let tenant = observed.tenant.is_unknown().then_some("the tenant's API server gave no answer yet");
    Some(available::NO_KUBECONFIG.waits(format!("Secret {secret}")).because_of(tenant))
}

fn movements(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let facts = match &draft.observed.api_server {
        Read::Unknown(_) => return,
        read => read.iter().next(),
    };
    let wanted = validated.replicas;
    let existing = facts.map_or(0, |facts| facts.existing);
    // What cannot be read leaves the condition as it was.
    if let Ok(finding) = rolling_out::finding(draft.observed, validated) {
        draft.say(finding);
    }
    let mut movement = |is_moving: bool, bad: Bad, good: Good, on: &str| {
        draft.say(if is_moving { bad.waits(on) } else { good.into() });
    };
    let is_rolling = facts.is_some_and(|facts| facts.updated < facts.existing || !facts.is_observed);
    let on = &format!("{wanted} API servers, {existing} are there");
    movement(existing < wanted, scaling_up::SCALING_UP, scaling_up::NOT_SCALING_UP, on);
    let is_shrinking = existing > wanted && !is_rolling;
    movement(is_shrinking, scaling_down::SCALING_DOWN, scaling_down::NOT_SCALING_DOWN, on);
}
