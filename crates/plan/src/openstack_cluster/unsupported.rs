//! Lists the fields that are accepted and have no effect yet. A condition names them; the cluster is ready without
//! them.

use hangar_api::infrastructure::v1beta1::OpenStackClusterSpec;

use super::Draft;
use super::conditions::settings_effective;

pub(super) fn draft(draft: &mut Draft<'_>) {
    let idle = idle(&draft.observed.object.spec);
    if idle.is_empty() {
        return draft.forget(settings_effective::TYPE);
    }
    let on = format!("{} to be removed", idle.join(", "));
    draft.say(settings_effective::UNSUPPORTED.waits(on).because("not supported, without effect"));
}

/// The fields without effect.
fn idle(spec: &OpenStackClusterSpec) -> Vec<&'static str> {
    let given = [
        (spec.bastion.is_some(), "spec.bastion"),
        (is_given(spec.api_server_floating_ip.as_ref()), "spec.apiServerFloatingIP"),
        (is_given(spec.api_server_fixed_ip.as_ref()), "spec.apiServerFixedIP"),
        (spec.api_server_port.is_some(), "spec.apiServerPort"),
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
        assert_eq!(idle(&spec), ["spec.apiServerPort"]);
        assert!(idle(&OpenStackClusterSpec::default()).is_empty());
        let empty = OpenStackClusterSpec {
            api_server_fixed_ip: Some(String::new()),
            api_server_floating_ip: Some(String::new()),
            ..OpenStackClusterSpec::default()
        };
        assert!(idle(&empty).is_empty(), "an empty address asks for nothing");
    }
}
