//! The conditions of a HostedControlPlane.

use crate::conditions::{conditions, shared};

conditions! {
    /// Whether the API server serves.
    available = "Available", Positive, Own {
        good AVAILABLE = "Available": "An API server is ready, etcd has a quorum, and the endpoint is known.";
        bad NO_API_SERVER = "NoAPIServer" [MANAGEMENT_CLUSTER]: "No API server pod is ready.";
        bad NO_QUORUM = "NoQuorum" [MANAGEMENT_CLUSTER]: "Fewer etcd members are ready than half plus one.";
        bad NO_ENDPOINT = "NoEndpoint" [OPERATOR, OWNER, MANAGEMENT_CLUSTER, HANGAR]: "It serves, but nobody knows where.";
        ..nothing_done;
        ..not_rendered;
        ..shared::reads;
    }

    /// Whether the control plane is complete: a summary of CertificatesValid, EtcdClusterHealthy, APIServerReady,
    /// ControllersReady and EndpointReady.
    ready = "Ready", Positive, Merged {
        bad OBJECT_REFUSED = "ObjectRefused" [OPERATOR]: "The management cluster refused an object; its message follows.";
        ..nothing_done;
        ..not_rendered;
    }

    /// Whether the specification can be rendered.
    specification_valid = "SpecificationValid", Positive, Own {
        good VALID = "Valid": "It can be rendered.";
        ..not_rendered;
    }

    /// Whether every setting has an effect. Only there where one has none.
    settings_effective = "SettingsEffective", Positive, Own {
        bad NOT_BUILT = "NotBuilt" [OWNER]: "Fields are accepted and do nothing yet; they are named.";
    }

    /// Whether all keys and certificates are there and valid.
    certificates_valid = "CertificatesValid", Positive, Own {
        good VALID = "Valid": "They are there and valid.";
        bad NAME_TAKEN = "NameTaken" [OWNER]: "A Secret of that name belongs to something else.";
        bad UNUSABLE = "Unusable" [OWNER]: "A Secret that was brought cannot be used; it is named, with what is wrong.";
        bad EXPIRED = "Expired" [OPERATOR]: "An authority has ended, and everything that it signed.";
        bad MINTING = "Minting" [HANGAR]: "Keys are being made; what failed last is added.";
        ..shared::reads;
    }

    /// Whether etcd has a quorum.
    etcd_cluster_healthy = "EtcdClusterHealthy", Positive, Own {
        good ALL_READY = "AllReady": "All members are ready.";
        good QUORUM = "Quorum": "It serves, but a member is not ready.";
        bad NOT_CREATED = "NotCreated" [HANGAR]: "The StatefulSet is not there yet.";
        bad NO_QUORUM = "NoQuorum" [MANAGEMENT_CLUSTER]: "Fewer members are ready than half plus one.";
        ..shared::reads;
    }

    /// Whether API servers serve.
    api_server_ready = "APIServerReady", Positive, Own {
        good ALL_READY = "AllReady": "All API servers are ready and of the current template.";
        good SOME_READY = "SomeReady": "Some serve, but not all are as they should be.";
        bad NOT_CREATED = "NotCreated" [HANGAR, MANAGEMENT_CLUSTER]: "The Deployment waits for keys, or for the first etcd pod to start.";
        bad NONE_READY = "NoneReady" [MANAGEMENT_CLUSTER]: "No API server pod is ready.";
        ..shared::reads;
    }

    /// Whether the controller manager and the scheduler are at work.
    controllers_ready = "ControllersReady", Positive, Own {
        good READY = "Ready": "Both are ready.";
        bad NOT_READY = "NotReady" [MANAGEMENT_CLUSTER, HANGAR]: "The controller manager or the scheduler is not ready.";
        ..shared::reads;
    }

    /// Whether the API server has an endpoint that everybody agrees on.
    endpoint_ready = "EndpointReady", Positive, Own {
        good PUBLISHED = "Published": "The endpoint is known and written.";
        bad NO_ADDRESS = "NoAddress" [OPERATOR, OWNER, MANAGEMENT_CLUSTER, HANGAR]: "There is no address yet.";
        bad EXPOSURE_NOT_BUILT = "ExposureNotBuilt" [OWNER, HANGAR]: "exposure.type is Gateway, which is not built yet.";
        bad NOT_PUBLISHED = "NotPublished" [OPERATOR]: "The infrastructure object did not take the endpoint; the message follows.";
        bad CONFLICT = "Conflict" [OWNER]: "The infrastructure or the Cluster names another endpoint.";
        bad ADDRESS_CHANGED = "AddressChanged" [OPERATOR]: "The load balancer lost the published address.";
    }

    /// Whether the tenant has everything that nodes need.
    workload_ready = "WorkloadReady", Positive, Own {
        good APPLIED = "Applied": "Everything is there.";
        unknown NOT_REACHED = "NotReached" [HANGAR]: "The tenant's API server does not answer to Hangar.";
        bad NO_ADDRESS = "NoAddress" [OPERATOR, OWNER, MANAGEMENT_CLUSTER, HANGAR]: "Objects of the tenant need an address that is not known yet.";
        bad NAME_TAKEN = "NameTaken" [OWNER]: "An object of that name in the tenant belongs to something else.";
        bad APPLYING = "Applying" [HANGAR]: "Objects are being written; what failed last is added.";
    }

    /// Whether API servers are being replaced.
    rolling_out = "RollingOut", Negative, Own {
        good NOT_ROLLING_OUT = "NotRollingOut": "All pods have the current template.";
        bad ROLLING_OUT = "RollingOut" [MANAGEMENT_CLUSTER]: "API servers are being replaced.";
    }

    /// Whether there are fewer API servers than wanted.
    scaling_up = "ScalingUp", Negative, Own {
        good NOT_SCALING_UP = "NotScalingUp": "None is missing.";
        bad SCALING_UP = "ScalingUp" [MANAGEMENT_CLUSTER]: "API servers are being added.";
    }

    /// Whether there are more API servers than wanted.
    scaling_down = "ScalingDown", Negative, Own {
        good NOT_SCALING_DOWN = "NotScalingDown": "There are not too many.";
        bad SCALING_DOWN = "ScalingDown" [MANAGEMENT_CLUSTER]: "API servers are being removed.";
    }

    /// Whether the control plane is being deleted.
    deleting = "Deleting", Negative, Own {
        good NOT_DELETING = "NotDeleting": "It stays.";
        bad DELETING = "Deleting" [MANAGEMENT_CLUSTER, HANGAR, OPERATOR]: "It waits for the object that the message names.";
        bad RELEASING = "Releasing" [HANGAR]: "Only Hangar's finalizer is left.";
        bad RELEASED = "Released" [MANAGEMENT_CLUSTER]: "Finalizers of others are left.";
    }
}

/// Reasons while nothing is rendered because the specification does not allow it.
pub(crate) mod not_rendered {
    crate::conditions::reasons! {
        "", Positive;
        bad INVALID = "Invalid" [OWNER]: "The specification, or ranges of the Cluster, cannot be rendered; every field is named. What runs already is left alone.";
        bad NEWER_EPOCH = "NewerEpoch" [OPERATOR]: "A newer Hangar rendered it.";
    }
}

/// Reasons while nothing is done.
pub(crate) mod nothing_done {
    crate::conditions::reasons! {
        "", Positive;
        bad NO_OWNER = "NoOwner" [OWNER]: "No Cluster refers to it.";
        bad NOT_REFERENCED = "NotReferenced" [OWNER]: "The Cluster refers to another object: this is a copy, and does nothing.";
        bad NOT_CLAIMED = "NotClaimed" [HANGAR]: "Finalizer and epoch are being written.";
        bad DELETING = "Deleting" [HANGAR]: "It is being deleted.";
    }
}
