//! Makes the calls about a Machine's Node and its pods in the tenant: patch, cordon and delete the Node, evict pods.

use hangar_plan::flow::Outcome;
use hangar_plan::machine::{NodePatch, NodeStep, PodKey};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::json;

use crate::reconcile::{RunInTenant, answer};

impl RunInTenant for NodeStep {
    async fn run(&self, client: Client) -> Outcome {
        match self {
            Self::Patch { name, patch } => patch_node(client, name, patch).await,
            Self::Cordon { name } => {
                let fields = json!({ "spec": { "unschedulable": true } });
                let api: Api<Node> = Api::all(client);
                answer::of(api.patch(name, &PatchParams::default(), &Patch::Merge(fields)).await)
            }
            Self::Delete { name, uid } => {
                let api: Api<Node> = Api::all(client);
                answer::of_deletion(api.delete(name, &exactly(uid)).await)
            }
            Self::Evict { pod, uid, grace_seconds } => evict(client, pod, uid, *grace_seconds).await,
        }
    }
}

fn exactly(uid: &str) -> DeleteParams {
    let preconditions = Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None });
    DeleteParams { preconditions, ..DeleteParams::default() }
}

async fn patch_node(client: Client, name: &str, patch: &NodePatch) -> Outcome {
    let mut fields = json!({ "metadata": {
        "resourceVersion": patch.resource_version,
        "labels": patch.labels,
        "annotations": patch.annotations,
    }});
    if let Some(taints) = &patch.taints {
        fields["spec"] = json!({ "taints": taints });
    }
    let api: Api<Node> = Api::all(client);
    answer::of(api.patch(name, &PatchParams::default(), &Patch::Merge(fields)).await)
}

async fn evict(client: Client, pod: &PodKey, uid: &str, grace_period_seconds: Option<u32>) -> Outcome {
    let options = DeleteParams { grace_period_seconds, ..exactly(uid) };
    let parameters = EvictParams { delete_options: Some(options), ..EvictParams::default() };
    let api: Api<Pod> = Api::namespaced(client, &pod.namespace);
    answer::of_deletion(api.evict(&pod.name, &parameters).await)
}
