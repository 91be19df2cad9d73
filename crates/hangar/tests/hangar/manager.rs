//! Tests `hangar manager`: it becomes ready, survives a restart of the API server, stops in order, and a killed leader
//! is followed by another.

use std::process::Command;
use std::time::Duration;

use hangar_testbed::{Options, Testbed};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client};

use crate::installation::{Manager, eventually, install};

async fn lease(client: &Client) -> Option<LeaseSpec> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "hangar-system");
    leases.get_opt("hangar-manager").await.ok()??.spec
}

async fn holder(client: &Client) -> Option<String> {
    lease(client).await?.holder_identity.filter(|holder| !holder.is_empty())
}

async fn leads(client: &Client, name: &str) -> bool {
    holder(client).await.is_some_and(|holder| holder.starts_with(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_becomes_ready_survives_an_api_server_restart_and_stops_in_order() {
    let bed = Testbed::start(Options::default()).unwrap();
    install(&bed, &[]);
    let mut manager = Manager::start(&bed, "only", &[]);
    manager.wait_until_ready().await;
    assert_eq!(manager.get("/healthz").unwrap(), (200, "ok".to_owned()));
    // Followers are ready too.
    eventually("it leads", async || manager.metrics().contains("\nhangar_leader 1\n")).await;
    let page = manager.metrics();
    assert!(page.contains("process_resident_memory_bytes"), "{page}");
    assert!(page.contains("hangar_watch_objects{watch=\"customresourcedefinitions\"}"), "{page}");

    bed.stop_api_server().unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    bed.start_api_server().unwrap();
    let client = bed.client();
    let before = holder(&client).await;
    assert!(before.is_some());
    // Renewed after the restart: it leads again or still, and its watches are open again.
    eventually("the lease is renewed after the restart", async || {
        manager.metrics().contains("\nhangar_leader 1\n") && manager.is_running()
    })
    .await;
    manager.wait_until_ready().await;
    crate::installation::conversion_works(&client).await;

    let status = manager.terminate();
    assert!(status.success(), "{status}; {}", manager.log());
    assert_eq!(holder(&client).await, None, "the lease is handed over at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_is_followed_within_its_lease() {
    let bed = Testbed::start(Options::default()).unwrap();
    install(&bed, &[]);
    let client = bed.client();
    let flags = ["--lease-duration=4", "--lease-renew-deadline=3", "--lease-retry-period=1"];
    let mut first = Manager::start(&bed, "first", &flags);
    eventually("the first leads", async || leads(&client, "first_").await).await;
    let second = Manager::start(&bed, "second", &flags);
    second.wait_until_ready().await;
    // On a busy host a lease this short may change hands now and then.
    eventually("the second follows", async || {
        leads(&client, "first_").await && second.metrics().contains("\nhangar_leader 0\n")
    })
    .await;

    let before = lease(&client).await.unwrap().lease_transitions;
    first.kill();
    eventually("the second leads", async || leads(&client, "second_").await).await;
    // The lease itself bounds the time: its own record says when the old one ended and the new one began.
    assert!(lease(&client).await.unwrap().lease_transitions > before);
    eventually("the second says so", async || second.metrics().contains("\nhangar_leader 1\n")).await;
}

#[test]
fn a_taken_port_is_one_clear_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let bed = hangar_testbed::shared();
    let output = Command::new(env!("CARGO_BIN_EXE_hangar"))
        .args([
            "manager",
            "--namespace=default",
            "--webhook-address=127.0.0.1:0",
            "--metrics-address=127.0.0.1:0",
        ])
        .arg(format!("--health-address={address}"))
        .arg(format!("--kubeconfig={}", bed.kubeconfig().display()))
        .output()
        .unwrap();
    assert!(!output.status.success());
    let errors = String::from_utf8(output.stderr).unwrap();
    let last = errors.lines().last().unwrap();
    assert!(
        last.starts_with(&format!("error: cannot listen on {address} for health: Address already in use")),
        "{errors}"
    );
}
