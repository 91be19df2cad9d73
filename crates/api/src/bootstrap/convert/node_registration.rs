//! Conversion of how a machine registers as a node.

use super::arguments;
use crate::bootstrap::{v1beta1, v1beta2};
use crate::conversion::absence::list;

pub(super) fn up(registration: v1beta1::NodeRegistration) -> v1beta2::NodeRegistration {
    let v1beta1::NodeRegistration {
        cri_socket,
        ignore_preflight_errors,
        image_pull_policy,
        image_pull_serial,
        kubelet_extra_args,
        name,
        taints,
    } = registration;
    v1beta2::NodeRegistration {
        cri_socket,
        ignore_preflight_errors: list(ignore_preflight_errors),
        image_pull_policy,
        image_pull_serial,
        kubelet_extra_args: arguments::up(kubelet_extra_args),
        name,
        // An empty list stays: it means no taints, not the default ones.
        taints,
    }
}

pub(super) fn down(registration: v1beta2::NodeRegistration) -> v1beta1::NodeRegistration {
    let v1beta2::NodeRegistration {
        cri_socket,
        ignore_preflight_errors,
        image_pull_policy,
        image_pull_serial,
        kubelet_extra_args,
        name,
        taints,
    } = registration;
    v1beta1::NodeRegistration {
        cri_socket,
        ignore_preflight_errors,
        image_pull_policy,
        image_pull_serial,
        kubelet_extra_args: arguments::down(kubelet_extra_args),
        name,
        taints,
    }
}
