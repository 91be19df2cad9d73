//! Counters of a group of Machines.

use hangar_wire::wire;

/// Numbers of Machines, by state.
#[wire(lenient)]
pub struct ReplicaCounts {
    /// Machines that are available.
    pub available_replicas: Option<i32>,
    /// Machines that are wanted.
    pub desired_replicas: Option<i32>,
    /// Machines that are ready.
    pub ready_replicas: Option<i32>,
    /// Machines that exist.
    pub replicas: Option<i32>,
    /// Machines that are up to date.
    pub up_to_date_replicas: Option<i32>,
}
