//! The conditions of a MachineSet; a MachineDeployment has them as well.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether Machines are missing.
    scaling_up = "ScalingUp", Negative, Own {
        good NOT_SCALING_UP = "NotScalingUp": "No Machine is missing.";
        bad SCALING_UP = "ScalingUp" [HANGAR, OWNER]: "Machines are missing; the message says why none is made, where none is.";
        ..shared::reads;
    }

    /// Whether there are more Machines than wanted.
    scaling_down = "ScalingDown", Negative, Own {
        good NOT_SCALING_DOWN = "NotScalingDown": "There are not too many Machines.";
        bad SCALING_DOWN = "ScalingDown" [HANGAR]: "Surplus Machines are on their way out.";
        ..shared::reads;
    }

    /// Whether the Machines are ready: collected from them.
    machines_ready = "MachinesReady", Positive, Merged {
        ..replicas;
        ..shared::reads;
    }

    /// Whether the Machines have the current template: collected from them.
    machines_up_to_date = "MachinesUpToDate", Positive, Merged {
        ..replicas;
        ..shared::reads;
    }

    /// Whether it is being deleted.
    deleting = "Deleting", Negative, Own {
        good NOT_DELETING = "NotDeleting": "It stays.";
        bad DELETING = "Deleting" [HANGAR]: "It waits for what it owns, then for its finalizer.";
    }
}

/// The reason of collected conditions where there is nothing to collect.
pub(crate) mod replicas {
    crate::conditions::reasons! {
        "", Positive;
        good NO_REPLICAS = "NoReplicas": "There are no Machines.";
    }
}
