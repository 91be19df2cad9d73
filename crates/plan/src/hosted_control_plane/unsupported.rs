//! Lists the settings that have no effect yet, so that users are told.

use hangar_api::controlplane::v1alpha1::HostedControlPlaneSettings;

use super::Draft;
use super::conditions::settings_effective;
use super::program::refused_flags;
use super::validate::Validated;

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    for refused in refused_flags(validated.settings) {
        draft.report.decide(format!("ignore {}", refused.path()), refused.why());
    }
    let without_effect = without_effect(validated.settings);
    if without_effect.is_empty() {
        return draft.forget(settings_effective::TYPE);
    }
    draft.say(
        settings_effective::NOT_BUILT
            .waits("these settings to be removed, or a Hangar that knows them")
            .because(format!("accepted, but without effect yet: {}", without_effect.join(", "))),
    );
}

/// What the settings ask for and do not get.
pub(crate) fn without_effect(settings: &HostedControlPlaneSettings) -> Vec<&'static str> {
    let etcd = settings.etcd.as_ref();
    let api_server = settings.deployment.as_ref().and_then(|deployment| deployment.api_server.as_ref());
    [
        ("spec.etcd.backup: no backup is made", etcd.is_some_and(|etcd| etcd.backup.is_some())),
        ("spec.etcd.autoGrow: volumes do not grow", etcd.is_some_and(|etcd| etcd.auto_grow == Some(true))),
        ("spec.oidcProviders: no tokens are accepted", !settings.oidc_providers.is_empty()),
        (
            "spec.deployment.apiServer.audit: nothing is recorded",
            api_server.is_some_and(|api_server| api_server.audit.is_some()),
        ),
        ("spec.gateway: no route is made", settings.gateway.is_some()),
    ]
    .into_iter()
    .filter_map(|(text, is_given)| is_given.then_some(text))
    .collect()
}
