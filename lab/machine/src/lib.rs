//! Namespaced machines on one Linux host, in which real kubelets and real pods run without virtual machines, container
//! runtimes of the host, or a cloud.
//!
//! A machine is a Linux system in its own network, mount, process, host name, IPC and control group namespaces, over
//! overlays of the host's /usr, /etc and /var, with a private /dev and a supervisor as process 1. An [`Environment`]
//! contains machines and the private networks ([`net::Fabric`]) that connect them.
//!
//! Invariants:
//! - The host is left alone: except for one link per private network nothing in its network namespace changes, and none
//!   of its settings, filter rules, mounts (except the names of our network namespaces under /run/hangar) or programs.
//!   On cgroup v2 the controllers that kubelet needs are enabled in the root group where they were not.
//! - All that exists of an environment follows from its state directory and name: any process can list and remove it,
//!   also when the creator was killed at any moment, also after a restart of the host.
//! - A process is signalled only when it is proven to be ours (start time, boot, control group; pinned by a pidfd).
//!
//! A machine is not a security boundary: root inside is root of the same kernel. It separates systems that mean no
//! harm.
//!
//! Tested on cgroup v1 (hybrid) hosts. cgroup v2 is implemented and untested.
//!
//! This is the only crate of the workspace with unsafe code: leaving namespaces (`unshare`) and single calls between
//! fork and exec.

#[cfg(not(target_os = "linux"))]
compile_error!("machines need Linux: namespaces, control groups and overlayfs");

mod cgroup;
mod environment;
mod error;
pub mod host;
mod json_file;
mod lock;
mod log_file;
mod machine;
mod name;
pub mod net;
mod process;
mod readable;
mod record;
mod root;
mod service;
mod spec;
mod supervisor;
mod tree;

pub use environment::{Environment, SupervisorCommand};
pub use error::{Error, Result};
pub use machine::{Exec, Machine, MachineState, MachineStatus, SEEDED};
pub use name::Name;
pub use process::ProcessIdentity;
pub use service::{Ending, KillMode, Restart, Service, ServiceState, ServiceStatus, containerd_config};
pub use spec::{Bind, FileContent, Layers, MachineSpec};
pub use supervisor::supervise_main;
pub use tree::{fill_tree, link_tree};
