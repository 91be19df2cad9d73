//! The status: conditions, and where machines can be put.

use hangar_api::conditions::{Actor, Finding, Severity, Waiting, set_severity};
use hangar_api::infrastructure::v1beta1::FailureDomain;

use super::{CloudFacts, Draft, unsupported};
use crate::flow::Read;
use crate::openstack::ready_last;

/// Recorded once: where machines are must not change by itself.
pub(super) fn failure_domains(draft: &mut Draft<'_>, facts: &CloudFacts) {
    if !draft.status.failure_domains.is_empty() {
        return;
    }
    let spec = &draft.observed.object.spec;
    match &facts.zones {
        Read::Unknown(unknown) => {
            let why = format!("availability zones: {unknown}");
            draft.unknown("FailureDomainsReady", &why);
        }
        zones => {
            let allowed = &spec.control_plane_availability_zones;
            let is_omitted = spec.control_plane_omit_availability_zone == Some(true);
            let domains = zones.iter().filter(|zone| zone.is_available).map(|zone| {
                let is_allowed = allowed.is_empty() || allowed.contains(&zone.name);
                let control_plane = Some(is_allowed && !is_omitted);
                (zone.name.clone(), FailureDomain { control_plane, ..FailureDomain::default() })
            });
            draft.status.failure_domains = domains.collect();
        }
    }
}

/// Writes what was noted.
pub(super) fn conditions(draft: &mut Draft<'_>) {
    let now = draft.now();
    let conditions = &mut draft.status.conditions;
    if draft.observed.is_paused() {
        // The older contract has no condition for it that tools know; ours says it all the same.
        let waiting = Waiting::new(Actor::ClusterOwner, "the end of the pause");
        set_severity(conditions, Finding::raised("Paused", "Paused", &waiting), Severity::Info, now);
        return;
    }
    conditions.retain(|condition| condition.r#type != "Paused");
    // A condition of a part that is no longer looked at would be old news.
    if draft.noted.is_empty() {
        return;
    }
    let noted = std::mem::take(&mut draft.noted);
    // Said only while there is something to say.
    let is_idle = noted.iter().any(|noted| noted.finding.type_() == unsupported::TYPE);
    conditions.retain(|condition| condition.r#type != unsupported::TYPE || is_idle);
    let has_zones = !draft.status.failure_domains.is_empty();
    conditions.retain(|condition| condition.r#type != "FailureDomainsReady" || !has_zones);
    ready_last(conditions, noted, now);
}
