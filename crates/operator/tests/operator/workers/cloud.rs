//! OpenStackClusters in an embedded cloud: networks and security groups.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackClusterStatus};
use hangar_cloud::driver::RecordingDriver;
use hangar_cloud::{Cloud, Config, Handle};
use serde_json::{Value, json};

use super::world::{Running, World, eventually, owner};

/// A cloud on loopback with the tests' projects.
pub(crate) async fn start() -> Handle {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    Cloud::serve(listener, Config::for_tests(), RecordingDriver::new()).await.unwrap()
}

/// Credentials for it, as people write them.
pub(crate) fn clouds_yaml(cloud: &Handle, password: &str) -> String {
    credentials(&cloud.auth_url(), password)
}

/// The same for a cloud at any address.
pub(super) fn credentials(auth_url: &str, password: &str) -> String {
    format!(
        "clouds:\n  openstack:\n    auth:\n      auth_url: {auth_url}\n      username: demo\n      password: {password}\n      \
         project_name: demo\n      user_domain_name: Default\n      project_domain_name: Default\n    region_name: RegionOne\n"
    )
}

/// What a project holds, without what is random: counts by kind, and names.
pub(crate) fn inventory(cloud: &Handle) -> BTreeMap<String, Vec<String>> {
    let model = cloud.model();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |kind: &str, name: String| all.entry(kind.to_owned()).or_default().push(name);
    model
        .networks
        .values()
        .filter(|item| !item.external)
        .for_each(|item| add("network", item.standard.name.clone()));
    let external: Vec<_> = model.networks.values().filter(|item| item.external).map(|item| item.id).collect();
    model
        .subnets
        .values()
        .filter(|item| !external.contains(&item.network))
        .for_each(|item| add("subnet", item.standard.name.clone()));
    model.routers.values().for_each(|item| add("router", item.standard.name.clone()));
    model
        .ports
        .values()
        .for_each(|item| add("port", format!("{} {}", item.standard.name, item.device_owner)));
    let groups = model.security_groups.values().filter(|item| item.standard.name != "default");
    for group in groups {
        let rules = model.security_rules.values().filter(|rule| rule.group == group.id).count();
        add("group", format!("{} with {rules} rules", group.standard.name));
    }
    model.servers.values().for_each(|item| add("server", item.name.clone()));
    for names in all.values_mut() {
        names.sort();
    }
    all
}

pub(super) fn managed() -> Value {
    json!({
        "identityRef": {"name": "cloud", "cloudName": "openstack"},
        "managedSubnets": [{"cidr": "10.6.0.0/24", "dnsNameservers": ["192.0.2.53"]}],
        "disableAPIServerFloatingIP": true,
        "tags": ["team-a"],
        "managedSecurityGroups": {"allNodesSecurityGroupRules": [
            {"name": "vxlan", "direction": "ingress", "etherType": "IPv4", "protocol": "udp",
             "portRangeMin": 8472, "portRangeMax": 8472, "remoteManagedGroups": ["worker"]},
            {"name": "ipip", "direction": "ingress", "protocol": "4", "remoteManagedGroups": ["controlplane", "worker"]},
        ]},
    })
}

pub(super) async fn infrastructure(world: &World, cluster: &Cluster, spec: Value) -> OpenStackCluster {
    world
        .create(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "OpenStackCluster",
            "metadata": {
                "name": "demo",
                "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
                "ownerReferences": owner(cluster),
            },
            "spec": spec,
        }))
        .await
}

pub(super) async fn status_of(world: &World) -> OpenStackClusterStatus {
    world.get::<OpenStackCluster>("demo").await.status.unwrap_or_default()
}

