//! How Machines are replaced, in which order they are deleted, and how they are named.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which Machines are deleted first when there are too many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionOrder {
    /// Any of them.
    #[default]
    Random,
    /// The one created last.
    Newest,
    /// The one created first.
    Oldest,
}

/// How Machines of an old template are replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RolloutStrategyType {
    /// New ones are made and old ones removed step by step.
    #[default]
    RollingUpdate,
    /// A new one is created only after an old one is deleted.
    OnDelete,
}

/// How Machines are named.
#[wire(lenient)]
pub struct MachineNaming {
    /// Go template of the name. It may use .cluster.name and .machineSet.name, and must use .random.
    #[schemars(length(min = 1, max = 256))]
    pub template: Option<String>,
}
