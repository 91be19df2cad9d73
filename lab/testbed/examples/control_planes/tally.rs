//! Counts calls, and knows how many control planes are at their goal.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use hangar_kit::watch::{Watch, WatchBuilder};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A control plane is at its goal when all of these are true.
const GOAL: [&str; 2] = ["Available", "Ready"];
/// As many are told apart of those that are not there.
const SHOWN: usize = 3;

pub(crate) struct Tally {
    client: Client,
    /// Watched from the first question on: the kind is installed by then.
    control_planes: OnceLock<Watch<DynamicObject>>,
    calls: Mutex<BTreeMap<String, u64>>,
}

impl Tally {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), control_planes: OnceLock::new(), calls: Mutex::default() }
    }

    pub(crate) fn count(&self, call: &str) {
        *self.calls.lock().unwrap_or_else(PoisonError::into_inner).entry(call.to_owned()).or_default() += 1;
    }

    /// How many control planes there are and how many are at their goal, some of the others, and all calls so far.
    pub(crate) fn page(&self, stop: &CancellationToken) -> Value {
        let control_planes = self.control_planes.get_or_init(|| {
            let resource = ApiResource {
                group: "controlplane.cluster.x-k8s.io".to_owned(),
                version: "v1alpha1".to_owned(),
                api_version: "controlplane.cluster.x-k8s.io/v1alpha1".to_owned(),
                kind: "HostedControlPlane".to_owned(),
                plural: "hostedcontrolplanes".to_owned(),
            };
            WatchBuilder::new("control planes", Api::all_with(self.client.clone(), &resource)).start(stop)
        });
        let all = control_planes.all();
        let waits: Vec<Value> = all
            .iter()
            .filter_map(|kept| Some(json!({"name": kept.key.to_string(), "lacks": lack(&kept.data)?})))
            .collect();
        let total = all.iter().count();
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        json!({
            "total": total, "there": total - waits.len(), "calls": calls,
            "waits": waits.into_iter().take(SHOWN).collect::<Vec<_>>(),
        })
    }
}

/// What a control plane lacks.
fn lack(data: &Value) -> Option<Value> {
    let conditions = data["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    GOAL.iter().find_map(|goal| match conditions.iter().find(|found| found["type"] == *goal) {
        Some(found) if found["status"] == "True" => None,
        Some(found) => Some(found.clone()),
        None => Some(json!(goal)),
    })
}
