//! The failure domains in the status of an OpenStackCluster.

use hangar_api::infrastructure::v1beta1::FailureDomain;

use super::conditions::failure_domains_ready;
use super::{CloudFacts, Draft};
use crate::flow::Read;

/// Recorded once: where machines are must not change by itself.
pub(super) fn failure_domains(draft: &mut Draft<'_>, facts: &CloudFacts) {
    if !draft.status.failure_domains.is_empty() {
        return draft.forget(failure_domains_ready::TYPE);
    }
    let spec = &draft.observed.object.spec;
    match &facts.zones {
        Read::Unknown(unknown) => {
            let why = format!("availability zones: {unknown}");
            draft.unknown(failure_domains_ready::TYPE, &why);
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
