//! Where the API server is reached: the control plane's affair, as long as it runs as pods.

use hangar_api::conditions::{Actor, Waiting};

use super::{ControlPlane, Draft};
use crate::openstack::Noted;

const TYPE: &str = "APIEndpointReady";

/// The condition. An endpoint that the control plane has yet to write keeps nobody from being ready.
pub(super) fn draft(draft: &mut Draft<'_>) {
    let spec = &draft.observed.object.spec;
    if spec.control_plane_endpoint.as_ref().is_some_and(hangar_api::contract::Endpoint::is_valid) {
        draft.noted.push(Noted::holds(TYPE, "Ready"));
        return;
    }
    let control_plane = draft.observed.cluster.iter().next().map(|cluster| cluster.control_plane);
    let has_load_balancer = spec.api_server_load_balancer.as_ref().is_some_and(|given| given.enabled);
    if has_load_balancer {
        let why = "spec.apiServerLoadBalancer is not supported";
        return draft.broken(TYPE, "Unsupported", "spec.apiServerLoadBalancer.enabled to be false", why);
    }
    let provider = Actor::controller("the control plane provider");
    let is_left_to_others = spec.disable_api_server_floating_ip == Some(true);
    match control_plane.unwrap_or_default() {
        ControlPlane::External => wait(draft, provider),
        _ if is_left_to_others => wait(draft, provider),
        ControlPlane::Unknown => {
            let on = "the control plane object, which says whether an address is needed here";
            draft.noted.push(Noted::waits(TYPE, "WaitingForControlPlane", &Waiting::new(provider, on)));
        }
        ControlPlane::Machines => {
            let why = "a floating IP for control plane machines is not supported";
            draft.broken(TYPE, "Unsupported", "spec.disableAPIServerFloatingIP to be true", why);
        }
    }
}

fn wait(draft: &mut Draft<'_>, provider: Actor) {
    let waiting = Waiting::new(provider, "the endpoint of the control plane");
    draft.noted.push(Noted::waits(TYPE, "WaitingForControlPlaneEndpoint", &waiting).beside());
}
