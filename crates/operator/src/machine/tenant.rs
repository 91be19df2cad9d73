//! Calls to the tenant's API server: Nodes and pods, read when a plan asks for them, and written by its steps.

use hangar_kit::ObjectKey;
use hangar_kit::error::{Result, status_code};
use hangar_plan::flow::{Outcome, Read};
use hangar_plan::machine::{Look, NodePatch, NodeView, Observed, PodFacts, PodKey, node};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde_json::json;

use super::Machines;
use crate::outcome;

/// Nodes of a large tenant come in pages.
const PAGE: u32 = 500;

impl Machines {
    pub(super) async fn tenant(&self, observed: &Observed) -> Result<Client> {
        let key = ObjectKey {
            namespace: observed.machine.metadata.namespace.clone(),
            name: observed.machine.spec.cluster_name.clone(),
        };
        self.context.tenants.client(&key).await
    }

    /// Fills in what the plan wants to know from the tenant.
    pub(super) async fn look(&self, observed: &mut Observed, look: Look) {
        if look == Look::Nothing {
            return;
        }
        let client = match self.tenant(observed).await {
            Ok(client) => client,
            Err(error) => {
                observed.node = NodeView::Unreachable(error.to_string());
                return;
            }
        };
        match look {
            Look::Nothing => {}
            Look::FindNode { provider_id } => observed.node = find(client, &provider_id).await,
            Look::Node { name } => observed.node = get(client, &name).await,
            Look::NodeAndPods { name } => {
                observed.node = get(client.clone(), &name).await;
                if matches!(observed.node, NodeView::Found(_)) {
                    observed.pods = pods(client, &name).await;
                }
            }
        }
    }
}

async fn find(client: Client, provider_id: &str) -> NodeView {
    let api: Api<Node> = Api::all(client);
    let mut nodes = Vec::new();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        match api.list(&parameters).await {
            Ok(page) => {
                nodes.extend(page.items);
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => parameters.continue_token = Some(token),
                    None => return node::find(nodes, provider_id),
                }
            }
            Err(error) => return NodeView::Unreachable(error.to_string()),
        }
    }
}

async fn get(client: Client, name: &str) -> NodeView {
    let api: Api<Node> = Api::all(client);
    match api.get_opt(name).await {
        Ok(Some(node)) => NodeView::Found(Box::new(node.into())),
        Ok(None) => NodeView::Absent,
        Err(error) => NodeView::Unreachable(error.to_string()),
    }
}

async fn pods(client: Client, node: &str) -> Read<PodFacts> {
    let api: Api<Pod> = Api::all(client);
    match api.list(&ListParams::default().fields(&format!("spec.nodeName={node}"))).await {
        Ok(list) => Read::found(list.items.into_iter().map(PodFacts::from)),
        Err(error) => Read::unknown(format!("the pods of Node {node}: {error}")),
    }
}

/// Gone is what was wanted; a conflict means that it was read too long ago.
fn answered<T>(answer: kube::Result<T>, is_gone_fine: bool) -> Outcome {
    match answer {
        Err(error) if status_code(&error) == Some(404) && is_gone_fine => Outcome::Done,
        Err(error) if matches!(status_code(&error), Some(404 | 409)) => Outcome::Lost,
        answer => outcome::of_kubernetes(answer),
    }
}

pub(super) async fn patch_node(client: Client, name: &str, patch: &NodePatch) -> Outcome {
    let api: Api<Node> = Api::all(client);
    let mut fields = json!({ "metadata": {
        "resourceVersion": patch.resource_version,
        "labels": patch.labels,
        "annotations": patch.annotations,
    }});
    if let Some(taints) = &patch.taints {
        fields["spec"] = json!({ "taints": taints });
    }
    answered(api.patch(name, &PatchParams::default(), &Patch::Merge(fields)).await, false)
}

pub(super) async fn cordon(client: Client, name: &str) -> Outcome {
    let api: Api<Node> = Api::all(client);
    let fields = json!({ "spec": { "unschedulable": true } });
    answered(api.patch(name, &PatchParams::default(), &Patch::Merge(fields)).await, false)
}

pub(super) async fn delete_node(client: Client, name: &str) -> Outcome {
    let api: Api<Node> = Api::all(client);
    answered(api.delete(name, &DeleteParams::default()).await, true)
}

pub(super) async fn evict(client: Client, pod: &PodKey, uid: &str, grace_seconds: Option<u32>) -> Outcome {
    let api: Api<Pod> = Api::namespaced(client, &pod.namespace);
    let options = DeleteParams {
        grace_period_seconds: grace_seconds,
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        ..DeleteParams::default()
    };
    let parameters = EvictParams { delete_options: Some(options), ..EvictParams::default() };
    answered(api.evict(&pod.name, &parameters).await, true)
}
