//! A real management cluster on one Linux host, without Docker, virtual machines or a cloud.
//!
//! [`OneHost`] is an environment by name: [`OneHost::up`] brings it up or repairs it, [`OneHost::down`] removes it,
//! [`OneHost::status`] and [`OneHost::collect_logs`] inspect it. The cluster runs in namespaced machines (see
//! `hangar_machine`), one for each node, from programs that `hangar_parts` built: the control plane as static pods of
//! the first, [`addons`] beside it, the [`provisioner`] and the [`resolver`] as services of machines.
//!
//! Invariants:
//! - Phases ([`Phase`]) are idempotent: `up` ends in the same cluster, with its data, whatever happened before.
//! - Everything of an environment is below `<state>/<name>`, in its machines or in its private network; `down` leaves
//!   only the cache. Nothing is installed on the host.
//! - Environments do not affect each other: their names and address ranges differ.

pub mod addons;
pub mod addresses;
pub mod cloud;
pub mod cluster;
mod down;
mod error;
pub mod images;
pub mod layout;
mod link;
pub mod linked_programs;
mod lock;
mod logs;
pub mod management;
mod nodes;
mod one_host;
mod payload;
mod phases;
mod progress;
pub mod provisioner;
pub mod resolver;
pub mod sample;
mod stale;
mod status;
mod up;

pub use hangar_machine::{MachineState, Name, supervise_main};
pub use hangar_parts::images::Image;
pub use hangar_parts::{Parts, Set};
pub use ipnet;

pub use error::{Error, PhaseError, Result};
pub use one_host::{OneHost, OwnProgram, STATE_DIRECTORY, UpOptions};
pub use payload::{Cluster, Installed, Installing, Payload, PayloadError};
pub use progress::{Phase, Progress, Silent};
pub use status::{MachineReport, NodeReport, PodReport, Status};
pub use up::Up;
