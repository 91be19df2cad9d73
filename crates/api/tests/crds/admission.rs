//! The CRDs in a real API server: they are accepted, and their rules accept and refuse what they should.
//!
//! Each row is one object (or one change of an object) and either nothing or a part of the refusal. All requests are
//! dry runs, except those that make the object which is then changed.

use std::time::Duration;

use hangar_api::crd;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::DEFINITIONS;

/// Long enough for a busy machine; a test that waits this long fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// A client of the shared API server, with all CRDs installed.
async fn client() -> Client {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let client = hangar_testbed::shared().client();
    INSTALLED.get_or_init(|| install(client.clone())).await;
    client
}

async fn install(client: Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let parameters = PatchParams::apply("test").force();
    for definition in DEFINITIONS.iter() {
        let name = definition.metadata.name.as_deref().unwrap();
        let body = crd::yaml::to_json(definition).unwrap();
        api.patch(name, &parameters, &Patch::Apply(body))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for definition in DEFINITIONS.iter() {
        let name = definition.metadata.name.as_deref().unwrap();
        let established = tokio::time::timeout(PATIENCE, async {
            while !is_established(&api.get(name).await.unwrap()) || !is_served(&client, definition).await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        established.await.unwrap_or_else(|_| panic!("{name} is not served"));
    }
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let has = |type_: &str| conditions.clone().any(|known| known.type_ == type_ && known.status == "True");
    assert!(!has("NonStructuralSchema"), "{:?}", definition.metadata.name);
    has("Established")
}

/// Those who serve a kind's objects hear a moment later that it is established.
async fn is_served(client: &Client, definition: &CustomResourceDefinition) -> bool {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        if objects.list(&ListParams::default().limit(1)).await.is_err() {
            return false;
        }
    }
    true
}

fn api(client: Client, namespace: &str, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client, namespace, &resource)
}

fn object(kind: (&str, &str, &str), name: &str, spec: &Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": format!("{}/{}", kind.0, kind.1), "kind": kind.2, "metadata": {"name": name}, "spec": spec,
    }))
    .unwrap()
}

/// Checks a refusal (or its absence) against what was expected.
fn judge(result: Result<DynamicObject, kube::Error>, expected: Option<&str>, row: &Value) {
    match (result, expected) {
        (Ok(_), None) => {}
        (Ok(_), Some(expected)) => panic!("accepted, but {expected:?} was expected: {row}"),
        (Err(error), None) => panic!("refused: {row}: {error}"),
        (Err(error), Some(expected)) => {
            assert!(error.to_string().contains(expected), "refused for another reason: {row}: {error}");
        }
    }
}

const HOSTED_CONTROL_PLANE: (&str, &str, &str) =
    ("controlplane.cluster.x-k8s.io", "v1alpha1", "HostedControlPlane");
const OPENSTACK_MACHINE: (&str, &str, &str) =
    ("infrastructure.cluster.x-k8s.io", "v1beta1", "OpenStackMachine");
const OPENSTACK_CLUSTER: (&str, &str, &str) =
    ("infrastructure.cluster.x-k8s.io", "v1beta1", "OpenStackCluster");

/// Sends every row as a new object.
async fn create(kind: (&str, &str, &str), base: &Value, rows: Vec<(Value, Option<&str>)>) {
    let namespace = hangar_testbed::shared().namespace("admission");
    let api = api(client().await, &namespace, kind.0, kind.1, kind.2);
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    for (row, expected) in rows {
        let mut spec = base.clone();
        spec.as_object_mut().unwrap().extend(row.as_object().unwrap().clone());
        judge(api.create(&parameters, &object(kind, "row", &spec)).await, expected, &row);
    }
}

/// Makes an object with a spec and a status, then sends every row as a change of its spec.
async fn change(kind: (&str, &str, &str), spec: Value, status: Value, rows: Vec<(Value, Option<&str>)>) {
    let namespace = hangar_testbed::shared().namespace("admission");
    let api = api(client().await, &namespace, kind.0, kind.1, kind.2);
    api.create(&PostParams::default(), &object(kind, "row", &spec)).await.unwrap();
    let merge = PatchParams::default();
    api.patch_status("row", &merge, &Patch::Merge(json!({"status": status}))).await.unwrap();
    for (row, expected) in rows {
        let dry_run = PatchParams { dry_run: true, ..PatchParams::default() };
        judge(api.patch("row", &dry_run, &Patch::Merge(json!({"spec": row}))).await, expected, &row);
    }
}

