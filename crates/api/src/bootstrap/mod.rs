//! `bootstrap.cluster.x-k8s.io`: how machines become nodes.
//!
//! Both versions are complete: every object that upstream accepts is accepted here. Types that are the same in both are
//! declared once, beside the versions; bounds that only the newer version has (`minProperties` of an object) are set on
//! the field that has the type (`newer`). Lists and objects are always `Option`s, because for some (taints, the control
//! plane section of a join) absent and empty mean different things.

#![allow(clippy::duplicated_attributes, reason = "each printer column names its type")]

mod container_linux_config;
mod convert;
mod discovery;
mod disk_setup;
mod env_var;
mod external_etcd;
mod file;
mod format;
mod host_path_mount;
mod ignition;
mod image;
mod kube_config_cluster;
mod newer;
mod ntp;
#[cfg(test)]
mod schema_tests;
mod taint;
mod user;
pub mod v1beta1;
pub mod v1beta2;

pub(crate) use convert::CONVERTERS;
use kube::CustomResourceExt;

use crate::crd::{Kind, absent_spec};

pub use container_linux_config::ContainerLinuxConfig;
pub use discovery::{
    BootstrapTokenDiscovery, FileDiscovery, FileDiscoveryKubeConfig, KubeConfigAuthExec,
    KubeConfigAuthExecEnv, KubeConfigAuthProvider, KubeConfigUser,
};
pub use disk_setup::{DiskSetup, Filesystem, Partition, TableType};
pub use env_var::{
    Divisor, EnvVar, EnvVarSource, FieldSelector, FileKeySelector, KeySelector, ResourceFieldSelector,
};
pub use external_etcd::ExternalEtcd;
pub use file::{Encoding, File, FileSource, SecretKey};
pub use format::Format;
pub use host_path_mount::HostPathMount;
pub use ignition::Ignition;
pub use image::{Dns, ImagePullPolicy, Patches};
pub use kube_config_cluster::KubeConfigCluster;
pub use ntp::Ntp;
pub use taint::Taint;
pub use user::{PasswdSource, User};

const CONTRACTS: &[(&str, &str)] = &[("v1beta1", "v1beta1"), ("v1beta2", "v1beta2")];
const PROVIDER: &str = "bootstrap-kubeadm";

/// The kinds of this group, for CRD generation.
pub fn kinds() -> Vec<Kind> {
    let kind = |older, newer| Kind {
        versions: vec![absent_spec::allow(older), absent_spec::allow(newer)],
        stored: "v1beta2",
        contracts: CONTRACTS,
        provider: PROVIDER,
    };
    vec![
        kind(v1beta1::KubeadmConfig::crd(), v1beta2::KubeadmConfig::crd()),
        kind(v1beta1::KubeadmConfigTemplate::crd(), v1beta2::KubeadmConfigTemplate::crd()),
    ]
}
