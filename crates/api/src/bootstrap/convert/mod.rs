//! Conversions between the versions of this group.
//!
//! Both directions leave out what would be empty: the newer version refuses empty lists and objects, the older one
//! writes `{}` for every empty section, and the two mean the same. Where they do not (the taints of a node, the control
//! plane section of a join), the value is passed on unchanged. Fields that only the older version has and that repeat
//! what the Cluster and the Machine say (`clusterName`, `kubernetesVersion`, `networking`) are dropped; the stash keeps
//! them for readers of the older version.

mod arguments;
mod cluster_configuration;
mod discovery;
mod etcd;
mod init_configuration;
mod join_configuration;
mod kubeadm_config;
mod kubeadm_config_template;
mod node_registration;
mod spec;
mod timeouts;

#[cfg(test)]
mod tests;

use crate::conversion::Converter;

/// The kinds of this group that convert.
pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::of::<kubeadm_config::KubeadmConfigConversion>(),
    Converter::of::<kubeadm_config_template::KubeadmConfigTemplateConversion>(),
];