#[tokio::test]
async fn versions_etcd_and_exposure_of_hosted_control_planes() {
    let rows = vec![
        (json!({}), None),
        (json!({"replicas": 3, "gateway": {"name": "capi", "namespace": "capi-system"}}), None),
        (json!({"replicas": 0}), Some("replicas")),
        (json!({"imageRegistry": "registry.example.org:5000/mirror"}), None),
        (json!({"imageRegistry": "https://registry.example.org"}), Some("should match")),
        (json!({"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}), None),
        (json!({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}), Some("Duplicate value")),
        (json!({"placement": {"tolerations": [{"key": "a", "operator": "Exists"}]}}), None),
        (
            json!({"placement": {"topologySpread": [{"topologyKey": "a", "maxSkew": 0}]}}),
            Some("greater than or equal to 1"),
        ),
        (
            json!({"placement": {"topologySpread": [{"topologyKey": "a", "whenUnsatisfiable": "Never"}]}}),
            Some("Unsupported value"),
        ),
        (json!({"version": "1.33"}), None),
        (json!({"version": "v1.33.0+k3s1"}), None),
        (json!({"version": "latest"}), Some("should match")),
        (json!({"version": "v1.033.0"}), Some("should match")),
        (json!({"etcd": {"replicas": 5}}), None),
        (json!({"etcd": {"replicas": 2}}), Some("Unsupported value")),
        (json!({"etcd": {"volumeSize": "8Gi"}}), None),
        (json!({"etcd": {"volumeSize": 2_147_483_648_u64}}), None),
        (json!({"etcd": {"volumeSize": 8}}), Some("at least 2Gi")),
        (json!({"etcd": {"volumeSize": "1Gi"}}), Some("at least 2Gi")),
        (json!({"etcd": {"volumeSize": "8 Gi"}}), Some("should match")),
        (json!({"etcd": {"autoGrow": true}}), None),
        (json!({"etcd": {"autoGrow": true, "volumeSize": "8Gi"}}), Some("either volumes grow")),
        (json!({"etcd": {"autoGrow": false}}), Some("either volumes grow")),
        (json!({"exposure": {"type": "Gateway"}}), Some("needs a gateway")),
        (json!({"exposure": {"type": "ClusterIP"}}), None),
        (json!({"exposure": {"type": "NodePort", "nodePort": {"port": 30000}}}), None),
        (json!({"exposure": {"nodePort": {"port": 30000}}}), Some("only for type NodePort")),
        (json!({"exposure": {"type": "ClusterIP", "loadBalancer": {}}}), Some("only for types LoadBalancer")),
        (
            json!({"exposure": {"type": "LoadBalancer"}, "gateway": {"name": "a", "namespace": "b"}}),
            Some("only for exposure.type Gateway"),
        ),
    ];
    create(HOSTED_CONTROL_PLANE, &json!({"version": "v1.33.0"}), rows).await;
}

#[tokio::test]
async fn certificates_identities_and_files_of_hosted_control_planes() {
    let provider = json!({"audiences": ["a"], "claimMappings": {"username": "claims.sub"}});
    let mount = |mount: Value| json!({"deployment": {"apiServer": {"mounts": {"x": mount}}}});
    let schedule = |text: &str| json!({"etcd": {"backup": {"schedule": text, "secret": {"name": "s"}}}});
    let backup = |more: Value| {
        let mut backup = json!({"schedule": "@daily", "secret": {"name": "s"}});
        backup.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"etcd": {"backup": backup}})
    };
    let restore = |restore: Value| json!({"etcd": {"restore": restore}});
    let certificates = |given: Value| json!({ "certificates": given });
    let audit = |audit: Value| json!({"deployment": {"apiServer": {"audit": audit}}});
    let rows = vec![
        (certificates(json!({"rootCaCertificateDuration": "48h"})), None),
        (
            certificates(json!({"rootCaCertificateDuration": "48h", "caCertificateDuration": "49h"})),
            Some("rootCaCertificateDuration >= caCertificateDuration"),
        ),
        (certificates(json!({"caCertificateDuration": "99999h"})), Some("rootCaCertificateDuration")),
        (
            certificates(json!({"leafCertificateDuration": "24h", "rootCaCertificateDuration": "12h"})),
            Some("outlives its authority"),
        ),
        (certificates(json!({"leafCertificateDuration": "1s"})), Some("ten minutes")),
        (certificates(json!({"leafCertificateDuration": "1y"})), Some("should match")),
        (json!({"oidcProviders": {"https://x.example/y": provider}}), None),
        (json!({"oidcProviders": {"http://x.example": provider}}), Some("https URLs")),
        (mount(json!({"path": "/a", "secret": {"secretName": "s"}})), None),
        (mount(json!({"path": "/a", "configMap": {"name": "c"}})), None),
        (mount(json!({"path": "/a"})), Some("exactly one of configMap and secret")),
        (
            mount(json!({"path": "/a", "configMap": {"name": "c"}, "secret": {"secretName": "s"}})),
            Some("at most 2"),
        ),
        (mount(json!({"path": "relative", "configMap": {"name": "c"}})), Some("should match")),
        (restore(json!({"backup": "latest", "before": "2026-11-18T12:00:00Z"})), None),
        (restore(json!({"backup": "20261118T194500Z", "replace": "shop/1"})), None),
        (
            restore(json!({"backup": "20261118T194500Z", "before": "2026-11-18T12:00:00Z"})),
            Some("it needs backup: latest"),
        ),
        (restore(json!({"backup": "newest"})), Some("should match")),
        (restore(json!({"member": "shop-etcd-0", "replace": "shop/1"})), None),
        (restore(json!({"replace": "shop/1"})), Some("one of backup and member")),
        (restore(json!({"backup": "latest", "member": "shop-etcd-0"})), Some("one of backup and member")),
        (
            restore(json!({"member": "shop-etcd-0", "encryption": {"secretName": "key"}})),
            Some("are about a backup"),
        ),
        (
            restore(json!({"backup": "latest", "from": {"namespace": "../x", "name": "shop"}})),
            Some("should match"),
        ),
        (schedule("@daily"), None),
        (schedule("*/15 0-6,22 1,15 JAN-MAR MON"), None),
        (schedule("0 3 * *"), Some("should match")),
        (schedule("@often"), Some("should match")),
        (
            backup(json!({"encryption": {"secretName": "k"}, "retention": {"daily": 7}, "suspend": true})),
            None,
        ),
        (backup(json!({"encryption": {"secretName": "s"}})), Some("must not be in the Secret of the bucket")),
        (backup(json!({"encryption": {"secretName": ""}})), Some("at least 1 chars")),
        (backup(json!({"retention": {"daily": -1}})), Some("greater than or equal to 0")),
        (audit(json!({"policy": {"kind": "Policy", "rules": [{"level": "Metadata"}]}})), None),
        (audit(json!({"policy": {"rules": [{"level": "All"}]}})), Some("Unsupported value")),
        (audit(json!({"policy": {"rules": []}, "log": {"maxSize": 1, "format": "legacy"}})), None),
        (
            audit(json!({"policy": {"rules": []}, "log": {"maxBackups": 0}})),
            Some("greater than or equal to 1"),
        ),
        (audit(json!({"policy": {"rules": []}, "webhook": {"targets": []}})), Some("at least 1")),
    ];
    create(HOSTED_CONTROL_PLANE, &json!({"version": "v1.33.0"}), rows).await;
}

#[tokio::test]
async fn changes_of_hosted_control_planes() {
    let spec = json!({"version": "v1.33.10", "etcd": {"volumeSize": "10Gi", "storageClassName": "fast"}});
    let rows = vec![
        (json!({"version": "1.33.10"}), None),
        (json!({"version": "v1.34"}), None),
        (json!({"version": "v2.0.0"}), None),
        // Whether it may be set back depends on what has served, which is not the schema's to know.
        (json!({"version": "v1.33.9"}), None),
        (json!({"etcd": {"volumeSize": "10240Mi"}}), None),
        (json!({"etcd": {"volumeSize": "1Ti"}}), None),
        (json!({"etcd": {"volumeSize": "9Gi"}}), Some("spec.etcd.volumeSize cannot be smaller")),
        (json!({"etcd": {"volumeSize": null}}), Some("spec.etcd.volumeSize cannot be smaller")),
        (json!({"etcd": {"storageClassName": "slow"}}), Some("spec.etcd.storageClassName cannot be changed")),
        (json!({"etcd": {"storageClassName": null}}), Some("spec.etcd.storageClassName cannot be changed")),
    ];
    change(HOSTED_CONTROL_PLANE, spec, json!({}), rows).await;
    let node_host = |host: Value| json!({"exposure": {"nodeHost": host}});
    let rows =
        vec![(node_host(json!("nodes.example.org")), None), (node_host(json!("")), Some("at least 1"))];
    change(HOSTED_CONTROL_PLANE, json!({"version": "v1.33.0"}), json!({}), rows).await;
    let rows = vec![
        (json!({"replicas": 3}), None),
        (node_host(json!("other.example.org")), Some("nodes keep it")),
        (json!({"exposure": null}), Some("nodes keep it")),
    ];
    let joined = json!({
        "version": "v1.33.0", "exposure": {"nodeHost": "nodes.example.org"},
        "controlPlaneEndpoint": {"host": "api.example.org", "port": 6443},
    });
    change(HOSTED_CONTROL_PLANE, joined, json!({}), rows).await;
    let rows = vec![
        (json!({"etcd": {"autoGrow": false, "volumeSize": "12Gi"}}), None),
        (json!({"etcd": {"autoGrow": false, "volumeSize": "20Gi"}}), None),
        (json!({"etcd": {"autoGrow": false, "volumeSize": "8Gi"}}), Some("cannot be smaller")),
        (json!({"etcd": {"autoGrow": false, "volumeSize": "11Gi"}}), Some("cannot be smaller")),
        (json!({"replicas": 3}), None),
        (json!({"etcd": {"autoGrow": true, "storageClassName": "fast"}}), Some("cannot be changed")),
    ];
    let grown = json!({"version": "v1.33.0", "etcd": {"autoGrow": true}});
    change(HOSTED_CONTROL_PLANE, grown, json!({"etcdVolumeSize": "12Gi"}), rows).await;
}

#[tokio::test]
async fn openstack_kinds() {
    let identity = |more: Value| {
        let mut identity = json!({"name": "s", "cloudName": "c"});
        identity.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "identityRef": identity })
    };
    let id = ID;
    let rows = vec![
        (json!({}), None),
        (json!({"disableExternalNetwork": true}), Some("disableAPIServerFloatingIP must be true")),
        (json!({"disableExternalNetwork": true, "disableAPIServerFloatingIP": true}), None),
        (json!({"bastion": {}}), Some("needs a spec")),
        (json!({"bastion": {"enabled": false}}), None),
        (json!({"network": {"id": id}}), None),
        (json!({"network": {"id": "by-name"}}), Some("uuid")),
        (json!({"network": {}}), Some("at least 1")),
        (json!({"network": {"id": id, "filter": {"name": "n"}}}), Some("at most 1")),
        (json!({"network": {"filter": {}}}), Some("at least 1")),
        (json!({"network": {"filter": {"tags": ["a,b"]}}}), Some("should match")),
        (identity(json!({"type": "Vault"})), Some("Unsupported value")),
    ];
    create(OPENSTACK_CLUSTER, &identity(json!({})), rows).await;
    let zone = |zone: Value| json!({"rootVolume": {"sizeGiB": 10, "availabilityZone": zone}});
    let hint = |value: Value| json!({"schedulerHintAdditionalProperties": [{"name": "h", "value": value}]});
    let rows = vec![
        (json!({"flavor": "small"}), None),
        (json!({}), Some("flavor or flavorID")),
        (json!({"flavor": "small", "image": {"filter": {"name": "a"}, "id": id}}), Some("at most 1")),
    ];
    create(OPENSTACK_MACHINE, &json!({"image": {"filter": {"name": "debian"}}}), rows).await;
    let rows = vec![
        (zone(json!({"name": "z"})), None),
        (zone(json!({"from": "Machine"})), None),
        (zone(json!({"from": "Machine", "name": "z"})), Some("name is needed")),
        (zone(json!({})), Some("name is needed")),
        (hint(json!({"type": "Bool", "bool": true})), None),
        (hint(json!({"type": "Bool", "string": "x"})), Some("bool is needed")),
    ];
    create(OPENSTACK_MACHINE, &json!({"flavor": "small", "image": {"id": id}}), rows).await;
}

