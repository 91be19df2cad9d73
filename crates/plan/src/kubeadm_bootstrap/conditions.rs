//! The conditions of a KubeadmConfig.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether the bootstrap data can be used: a summary of the conditions below.
    ready = "Ready", Positive, Merged {}

    /// Whether the Secret with the bootstrap data exists.
    data_secret_available = "DataSecretAvailable", Positive, Own {
        good AVAILABLE = "Available": "The Secret exists.";
        bad WAITING_FOR_MACHINE = "WaitingForMachine" [MACHINES]: "No Machine uses this configuration.";
        bad WAITING_FOR_CLUSTER = "WaitingForCluster" [OWNER]: "The Cluster that the label names does not exist.";
        bad WAITING_FOR_INFRASTRUCTURE = "WaitingForClusterInfrastructure" [INFRASTRUCTURE]: "The infrastructure of the Cluster is not provisioned.";
        bad WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlaneInitialized" [CONTROL_PLANE]: "The control plane has not accepted requests yet.";
        bad WAITING_FOR_ENDPOINT = "WaitingForControlPlaneEndpoint" [CONTROL_PLANE]: "The Cluster has no endpoint yet.";
        bad WAITING_FOR_SECRET = "WaitingForSecret" [OWNER]: "A Secret that files or users refer to does not exist, or lacks the key.";
        bad SECRET_NAME_TAKEN = "SecretNameTaken" [OWNER]: "The Secret with the name of the KubeadmConfig belongs to another owner.";
        bad UNSUPPORTED_CONFIGURATION = "UnsupportedConfiguration" [OWNER]: "Some fields are not supported; the message names them.";
        bad CONTROL_PLANE_UNREACHABLE = "ControlPlaneUnreachable" [CONTROL_PLANE]: "The API server does not answer, so no token can be created.";
        bad CLOCKS_DISAGREE = "ClocksDisagree" [OPERATOR]: "A bootstrap token is missing, and the clock of Hangar's host differs from that of the management cluster's API server by more than 5 minutes. No token is created or extended.";
        bad CREATING_TOKEN = "CreatingToken" [HANGAR]: "Hangar is creating the bootstrap token. The message includes the last failure, if any.";
        bad CREATING_DATA_SECRET = "CreatingDataSecret" [HANGAR]: "Hangar is creating the Secret. The message includes the last failure, if any.";
        ..authority;
        ..shared::reads;
    }

    /// Whether the certificate authority of the cluster exists.
    certificates_available = "CertificatesAvailable", Positive, Own {
        good AVAILABLE = "Available": "The certificate authority exists.";
        ..authority;
    }
}

/// The reason of both conditions while the authority is missing.
pub(crate) mod authority {
    crate::conditions::reasons! {
        "", Positive;
        bad WAITING_FOR_CERTIFICATES = "WaitingForCertificates" [CONTROL_PLANE]: "The Secret NAME-ca is missing or incomplete.";
    }
}
