//! Detects copies of an object: someone saved it, changed its name and applied it again with all its annotations.
//!
//! The owner id is one of these annotations, and it belongs to the original. A copy that used it would delete what
//! belongs to the original.

use std::sync::Arc;

use hangar_kit::watch::Kept;
use hangar_plan::flow::Read;
use hangar_plan::openstack::owner_id;
use kube::Resource;

/// Another object with the same owner id that was there before this one: the id is its, not ours.
pub(crate) fn copied_from<K: Resource>(all: &Read<Arc<Kept<K>>>, object: &Kept<K>) -> Option<String> {
    let own = owner_id(object.meta().annotations.as_ref())?;
    // Seconds are coarse: of two that are equally old the uid decides, the same for both.
    let age = |kept: &Kept<K>| (kept.meta().creation_timestamp.clone().map(|time| time.0), kept.uid.clone());
    let twin = all.iter().find(|other| {
        other.uid != object.uid
            && owner_id(other.meta().annotations.as_ref()).as_ref() == Some(&own)
            && age(other) < age(object)
    });
    twin.map(|other| other.key.to_string())
}
