//! Reports the endpoint. The control plane writes it if it runs as pods.

use hangar_api::contract::Endpoint;

use super::conditions::api_endpoint_ready;
use super::{ControlPlane, Draft, Observed};

/// The condition. An endpoint that the control plane has yet to write keeps nobody from being ready.
pub(super) fn draft(draft: &mut Draft<'_>) {
    if is_known(draft.observed) {
        return draft.say(api_endpoint_ready::READY);
    }
    if let Some((on, why)) = unsupported(draft.observed) {
        // Only an edit changes it, which is watched: the cloud is not asked meanwhile.
        return draft.say(api_endpoint_ready::UNSUPPORTED.waits(on).because(why));
    }
    let is_left_to_others = draft.observed.object.spec.disable_api_server_floating_ip == Some(true);
    if control_plane(draft.observed) == ControlPlane::Unknown && !is_left_to_others {
        let on = "the control plane object, which says whether an address is needed here";
        draft.say(api_endpoint_ready::WAITING_FOR_CONTROL_PLANE.waits(on));
    } else {
        draft.say(api_endpoint_ready::WAITING_FOR_ENDPOINT.waits("the endpoint of the control plane"));
    }
}

/// What is asked for and cannot be made: what is waited for, and why.
pub(super) fn unsupported(observed: &Observed) -> Option<(&'static str, &'static str)> {
    let spec = &observed.object.spec;
    if is_known(observed) {
        return None;
    }
    if spec.api_server_load_balancer.as_ref().is_some_and(|given| given.enabled) {
        let on = "spec.apiServerLoadBalancer.enabled to be false";
        return Some((on, "spec.apiServerLoadBalancer is not supported"));
    }
    let is_left_to_others = spec.disable_api_server_floating_ip == Some(true);
    (control_plane(observed) == ControlPlane::Machines && !is_left_to_others).then_some((
        "spec.disableAPIServerFloatingIP to be true",
        "a floating IP for control plane machines is not supported",
    ))
}

/// Whether somebody wrote it: here, or on the Cluster.
pub(super) fn is_known(observed: &Observed) -> bool {
    let spec = &observed.object.spec;
    spec.control_plane_endpoint.as_ref().is_some_and(Endpoint::is_valid)
        || observed.cluster.iter().any(|cluster| cluster.has_endpoint)
}

fn control_plane(observed: &Observed) -> ControlPlane {
    observed.cluster.iter().next().map(|cluster| cluster.control_plane).unwrap_or_default()
}
