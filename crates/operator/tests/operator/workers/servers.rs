//! OpenStackMachines in a cluster whose network is ready.

use std::collections::BTreeMap;

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine, OpenStackMachineStatus};
use hangar_cloud::Handle;
use hangar_cloud::fault::{Effect, FaultRule};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::cloud::{clouds_yaml, infrastructure, inventory, managed, start, status_of};
use super::world::{Running, World, eventually, owner};

pub(super) const BOTH: &str = "openstack-cluster,openstack-machine";

pub(super) fn worker() -> Value {
    json!({"flavor": "small", "image": {"filter": {"name": "node-v1.34.10"}}, "tags": ["worker"]})
}

/// A cluster with its network, and credentials.
pub(super) async fn ready_cluster(world: &World, cloud: &Handle) {
    ready_cluster_with(world, cloud, managed()).await;
}

pub(super) async fn ready_cluster_with(world: &World, cloud: &Handle, spec: Value) {
    new_cluster(world, cloud, spec).await;
    eventually("the network is there", async || status_of(world).await.ready).await;
    world.provisioned().await;
}

/// The same before anything is there.
pub(super) async fn new_cluster(world: &World, cloud: &Handle, spec: Value) {
    world.secret("cloud", json!({"clouds.yaml": clouds_yaml(cloud, "secret")})).await;
    world
        .secret("worker-data", json!({"value": "#cloud-config\nruncmd: [hello]\n", "format": "cloud-config"}))
        .await;
    let cluster = world.cluster().await;
    infrastructure(world, &cluster, spec).await;
}

pub(super) async fn server(world: &World, name: &str, spec: Value) {
    let machine = world.machine(name, Some("worker-data")).await;
    world
        .create::<OpenStackMachine>(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "OpenStackMachine",
            "metadata": {
                "name": name,
                "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
                "ownerReferences": owner(&machine),
            },
            "spec": spec,
        }))
        .await;
}

/// A cluster with the worker `worker-a`.
async fn running_worker(world: &World, cloud: &Handle) {
    ready_cluster(world, cloud).await;
    server(world, "worker-a", worker()).await;
    eventually("the server runs", async || machine_status(world, "worker-a").await.ready == Some(true)).await;
}

pub(super) async fn machine_status(world: &World, name: &str) -> OpenStackMachineStatus {
    world.get::<OpenStackMachine>(name).await.status.unwrap_or_default()
}

