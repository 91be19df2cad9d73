//! The controllers, the manager that runs them, and the installation of the manager in a cluster.
//!
//! Each controller is a folder with the same files. This crate reads and writes; all decisions are in `hangar-plan`,
//! and the runtime is `hangar-kit`.

mod admission;
pub mod backups;
mod clouds;
mod cluster;
mod context;
mod contracts;
pub mod controllers;
mod error;
mod gates;
mod hosted_control_plane;
pub mod install;
mod kubeadm_bootstrap;
mod machine;
mod machine_deployment;
mod machine_set;
pub mod manager;
mod openstack_cluster;
mod openstack_machine;
pub mod preview;
mod reconcile;
mod referring;

pub use context::Handles;

/// One cluster as a tree.
pub mod describe {
    pub use hangar_kit::describe::read;
    pub use hangar_plan::describe::{Node, Objects, Verdict, Waited, render, tree};
}

pub use error::Error;
pub use hangar_kit::descriptors::raise_limit as raise_limit_of_files;
pub use hangar_kit::lease::LeaseSettings;
pub use hangar_kit::metrics::Metrics;
pub use hangar_kit::settings::{ManagerSettings, WebhookCertificateSource, controller_namespace};
pub use hangar_kit::shutdown::on_signal as stop_on_signal;
pub use hangar_kit::telemetry::{LogFormat, LogLevel, OtlpSettings, Telemetry, TelemetrySettings};
pub use hangar_kit::webhook::WebhookTarget;
pub use hangar_plan::controllers::{Controller, Selection, SelectionError};
pub use hangar_plan::install::{DEFAULT_NAMESPACE, NAME as MANAGER_NAME};
pub use hangar_plan::limits::{Error as LimitsError, Limits};
pub use hangar_plan::namespaces::{Namespaces, NamespacesError};
