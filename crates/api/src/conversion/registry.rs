//! The registry of the kinds that convert. A group adds one line here and one line per kind in its own `convert`
//! module.

use super::converter::Converter;
use crate::{addons, bootstrap, cluster};

/// Every kind's conversion, one entry per spoke version.
pub fn converters() -> impl Iterator<Item = &'static Converter> {
    [cluster::CONVERTERS, addons::CONVERTERS, bootstrap::CONVERTERS].into_iter().flatten()
}

/// The conversions of one kind.
pub(super) fn of_kind(group: &str, kind: &str) -> Vec<&'static Converter> {
    converters().filter(|converter| converter.group == group && converter.kind == kind).collect()
}
