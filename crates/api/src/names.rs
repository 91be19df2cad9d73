//! Labels, annotations, finalizers and well-known names, all in one place.
//!
//! Most belong to Cluster API: other programs read and write them, and would ignore another spelling. A rename of one
//! of ours would orphan data in running systems. So the test below pins every value.

/// What the other API version of this object could not express; see `conversion::stash`.
pub const STASH_ANNOTATION: &str = "hangar.cluster.x-k8s.io/conversion-stash";
/// On a `HostedControlPlane`: it can be deleted although its Cluster lives (presence).
pub const ALLOW_DELETION_ANNOTATION: &str = "hangar.cluster.x-k8s.io/allow-deletion";
/// On a `HostedControlPlane`: a backup is made now, once for each value that nobody used before.
pub const BACKUP_REQUESTED_ANNOTATION: &str = "hangar.cluster.x-k8s.io/backup-requested";

// Labels on objects.

/// Names the Cluster an object belongs to.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Marks Machines of the control plane (presence).
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Names the `MachineSet` of a Machine.
pub const SET_NAME_LABEL: &str = "cluster.x-k8s.io/set-name";
/// Names the `MachineDeployment` of a `MachineSet` or Machine.
pub const DEPLOYMENT_NAME_LABEL: &str = "cluster.x-k8s.io/deployment-name";
/// On Pods: how a drain treats them, see [`DRAIN_SKIP`] and [`DRAIN_WAIT_COMPLETED`].
pub const DRAIN_LABEL: &str = "cluster.x-k8s.io/drain";
/// Value of [`DRAIN_LABEL`]: the pod is not evicted.
pub const DRAIN_SKIP: &str = "skip";
/// Value of [`DRAIN_LABEL`]: the pod is not evicted, and the drain waits until it has ended.
pub const DRAIN_WAIT_COMPLETED: &str = "wait-completed";
/// Tells the `MachineSet`s of a `MachineDeployment` apart, and their Machines. Without a prefix, as everywhere.
pub const MACHINE_TEMPLATE_HASH_LABEL: &str = "machine-template-hash";

// Labels on CRDs and components.

/// Names the clusterctl provider that a CRD or component belongs to.
pub const PROVIDER_LABEL: &str = "cluster.x-k8s.io/provider";
/// Marks everything that clusterctl takes part in (presence).
pub const CLUSTERCTL_LABEL: &str = "clusterctl.cluster.x-k8s.io";

// Annotations.

/// Stops reconciliation of the object that carries it.
pub const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Somebody else manages the object that carries it.
pub const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
/// Upstream's place for what a conversion could not express; read where upstream wrote it.
pub const CONVERSION_DATA_ANNOTATION: &str = "cluster.x-k8s.io/conversion-data";
/// Name of the template an object was cloned from.
pub const CLONED_FROM_NAME_ANNOTATION: &str = "cluster.x-k8s.io/cloned-from-name";
/// Kind and group of the template an object was cloned from.
pub const CLONED_FROM_GROUP_KIND_ANNOTATION: &str = "cluster.x-k8s.io/cloned-from-groupkind";
/// Puts a Machine first when the set shrinks.
pub const DELETE_MACHINE_ANNOTATION: &str = "cluster.x-k8s.io/delete-machine";
/// Keeps a `MachineSet` from making Machines.
pub const DISABLE_MACHINE_CREATE_ANNOTATION: &str = "cluster.x-k8s.io/disable-machine-create";
/// Deletes a Machine without draining its Node.
pub const EXCLUDE_NODE_DRAINING_ANNOTATION: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
/// While an annotation with this prefix is there, a Machine's drain does not begin.
pub const PRE_DRAIN_HOOK_PREFIX: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
/// While an annotation with this prefix is there, a Machine's server is not deleted.
pub const PRE_TERMINATE_HOOK_PREFIX: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
/// On Nodes: the Cluster.
pub const NODE_CLUSTER_NAME_ANNOTATION: &str = "cluster.x-k8s.io/cluster-name";
/// On Nodes: the Cluster's namespace.
pub const NODE_CLUSTER_NAMESPACE_ANNOTATION: &str = "cluster.x-k8s.io/cluster-namespace";
/// On Nodes: the Machine.
pub const NODE_MACHINE_ANNOTATION: &str = "cluster.x-k8s.io/machine";
/// On Nodes: kind of the Machine's owner.
pub const NODE_OWNER_KIND_ANNOTATION: &str = "cluster.x-k8s.io/owner-kind";
/// On Nodes: name of the Machine's owner.
pub const NODE_OWNER_NAME_ANNOTATION: &str = "cluster.x-k8s.io/owner-name";
/// On Nodes: labels that came from the Machine, so that they can be taken back.
pub const NODE_LABELS_ANNOTATION: &str = "cluster.x-k8s.io/labels-from-machine";
/// Revision of a `MachineSet`. The group is spelled with a plural here, everywhere.
pub const REVISION_ANNOTATION: &str = "machinedeployment.clusters.x-k8s.io/revision";
/// Revisions that a `MachineSet` had before.
pub const REVISION_HISTORY_ANNOTATION: &str = "machinedeployment.clusters.x-k8s.io/revision-history";
/// Replicas of the deployment when its set was last scaled.
pub const DESIRED_REPLICAS_ANNOTATION: &str = "machinedeployment.clusters.x-k8s.io/desired-replicas";
/// Replicas of the deployment plus its surge when its set was last scaled.
pub const MAXIMUM_REPLICAS_ANNOTATION: &str = "machinedeployment.clusters.x-k8s.io/max-replicas";
/// Marks a request of the topology controller that only asks what would change.
pub const TOPOLOGY_DRY_RUN_ANNOTATION: &str = "topology.cluster.x-k8s.io/dry-run";
/// Keeps an object where it is while its cluster is to be moved.
pub const BLOCK_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/block-move";
/// On objects that are deleted because they were moved.
pub const DELETE_FOR_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";

