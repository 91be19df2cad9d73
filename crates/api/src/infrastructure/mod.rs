//! `infrastructure.cluster.x-k8s.io`: OpenStack clusters and machines.
//!
//! The kinds, field names and limits are those of the v1beta1 API of Cluster API's OpenStack provider, so that existing
//! manifests apply unchanged and either implementation can replace the other. Only the v1beta1 contract is claimed:
//! failure domains are a map here, and readers of the v1beta2 contract expect a list.

mod immutable;
pub mod v1beta1;

use kube::CustomResourceExt;

use crate::crd::Kind;

/// The clusterctl provider these kinds belong to: the name of Cluster API's OpenStack provider, which Hangar replaces.
pub const PROVIDER: &str = "infrastructure-openstack";

/// The kinds of this group, for CRD generation.
pub fn kinds() -> Vec<Kind> {
    [
        immutable::of_cluster(v1beta1::OpenStackCluster::crd()),
        v1beta1::OpenStackClusterTemplate::crd(),
        immutable::of_machine(v1beta1::OpenStackMachine::crd()),
        v1beta1::OpenStackMachineTemplate::crd(),
    ]
    .into_iter()
    .map(|definition| Kind {
        versions: vec![definition],
        stored: "v1beta1",
        contracts: &[("v1beta1", "v1beta1")],
        provider: PROVIDER,
    })
    .collect()
}
