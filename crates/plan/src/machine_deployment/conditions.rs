//! The conditions of a MachineDeployment, besides those that it shares with a MachineSet.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether enough Machines are available.
    available = "Available", Positive, Own {
        good AVAILABLE = "Available": "Enough Machines are available.";
        bad NOT_AVAILABLE = "NotAvailable" [HANGAR]: "Fewer Machines are available than required.";
        bad DELETING = "Deleting" [HANGAR]: "The MachineDeployment is being deleted.";
        ..shared::reads;
    }

    /// Whether Machines are being replaced.
    rolling_out = "RollingOut", Negative, Own {
        good NOT_ROLLING_OUT = "NotRollingOut": "All Machines have the current template.";
        bad ROLLING_OUT = "RollingOut" [HANGAR, OWNER]: "Machines with an older template exist.";
    }
}
