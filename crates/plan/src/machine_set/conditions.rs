//! The conditions of a MachineSet, which a MachineDeployment has as well.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether Machines are missing.
    scaling_up = "ScalingUp", Negative, Own {
        good NOT_SCALING_UP = "NotScalingUp": "No Machine is missing.";
        bad SCALING_UP = "ScalingUp" [HANGAR, OWNER]: "Machines are missing. If none can be created, the message says why.";
        ..shared::reads;
    }

    /// Whether there are more Machines than wanted.
    scaling_down = "ScalingDown", Negative, Own {
        good NOT_SCALING_DOWN = "NotScalingDown": "There are no surplus Machines.";
        bad SCALING_DOWN = "ScalingDown" [HANGAR]: "Surplus Machines are being deleted.";
        ..shared::reads;
    }

    /// Whether the Machines are ready: merged from their Ready conditions.
    machines_ready = "MachinesReady", Positive, Merged {
        ..replicas;
        ..shared::reads;
    }

    /// Whether the Machines have the current template: merged from their UpToDate conditions.
    machines_up_to_date = "MachinesUpToDate", Positive, Merged {
        ..replicas;
        ..shared::reads;
    }

    /// Whether the object is being deleted.
    deleting = "Deleting", Negative, Own {
        good NOT_DELETING = "NotDeleting": "The object is not being deleted.";
        bad DELETING = "Deleting" [HANGAR]: "Hangar waits until everything that the object owns is deleted, and then removes its finalizer.";
    }
}

/// The reason of collected conditions where there is nothing to collect.
pub(crate) mod replicas {
    crate::conditions::reasons! {
        "", Positive;
        good NO_REPLICAS = "NoReplicas": "There are no Machines.";
    }
}
