//! The conditions of an OpenStackCluster.

use crate::conditions::{conditions, shared};
use crate::openstack::conditions::{cloud, ownership};

conditions! {
    /// Whether the infrastructure is ready: the first of the conditions below that does not hold.
    ready = "Ready", Positive, Mirrored {
        good READY = "Ready": "Network, router and security groups are ready.";
        bad WAITING_FOR_CLUSTER = "WaitingForCluster" [CLUSTERS]: "No Cluster owns this object.";
        bad WAITING_FOR_MACHINES = "WaitingForMachines" [HANGAR]: "The object is being deleted, and OpenStackMachines still exist.";
        ..ownership;
        ..shared::reads;
        ..cloud;
    }

    /// Whether Hangar can call the cloud.
    authentication = "OpenStackAuthenticationSucceeded", Positive, Own {
        good AUTHENTICATED = "Authenticated": "The cloud accepts the credentials.";
        ..shared::reads;
        ..cloud;
    }

    /// Whether the network and its subnets exist.
    network_ready = "NetworkReady", Positive, Own {
        good READY = "Ready": "The network and its subnets exist.";
        bad WORKING = "Working" [HANGAR]: "Hangar is about to make a call.";
        bad NO_NETWORK = "NoNetwork" [OWNER]: "The specification names no network and no subnets.";
        bad NETWORK_NOT_FOUND = "NetworkNotFound" [OWNER]: "No network matches.";
        bad NETWORK_AMBIGUOUS = "NetworkAmbiguous" [OWNER]: "Several networks match; the message names them.";
        bad SUBNET_NOT_FOUND = "SubnetNotFound" [OWNER]: "No subnet matches, or the subnet is on another network.";
        bad SUBNET_AMBIGUOUS = "SubnetAmbiguous" [OWNER]: "Several subnets of one address family match.";
        ..shared::reads;
        ..cloud;
    }

    /// Whether the router exists and is connected.
    router_ready = "RouterReady", Positive, Own {
        good READY = "Ready": "The router exists and is connected.";
        good NOT_NEEDED = "NotNeeded": "The specification asks for no router.";
        bad WORKING = "Working" [HANGAR]: "Hangar is about to make a call.";
        bad EXTERNAL_NETWORK_NOT_FOUND = "ExternalNetworkNotFound" [OWNER]: "No external network matches.";
        bad EXTERNAL_NETWORK_AMBIGUOUS = "ExternalNetworkAmbiguous" [OWNER]: "Several external networks match.";
        bad ROUTER_NOT_FOUND = "RouterNotFound" [OWNER]: "No router matches.";
        bad ROUTER_AMBIGUOUS = "RouterAmbiguous" [OWNER]: "Several routers match; the message names them.";
        ..shared::reads;
        ..cloud;
    }

    /// Whether the security groups and their rules exist.
    security_groups_ready = "SecurityGroupsReady", Positive, Own {
        good READY = "Ready": "The security groups and their rules exist.";
        good NOT_NEEDED = "NotNeeded": "The specification asks for no security groups.";
        bad WORKING = "Working" [HANGAR]: "Hangar is about to make a call.";
        bad INVALID_RULE = "InvalidRule" [OWNER]: "A rule names the bastion, or a port above 65535.";
        ..shared::reads;
        ..cloud;
    }

    /// Whether the endpoint of the API server is known.
    api_endpoint_ready = "APIEndpointReady", Positive, Own {
        good READY = "Ready": "The endpoint is known.";
        bad UNSUPPORTED = "Unsupported" [OWNER]: "The specification asks for a load balancer or a floating IP for the API server, which are not supported yet.";
        bad WAITING_FOR_ENDPOINT = "WaitingForControlPlaneEndpoint" [CONTROL_PLANE]: "The control plane has not published the endpoint; the infrastructure can be ready without it.";
        bad WAITING_FOR_CONTROL_PLANE = "WaitingForControlPlane" [CONTROL_PLANE]: "The control plane object cannot be read.";
    }

    /// Whether every field that is set has an effect. Exists only if one has none.
    settings_effective = "SettingsEffective", Positive, Own {
        bad UNSUPPORTED = "Unsupported" [OWNER]: "Some fields have no effect; the message names them. The cluster can be ready all the same.";
    }

    /// Whether the availability zones are known. Exists only if they are not.
    failure_domains_ready = "FailureDomainsReady", Positive, Own {
        ..shared::reads;
    }
}
