//! Bootstrap data and tokens. The management cluster is its own tenant here, because a token is a Secret in either.

use hangar_api::bootstrap::v1beta2::KubeadmConfig;
use hangar_api::cluster::v1beta2::Machine;
use hangar_api::conditions;
use hangar_pki::{Authority, Intent};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::world::{BED, Running, World, eventually, owner};

const TOKEN_ID: &str = "hangar.cluster.x-k8s.io/bootstrap-token-id";

async fn status_of(world: &World) -> hangar_api::bootstrap::v1beta2::KubeadmConfigStatus {
    world.get::<KubeadmConfig>("worker-a").await.status.unwrap_or_default()
}

fn text(secret: &Secret, key: &str) -> String {
    String::from_utf8(secret.data.as_ref().unwrap()[key].0.clone()).unwrap()
}

async fn waits_for(world: &World, reason: &str) {
    eventually(reason, async || {
        let status = status_of(world).await;
        conditions::get(&status, "DataSecretAvailable").is_some_and(|found| found.reason == reason)
    })
    .await;
}

fn authority() -> Authority {
    let intent = Intent::authority("kubernetes", std::time::Duration::from_secs(3600));
    Authority::self_signed(&intent, jiff::Timestamp::now()).unwrap()
}

async fn config(world: &World, machine: &Machine) -> KubeadmConfig {
    world
        .create(json!({
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfig",
            "metadata": {
                "name": "worker-a",
                "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
                "ownerReferences": owner(machine),
            },
            "spec": {"joinConfiguration": {"nodeRegistration": {
                "name": "{{ local_hostname }}",
                "kubeletExtraArgs": [{"name": "provider-id", "value": "openstack:///{{ instance_id }}"}],
            }}},
        }))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_gets_its_data_and_its_token_lives_until_its_node_does() {
    let world = World::new("bootstrap").await;
    let _running = Running::start("kubeadm-bootstrap", Vec::new());
    world.cluster().await;
    let machine = world.machine("worker-a", None).await;
    config(&world, &machine).await;
    waits_for(&world, "WaitingForClusterInfrastructure").await;
    world.provisioned().await;
    waits_for(&world, "WaitingForCertificates").await;
    let authority = authority();
    let pair = authority.pair();
    let key = pair.key.expose();
    world.secret("demo-ca", json!({"tls.crt": pair.certificate, "tls.key": key})).await;
    waits_for(&world, "ControlPlaneUnreachable").await;
    let kubeconfig = std::fs::read_to_string(BED.kubeconfig()).unwrap();
    world.secret("demo-kubeconfig", json!({"value": kubeconfig})).await;

    eventually("the data is there", async || status_of(&world).await.data_secret_name.is_some()).await;
    let status = status_of(&world).await;
    assert_eq!(status.initialization.as_ref().unwrap().data_secret_created, Some(true));
    assert!(conditions::is_true(&status, "Ready"), "{status:#?}");
    let data: Secret = world.get("worker-a").await;
    assert_eq!(data.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
    assert_eq!(text(&data, "format"), "cloud-config");
    let value = text(&data, "value");
    assert!(value.contains(&authority.certificate().public_key_hash()), "{value}");
    assert!(
        value.contains("demo.clusters.hangar.test:443") && value.contains("{{ local_hostname }}"),
        "{value}"
    );

    let id = data.metadata.annotations.as_ref().unwrap()[TOKEN_ID].clone();
    let tokens: Api<Secret> = Api::namespaced(world.client.clone(), "kube-system");
    let name = format!("bootstrap-token-{id}");
    let token = tokens.get(&name).await.unwrap();
    let whole = format!("{id}.{}", text(&token, "token-secret"));
    assert!(value.contains(&whole));
    assert_eq!(token.type_.as_deref(), Some("bootstrap.kubernetes.io/token"));

    // It is near its end: extended at the next look.
    let near = json!({"stringData": {"expiration": "2020-01-01T00:00:00Z"}});
    tokens.patch(&name, &PatchParams::default(), &Patch::Merge(near)).await.unwrap();
    touch(&world).await;
    eventually("the token is extended", async || {
        !text(&tokens.get(&name).await.unwrap(), "expiration").starts_with("2020")
    })
    .await;
    // It vanished: made again, as the machine knows it.
    tokens.delete(&name, &DeleteParams::default()).await.unwrap();
    touch(&world).await;
    eventually("the token is back", async || tokens.get_opt(&name).await.unwrap().is_some()).await;
    assert_eq!(format!("{id}.{}", text(&tokens.get(&name).await.unwrap(), "token-secret")), whole);

    world.merge_status::<Machine>("worker-a", json!({"nodeRef": {"name": "worker-a"}})).await;
    eventually("the token is removed", async || tokens.get_opt(&name).await.unwrap().is_none()).await;
    eventually("nobody cares for it any more", async || {
        let data: Secret = world.get("worker-a").await;
        data.metadata.annotations.is_none_or(|all| !all.contains_key(TOKEN_ID))
    })
    .await;
    assert_eq!(text(&world.get("worker-a").await, "value"), value, "the data is never changed");
}

/// A change that wakes the controller and means nothing.
async fn touch(world: &World) {
    let now = jiff::Timestamp::now().to_string();
    world.merge::<Machine>("worker-a", json!({"metadata": {"annotations": {"touched": now}}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_manager_finds_the_token_and_the_data_of_the_one_before() {
    let world = World::new("bootstrap").await;
    world.cluster().await;
    world.provisioned().await;
    let authority = authority();
    let pair = authority.pair();
    world.secret("demo-ca", json!({"tls.crt": pair.certificate, "tls.key": pair.key.expose()})).await;
    let kubeconfig = std::fs::read_to_string(BED.kubeconfig()).unwrap();
    world.secret("demo-kubeconfig", json!({"value": kubeconfig})).await;
    let machine = world.machine("worker-a", None).await;
    config(&world, &machine).await;
    let first = Running::start("kubeadm-bootstrap", Vec::new());
    eventually("the data is there", async || status_of(&world).await.data_secret_name.is_some()).await;
    drop(first);
    // As after a move: the data came along, the status did not.
    let before = text(&world.get("worker-a").await, "value");
    world
        .merge_status::<KubeadmConfig>("worker-a", json!({"dataSecretName": null, "initialization": null}))
        .await;
    let _second = Running::start("kubeadm-bootstrap", Vec::new());
    eventually("the status is there again", async || status_of(&world).await.data_secret_name.is_some())
        .await;
    assert_eq!(text(&world.get("worker-a").await, "value"), before);
    let tokens: Api<Secret> = Api::namespaced(world.client.clone(), "kube-system");
    let uid = world.get::<KubeadmConfig>("worker-a").await.metadata.uid.unwrap();
    let own = format!("hangar.cluster.x-k8s.io/kubeadm-config={uid}");
    let found = tokens.list(&kube::api::ListParams::default().labels(&own)).await.unwrap();
    assert_eq!(found.items.len(), 1);
}
