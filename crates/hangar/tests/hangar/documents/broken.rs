//! Mistakes of users, one at a time, in manifests that are right: each is refused, and the answer names the field.
//!
//! A row is a manifest of the fixtures, one change, and what the API server must answer. Rules about several fields are
//! reported at the object that contains them; there the text names the fields.

use serde_json::{Value, json};

use super::fixture;
use super::with_namespace;
use super::world::{Kind, WORLD};

/// A change of a manifest.
enum Change {
    /// Sets the field at a JSON pointer; objects on the way are made.
    Set(&'static str, Value),
    /// Removes the field at a JSON pointer.
    Remove(&'static str),
}

use Change::{Remove, Set};

impl Change {
    fn make(&self, object: &mut Value) {
        match self {
            Set(pointer, value) => {
                let mut current = object;
                for key in pointer.split('/').skip(1) {
                    current = match current {
                        Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
                        other => &mut other[key],
                    };
                }
                *current = value.clone();
            }
            Remove(pointer) => {
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
                assert!(parent.remove(key).is_some(), "{pointer} is not there");
            }
        }
    }
}

/// A change, and a part of the answer: the path of the field and what is wrong with it.
type Row = (Change, &'static str);

/// Sends each row; every one is refused with its answer, and nothing is stored.
fn check(file: &str, kind: &str, rows: Vec<Row>) {
    let namespace = WORLD.namespace("broken");
    let fixture = fixture::one(file, kind);
    let object = with_namespace(&fixture.object, &namespace);
    let dry_run = WORLD.kubectl(&["create", "--dry-run=server", "--filename=-"], &object.to_string());
    dry_run.unwrap_or_else(|error| panic!("{file} is to be broken, but was broken before: {error}"));

    let mut problems = Vec::new();
    for (change, expected) in rows {
        let mut broken = object.clone();
        change.make(&mut broken);
        match WORLD.apply(None, &broken.to_string()) {
            Ok(()) => problems.push(format!("accepted, though {expected}")),
            Err(error) if error.contains(expected) => {}
            Err(error) => problems.push(format!("not said: {expected}\n    but: {}", error.trim())),
        }
    }
    let (kind, version) = Kind::of(fixture.api_version(), kind);
    let stored = WORLD.names(&kind, &version, &namespace);
    assert!(problems.is_empty(), "{file}, stored: {stored:?}\n  {}", problems.join("\n  "));
    assert_eq!(stored, [""; 0], "{file}");
}

#[test]
fn hosted_control_planes() {
    let rows = vec![
        (Set("/spec/replicas", json!("3")), "spec.replicas: Invalid value: \"string\""),
        (Set("/spec/replicas", json!(0)), "spec.replicas: Invalid value: 0"),
        (Set("/spec/version", json!("latest")), "spec.version: Invalid value: \"latest\""),
        (Remove("/spec/version"), "spec.version: Required value"),
        (Remove("/spec/gateway/namespace"), "spec.gateway.namespace: Required value"),
        (Set("/spec/gateway/port", json!(70_000)), "spec.gateway.port: Invalid value: 70000"),
        (Set("/spec/exposure/type", json!("Ingress")), "spec.exposure.type: Unsupported value: \"Ingress\""),
        (Set("/spec/exposure/type", json!("NodePort")), "a gateway is only for exposure.type Gateway"),
        (Set("/spec/etcd/replicas", json!(2)), "spec.etcd.replicas: Unsupported value: 2"),
        (Set("/spec/etcd/volumeSize", json!("10 GB")), "spec.etcd.volumeSize: Invalid value: \"10 GB\""),
        (Set("/spec/etcd", json!({ "autoGrow": true, "volumeSize": "10Gi" })), "spec.etcd: Invalid value"),
        (Set("/spec/etcd", json!({ "autoGrow": true, "volumeSize": "10Gi" })), "(autoGrow)"),
        (Set("/spec/highAvailability", json!(true)), "unknown field \"spec.highAvailability\""),
        (
            Set("/metadata/name", json!("My_Control_Plane")),
            "metadata.name: Invalid value: \"My_Control_Plane\"",
        ),
    ];
    check("4-hosted-control-plane/basic.yaml", "HostedControlPlane", rows);
    let pull_policy = "spec.deployment.apiServer.imagePullPolicy: Unsupported value: \"Sometimes\"";
    let cpu = "spec.etcd.resources.requests.cpu: Invalid value: \"a lot\"";
    let rows = vec![
        (Set("/spec/exposure", json!({ "type": "Gateway" })), "exposure.type Gateway needs a gateway"),
        (Set("/spec/exposure/loadBalancer/sourceRanges/0", json!(24)), "sourceRanges[0]: Invalid value"),
        (Set("/spec/deployment/apiServer/imagePullPolicy", json!("Sometimes")), pull_policy),
        (Set("/spec/etcd/resources/requests/cpu", json!("a lot")), cpu),
        (Remove("/spec/deployment/apiServer/mounts/webhook/path"), "mounts.webhook.path: Required value"),
        (
            Set("/spec/certificates/leafCertificateDuration", json!("1y")),
            "spec.certificates.leafCertificateDuration: Invalid value: \"1y\"",
        ),
    ];
    check("other-kinds/hosted-control-plane.yaml", "HostedControlPlane", rows);
    let rows = vec![
        (
            Set("/spec/template/spec/etcd/replicas", json!(4)),
            "spec.template.spec.etcd.replicas: Unsupported value: 4",
        ),
        (
            Set("/spec/template/spec/exposure/nodePort/port", json!(0)),
            "exposure.nodePort.port: Invalid value: 0",
        ),
        (Remove("/spec/template/spec"), "spec.template.spec: Required value"),
    ];
    check("other-kinds/hosted-control-plane-template.yaml", "HostedControlPlaneTemplate", rows);
}

#[test]
fn clusters() {
    let blocks = "spec.clusterNetwork.pods.cidrBlocks: Invalid value: \"string\"";
    let replicas = "spec.topology.workers.machineDeployments[0].replicas: Invalid value: \"string\"";
    let rows = vec![
        (
            Set("/spec/clusterNetwork/pods/cidrBlocks/0", json!("172.16.0.0/33")),
            "spec.clusterNetwork.pods.cidrBlocks[0]: Invalid value: \"172.16.0.0/33\"",
        ),
        (
            Set("/spec/clusterNetwork/services/cidrBlocks/0", json!("10.96.0.0")),
            "spec.clusterNetwork.services.cidrBlocks[0]: Invalid value: \"10.96.0.0\"",
        ),
        (Set("/spec/clusterNetwork/pods/cidrBlocks", json!("172.16.0.0/16")), blocks),
        (Remove("/spec/topology/version"), "spec.topology.version: Required value"),
        (Remove("/spec/topology/class"), "spec.topology.class: Required value"),
        (Remove("/spec/topology/variables/0/name"), "spec.topology.variables[0].name: Required value"),
        (Set("/spec/topology/workers/machineDeployments/0/replicas", json!("two")), replicas),
    ];
    check("0-cluster-stack/cluster.yaml", "Cluster", rows);
    let rows = vec![
        (Set("/metadata/name", json!("my.cluster")), "metadata.name: Invalid value: \"my.cluster\""),
        (Set("/metadata/name", json!("MyCluster")), "metadata.name: Invalid value: \"MyCluster\""),
        (Set("/spec", json!({ "paused": true })), "spec.controlPlaneRef: Required value"),
        (Set("/spec/controlPlaneReference", json!({})), "unknown field \"spec.controlPlaneReference\""),
        (Set("/spec/paused", json!("yes")), "spec.paused: Invalid value: \"string\""),
        (
            Set("/spec/controlPlaneEndpoint", json!({ "host": "a", "port": "6443" })),
            "spec.controlPlaneEndpoint.port: Invalid value: \"string\"",
        ),
    ];
    check("4-hosted-control-plane/cluster.yaml", "Cluster", rows);
    let rows = vec![
        (Remove("/spec/infrastructureRef/apiGroup"), "spec.infrastructureRef.apiGroup: Required value"),
        (Set("/spec/controlPlaneRef/name", json!("No Name")), "spec.controlPlaneRef.name: Invalid value"),
        (
            Set("/spec/clusterNetwork/apiServerPort", json!(0)),
            "spec.clusterNetwork.apiServerPort: Invalid value: 0",
        ),
        (
            Set("/spec/availabilityGates/0/polarity", json!("Neutral")),
            "spec.availabilityGates[0].polarity: Unsupported value: \"Neutral\"",
        ),
        (
            Set("/spec/clusterNetwork/pods/cidrBlocks/1", json!("fd00::/129")),
            "spec.clusterNetwork.pods.cidrBlocks[1]: Invalid value: \"fd00::/129\"",
        ),
    ];
    check("other-kinds/cluster.yaml", "Cluster", rows);
}

#[test]
fn machines_and_what_makes_them() {
    let rows = vec![
        (Set("/spec/replicas", json!("one")), "spec.replicas: Invalid value: \"string\""),
        (Remove("/spec/clusterName"), "spec.clusterName: Required value"),
        (
            Remove("/spec/template/spec/infrastructureRef"),
            "spec.template.spec.infrastructureRef: Required value",
        ),
        (
            Set("/spec/selector/matchLabels/pool", json!("a")),
            "spec.template.metadata.labels[pool]: Required value",
        ),
        (
            Set("/spec/template/spec/clusterName", json!("another")),
            "spec.template.spec.clusterName: Invalid value: \"another\"",
        ),
        (
            Set("/spec/strategy/type", json!("Recreate")),
            "spec.strategy.type: Unsupported value: \"Recreate\"",
        ),
        (
            Set("/spec/strategy/rollingUpdate/deletePolicy", json!("Youngest")),
            "spec.strategy.rollingUpdate.deletePolicy: Unsupported value: \"Youngest\"",
        ),
        (
            Set("/spec/template/spec/nodeDrainTimeout", json!(90)),
            "spec.template.spec.nodeDrainTimeout: Invalid value: \"integer\"",
        ),
    ];
    check("1-k0smotron/openstack-hcp-cluster.yaml", "MachineDeployment", rows);
    let rows = vec![
        (
            Set("/spec/selector/matchLabels/pool", json!("b")),
            "spec.template.metadata.labels[pool]: Required value",
        ),
        (
            Set("/spec/deletion/order", json!("Youngest")),
            "spec.deletion.order: Unsupported value: \"Youngest\"",
        ),
        (Remove("/spec/template/spec/bootstrap"), "spec.template.spec.bootstrap: Required value"),
    ];
    check("other-kinds/machine-set.yaml", "MachineSet", rows);
    let rows = vec![
        (Set("/spec/taints/0/effect", json!("Never")), "spec.taints[0].effect: Unsupported value: \"Never\""),
        (Remove("/spec/infrastructureRef/kind"), "spec.infrastructureRef.kind: Required value"),
        (
            Set("/spec/deletion/nodeDrainTimeoutSeconds", json!("90s")),
            "spec.deletion.nodeDrainTimeoutSeconds: Invalid value",
        ),
        (Set("/spec/minReadySeconds", json!(-1)), "spec.minReadySeconds: Invalid value: -1"),
    ];
    check("other-kinds/machine.yaml", "Machine", rows);
    let rows = vec![
        (Remove("/spec/selector"), "spec.selector: Required value"),
        (
            Remove("/spec/checks/unhealthyNodeConditions/0/timeoutSeconds"),
            "spec.checks.unhealthyNodeConditions[0].timeoutSeconds: Required value",
        ),
        (
            Set("/spec/checks/unhealthyMachineConditions/0/status", json!("Broken")),
            "spec.checks.unhealthyMachineConditions[0].status: Unsupported value: \"Broken\"",
        ),
        (
            Set("/spec/remediation/triggerIf/unhealthyInRange", json!("3-5")),
            "spec.remediation.triggerIf.unhealthyInRange: Invalid value: \"3-5\"",
        ),
    ];
    check("other-kinds/machine-health-check.yaml", "MachineHealthCheck", rows);
}

#[test]
fn bootstrap_and_addons() {
    let registration = "/spec/template/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs";
    let rows = vec![
        (
            Set(registration, json!([{ "name": "cloud-provider", "value": "external" }])),
            "unknown field \"spec.template.spec.joinConfiguration.nodeRegistration.kubeletExtraArgs[0].name\"",
        ),
        (
            Set("/spec/template/spec/format", json!("cloud-init")),
            "spec.template.spec.format: Unsupported value",
        ),
        (
            Set("/spec/template/spec/files", json!([{ "content": "" }])),
            "spec.template.spec.files[0].path: Required value",
        ),
        (
            Set("/spec/template/spec/verbosity", json!("5")),
            "spec.template.spec.verbosity: Invalid value: \"string\"",
        ),
    ];
    check("3-kamaji/capi-quickstart.yaml", "KubeadmConfigTemplate", rows);
    let rows = vec![
        (
            Set("/spec/diskSetup/partitions/0/tableType", json!("bsd")),
            "spec.diskSetup.partitions[0].tableType: Unsupported value: \"bsd\"",
        ),
        (
            Set("/spec/files/0/encoding", json!("base32")),
            "spec.files[0].encoding: Unsupported value: \"base32\"",
        ),
        (
            Remove("/spec/files/1/contentFrom/secret/key"),
            "spec.files[1].contentFrom.secret.key: Required value",
        ),
        (
            Set("/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs", json!({ "v": "4" })),
            "unknown field \"spec.joinConfiguration.nodeRegistration.kubeletExtraArgs.v\"",
        ),
    ];
    check("other-kinds/kubeadm-config.yaml", "KubeadmConfig", rows);
    let rows = vec![
        (Set("/spec/strategy", json!("Always")), "spec.strategy: Unsupported value: \"Always\""),
        (Set("/spec/resources/0/kind", json!("Deployment")), "spec.resources[0].kind: Unsupported value"),
        (Remove("/spec/resources/0/name"), "spec.resources[0].name: Required value"),
        (Remove("/spec/clusterSelector"), "spec.clusterSelector: Required value"),
    ];
    check("0-cluster-stack/cluster-resource-set.yaml", "ClusterResourceSet", rows);
    let rows = vec![
        (
            Remove("/spec/bindings/0/resources/0/applied"),
            "spec.bindings[0].resources[0].applied: Required value",
        ),
        (Remove("/spec/clusterName"), "spec.clusterName: Required value"),
    ];
    check("other-kinds/cluster-resource-set-binding.yaml", "ClusterResourceSetBinding", rows);
}

#[test]
fn openstack_clusters() {
    let rule_name = "spec.managedSecurityGroups.allNodesSecurityGroupRules[0].name: Required value";
    let rows = vec![
        (Set("/spec/network/id", json!("by-name")), "spec.network.id: Invalid value: \"by-name\""),
        (Set("/spec/network/filter", json!({ "name": "n" })), "spec.network: Too many"),
        (Remove("/spec/identityRef"), "spec.identityRef: Required value"),
        (
            Set("/spec/identityRef/type", json!("Vault")),
            "spec.identityRef.type: Unsupported value: \"Vault\"",
        ),
        (Set("/spec/disableAPIServerFloatingIP", json!(false)), "disableAPIServerFloatingIP must be true"),
        (
            Set("/spec/controlPlaneAvailabilityZones", json!("nova")),
            "spec.controlPlaneAvailabilityZones: Invalid value",
        ),
        (
            Set("/spec/managedSecurityGroups/allNodesSecurityGroupRules/0/direction", json!("inbound")),
            "allNodesSecurityGroupRules[0].direction: Unsupported value: \"inbound\"",
        ),
        (
            Set("/spec/managedSecurityGroups/allNodesSecurityGroupRules/1/etherType", json!("IPv5")),
            "allNodesSecurityGroupRules[1].etherType: Unsupported value: \"IPv5\"",
        ),
        (
            Set(
                "/spec/managedSecurityGroups/allNodesSecurityGroupRules/0/remoteManagedGroups/0",
                json!("nodes"),
            ),
            "allNodesSecurityGroupRules[0].remoteManagedGroups[0]: Unsupported value: \"nodes\"",
        ),
        (
            Set("/spec/managedSecurityGroups/allNodesSecurityGroupRules/0/portRangeMin", json!("179")),
            "allNodesSecurityGroupRules[0].portRangeMin: Invalid value: \"string\"",
        ),
        (Remove("/spec/managedSecurityGroups/allNodesSecurityGroupRules/0/name"), rule_name),
    ];
    check("3-kamaji/capi-quickstart.yaml", "OpenStackCluster", rows);
    let load_balancer = "spec.template.spec.apiServerLoadBalancer: Invalid value: \"string\"";
    let rows = vec![
        (Remove("/spec/template/spec/managedSubnets/0/cidr"), "managedSubnets[0].cidr: Required value"),
        (
            Set("/spec/template/spec/managedSubnets/0/cidr", json!(24)),
            "spec.template.spec.managedSubnets[0].cidr: Invalid value: \"integer\"",
        ),
        (Set("/spec/template/spec/apiServerLoadBalancer", json!("octavia")), load_balancer),
    ];
    check("other-kinds/openstack-cluster-template.yaml", "OpenStackClusterTemplate", rows);
}

#[test]
fn openstack_machines() {
    let rows = vec![
        (Remove("/spec/template/spec/flavor"), "flavor or flavorID is needed"),
        (Remove("/spec/template/spec/image"), "spec.template.spec.image: Required value"),
        (
            Set("/spec/template/spec/image/id", json!("ubuntu")),
            "spec.template.spec.image.id: Invalid value: \"ubuntu\"",
        ),
        (
            Set("/spec/template/spec/ports", json!("default")),
            "spec.template.spec.ports: Invalid value: \"string\"",
        ),
        (
            Set("/spec/template/spec/rootVolume", json!({ "sizeGiB": 0 })),
            "spec.template.spec.rootVolume.sizeGiB: Invalid value: 0",
        ),
    ];
    check("3-kamaji/capi-quickstart.yaml", "OpenStackMachineTemplate", rows);
    let rows = vec![
        (Set("/spec/image/filter", json!({})), "spec.image.filter: Invalid value"),
        (
            Set("/spec/rootVolume/availabilityZone/from", json!("Cluster")),
            "availabilityZone.from: Unsupported value",
        ),
        (Set("/spec/rootVolume/availabilityZone/name", json!("nova")), "name is needed when from is Name"),
        (Remove("/spec/serverMetadata/0/value"), "spec.serverMetadata[0].value: Required value"),
    ];
    check("other-kinds/openstack-machine.yaml", "OpenStackMachine", rows);
}

#[test]
fn an_openstack_cluster_is_refused_before_the_cloud_would() {
    let rule = "/spec/managedSecurityGroups/allNodesSecurityGroupRules/0";
    let rows = vec![
        (
            Set("/spec/managedSubnets", json!([{ "cidr": "10.6.0.0/40" }])),
            "spec.managedSubnets[0].cidr: Invalid value",
        ),
        (
            Set("/spec/apiServerLoadBalancer/allowedCIDRs", json!(["everyone"])),
            "spec.apiServerLoadBalancer.allowedCIDRs[0]: Invalid value: \"everyone\"",
        ),
        (
            Set("/spec/apiServerFixedIP", json!("10.6.0.300")),
            "spec.apiServerFixedIP: Invalid value: \"10.6.0.300\"",
        ),
        (
            Set(rule, json!({ "name": "BGP", "direction": "ingress", "remoteIPPrefix": "10.6.0.0/40" })),
            "spec.managedSecurityGroups.allNodesSecurityGroupRules[0].remoteIPPrefix: Invalid value",
        ),
        (
            Set(
                rule,
                json!({ "name": "BGP", "direction": "ingress", "portRangeMin": 200, "portRangeMax": 100 }),
            ),
            "spec.managedSecurityGroups.allNodesSecurityGroupRules[0].portRangeMin: Invalid value: 200",
        ),
    ];
    check("3-kamaji/capi-quickstart.yaml", "OpenStackCluster", rows);
}
