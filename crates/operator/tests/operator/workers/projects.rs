//! Credentials that lead to another project, or nowhere: what is done with them, and how often they are tried.

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_cloud::Handle;
use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use serde_json::json;

use super::cloud::{clouds_yaml, infrastructure, inventory, managed, reason, start, status_of, touch};
use super::servers::{BOTH, condition, machine_status, ready_cluster, server, worker};
use super::world::{Running, Seen, World, eventually};

async fn replace(world: &World, text: String) {
    world.merge::<Secret>("cloud", json!({"stringData": {"clouds.yaml": text}})).await;
}

/// Wakes the cluster and a machine.
async fn wake(world: &World, name: &str) {
    touch(world).await;
    let now = jiff::Timestamp::now().to_string();
    world.merge::<OpenStackMachine>(name, json!({"metadata": {"annotations": {"touched": now}}})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_credentials_of_another_project_nothing_is_made_deleted_or_released() {
    let (world, cloud) = (World::new("projects").await, start().await);
    let _running = Running::start(BOTH, Vec::new());
    ready_cluster(&world, &cloud).await;
    server(&world, "worker-a", worker()).await;
    eventually("the server runs", async || machine_status(&world, "worker-a").await.ready == Some(true))
        .await;
    let before = inventory(&cloud);

    let own = clouds_yaml(&cloud, "secret");
    let others =
        own.replace("username: demo", "username: other").replace("project_name: demo", "project_name: other");
    replace(&world, others).await;
    wake(&world, "worker-a").await;
    let is_held = async || {
        let machine = condition(&machine_status(&world, "worker-a").await).0;
        reason(&status_of(&world).await, "Ready") == "OtherProject" && machine == "OtherProject"
    };
    eventually("both are held", is_held).await;
    let api = world.api::<OpenStackMachine>();
    api.delete("worker-a", &DeleteParams::default()).await.unwrap();
    let passed = cloud.calls().len();
    eventually("the deletion was looked at", async || cloud.calls().len() > passed).await;
    wake(&world, "worker-a").await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(is_held().await, "a deletion is held too");
    assert_eq!(inventory(&cloud), before);

    replace(&world, own).await;
    wake(&world, "worker-a").await;
    eventually("the machine is gone", async || api.get_opt("worker-a").await.unwrap().is_none()).await;
    assert!(!inventory(&cloud).contains_key("server"));
    eventually("the cluster is ready", async || reason(&status_of(&world).await, "Ready") == "True").await;
    world.delete::<OpenStackCluster>("demo").await;
    assert!(inventory(&cloud).is_empty());
}

fn logins(cloud: &Handle) -> usize {
    cloud.calls().iter().filter(|call| call.method == "POST" && call.path.ends_with("/auth/tokens")).count()
}

/// More would lock the account.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_tried_once_whatever_waits_for_it() {
    const COUNT: usize = 50;
    let (world, cloud, seen) = (World::new("password").await, start().await, Seen::new());
    world.secret("cloud", json!({"clouds.yaml": clouds_yaml(&cloud, "wrong")})).await;
    world.secret("worker-data", json!({"value": "#cloud-config\n", "format": "cloud-config"})).await;
    let cluster = world.cluster().await;
    infrastructure(&world, &cluster, managed()).await;
    world.provisioned().await;
    for number in 0..COUNT {
        server(&world, &format!("worker-{number}"), worker()).await;
    }
    let _running = Running::seen(BOTH, Vec::new(), &seen);
    for (turn, password) in ["wrong", "wrong again"].into_iter().enumerate() {
        replace(&world, clouds_yaml(&cloud, password)).await;
        let before = seen.passes("openstack-machine");
        for number in 0..COUNT {
            wake(&world, &format!("worker-{number}")).await;
        }
        eventually("all were told", async || {
            for number in 0..COUNT {
                if condition(&machine_status(&world, &format!("worker-{number}")).await).0 != "Unauthorized" {
                    return false;
                }
            }
            seen.passes("openstack-machine") >= before + COUNT as u64
        })
        .await;
        assert_eq!(logins(&cloud), turn + 1, "one for each change of the Secret");
    }
    let (_, message) = condition(&machine_status(&world, "worker-0").await);
    assert!(message.contains("tried again when the Secret changes"), "{message}");
    assert!(inventory(&cloud).is_empty());
}
