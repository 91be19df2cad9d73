//! Finds the API version of a referenced kind, for references of the older version.
//!
//! References in the hub name only group and kind; the older version also names an API version. It is read from the
//! kind's CRD (see [`chosen`](crate::contract::chosen)). Whoever implements this must have listed the CRDs once: a CRD
//! that was not listed yet looks like one that is missing, and readers of the older version would see `v1beta1`
//! instead.

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
