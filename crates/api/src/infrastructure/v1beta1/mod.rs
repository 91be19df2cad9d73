//! Version v1beta1.

mod bastion;
mod identity;
mod image;
mod load_balancer;
mod network;
mod openstack_cluster;
mod openstack_cluster_template;
mod openstack_machine;
mod openstack_machine_template;
mod port;
mod resolved;
mod security_group;
mod server;
mod subnet;

pub use bastion::{Bastion, BastionStatus};
pub use identity::{IdentityReference, IdentityType};
pub use image::{ImageFilter, ImageParam, ImageReference};
pub use load_balancer::{ApiServerLoadBalancer, LoadBalancerMonitor, LoadBalancerStatus};
pub use network::{
    NetworkParam, NetworkStatus, NetworkStatusWithSubnets, NeutronTag, OpenStackId, ResourceFilter,
    RouterParam, RouterStatus,
};
pub use openstack_cluster::{
    FailureDomain, Initialization, OpenStackCluster, OpenStackClusterSpec, OpenStackClusterStatus,
};
pub use openstack_cluster_template::{
    OpenStackClusterTemplate, OpenStackClusterTemplateResource, OpenStackClusterTemplateSpec,
};
pub use openstack_machine::{OpenStackMachine, OpenStackMachineSpec, OpenStackMachineStatus};
pub use openstack_machine_template::{
    NodeInformation, OpenStackMachineTemplate, OpenStackMachineTemplateResource,
    OpenStackMachineTemplateSpec, OpenStackMachineTemplateStatus,
};
pub use port::{AddressPair, BindingProfile, FixedIp, Port, ValueSpec};
pub use resolved::{MachineResources, PortResource, ResolvedFixedIp, ResolvedPort, ResolvedServer};
pub use security_group::{
    EtherType, ManagedSecurityGroupName, ManagedSecurityGroups, RuleDirection, SecurityGroupParam,
    SecurityGroupRule, SecurityGroupStatus,
};
pub use server::{
    AdditionalBlockDevice, BlockDeviceStorage, BlockDeviceVolume, RootVolume, SchedulerHint,
    SchedulerHintType, SchedulerHintValue, ServerGroupFilter, ServerGroupParam, ServerMetadata,
    VolumeAvailabilityZone, VolumeAvailabilityZoneSource,
};
pub use subnet::{AllocationPool, ExternalRouterIp, ManagedSubnet, SubnetFilter, SubnetParam, SubnetStatus};