pub(super) fn reason(status: &OpenStackClusterStatus, type_: &str) -> String {
    let found = status.conditions.iter().find(|condition| condition.r#type == type_);
    found
        .map(|condition| condition.reason.clone().unwrap_or_else(|| condition.status.clone()))
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_becomes_ready_and_its_end_leaves_the_cloud_empty() {
    let world = World::new("cloud").await;
    let cloud = start().await;
    world.secret("cloud", json!({"clouds.yaml": clouds_yaml(&cloud, "secret")})).await;
    let _running = Running::start("openstack-cluster", Vec::new());
    let cluster = world.cluster().await;
    infrastructure(&world, &cluster, managed()).await;
    eventually("it is ready", async || status_of(&world).await.ready).await;

    let status = status_of(&world).await;
    assert_eq!(reason(&status, "Ready"), "True");
    assert_eq!(reason(&status, "APIEndpointReady"), "True", "the Cluster has one");
    assert_eq!(status.failure_domains.keys().collect::<Vec<_>>(), ["nova"]);
    assert_eq!(status.network.as_ref().unwrap().subnets[0].cidr, "10.6.0.0/24");
    eventually("the router's address is known", async || {
        status_of(&world).await.router.is_some_and(|router| router.ips == ["203.0.113.10"])
    })
    .await;
    let held = inventory(&cloud);
    insta::assert_yaml_snapshot!(held_without(&held, &world.namespace));

    // At rest: nothing is written, and a look costs only reads.
    let before = cloud.calls().len();
    world.merge::<OpenStackCluster>("demo", json!({"metadata": {"annotations": {"touched": "1"}}})).await;
    eventually("it was looked at", async || cloud.calls().len() > before).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let calls = cloud.calls();
    assert!(calls[before..].iter().all(|call| call.method == "GET"), "{:#?}", &calls[before..]);

    world.delete::<OpenStackCluster>("demo").await;
    assert_eq!(inventory(&cloud), BTreeMap::new());
}

/// Names without the namespace, which differs from run to run.
fn held_without(held: &BTreeMap<String, Vec<String>>, namespace: &str) -> BTreeMap<String, Vec<String>> {
    let plain = |names: &Vec<String>| names.iter().map(|name| name.replace(namespace, "ns")).collect();
    held.iter().map(|(kind, names)| (kind.clone(), plain(names))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_said_to_be_wrong_and_count_at_once_when_replaced() {
    let world = World::new("credentials").await;
    let cloud = start().await;
    let _running = Running::start("openstack-cluster", Vec::new());
    let cluster = world.cluster().await;
    infrastructure(&world, &cluster, managed()).await;
    let says = async |reason_: &str| {
        eventually(reason_, async || reason(&status_of(&world).await, "Ready") == reason_).await;
    };
    says("CredentialsNotFound").await;
    world.secret("cloud", json!({"clouds.yaml": "clouds: {}"})).await;
    touch(&world).await;
    says("CredentialsInvalid").await;
    let replace = async |text: String| {
        world
            .merge::<k8s_openapi::api::core::v1::Secret>(
                "cloud",
                json!({"stringData": {"clouds.yaml": text}}),
            )
            .await;
        touch(&world).await;
    };
    replace(clouds_yaml(&cloud, "wrong")).await;
    says("Unauthorized").await;
    assert_eq!(inventory(&cloud), BTreeMap::new());
    replace(clouds_yaml(&cloud, "secret")).await;
    eventually("it is ready", async || status_of(&world).await.ready).await;
}

/// Trap: credentials that are deleted before what was made with them.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_without_credentials_says_what_to_do_and_goes_on_when_they_are_back() {
    let world = World::new("gone").await;
    let cloud = start().await;
    let secret = json!({"clouds.yaml": clouds_yaml(&cloud, "secret")});
    world.secret("cloud", secret.clone()).await;
    let _running = Running::start("openstack-cluster", Vec::new());
    let cluster = world.cluster().await;
    infrastructure(&world, &cluster, managed()).await;
    eventually("it is ready", async || status_of(&world).await.ready).await;
    world.delete::<k8s_openapi::api::core::v1::Secret>("cloud").await;
    let api = world.api::<OpenStackCluster>();
    api.delete("demo", &kube::api::DeleteParams::default()).await.unwrap();
    eventually("it says so", async || reason(&status_of(&world).await, "Ready") == "CredentialsNotFound")
        .await;
    let status = status_of(&world).await;
    let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    let message = ready.message.clone().unwrap_or_default();
    let missing = format!("there is no Secret {}/cloud", world.namespace);
    for words in [missing.as_str(), "create it", "openstackcluster.infrastructure.cluster.x-k8s.io"] {
        assert!(message.contains(words), "{words:?} is not in {message:?}");
    }
    assert!(!inventory(&cloud).is_empty(), "nothing is given up by itself");
    world.secret("cloud", secret).await;
    eventually("it is gone", async || api.get_opt("demo").await.unwrap().is_none()).await;
    assert_eq!(inventory(&cloud), BTreeMap::new());
}

pub(super) async fn touch(world: &World) {
    let now = jiff::Timestamp::now().to_string();
    world.merge::<OpenStackCluster>("demo", json!({"metadata": {"annotations": {"touched": now}}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_made_under_our_names_is_left_alone() {
    let world = World::new("others").await;
    let cloud = start().await;
    let secret = json!({"clouds.yaml": clouds_yaml(&cloud, "secret")});
    world.secret("cloud", secret.clone()).await;
    let running = Running::start("openstack-cluster", Vec::new());
    let cluster = world.cluster().await;
    infrastructure(&world, &cluster, managed()).await;
    eventually("it is ready", async || status_of(&world).await.ready).await;
    // A second cluster that looks the same to the cloud, as one of another management cluster would: the same namespace
    // and name, another owner id.
    drop(running);
    let first = inventory(&cloud);
    world
        .merge::<OpenStackCluster>(
            "demo",
            json!({"metadata": {"annotations": {"hangar.cluster.x-k8s.io/owner-id": "someone-else"}}}),
        )
        .await;
    world
        .merge_status::<OpenStackCluster>(
            "demo",
            json!({
                "network": null,
                "router": null,
                "controlPlaneSecurityGroup": null,
                "workerSecurityGroup": null,
                "ready": false,
            }),
        )
        .await;
    let _second = Running::start("openstack-cluster", Vec::new());
    eventually("the other is ready", async || status_of(&world).await.ready).await;
    assert_eq!(inventory(&cloud)["network"].len(), 2, "its own network, not the first one's");
    world.delete::<OpenStackCluster>("demo").await;
    assert_eq!(inventory(&cloud), first, "only its own is gone");
}
