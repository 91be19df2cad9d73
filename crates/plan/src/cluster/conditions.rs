//! The conditions of a Cluster.

use crate::conditions::{conditions, reasons, shared};

conditions! {
    /// Whether the cluster can be used: a summary of the conditions below, and of the Cluster's availability gates.
    available = "Available", Positive, Merged {}

    /// Whether the infrastructure is ready: the Ready condition of the infrastructure object.
    infrastructure_ready = "InfrastructureReady", Positive, Mirrored {
        good NOT_REFERENCED = "NotReferenced": "The Cluster refers to no infrastructure object and does not wait for one.";
        ..shared::references;
        ..shared::reads;
        ..topology;
    }

    /// Whether the control plane has accepted requests at least once.
    control_plane_initialized = "ControlPlaneInitialized", Positive, Own {
        good INITIALIZED = "Initialized": "The control plane has accepted requests.";
        bad NOT_INITIALIZED = "NotInitialized" [ITS_CONTROLLER, OWNER]: "The control plane has not accepted requests yet.";
        ..shared::references;
        ..shared::reads;
        ..topology;
    }

    /// Whether the control plane is available: the Available condition of the control plane object.
    control_plane_available = "ControlPlaneAvailable", Positive, Mirrored {
        good NOT_REFERENCED = "NotReferenced": "The Cluster refers to no control plane object, and no Machine is part of its control plane.";
        ..shared::references;
        ..shared::reads;
        ..topology;
    }

    /// Whether the MachineDeployments are available: merged from their Available conditions.
    workers_available = "WorkersAvailable", Positive, Merged {
        good NO_WORKERS = "NoWorkers": "The Cluster has no MachineDeployments.";
        ..shared::reads;
    }

    /// Whether the manager reaches the cluster's API server.
    remote_connection_probe = "RemoteConnectionProbe", Positive, Own {
        good PROBE_SUCCEEDED = "ProbeSucceeded": "The API server answers.";
        bad NOT_PROBED = "NotProbed" [CONTROL_PLANE]: "The API server was not called yet: the control plane has not accepted requests so far.";
        bad PROBE_FAILED = "ProbeFailed" [CONTROL_PLANE]: "The API server does not answer to the kubeconfig in the Secret NAME-kubeconfig.";
    }

    /// Whether the topology was built. Exists only if spec.topology is set.
    topology_reconciled = "TopologyReconciled", Positive, Own {
        ..topology;
    }

    /// Whether Cluster, control plane and infrastructure name different endpoints. Exists only if they do.
    endpoint_conflict = "EndpointConflict", Negative, Own {
        bad ENDPOINT_CONFLICT = "EndpointConflict" [OWNER]: "Cluster, control plane and infrastructure name different endpoints.";
    }

    /// Whether the Cluster is being deleted.
    deleting = "Deleting", Negative, Own {
        good NOT_DELETING = "NotDeleting": "The Cluster is not being deleted.";
        bad WAITING_FOR_WORKERS = "WaitingForWorkersDeletion" [HANGAR]: "Machines, MachineSets or MachineDeployments still exist.";
        bad WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlaneDeletion" [ITS_CONTROLLER]: "The control plane object still exists.";
        bad WAITING_FOR_INFRASTRUCTURE = "WaitingForInfrastructureDeletion" [ITS_CONTROLLER]: "The infrastructure object still exists.";
        bad STATE_UNKNOWN = "DeletionStateUnknown" [OPERATOR]: "An object could not be read. Until it can be read, nothing is deleted.";
        bad COMPLETED = "DeletionCompleted" [HANGAR]: "Everything else is deleted; Hangar is about to remove its finalizer.";
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
