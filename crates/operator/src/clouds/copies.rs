//! Detects copies of an object: someone saved it, changed its name and applied it again with all its annotations.
//!
//! The owner id is one of these annotations, and it belongs to the original. A copy that used it would delete what
//! belongs to the original.

use hangar_kit::watch::{Kept, Watch};
use hangar_plan::openstack::owner_id;
use kube::Resource;
use kube::core::ObjectMeta;

/// Another object with the same owner id that was there before this one: the id is its, not ours.
pub(crate) fn copied_from<K>(watch: &Watch<K>, object: &Kept<K>) -> Option<String>
where
    K: Resource + Send + Sync + 'static,
{
    let own = owner_id(object.meta().annotations.as_ref())?;
    // Seconds are coarse: of two that are equally old the uid decides, the same for both.
    let age = |meta: &ObjectMeta| (meta.creation_timestamp.clone().map(|time| time.0), meta.uid.clone());
    let is_twin = |meta: &ObjectMeta| {
        meta.uid != object.meta().uid
            && owner_id(meta.annotations.as_ref()).as_ref() == Some(&own)
            && age(meta) < age(object.meta())
    };
    let (all, unreadable) = (watch.all(), watch.unreadable());
    let readable = all.iter().map(|kept| (&kept.key, kept.meta()));
    let mut all = readable.chain(unreadable.iter().map(|kept| (&kept.key, &kept.metadata)));
    all.find(|(_, meta)| is_twin(meta)).map(|(key, _)| key.to_string())
}
