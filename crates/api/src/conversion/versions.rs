//! Which API version of a referenced kind to name.
//!
//! References in the hub name only group and kind; the older version also names an API version. Which one it is, is read
//! from the kind's CRD (see [`chosen`](crate::contract::chosen)). Whoever answers must have listed the CRDs once: what
//! is not known yet looks like a CRD that is missing, and readers of the older version would see `v1beta1` in its place.

/// Answers which version of a kind implements the newest contract; `None` when no such kind is known.
pub trait VersionLookup {
    /// The version (without group), such as `v1beta1`.
    fn version(&self, group: &str, kind: &str) -> Option<String>;
}

/// Knows no kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoVersions;

impl VersionLookup for NoVersions {
    fn version(&self, _group: &str, _kind: &str) -> Option<String> {
        None
    }
}
