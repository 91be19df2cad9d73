//! The conditions of an OpenStackMachine.

use crate::conditions::{conditions, shared};
use crate::openstack::conditions::{cloud, ownership, server};

conditions! {
    /// Whether the server is ready: the same as InstanceReady.
    ready = "Ready", Positive, Mirrored {
        good READY = "Ready": "The server runs.";
    }

    /// Whether the server runs, with all its ports.
    instance_ready = "InstanceReady", Positive, Own {
        good READY = "Ready": "The server is ACTIVE, all its ports are bound to it, and its provider id is written.";
        bad WAITING_FOR_MACHINE = "WaitingForMachine" [CLUSTER_API]: "No Machine owns the object.";
        bad WAITING_FOR_CLUSTER = "WaitingForCluster" [CLUSTER_API]: "The Cluster of the Machine does not exist.";
        bad WAITING_FOR_INFRASTRUCTURE = "WaitingForClusterInfrastructure" [CLUSTER_API]: "The infrastructure of the Cluster is not provisioned.";
        bad WAITING_FOR_BOOTSTRAP_DATA = "WaitingForBootstrapData" [CLUSTER_API]: "The bootstrap data does not exist yet.";
        bad INVALID_MACHINE_SPEC = "InvalidMachineSpec" [OWNER]: "Some fields are not supported yet, or do not match exactly one object of the cloud; the message names all of them.";
        bad PORTS_CHANGED = "PortsChanged" [OWNER]: "The names in spec.ports differ from those with which the ports were created: nothing is created or deleted.";
        bad INSTANCE_NOT_READY = "InstanceNotReady" [CLOUD, HANGAR]: "The server is being created, or one of its ports is not bound.";
        unknown INSTANCE_NOT_ACTIVE = "InstanceNotReady" [CLOUD]: "The server is neither being built nor running; for example it is stopped, shelved or being moved.";
        bad INSTANCE_STATE_ERROR = "InstanceStateError" [OWNER]: "The server is in the state ERROR; the condition repeats Nova's message.";
        bad INSTANCE_DELETED = "InstanceDeleted" [OWNER]: "The server was deleted. Hangar does not create it again.";
        ..server;
        ..ownership;
        ..shared::reads;
        ..cloud;
    }
}
