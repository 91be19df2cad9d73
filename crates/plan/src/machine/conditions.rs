//! The conditions of a Machine.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether the Machine has a Node that can be used: a summary of the conditions below, and of its readiness gates.
    ready = "Ready", Positive, Merged {}

    /// Whether the Machine has been ready for long enough.
    available = "Available", Positive, Own {
        good AVAILABLE = "Available": "The Machine has been ready for long enough.";
        bad NOT_READY = "NotReady" [HANGAR]: "The Machine is not ready; its other conditions say why.";
        bad WAITING_FOR_MIN_READY_SECONDS = "WaitingForMinReadySeconds" [HANGAR]: "The Machine is ready, but not for long enough.";
    }

    /// Whether the Machine has the current template of its MachineSet and MachineDeployment. Exists only if a MachineSet
    /// manages it.
    up_to_date = "UpToDate", Positive, Own {
        good UP_TO_DATE = "UpToDate": "The Machine has the current template.";
        bad NOT_UP_TO_DATE = "NotUpToDate" [HANGAR]: "The template has changed since the Machine was created.";
    }

    /// Whether the bootstrap data exists: the Ready condition of the bootstrap configuration.
    bootstrap_config_ready = "BootstrapConfigReady", Positive, Mirrored {
        good DATA_SECRET_PROVIDED = "DataSecretProvided": "The Machine has no bootstrap configuration; its user provides the data Secret.";
        good DATA_SECRET_CREATED = "DataSecretCreated": "The data was created; the bootstrap configuration no longer exists.";
        ..shared::references;
        ..shared::reads;
    }

    /// Whether the server is ready: the Ready condition of the infrastructure machine.
    infrastructure_ready = "InfrastructureReady", Positive, Mirrored {
        ..shared::references;
        ..shared::reads;
    }

    /// Whether the Node is ready and under no pressure.
    node_healthy = "NodeHealthy", Positive, Own {
        good NODE_HEALTHY = "NodeHealthy": "The Node is ready and under no pressure.";
        bad NODE_NOT_HEALTHY = "NodeNotHealthy" [KUBELET]: "The Node is not ready or under pressure; the condition repeats its message.";
        ..nodes;
    }

    /// Whether the Node is ready.
    node_ready = "NodeReady", Positive, Own {
        good NODE_READY = "NodeReady": "The Node is ready.";
        bad NODE_NOT_READY = "NodeNotReady" [KUBELET]: "The Node is not ready; the condition repeats its message.";
        unknown NOT_YET_REPORTED = "NotYetReported" [KUBELET]: "The Node has not reported yet whether it is ready.";
        ..nodes;
    }

    /// Whether the Machine is being deleted.
    deleting = "Deleting", Negative, Own {
        good NOT_DELETING = "NotDeleting": "The Machine is not being deleted.";
        bad PRE_DRAIN_HOOK = "WaitingForPreDrainHook" [ANNOTATOR]: "Annotations hold back the drain.";
        bad DRAINING = "DrainingNode" [HANGAR, OWNER, CONTROL_PLANE]: "Pods are being evicted from the Node; the message names those that are refused or waited for.";
        bad PRE_TERMINATE_HOOK = "WaitingForPreTerminateHook" [ANNOTATOR]: "Annotations hold back the deletion of the server.";
        bad WAITING_FOR_INFRASTRUCTURE = "WaitingForInfrastructureDeletion" [ITS_CONTROLLER]: "The infrastructure machine still exists.";
        bad WAITING_FOR_BOOTSTRAP = "WaitingForBootstrapDeletion" [ITS_CONTROLLER]: "The bootstrap configuration still exists.";
        bad WAITING_FOR_NODE = "WaitingForNodeDeletion" [CONTROL_PLANE]: "The Node still exists.";
        bad STATE_UNKNOWN = "DeletionStateUnknown" [OPERATOR]: "An object could not be read. Until it can be read, nothing is deleted.";
        bad COMPLETED = "DeletionCompleted" [HANGAR]: "Everything else is deleted; Hangar is about to remove its finalizer.";
    }
}

/// Reasons of both conditions about the Node.
pub(crate) mod nodes {
    crate::conditions::reasons! {
        "", Positive;
        bad WAITING_FOR_SERVER = "WaitingForServer" [HANGAR, CONTROL_PLANE]: "The server does not exist yet, or the control plane has not accepted requests yet.";
        bad NODE_DOES_NOT_EXIST = "NodeDoesNotExist" [SERVER]: "The server runs, but no Node has its provider id.";
        bad NODE_DELETED = "NodeDeleted" [OWNER, HANGAR]: "The Node existed and was deleted.";
        bad SEVERAL_NODES = "SeveralNodes" [OWNER]: "Several Nodes have the same provider id.";
        unknown NODE_NOT_HEARD_OF = "NodeNotHeardOf" [KUBELET]: "The kubelet has stopped reporting.";
        unknown API_SERVER_UNREACHABLE = "NotReadable" [CONTROL_PLANE]: "The cluster's API server does not answer.";
    }
}
