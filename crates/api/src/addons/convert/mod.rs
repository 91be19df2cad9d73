//! Conversions between the versions of this group.

mod cluster_resource_set;
mod cluster_resource_set_binding;

#[cfg(test)]
mod tests;

use crate::conversion::Converter;

/// The kinds of this group that convert.
pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::of::<cluster_resource_set::ClusterResourceSetConversion>(),
    Converter::of::<cluster_resource_set_binding::ClusterResourceSetBindingConversion>(),
];
