//! Lists the fields that are accepted and have no effect yet. A condition names them; the cluster is ready without
//! them.

use hangar_api::infrastructure::v1beta1::OpenStackClusterSpec;

use super::conditions::settings_effective;
use super::{Draft, endpoint};

pub(super) fn draft(draft: &mut Draft<'_>) {
    let idle = idle(&draft.observed.object.spec, endpoint::is_known(draft.observed));
    if idle.is_empty() {
        return draft.forget(settings_effective::TYPE);
    }
    let on = format!("{} to be removed", idle.join(", "));
    draft.say(settings_effective::UNSUPPORTED.waits(on).because("not supported, without effect"));
}

/// The fields without effect.
fn idle(spec: &OpenStackClusterSpec, has_endpoint: bool) -> Vec<&'static str> {
    let is_managed = !spec.managed_subnets.is_empty();
    let has_balancer = spec.api_server_load_balancer.as_ref().is_some_and(|given| given.enabled);
    let given = [
        (spec.bastion.is_some(), "spec.bastion"),
        (is_given(spec.api_server_floating_ip.as_ref()), "spec.apiServerFloatingIP"),
        (is_given(spec.api_server_fixed_ip.as_ref()), "spec.apiServerFixedIP"),
        (spec.api_server_port.is_some(), "spec.apiServerPort"),
        // Without an endpoint it has an effect: nothing is done, because the load balancer would have to give one.
        (has_balancer && has_endpoint, "spec.apiServerLoadBalancer"),
        // Managed subnets get a router of their own.
        (is_managed && spec.router.is_some(), "spec.router beside spec.managedSubnets"),
    ];
    given.into_iter().filter_map(|(is_given, name)| is_given.then_some(name)).collect()
}

/// An empty text asks for nothing.
fn is_given(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_effect_is_named() {
        let spec = OpenStackClusterSpec { api_server_port: Some(443), ..OpenStackClusterSpec::default() };
        assert_eq!(idle(&spec, true), ["spec.apiServerPort"]);
        assert!(idle(&OpenStackClusterSpec::default(), true).is_empty());
        let spec = |text: &str| {
            let text = format!("identityRef: {{name: clouds, cloudName: lab}}\n{text}");
            serde_saphyr::from_str::<OpenStackClusterSpec>(&text).unwrap()
        };
        assert_eq!(
            idle(&spec("apiServerLoadBalancer: {enabled: true}"), true),
            ["spec.apiServerLoadBalancer"]
        );
        assert!(idle(&spec("apiServerLoadBalancer: {enabled: true}"), false).is_empty());
        assert!(idle(&spec("apiServerLoadBalancer: {enabled: false}"), true).is_empty());
        let router = "router: {id: 0c0f1d4b-1111-4222-8333-444455556666}";
        assert!(idle(&spec(router), true).is_empty(), "an existing network has an existing router");
        let managed = format!("managedSubnets: [{{cidr: 10.6.0.0/24}}]\n{router}");
        assert_eq!(idle(&spec(&managed), true), ["spec.router beside spec.managedSubnets"]);
        let empty = OpenStackClusterSpec {
            api_server_fixed_ip: Some(String::new()),
            api_server_floating_ip: Some(String::new()),
            ..OpenStackClusterSpec::default()
        };
        assert!(idle(&empty, true).is_empty(), "an empty address asks for nothing");
    }
}