const ID: &str = "11111111-1111-1111-1111-111111111111";

/// A cluster's spec with credentials.
fn cluster(more: &Value) -> Value {
    let mut spec = json!({"identityRef": {"name": "s", "cloudName": "c", "region": "a"}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

#[tokio::test]
async fn what_an_openstack_machine_was_made_from_stays() {
    let machine =
        json!({"flavor": "small", "image": {"id": ID}, "ports": [{"nameSuffix": "a"}], "trunk": false});
    let other_image = "22222222-2222-2222-2222-222222222222";
    let rows = vec![
        (json!({"providerID": "openstack:///x"}), None),
        (json!({"identityRef": {"name": "s", "cloudName": "c"}}), None),
        (json!({"trunk": null, "tags": [], "ports": [{"nameSuffix": "a"}]}), None),
        (json!({"ports": [{"nameSuffix": "b"}]}), Some("spec.ports: Forbidden: cannot be changed")),
        (json!({"ports": null}), Some("spec.ports: Forbidden: cannot be changed")),
        (json!({"flavor": "large"}), Some("spec.flavor: Forbidden: cannot be changed")),
        (json!({"flavorID": "1"}), Some("spec.flavorID: Forbidden")),
        (json!({"image": {"id": other_image}}), Some("spec.image: Forbidden")),
        (json!({"trunk": true}), Some("spec.trunk: Forbidden")),
        (json!({"tags": ["a"]}), Some("spec.tags: Forbidden")),
        (json!({"rootVolume": {"sizeGiB": 1}}), Some("spec.rootVolume: Forbidden")),
    ];
    change(OPENSTACK_MACHINE, machine, json!({}), rows).await;
    let rows = vec![(json!({"ports": []}), None), (json!({"ports": [{}]}), Some("spec.ports: Forbidden"))];
    change(OPENSTACK_MACHINE, json!({"flavor": "small", "image": {"id": ID}}), json!({}), rows).await;
    let rows = vec![
        (json!({"providerID": "openstack:///y"}), Some("spec.providerID: Forbidden")),
        (json!({"providerID": null}), Some("spec.providerID: Forbidden")),
    ];
    let known = json!({"flavor": "small", "image": {"id": ID}, "providerID": "openstack:///x"});
    change(OPENSTACK_MACHINE, known, json!({}), rows).await;
}

#[tokio::test]
async fn what_an_openstack_cluster_was_made_from_stays() {
    let subnets = |cidr: &str, server: &str, first: &str| json!([{"cidr": cidr, "dnsNameservers": [server], "allocationPools": [{"start": first, "end": "10.6.0.9"}]}]);
    let managed = cluster(&json!({
        "managedSubnets": subnets("10.6.0.0/24", "192.0.2.1", "10.6.0.2"),
        "managedSecurityGroups": {}, "networkMTU": 1400, "apiServerPort": 6443,
        "apiServerLoadBalancer": {"enabled": true, "allowedCIDRs": ["10.0.0.0/8"]},
    }));
    let removed = Some("cannot be added or removed");
    let rows = vec![
        (json!({"managedSubnets": subnets("10.6.0.0/24", "192.0.2.2", "10.6.0.2")}), None),
        (json!({"managedSubnets": subnets("10.7.0.0/24", "192.0.2.1", "10.6.0.2")}), removed),
        (json!({"managedSubnets": subnets("10.6.0.0/24", "192.0.2.1", "10.6.0.3")}), removed),
        (json!({"managedSubnets": null}), removed),
        (json!({"managedSubnets": []}), removed),
        (json!({"network": {"id": ID}}), Some("spec.network: Forbidden")),
        (json!({"router": {"id": ID}}), Some("spec.router: Forbidden")),
        (json!({"networkMTU": 1500, "disablePortSecurity": true, "managedSecurityGroups": null}), None),
        (json!({"apiServerLoadBalancer": {"enabled": false}, "apiServerPort": 443}), None),
        (json!({"controlPlaneEndpoint": {"host": "h", "port": 6443}}), None),
        (json!({"identityRef": {"region": "b"}}), Some("region cannot be changed")),
    ];
    change(OPENSTACK_CLUSTER, managed.clone(), json!({}), rows).await;

    let group = json!({"id": ID, "name": "n"});
    let balancer = json!({"id": ID, "name": "n", "ip": "192.0.2.1", "internalIP": "10.6.0.3"});
    let status = json!({
        "network": group, "workerSecurityGroup": group, "bastion": {"id": ID}, "apiServerLoadBalancer": balancer,
    });
    let mut made = managed;
    made["controlPlaneEndpoint"] = json!({"host": "h", "port": 6443});
    made["bastion"] = json!({"enabled": false});
    let rows = vec![
        (json!({"managedSubnets": subnets("10.6.0.0/24", "192.0.2.2", "10.6.0.2")}), None),
        (json!({"identityRef": {"cloudName": "d"}, "tags": ["a"]}), None),
        (json!({"controlPlaneAvailabilityZones": ["a"], "controlPlaneOmitAvailabilityZone": true}), None),
        (json!({"managedSecurityGroups": {"allowAllInClusterTraffic": true}}), None),
        (json!({"managedSecurityGroups": null}), Some("spec.managedSecurityGroups: Forbidden")),
        (json!({"bastion": {"floatingIP": "192.0.2.9"}}), None),
        (json!({"bastion": null}), Some("spec.bastion: Forbidden")),
        (json!({"apiServerLoadBalancer": {"allowedCIDRs": [], "monitor": {"delay": 1}}}), None),
        (json!({"apiServerLoadBalancer": {"enabled": false}}), Some("only allowedCIDRs and monitor")),
        (json!({"apiServerLoadBalancer": null}), Some("only allowedCIDRs and monitor")),
        (json!({"apiServerPort": null}), None),
        (json!({"apiServerPort": 443}), Some("spec.apiServerPort: Forbidden")),
        (json!({"apiServerFixedIP": "10.6.0.7"}), Some("spec.apiServerFixedIP: Forbidden")),
        (json!({"disableAPIServerFloatingIP": true}), Some("spec.disableAPIServerFloatingIP: Forbidden")),
        (json!({"disableAPIServerFloatingIP": false}), None),
        (json!({"controlPlaneEndpoint": {"port": 443}}), Some("spec.controlPlaneEndpoint: Forbidden")),
        (json!({"controlPlaneEndpoint": null}), Some("spec.controlPlaneEndpoint: Forbidden")),
        (json!({"networkMTU": 1500}), Some("spec.networkMTU: Forbidden")),
        (json!({"disablePortSecurity": true}), Some("spec.disablePortSecurity: Forbidden")),
    ];
    change(OPENSTACK_CLUSTER, made, status, rows).await;
}

#[tokio::test]
async fn a_reference_is_corrected_until_it_is_found_and_becomes_the_id_it_led_to() {
    let by_name = |name: &str| json!({"filter": {"name": name}});
    let second = "22222222-2222-2222-2222-222222222222";
    let spec = cluster(&json!({
        "network": by_name("net"), "subnets": [by_name("a"), by_name("b")], "externalNetwork": by_name("ext"),
    }));
    let corrected = json!({"network": by_name("x"), "subnets": [by_name("x")], "externalNetwork": null});
    change(OPENSTACK_CLUSTER, spec.clone(), json!({}), vec![(corrected, None)]).await;

    let found = |id: &str| json!({"id": id, "name": "n", "cidr": "10.6.0.0/24"});
    let status = json!({
        "network": {"id": ID, "name": "net", "subnets": [found(ID), found(second)]},
        "externalNetwork": {"id": ID, "name": "ext"},
    });
    let rows = vec![
        (json!({"network": {"id": ID, "filter": null}}), None),
        (json!({"network": {"id": second, "filter": null}}), Some("spec.network: Forbidden")),
        (json!({"network": by_name("x")}), Some("spec.network: Forbidden")),
        (json!({"network": null}), Some("spec.network: Forbidden")),
        (json!({"subnets": [{"id": ID}, {"id": second}]}), None),
        (json!({"subnets": [{"id": second}, {"id": ID}]}), Some("spec.subnets: Forbidden")),
        (json!({"subnets": [{"id": ID}]}), Some("spec.subnets: Forbidden")),
        (json!({"subnets": [{"id": ID}, by_name("b")]}), Some("spec.subnets: Forbidden")),
        (json!({"externalNetwork": by_name("x")}), Some("spec.externalNetwork: Forbidden")),
        (json!({"router": by_name("r")}), None),
    ];
    change(OPENSTACK_CLUSTER, spec, status, rows).await;
}
