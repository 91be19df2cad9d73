//! The conditions of an OpenStackMachine.

use crate::conditions::{conditions, shared};
use crate::openstack::conditions::{cloud, ownership, server};

conditions! {
    /// Whether the server is ready: as InstanceReady.
    ready = "Ready", Positive, Mirrored {
        good READY = "Ready": "The server runs.";
    }

    /// Whether the server runs, with all its ports.
    instance_ready = "InstanceReady", Positive, Own {
        good READY = "Ready": "The server is ACTIVE, all its ports are bound to it, and its provider id is written.";
        bad WAITING_FOR_MACHINE = "WaitingForMachine" [CLUSTER_API]: "No Machine owns the object.";
        bad WAITING_FOR_CLUSTER = "WaitingForCluster" [CLUSTER_API]: "The Cluster of the Machine does not exist.";
        bad WAITING_FOR_INFRASTRUCTURE = "WaitingForClusterInfrastructure" [CLUSTER_API]: "The infrastructure of the Cluster is not provisioned.";
        bad WAITING_FOR_BOOTSTRAP_DATA = "WaitingForBootstrapData" [CLUSTER_API]: "There is no bootstrap data yet.";
        bad INVALID_MACHINE_SPEC = "InvalidMachineSpec" [OWNER]: "Fields are not built, or name what the cloud does not have exactly once; all of them are named.";
        bad PORTS_CHANGED = "PortsChanged" [OWNER]: "spec.ports gives other names than the ports were made with: nothing is made or deleted.";
        bad INSTANCE_NOT_READY = "InstanceNotReady" [CLOUD, HANGAR]: "The server is being made, or lacks a port.";
        unknown INSTANCE_NOT_ACTIVE = "InstanceNotReady" [CLOUD]: "The server is neither being built nor running: stopped, moving, shelved.";
        bad INSTANCE_STATE_ERROR = "InstanceStateError" [OWNER]: "The server is in ERROR; Nova's message follows.";
        bad INSTANCE_DELETED = "InstanceDeleted" [OWNER]: "The server was deleted and is not made again.";
        ..server;
        ..ownership;
        ..shared::reads;
        ..cloud;
    }
}
