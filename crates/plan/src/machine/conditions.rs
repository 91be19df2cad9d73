//! The conditions of a Machine.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether the Machine is a Node that can be used: a summary of the conditions below, and of its readiness gates.
    ready = "Ready", Positive, Merged {}

    /// Whether the Machine has been ready for long enough.
    available = "Available", Positive, Own {
        good AVAILABLE = "Available": "It is ready, and long enough.";
        bad NOT_READY = "NotReady" [HANGAR]: "It is not ready; its other conditions say why.";
        bad WAITING_FOR_MIN_READY_SECONDS = "WaitingForMinReadySeconds" [HANGAR]: "It is ready, but not for long enough.";
    }

    /// Whether the Machine is what its set and deployment want now. Only there where a set manages it.
    up_to_date = "UpToDate", Positive, Own {
        good UP_TO_DATE = "UpToDate": "It has the current template.";
        bad NOT_UP_TO_DATE = "NotUpToDate" [HANGAR]: "Its template has changed.";
    }

    /// Whether the bootstrap data is there: the Ready condition of the bootstrap configuration.
    bootstrap_config_ready = "BootstrapConfigReady", Positive, Mirrored {
        good DATA_SECRET_PROVIDED = "DataSecretProvided": "The owner brought the data.";
        good DATA_SECRET_CREATED = "DataSecretCreated": "The data was made; the configuration is gone since.";
        ..shared::references;
        ..shared::reads;
    }

    /// Whether the server is there: the Ready condition of the infrastructure machine.
    infrastructure_ready = "InfrastructureReady", Positive, Mirrored {
        ..shared::references;
        ..shared::reads;
    }

    /// Whether the Node is ready and under no pressure.
    node_healthy = "NodeHealthy", Positive, Own {
        good NODE_HEALTHY = "NodeHealthy": "The Node is ready and under no pressure.";
        bad NODE_NOT_HEALTHY = "NodeNotHealthy" [KUBELET]: "The Node is not ready or under pressure; its own message follows.";
        ..nodes;
    }

    /// Whether the Node is ready.
    node_ready = "NodeReady", Positive, Own {
        good NODE_READY = "NodeReady": "The Node is ready.";
        bad NODE_NOT_READY = "NodeNotReady" [KUBELET]: "The Node is not ready; its own message follows.";
        unknown NOT_YET_REPORTED = "NotYetReported" [KUBELET]: "The Node has not said whether it is ready.";
        ..nodes;
    }

    /// Whether the Machine is being deleted.
    deleting = "Deleting", Negative, Own {
        good NOT_DELETING = "NotDeleting": "It stays.";
        bad PRE_DRAIN_HOOK = "WaitingForPreDrainHook" [ANNOTATOR]: "Annotations hold the drain.";
        bad DRAINING = "DrainingNode" [HANGAR, OWNER, CONTROL_PLANE]: "Pods leave the Node; those that are held or waited for are named.";
        bad PRE_TERMINATE_HOOK = "WaitingForPreTerminateHook" [ANNOTATOR]: "Annotations hold the server.";
        bad WAITING_FOR_INFRASTRUCTURE = "WaitingForInfrastructureDeletion" [ITS_CONTROLLER]: "The server's object is left.";
        bad WAITING_FOR_BOOTSTRAP = "WaitingForBootstrapDeletion" [ITS_CONTROLLER]: "The bootstrap configuration is left.";
        bad WAITING_FOR_NODE = "WaitingForNodeDeletion" [CONTROL_PLANE]: "The Node is left.";
        bad STATE_UNKNOWN = "DeletionStateUnknown" [OPERATOR]: "Something could not be read, so nothing is deleted.";
        bad COMPLETED = "DeletionCompleted" [HANGAR]: "Only the finalizer is left.";
    }
}

/// Reasons of both conditions about the Node.
pub(crate) mod nodes {
    crate::conditions::reasons! {
        "", Positive;
        bad WAITING_FOR_SERVER = "WaitingForServer" [HANGAR, CONTROL_PLANE]: "There is no server, or no API server, yet.";
        bad NODE_DOES_NOT_EXIST = "NodeDoesNotExist" [SERVER]: "The server runs, and no Node has its provider id.";
        bad NODE_DELETED = "NodeDeleted" [OWNER, HANGAR]: "The Node was there and is gone.";
        bad SEVERAL_NODES = "SeveralNodes" [OWNER]: "Several Nodes have the same provider id.";
        unknown NODE_NOT_HEARD_OF = "NodeNotHeardOf" [KUBELET]: "The kubelet has been silent for a while.";
        unknown API_SERVER_UNREACHABLE = "NotReadable" [CONTROL_PLANE]: "The cluster's API server does not answer.";
    }
}
