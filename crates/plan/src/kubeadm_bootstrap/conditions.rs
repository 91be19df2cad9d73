//! The conditions of a KubeadmConfig.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether the data can be used: a summary of the conditions below.
    ready = "Ready", Positive, Merged {}

    /// Whether the Secret with the data is there.
    data_secret_available = "DataSecretAvailable", Positive, Own {
        good AVAILABLE = "Available": "The Secret is there.";
        bad WAITING_FOR_MACHINE = "WaitingForMachine" [MACHINES]: "No Machine uses this configuration.";
        bad WAITING_FOR_CLUSTER = "WaitingForCluster" [OWNER]: "The Cluster that the label names does not exist.";
        bad WAITING_FOR_INFRASTRUCTURE = "WaitingForClusterInfrastructure" [INFRASTRUCTURE]: "The infrastructure of the Cluster is not provisioned.";
        bad WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlaneInitialized" [CONTROL_PLANE]: "No API server has served yet.";
        bad WAITING_FOR_ENDPOINT = "WaitingForControlPlaneEndpoint" [CONTROL_PLANE]: "The Cluster has no endpoint yet.";
        bad WAITING_FOR_SECRET = "WaitingForSecret" [OWNER]: "A Secret that files or users name has no such key.";
        bad SECRET_NAME_TAKEN = "SecretNameTaken" [OWNER]: "The Secret with the name of the KubeadmConfig belongs to something else.";
        bad UNSUPPORTED_CONFIGURATION = "UnsupportedConfiguration" [OWNER]: "Fields cannot be honoured; they are named.";
        bad CONTROL_PLANE_UNREACHABLE = "ControlPlaneUnreachable" [CONTROL_PLANE]: "The API server does not answer, so that no token can be made.";
        bad CREATING_TOKEN = "CreatingToken" [HANGAR]: "The bootstrap token is being made; what failed last is added.";
        bad CREATING_DATA_SECRET = "CreatingDataSecret" [HANGAR]: "The Secret is being made; what failed last is added.";
        ..authority;
        ..shared::reads;
    }

    /// Whether the certificate authority of the cluster is there.
    certificates_available = "CertificatesAvailable", Positive, Own {
        good AVAILABLE = "Available": "The authority is there.";
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
