//! Tests of the driver's side: which topology it gets, and what becomes of its events.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hangar_cloud::Config;
use hangar_cloud::driver::{Driver, Event};
use hangar_cloud::topology::Topology;
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use crate::client::{in_time, start_with};

/// Never comes back.
pub(crate) struct Stuck;

impl Driver for Stuck {
    async fn realise(&self, _: &Topology, _: &UnboundedSender<Event>) -> Result<(), String> {
        pending().await
    }

    async fn console(&self, _: Uuid) -> String {
        String::new()
    }
}

/// Fails every server, and cannot remove any while it is told so.
struct Failing {
    holds: Arc<AtomicBool>,
    known: std::sync::Mutex<Vec<Uuid>>,
}

impl Driver for Failing {
    async fn realise(&self, topology: &Topology, events: &UnboundedSender<Event>) -> Result<(), String> {
        let mut known = self.known.lock().unwrap();
        for id in topology.servers.keys() {
            events.send(Event::Failed(*id, "no space left on device".into())).unwrap();
            known.push(*id);
        }
        if self.holds.load(Ordering::SeqCst) {
            for id in known.iter().filter(|id| !topology.servers.contains_key(id)) {
                events.send(Event::Failed(*id, "its root is busy".into())).unwrap();
            }
        }
        Ok(())
    }

    async fn console(&self, _: Uuid) -> String {
        String::new()
    }
}

#[tokio::test]
async fn a_server_that_fails_says_why_and_is_gone_only_when_it_is() {
    let holds = Arc::new(AtomicBool::new(true));
    let driver = Failing { holds: Arc::clone(&holds), known: std::sync::Mutex::default() };
    let bed = start_with(Config { realise_every_seconds: 1, ..Config::for_tests() }, driver).await;
    let server = bed.server("one", json!({"networks": "none"})).await;
    let view = in_time(bed.wait_status(&server, "ERROR")).await;
    assert_eq!(view["fault"]["message"], "no space left on device");
    assert_eq!(view["fault"]["code"], 500);
    let path = format!("/compute/v2.1/servers/{server}");
    bed.delete(&path).await.expect(204);
    in_time(async {
        while bed.get(&path).await["server"]["fault"]["message"] != "its root is busy" {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    holds.store(false, Ordering::SeqCst);
    in_time(bed.wait_gone(&path)).await;
}

/// Ends the loop that it is called from.
struct Broken;

impl Driver for Broken {
    async fn realise(&self, _: &Topology, _: &UnboundedSender<Event>) -> Result<(), String> {
        panic!("on purpose");
    }

    async fn console(&self, _: Uuid) -> String {
        String::new()
    }
}

#[tokio::test]
async fn a_cloud_whose_engine_died_is_over() {
    let mut bed = start_with(Config::for_tests(), Broken).await;
    in_time(bed.cloud.ended()).await;
    in_time(bed.cloud.shutdown()).await;
}
