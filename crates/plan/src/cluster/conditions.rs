//! The conditions of a Cluster.

use crate::conditions::{conditions, reasons, shared};

conditions! {
    /// Whether the cluster is of use: a summary of the conditions below, and of the Cluster's availability gates.
    available = "Available", Positive, Merged {}

    /// Whether the infrastructure is ready: the Ready condition of the infrastructure object.
    infrastructure_ready = "InfrastructureReady", Positive, Mirrored {
        good NOT_REFERENCED = "NotReferenced": "The Cluster names no infrastructure, so it waits for none.";
        ..shared::references;
        ..shared::reads;
        ..topology;
    }

    /// Whether an API server of the cluster has served once.
    control_plane_initialized = "ControlPlaneInitialized", Positive, Own {
        good INITIALIZED = "Initialized": "An API server has served.";
        bad NOT_INITIALIZED = "NotInitialized" [ITS_CONTROLLER, OWNER]: "No API server has served yet.";
        ..shared::references;
        ..shared::reads;
        ..topology;
    }

    /// Whether the control plane serves: the Available condition of the control plane object.
    control_plane_available = "ControlPlaneAvailable", Positive, Mirrored {
        good NOT_REFERENCED = "NotReferenced": "The Cluster names no control plane and has no Machines that are one.";
        ..shared::references;
        ..shared::reads;
        ..topology;
    }

    /// Whether the MachineDeployments are available: collected from them.
    workers_available = "WorkersAvailable", Positive, Merged {
        good NO_WORKERS = "NoWorkers": "The Cluster has no MachineDeployments.";
        ..shared::reads;
    }

    /// Whether the manager reaches the cluster's API server.
    remote_connection_probe = "RemoteConnectionProbe", Positive, Own {
        good PROBE_SUCCEEDED = "ProbeSucceeded": "The API server answers.";
        bad NOT_PROBED = "NotProbed" [CONTROL_PLANE]: "Nobody has asked yet: no API server has served.";
        bad PROBE_FAILED = "ProbeFailed" [CONTROL_PLANE]: "The API server does not answer through the Secret NAME-kubeconfig.";
    }

    /// Whether the topology was built. Only there where a topology is given.
    topology_reconciled = "TopologyReconciled", Positive, Own {
        ..topology;
    }

    /// Whether Cluster, control plane and infrastructure name different endpoints. Only there where they do.
    endpoint_conflict = "EndpointConflict", Negative, Own {
        bad ENDPOINT_CONFLICT = "EndpointConflict" [OWNER]: "Cluster, control plane and infrastructure name different endpoints.";
    }

    /// Whether the Cluster is being deleted.
    deleting = "Deleting", Negative, Own {
        good NOT_DELETING = "NotDeleting": "It stays.";
        bad WAITING_FOR_WORKERS = "WaitingForWorkersDeletion" [HANGAR]: "Machines, sets or deployments are left.";
        bad WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlaneDeletion" [ITS_CONTROLLER]: "The control plane object is left.";
        bad WAITING_FOR_INFRASTRUCTURE = "WaitingForInfrastructureDeletion" [ITS_CONTROLLER]: "The infrastructure object is left.";
        bad STATE_UNKNOWN = "DeletionStateUnknown" [OPERATOR]: "Something could not be read, so nothing is deleted.";
        bad COMPLETED = "DeletionCompleted" [HANGAR]: "Only the finalizer is left.";
    }
}

/// The reason of conditions that a topology would bring about.
pub(crate) mod topology {
    super::reasons! {
        "", Positive;
        bad TOPOLOGY_NOT_SUPPORTED = "TopologyNotSupported" [OWNER]:
            "spec.topology is set; clusters from a ClusterClass are not built yet.";
    }
}
