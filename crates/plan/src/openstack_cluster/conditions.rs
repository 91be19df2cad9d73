//! The conditions of an OpenStackCluster.

use crate::conditions::{conditions, shared};
use crate::openstack::conditions::{cloud, ownership};

conditions! {
    /// Whether the infrastructure is ready: the first of the conditions below that does not hold.
    ready = "Ready", Positive, Mirrored {
        good READY = "Ready": "Everything is there.";
        bad WAITING_FOR_CLUSTER = "WaitingForCluster" [CLUSTERS]: "No Cluster owns it.";
        bad WAITING_FOR_MACHINES = "WaitingForMachines" [HANGAR]: "It is being deleted, and OpenStackMachines are left.";
        ..ownership;
        ..shared::reads;
        ..cloud;
    }

    /// Whether the cloud can be asked.
    authentication = "OpenStackAuthenticationSucceeded", Positive, Own {
        good AUTHENTICATED = "Authenticated": "The cloud accepts the credentials.";
        ..shared::reads;
        ..cloud;
    }

    /// Whether the network and its subnets are there.
    network_ready = "NetworkReady", Positive, Own {
        good READY = "Ready": "They are there.";
        bad WORKING = "Working" [HANGAR]: "A call is next.";
        bad NO_NETWORK = "NoNetwork" [OWNER]: "No network is asked for.";
        bad NETWORK_NOT_FOUND = "NetworkNotFound" [OWNER]: "No network matches, or several do.";
        bad SUBNET_NOT_FOUND = "SubnetNotFound" [OWNER]: "A subnet does not match, or is on another network.";
        bad SUBNET_AMBIGUOUS = "SubnetAmbiguous" [OWNER]: "Several subnets of one address family match.";
        ..shared::reads;
        ..cloud;
    }

    /// Whether the router is there and connected.
    router_ready = "RouterReady", Positive, Own {
        good READY = "Ready": "It is there and connected.";
        good NOT_NEEDED = "NotNeeded": "No router is asked for.";
        bad WORKING = "Working" [HANGAR]: "A call is next.";
        bad EXTERNAL_NETWORK_NOT_FOUND = "ExternalNetworkNotFound" [OWNER]: "No external network matches.";
        bad EXTERNAL_NETWORK_AMBIGUOUS = "ExternalNetworkAmbiguous" [OWNER]: "Several external networks match.";
        bad ROUTER_NOT_FOUND = "RouterNotFound" [OWNER]: "No router matches, or several do.";
        ..shared::reads;
        ..cloud;
    }

    /// Whether the security groups and their rules are there.
    security_groups_ready = "SecurityGroupsReady", Positive, Own {
        good READY = "Ready": "They are there.";
        good NOT_NEEDED = "NotNeeded": "No security groups are asked for.";
        bad WORKING = "Working" [HANGAR]: "A call is next.";
        bad INVALID_RULE = "InvalidRule" [OWNER]: "A rule names the bastion, or a port above 65535.";
        ..shared::reads;
        ..cloud;
    }

    /// Whether the endpoint of the API server is known.
    api_endpoint_ready = "APIEndpointReady", Positive, Own {
        good READY = "Ready": "It is known.";
        bad UNSUPPORTED = "Unsupported" [OWNER]: "A load balancer or a floating IP for the API server is asked for, which is not built.";
        bad WAITING_FOR_ENDPOINT = "WaitingForControlPlaneEndpoint" [CONTROL_PLANE]: "The control plane has not published it; the infrastructure is ready without.";
        bad WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlane" [CONTROL_PLANE]: "The control plane object cannot be seen.";
    }

    /// Whether every given field has an effect. Only there where one has none.
    settings_effective = "SettingsEffective", Positive, Own {
        bad UNSUPPORTED = "Unsupported" [OWNER]: "Fields have no effect; they are named. The cluster is ready without.";
    }

    /// Whether the availability zones are known. Only there where they are not.
    failure_domains_ready = "FailureDomainsReady", Positive, Own {
        ..shared::reads;
    }
}
