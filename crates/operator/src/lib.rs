//! The controllers, the manager that runs them, and the installation that puts the manager into a cluster.
//!
//! A controller is a folder with the same files as every other; this crate reads and writes the world, and decides
//! nothing: decisions are in `hangar-plan`, the runtime is `hangar-kit`.

mod admission;
mod contracts;
mod error;
pub mod install;
pub mod manager;

pub use error::Error;
pub use hangar_kit::lease::LeaseSettings;
pub use hangar_kit::settings::{ManagerSettings, WebhookCertificateSource, controller_namespace};
pub use hangar_kit::shutdown::on_signal as stop_on_signal;
pub use hangar_kit::telemetry::{LogFormat, LogLevel, OtlpSettings, TelemetrySettings};
pub use hangar_kit::webhook::WebhookTarget;
pub use hangar_plan::controllers::{Controller, Selection, SelectionError};
pub use hangar_plan::install::{DEFAULT_NAMESPACE, NAME as MANAGER_NAME};
