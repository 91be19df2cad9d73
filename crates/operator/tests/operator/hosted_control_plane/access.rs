//! Access to the tenant: a deleted kubeconfig is revoked, and a changed one is not used.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::lifecycle::people;
use super::tenant::Tenant;
use super::world::{World, eventually, texts};

/// The status of a list of Secrets in the tenant.
async fn answer(client: &kube::Client) -> u16 {
    match Api::<Secret>::all(client.clone()).list(&ListParams::default()).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

/// A kubeconfig works from the moment that it exists: whoever reads one is bound already.
pub(super) async fn a_kubeconfig_is_bound_before_it_exists(world: &World, tenant: &Tenant) {
    let secrets = world.api::<Secret>();
    eventually("there is one", async || secrets.get_opt("demo-kubeconfig").await.unwrap().is_some()).await;
    let secret = secrets.get("demo-kubeconfig").await.unwrap();
    let serial = &secret.annotations()["hangar.cluster.x-k8s.io/serial"];
    let bindings: Api<ClusterRoleBinding> = Api::all(tenant.client());
    let bound = bindings.get("hangar:administrator").await.unwrap().subjects.unwrap();
    assert_eq!(bound[0].name, format!("kubernetes-admin:{serial}"));
}

/// Deleting the Secret is all that has to be done.
pub(super) async fn a_deleted_kubeconfig_is_revoked(world: &World, tenant: &Tenant) {
    let secrets = world.api::<Secret>();
    let copied = people(&secrets.get("demo-kubeconfig").await.unwrap()).await;
    assert_eq!(answer(&copied).await, 200);
    secrets.delete("demo-kubeconfig", &DeleteParams::default()).await.unwrap();
    a_kubeconfig_is_bound_before_it_exists(world, tenant).await;
    eventually("the copy is of no use", async || answer(&copied).await == 403).await;
    let minted = people(&secrets.get("demo-kubeconfig").await.unwrap()).await;
    eventually("its successor is", async || answer(&minted).await == 200).await;
    eventually("Hangar goes on", async || world.condition("WorkloadReady").await.0 == "True").await;
    assert_eq!(answer(&copied).await, 403);
}

/// Somebody who may write Secrets of the namespace wants our token at a host of theirs.
pub(super) async fn a_changed_kubeconfig_leads_nowhere(world: &World) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("https://{}", listener.local_addr().unwrap());
    let heard = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&heard);
    let task = tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    let secrets = world.api::<Secret>();
    for name in ["demo-operator-access", "demo-kubeconfig"] {
        let before = texts(&secrets.get(name).await.unwrap())["value"].clone();
        let minted = hangar_pki::Kubeconfig::read(&before).unwrap();
        // Once with a file of the manager's, which no reader takes, and once with nothing but another server.
        for has_file in [true, false] {
            let mut changed: Value = serde_saphyr::from_str(&before).unwrap();
            changed["clusters"][0]["cluster"]["server"] = json!(elsewhere);
            if has_file {
                let file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
                changed["users"][0]["user"]["tokenFile"] = json!(file);
            }
            let changed = changed.to_string();
            let patch = json!({"stringData": {"value": changed}});
            secrets.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
            let field = if has_file { "users[].user.tokenFile" } else { "clusters[].cluster.server" };
            let mut was_told = false;
            eventually("it is minted again", async || {
                let (status, reason, message) = world.condition("CertificatesValid").await;
                was_told |= (status.as_str(), reason.as_str()) == ("False", "Edited")
                    && message.contains(&format!("{name}: {field}"));
                let now = texts(&secrets.get(name).await.unwrap())["value"].clone();
                hangar_pki::Kubeconfig::read(&now).is_ok_and(|now| now.server == minted.server)
            })
            .await;
            assert!(was_told, "{name}: {field}");
            eventually("all is well", async || {
                world.condition("CertificatesValid").await.0 == "True"
                    && world.condition("WorkloadReady").await.0 == "True"
            })
            .await;
        }
    }
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap();
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("CertificatesNotValid")));
    assert_eq!(heard.load(Ordering::SeqCst), 0, "nobody connected to {elsewhere}");
    task.abort();
}
