//! The status of a KubeadmConfig.

use hangar_api::bootstrap::v1beta2::KubeadmConfigInitializationStatus;
use hangar_api::conditions::{Finding, Term};

use super::conditions::{authority, certificates_available, data_secret_available, ready};
use super::{Draft, poll};
use crate::conditions::shared::reads;
use crate::flow::Read;

/// Nothing that is watched would say when these are over.
const POLLED: [&str; 4] = [
    data_secret_available::CLOCKS_DISAGREE.reason().name,
    data_secret_available::WAITING_FOR_SECRET.reason().name,
    data_secret_available::CONTROL_PLANE_UNREACHABLE.reason().name,
    reads::NOT_READABLE.reason().name,
];

/// The data is not there yet. The certificates are looked at only when everything else is there.
pub(super) fn waits(draft: &mut Draft<'_>, finding: Finding) {
    if POLLED.contains(&finding.reason()) {
        draft.wake_at(poll(draft.observed));
    }
    if finding.reason() == authority::WAITING_FOR_CERTIFICATES.reason().name {
        draft.say(finding.clone().about(certificates_available::TYPE));
    } else if matches!(draft.observed.authority_hashes, Read::One(_)) {
        draft.say(certificates_available::AVAILABLE);
    }
    draft.say(finding.about(data_secret_available::TYPE));
    summarise(draft);
}

/// The data is there, with what is odd about it.
pub(super) fn available(draft: &mut Draft<'_>, remark: Option<&str>) {
    draft.status.data_secret_name = Some(draft.observed.name().to_owned());
    draft.status.initialization = Some(KubeadmConfigInitializationStatus { data_secret_created: Some(true) });
    draft.say(certificates_available::AVAILABLE);
    draft.say(data_secret_available::AVAILABLE.remark(remark.unwrap_or_default()));
    summarise(draft);
}

fn summarise(draft: &mut Draft<'_>) {
    let terms = [
        Term::positive(data_secret_available::TYPE),
        Term::positive(certificates_available::TYPE).optional(),
    ];
    draft.summarise(ready::TYPE, &terms);
}
