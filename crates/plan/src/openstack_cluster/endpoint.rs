//! Reports the endpoint. The control plane writes it if it runs as pods.

use super::conditions::api_endpoint_ready;
use super::{ControlPlane, Draft};

/// The condition. An endpoint that the control plane has yet to write keeps nobody from being ready.
pub(super) fn draft(draft: &mut Draft<'_>) {
    let spec = &draft.observed.object.spec;
    if spec.control_plane_endpoint.as_ref().is_some_and(hangar_api::contract::Endpoint::is_valid) {
        return draft.say(api_endpoint_ready::READY);
    }
    let control_plane = draft.observed.cluster.iter().next().map(|cluster| cluster.control_plane);
    let has_load_balancer = spec.api_server_load_balancer.as_ref().is_some_and(|given| given.enabled);
    if has_load_balancer {
        let on = "spec.apiServerLoadBalancer.enabled to be false";
        let why = "spec.apiServerLoadBalancer is not supported";
        return draft.broken(api_endpoint_ready::UNSUPPORTED, on, why);
    }
    let is_left_to_others = spec.disable_api_server_floating_ip == Some(true);
    match control_plane.unwrap_or_default() {
        ControlPlane::Machines if !is_left_to_others => {
            let why = "a floating IP for control plane machines is not supported";
            let on = "spec.disableAPIServerFloatingIP to be true";
            draft.broken(api_endpoint_ready::UNSUPPORTED, on, why);
        }
        ControlPlane::Unknown if !is_left_to_others => {
            let on = "the control plane object, which says whether an address is needed here";
            draft.say(api_endpoint_ready::WAITING_FOR_CONTROL_PLANE.waits(on));
        }
        ControlPlane::External | ControlPlane::Unknown | ControlPlane::Machines => {
            let on = "the endpoint of the control plane";
            draft.say(api_endpoint_ready::WAITING_FOR_ENDPOINT.waits(on));
        }
    }
}