pub(super) fn condition(status: &OpenStackMachineStatus) -> (String, String) {
    let found = status.conditions.iter().find(|condition| condition.r#type == "Ready");
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    found.map(|condition| (text(&condition.reason), text(&condition.message))).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_gets_a_server_and_its_end_leaves_the_cloud_empty() {
    let world = World::new("servers").await;
    let cloud = start().await;
    let _running = Running::start(BOTH, Vec::new());
    running_worker(&world, &cloud).await;

    let object: OpenStackMachine = world.get("worker-a").await;
    let status = object.status.unwrap();
    let id = status.instance_id.clone().unwrap();
    assert_eq!(object.spec.provider_id, Some(format!("openstack:///{id}")));
    assert_eq!(status.instance_state.as_deref(), Some("ACTIVE"));
    let types: Vec<&str> = status.addresses.iter().map(|address| address.type_.as_str()).collect();
    assert_eq!(types, ["InternalIP", "InternalDNS"]);
    assert!(status.addresses[0].address.starts_with("10.6.0."), "{:?}", status.addresses);
    let model = cloud.model();
    let made = model.servers.values().next().unwrap();
    assert_eq!((made.name.as_str(), made.id.to_string()), ("worker-a", id));
    let owner_id = &object.metadata.annotations.unwrap()["hangar.cluster.x-k8s.io/owner-id"];
    assert_eq!(made.metadata.get("hangar-owner-id"), Some(owner_id));
    let port = model.ports.values().find(|port| port.standard.name == "worker-a-0").unwrap();
    assert!(port.standard.description.ends_with(owner_id.as_str()), "{}", port.standard.description);
    assert_eq!(status.resources.unwrap().ports[0].id, port.id.to_string());
    assert!(!status.resolved.unwrap().image_id.is_empty());

    world.delete::<OpenStackMachine>("worker-a").await;
    assert!(!inventory(&cloud).contains_key("server"));
    world.delete::<OpenStackCluster>("demo").await;
    assert_eq!(inventory(&cloud), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_told_together_and_the_network_waits_for_its_machines() {
    let world = World::new("servers").await;
    let cloud = start().await;
    let _running = Running::start(BOTH, Vec::new());
    ready_cluster(&world, &cloud).await;
    let before = inventory(&cloud);
    let wrong = json!({"flavor": "huge", "image": {"filter": {"name": "nothing"}}, "sshKeyName": "nobody",
        "ports": [{"network": {"filter": {"name": "nowhere"}}}]});
    server(&world, "worker-a", wrong).await;
    eventually("it is told", async || {
        condition(&machine_status(&world, "worker-a").await).0 == "InvalidMachineSpec"
    })
    .await;
    let (_, message) = condition(&machine_status(&world, "worker-a").await);
    for field in ["spec.image", "spec.flavor", "spec.sshKeyName", "spec.ports[0].network"] {
        assert!(message.contains(field), "{message}");
    }
    assert_eq!(inventory(&cloud), before, "nothing was made");

    world.api::<OpenStackCluster>().delete("demo", &kube::api::DeleteParams::default()).await.unwrap();
    eventually("the network waits", async || {
        let status = status_of(&world).await;
        super::cloud::reason(&status, "Ready") == "WaitingForMachines"
    })
    .await;
    world.delete::<OpenStackMachine>("worker-a").await;
    eventually("the cluster is gone", async || {
        world.api::<OpenStackCluster>().get_opt("demo").await.unwrap().is_none()
    })
    .await;
    assert_eq!(inventory(&cloud), BTreeMap::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_failed_says_why_in_the_words_of_the_cloud() {
    let world = World::new("servers").await;
    let cloud = start().await;
    let _running = Running::start(BOTH, Vec::new());
    ready_cluster(&world, &cloud).await;
    cloud.arm(FaultRule {
        name: "no-host".to_owned(),
        method: Some("POST".to_owned()),
        path: Some("*/servers".to_owned()),
        body: None,
        skip: 0,
        times: Some(1),
        effect: Effect::FailServer {
            message: "No valid host was found. There are not enough hosts available.".to_owned(),
        },
    });
    server(&world, "worker-a", worker()).await;
    eventually("it failed", async || {
        condition(&machine_status(&world, "worker-a").await).0 == "InstanceStateError"
    })
    .await;
    let (_, message) = condition(&machine_status(&world, "worker-a").await);
    assert!(message.contains("No valid host was found"), "{message}");
    assert_eq!(cloud.model().servers.len(), 1, "it is left to whoever cares for the Machine");
    world.delete::<OpenStackMachine>("worker-a").await;
    assert!(!inventory(&cloud).contains_key("server"));
}

/// What people do in a dashboard.
async fn rename(cloud: &Handle, id: &str, name: &str) {
    let user = json!({"name": "demo", "domain": {"name": "Default"}, "password": "secret"});
    let scope = json!({"project": {"name": "demo", "domain": {"name": "Default"}}});
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    let login = json!({"auth": {"identity": identity, "scope": scope}});
    let answer = send(cloud, "POST", "/identity/v3/auth/tokens", "", &login).await;
    let token = answer.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case("x-subject-token").then(|| value.trim().to_owned())
    });
    let header = format!("X-Auth-Token: {}\r\n", token.unwrap_or_else(|| panic!("{answer}")));
    let path = format!("/compute/v2.1/servers/{id}");
    let answer = send(cloud, "PUT", &path, &header, &json!({"server": {"name": name}})).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

async fn send(cloud: &Handle, method: &str, path: &str, header: &str, body: &Value) -> String {
    let body = body.to_string();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: cloud\r\nConnection: close\r\nContent-Type: application/json\r\n{header}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(cloud.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_somebody_renamed_is_still_ours() {
    let world = World::new("servers").await;
    let cloud = start().await;
    let _running = Running::start(BOTH, Vec::new());
    running_worker(&world, &cloud).await;
    let id = machine_status(&world, "worker-a").await.instance_id.unwrap();
    rename(&cloud, &id, "precious").await;
    world.delete::<OpenStackMachine>("worker-a").await;
    assert!(!inventory(&cloud).contains_key("server"), "{:?}", inventory(&cloud));
    world.delete::<OpenStackCluster>("demo").await;
    assert_eq!(inventory(&cloud), BTreeMap::new());
}
