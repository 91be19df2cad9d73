//! The steps of a Machine in the tenant.

use super::drain::{self, PodKey};
use super::node::NodePatch;
use crate::flow::{self, Identified, Never, StepId};

/// One call: writes to the management cluster, and to the tenant.
pub type Step = flow::Step<Never, NodeStep>;

/// One call to the tenant.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeStep {
    /// Labels, annotations and taints of the Node.
    Patch { name: String, patch: NodePatch },
    /// No more pods for the Node.
    Cordon { name: String },
    /// Asks a pod to leave.
    Evict {
        pod: PodKey,
        /// The one that was seen.
        uid: String,
        /// A shorter grace than its own, where nobody is left to use it.
        grace_seconds: Option<u32>,
    },
    /// Deletes the Node.
    Delete {
        name: String,
        /// The one that was seen.
        uid: String,
    },
}

impl Identified for NodeStep {
    fn id(&self) -> StepId {
        match self {
            Self::Patch { name, .. } => StepId::new("patch", "node", name),
            Self::Cordon { name } => StepId::new("cordon", "node", name),
            Self::Evict { pod, .. } => drain::step(pod),
            Self::Delete { name, .. } => StepId::new("delete", "node", name),
        }
    }
}
