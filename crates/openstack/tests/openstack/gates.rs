//! Tests of gates: which calls they see, stop, or withhold the answer of.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hangar_openstack::{
    Answer, Call, CallGate, Delivery, Error, Limits, NetworkCreate, NetworkQuery, PortId, RouterId,
    SessionOptions, SubnetId,
};
use serde_json::json;

use crate::fixture::Cloud;

/// Writes down what it sees; stops or keeps what it is told to.
#[derive(Default)]
struct Watcher {
    seen: Mutex<Vec<String>>,
    stops: Option<&'static str>,
    withholds: Option<&'static str>,
}

impl CallGate for Watcher {
    fn before(&self, call: &Call, limit: Duration) -> Result<(), &'static str> {
        self.seen.lock().unwrap().push(format!("before {} ({limit:?})", call.without_id()));
        if self.stops == Some(call.kind) { Err("not the leader") } else { Ok(()) }
    }

    fn after(&self, call: &Call, answer: Answer, _took: Duration) -> Delivery {
        self.seen.lock().unwrap().push(format!("after {call}: {answer:?}"));
        if self.withholds == Some(call.kind) { Delivery::Withhold("kept") } else { Delivery::Deliver }
    }
}

impl Watcher {
    fn options(self: &Arc<Self>) -> SessionOptions {
        SessionOptions {
            gates: vec![self.clone()],
            limits: Limits {
                login: Duration::from_secs(70),
                list: Duration::from_secs(80),
                write: Duration::from_secs(90),
                slow_write: Duration::from_secs(100),
                ..Limits::default()
            },
            ..SessionOptions::default()
        }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn body() -> NetworkCreate {
    NetworkCreate { name: "cluster-net".to_owned(), ..NetworkCreate::default() }
}

#[tokio::test]
async fn calls_have_the_same_name_in_every_run() {
    let cloud = Cloud::start().await;
    cloud.on("POST /network/v2.0/networks", 1, 201, &json!({ "network": { "id": "n" } }));
    cloud.on("DELETE /network/v2.0/ports/", 1, 204, &json!({}));
    cloud.on("PUT /network/v2.0/ports/", 1, 200, &json!({ "tags": ["a"] }));
    cloud.on("PUT /network/v2.0/routers/", 1, 200, &json!({ "id": "r", "port_id": "p", "subnet_id": "s" }));
    let watcher = Arc::new(Watcher::default());
    let network = cloud.session_with(watcher.options()).network();
    network.create(&body()).await.unwrap();
    let port = PortId::from("p-1");
    network.clone().about("worker-0-0").set_tags(&port, &["a".to_owned()]).await.unwrap();
    network.clone().about("worker-0-0").delete(&port).await.unwrap();
    network
        .clone()
        .about("router")
        .add_router_interface(&RouterId::from("r"), &SubnetId::from("s"))
        .await
        .unwrap();
    assert_eq!(
        watcher.seen(),
        [
            "before authenticate identity token (70s)",
            "after authenticate identity token: Status(201)",
            "before create network network cluster-net (90s)",
            "after create network network cluster-net: Status(201)",
            "before update network port/tags worker-0-0 (90s)",
            "after update network port/tags worker-0-0 (p-1): Status(200)",
            "before delete network port worker-0-0 (90s)",
            "after delete network port worker-0-0 (p-1): Status(204)",
            "before update network router/interface router (100s)",
            "after update network router/interface router (r): Status(200)",
        ]
    );
}

#[tokio::test]
async fn a_stopped_call_is_not_sent() {
    let cloud = Cloud::start().await;
    let watcher = Arc::new(Watcher { stops: Some("network"), ..Watcher::default() });
    let session = cloud.session_with(watcher.options());
    let error = session.network().create(&body()).await.unwrap_err();
    assert_eq!(error.to_string(), "create network network cluster-net stopped: not the leader");
    assert!(!error.is_lost() && error.is_retryable());
    assert_eq!(session.network().list(&NetworkQuery::default()).await.unwrap_err().category(), "Stopped");
    assert_eq!(cloud.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn a_withheld_answer_looks_lost_and_the_service_has_done_it() {
    let cloud = Cloud::start().await;
    cloud.on("POST /network/v2.0/networks", 1, 201, &json!({ "network": { "id": "n" } }));
    let watcher = Arc::new(Watcher { withholds: Some("network"), ..Watcher::default() });
    let error = cloud.session_with(watcher.options()).network().create(&body()).await.unwrap_err();
    assert!(matches!(&error, Error::Lost { why, .. } if why == "kept") && error.is_lost());
    assert_eq!(cloud.lines().len(), 1);
}

#[tokio::test]
async fn a_stopped_login_is_not_sent_either() {
    let cloud = Cloud::start().await;
    let watcher = Arc::new(Watcher { stops: Some("token"), ..Watcher::default() });
    cloud.session_with(watcher.options()).authenticate().await.unwrap_err();
    assert_eq!(cloud.logins(), 0);
}