// Prefixes of what is copied from Machines to Nodes.

/// Labels of roles.
pub const NODE_ROLE_PREFIX: &str = "node-role.kubernetes.io";
/// Labels and taints of the ecosystem on Nodes.
pub const NODE_PREFIX: &str = "node.cluster.x-k8s.io";
/// Labels that a kubelet cannot set on itself; also as the end of a longer prefix.
pub const NODE_RESTRICTION_DOMAIN: &str = "node-restriction.kubernetes.io";

// Taints.

/// On Nodes until the labels of their Machine are there.
pub const UNINITIALIZED_TAINT: &str = "node.cluster.x-k8s.io/uninitialized";

// Finalizers.

/// Of Clusters.
pub const CLUSTER_FINALIZER: &str = "cluster.cluster.x-k8s.io";
/// Of Machines.
pub const MACHINE_FINALIZER: &str = "machine.cluster.x-k8s.io";
/// Of `MachineSet`s.
pub const MACHINE_SET_FINALIZER: &str = "cluster.x-k8s.io/machineset";
/// Of `MachineDeployment`s.
pub const MACHINE_DEPLOYMENT_FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";
/// Of `HostedControlPlane`s; the name that existing objects have.
pub const HOSTED_CONTROL_PLANE_FINALIZER: &str = "hcp.controlplane.cluster.x-k8s.io";
/// Of `OpenStackCluster`s.
pub const OPENSTACK_CLUSTER_FINALIZER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";
/// Of `OpenStackMachine`s.
pub const OPENSTACK_MACHINE_FINALIZER: &str = "openstackmachine.infrastructure.cluster.x-k8s.io";

// Secrets.

/// Type of the Secrets that belong to a cluster.
pub const CLUSTER_SECRET_TYPE: &str = "cluster.x-k8s.io/secret";
/// Key of the data in kubeconfig and bootstrap Secrets.
pub const SECRET_VALUE_KEY: &str = "value";

/// The CRD label that lists the API versions which implement a contract.
pub fn contract_label(contract: &str) -> String {
    format!("cluster.x-k8s.io/{contract}")
}

#[cfg(test)]
mod tests {
    /// Every constant of this file with its value. A change here is a change for every running system.
    #[test]
    fn names_are_pinned() {
        // The formatter puts long values on a line of their own.
        let source = include_str!("names.rs").replace("=\n    \"", "= \"");
        let declared: Vec<_> = source
            .lines()
            .filter_map(|line| {
                line.strip_prefix("pub const ")?.strip_suffix("\";")?.split_once(": &str = \"")
            })
            .collect();
        assert_eq!(declared.len(), source.lines().filter(|line| line.starts_with("pub const ")).count());
        let written: Vec<_> = declared.iter().map(|(name, value)| format!("{name} {value}")).collect();
        insta::assert_snapshot!(written.join("\n"));
    }
}
