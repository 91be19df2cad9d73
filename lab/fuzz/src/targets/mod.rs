//! The targets.

#![expect(clippy::panic, reason = "a target fails by a panic")]

mod admission;
mod clouds_yaml;
mod conversion;
mod embedded_cloud;
mod kubeconfigs;
mod manifests;
mod provider_ids;
mod user_data;
mod webhooks;

use crate::Target;

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "admission", run: admission::run },
    Target { name: "clouds-yaml", run: clouds_yaml::run },
    Target { name: "conversion", run: conversion::run },
    Target { name: "embedded-cloud", run: embedded_cloud::run },
    Target { name: "kubeconfigs", run: kubeconfigs::run },
    Target { name: "manifests", run: manifests::run },
    Target { name: "provider-ids", run: provider_ids::run },
    Target { name: "user-data", run: user_data::run },
    Target { name: "webhooks", run: webhooks::run },
];

/// An input that is text, or nothing.
fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}
