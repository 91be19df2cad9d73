//! The phases of `up` and `down`, and the trait that reports them.

use std::fmt;
use std::time::Duration;

/// A phase. Each may be run again at any time and does only what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Whether this host can do it at all.
    Preflight,
    /// No other process changes the environment.
    Lock,
    /// The pinned programs, built where the cache has none.
    Programs,
    /// Packages of the distribution, unpacked into the cache.
    Packages,
    /// Images of the programs, in a form that machines share.
    Images,
    Network,
    /// Certificates and the control plane's manifests.
    Credentials,
    /// The machine with containerd.
    Machine,
    /// The machines of further nodes.
    Machines,
    /// The embedded cloud answers.
    Cloud,
    /// etcd and the API server answer.
    ControlPlane,
    /// What runs beside the control plane is there, as objects.
    Addons,
    /// The API server is ready, and controller-manager and scheduler may start.
    Controllers,
    /// The nodes are Ready.
    Node,
    Pods,
    /// What the cluster is there for runs in it.
    Hangar,
    /// A first Cluster is applied.
    Cluster,
    /// Its control plane serves.
    ClusterControlPlane,
    /// Its network add-on is there.
    ClusterNetwork,
    /// Its workers are Ready.
    ClusterWorkers,
    RemoveMachines,
    RemoveNetwork,
    /// The environment's files go.
    RemoveFiles,
}

impl Phase {
    /// The phases of `down`, in order.
    pub const DOWN: &'static [Self] =
        &[Self::Lock, Self::RemoveMachines, Self::RemoveNetwork, Self::RemoveFiles];

    /// What it does, as a heading.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preflight => "checking this host",
            Self::Lock => "lock",
            Self::Programs => "programs",
            Self::Packages => "packages",
            Self::Images => "images",
            Self::Network => "private network",
            Self::Credentials => "certificates",
            Self::Machine => "machine",
            Self::Machines => "further machines",
            Self::Cloud => "cloud",
            Self::ControlPlane => "control plane",
            Self::Node => "node",
            Self::Addons => "add-ons",
            Self::Controllers => "controllers",
            Self::Pods => "pods",
            Self::Hangar => "hangar",
            Self::Cluster => "cluster",
            Self::ClusterControlPlane => "cluster's control plane",
            Self::ClusterNetwork => "cluster's network",
            Self::ClusterWorkers => "cluster's workers",
            Self::RemoveMachines => "removing machines",
            Self::RemoveNetwork => "removing the private network",
            Self::RemoveFiles => "removing files",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Hears what is going on.
pub trait Progress: Send + Sync {
    /// A phase begins.
    fn started(&self, phase: Phase);
    /// Something worth showing happens in it.
    fn detail(&self, phase: Phase, text: &str);
    /// It is done, with what came of it.
    fn done(&self, phase: Phase, elapsed: Duration, outcome: &str);
    fn failed(&self, phase: Phase, elapsed: Duration, error: &crate::Error);
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn started(&self, _: Phase) {}
    fn detail(&self, _: Phase, _: &str) {}
    fn done(&self, _: Phase, _: Duration, _: &str) {}
    fn failed(&self, _: Phase, _: Duration, _: &crate::Error) {}
}
