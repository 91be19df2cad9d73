//! Time synchronization of a machine; both versions have the same type.

use hangar_wire::wire;

/// Time synchronization of the machine.
#[wire]
pub struct Ntp {
    /// Whether the time service is turned on.
    pub enabled: Option<bool>,
    /// Time servers to use.
    #[schemars(length(max = 100), inner(length(min = 1, max = 512)), extend("x-kubernetes-list-type" = "atomic"))]
    pub servers: Option<Vec<String>>,
}
