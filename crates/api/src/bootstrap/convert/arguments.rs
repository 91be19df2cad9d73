//! Conversion of components' flags: a map in the older version, a list in the newer one.

use std::collections::BTreeMap;

use crate::bootstrap::v1beta2::Arg;
use crate::conversion::absence::list;

/// The flags of a map, sorted by name.
pub(super) fn up(arguments: Option<BTreeMap<String, String>>) -> Option<Vec<Arg>> {
    list(arguments.map(|map| map.into_iter().map(|(name, value)| Arg { name, value }).collect()))
}

/// The flags of a list. Of flags that repeat, which validation refuses, the last counts, as on a command line.
pub(super) fn down(arguments: Option<Vec<Arg>>) -> Option<BTreeMap<String, String>> {
    arguments.map(|list| list.into_iter().map(|Arg { name, value }| (name, value)).collect())
}
