//! Lists the settings that have no effect, so that users are told.

use super::certificates::fixed_lifetimes;
use super::conditions::settings_effective;
use super::program::refused_flags;
use super::validate::Validated;
use super::{Draft, Observed, exposure, pod_monitors, sources};

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let mut ignored = fixed(draft.observed, validated);
    for refused in refused_flags(validated.settings) {
        draft.report.decide(format!("ignore {}", refused.path()), refused.why());
        ignored.push(format!("{}: {}", refused.path(), refused.why()));
    }
    if pod_monitors::asked(validated).is_some() && draft.observed.pod_monitors.is_absent() {
        let why = "the management cluster has no PodMonitors (Prometheus Operator)";
        ignored.push(format!("spec.monitoring.podMonitors: {why}"));
    }
    let missing = sources::missing(draft.observed);
    let waiting = match (missing.is_empty(), ignored.is_empty()) {
        (true, true) => return draft.forget(settings_effective::TYPE),
        (false, _) => settings_effective::SOURCE_MISSING.waits("what these settings name"),
        (true, false) => settings_effective::IGNORED.waits("these settings to be removed"),
    };
    let parts = [("missing", missing.join(", ")), ("ignored", ignored.join(", "))];
    let said = parts.iter().filter(|(_, named)| !named.is_empty());
    let said: Vec<String> = said.map(|(what, named)| format!("{what}: {named}")).collect();
    draft.say(waiting.because(said.join("; ")));
}

/// What was decided when the control plane was made, and is another in the settings now.
fn fixed(observed: &Observed, validated: &Validated<'_>) -> Vec<String> {
    let ends = fixed_lifetimes(observed, validated).into_iter();
    let ends =
        ends.map(|field| format!("spec.certificates.{field}: authorities keep the end they were made with"));
    let asked = exposure::asked(validated.settings);
    let way = (asked != validated.exposure).then(|| {
        let kept = validated.exposure;
        format!("spec.exposure.type: it stays {kept:?}, because nodes and kubeconfigs use the endpoint that was published")
    });
    ends.chain(way).collect()
}
