//! Counters of a group of Machines.

use hangar_wire::wire;

/// How many Machines there are, by what is known about them.
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
