//! Describes everything that exists, of every kind, without what differs from run to run.

use std::collections::BTreeSet;

use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::core::discovery::{ApiResource, Scope, verbs};
use kube::discovery::{ApiGroup, Discovery};
use kube::{Api, Client, ResourceExt as _};

use super::strikes::stable;

/// Written all the time by whoever is there, and no part of a state.
const NOISE: [&str; 3] = ["Event", "Lease", "ComponentStatus"];

/// Made by the controller-manager from what we make, under names or as often as it likes.
const DERIVED: [&str; 5] = ["Pod", "ReplicaSet", "ControllerRevision", "Endpoints", "EndpointSlice"];

/// Kept by an API server for itself.
const OWN_GROUPS: [&str; 2] = ["flowcontrol.apiserver.k8s.io", "apiregistration.k8s.io"];

/// The kinds that an API server serves.
pub(super) struct Catalog {
    kinds: Vec<(ApiResource, Scope)>,
}

impl Catalog {
    pub(super) async fn of(client: &Client) -> Self {
        let all = Discovery::new(client.clone()).run_aggregated().await.unwrap();
        let kinds = all.groups().flat_map(ApiGroup::recommended_resources);
        let kinds = kinds
            .filter(|(kind, can)| {
                can.supports_operation(verbs::LIST)
                    && !NOISE.contains(&kind.kind.as_str())
                    && !OWN_GROUPS.contains(&kind.group.as_str())
            })
            .map(|(kind, can)| (kind, can.scope));
        Self { kinds: kinds.collect() }
    }

    /// Everything in a namespace, or everywhere.
    async fn objects(&self, client: &Client, namespace: Option<&str>) -> Vec<(&ApiResource, DynamicObject)> {
        let mut all = Vec::new();
        for (kind, scope) in &self.kinds {
            let api: Api<DynamicObject> = match (namespace, scope) {
                (Some(namespace), Scope::Namespaced) => Api::namespaced_with(client.clone(), namespace, kind),
                (Some(_), Scope::Cluster) => continue,
                (None, _) => Api::all_with(client.clone(), kind),
            };
            let found = loop {
                match api.list(&ListParams::default()).await {
                    Ok(found) => break found,
                    // A kept connection that the server closed meanwhile: nothing was asked.
                    Err(kube::Error::Service(_)) => {}
                    Err(error) => panic!("{}: {error}", kind.kind),
                }
            };
            all.extend(found.into_iter().map(|object| (kind, object)));
        }
        all
    }

    /// A line for each object in a namespace of the management cluster.
    pub(super) async fn describe(&self, client: &Client, namespace: &str, derived: bool) -> Vec<String> {
        let all = self.objects(client, Some(namespace)).await;
        let ours = all.iter().filter(|(kind, object)| {
            let is_derived = DERIVED.contains(&kind.kind.as_str());
            let is_everywhere = ["kube-root-ca.crt", "default"].contains(&object.name_any().as_str());
            (derived || !is_derived) && !is_everywhere
        });
        ours.map(|(kind, object)| stable(&line(kind, object), namespace)).collect()
    }

    /// Everything in a tenant, by kind and name.
    pub(super) async fn inventory(&self, client: &Client) -> BTreeSet<String> {
        self.objects(client, None).await.iter().map(|(kind, object)| identity(kind, object)).collect()
    }

    /// Takes everything out of a tenant that is not one of these.
    pub(super) async fn reset(&self, client: &Client, keep: &BTreeSet<String>) {
        for (kind, object) in self.objects(client, None).await {
            if keep.contains(&identity(kind, &object)) || kind.kind == "Namespace" {
                continue;
            }
            let api: Api<DynamicObject> = match object.namespace() {
                Some(namespace) => Api::namespaced_with(client.clone(), &namespace, kind),
                None => Api::all_with(client.clone(), kind),
            };
            // It may have gone with another one.
            let _ = api.delete(&object.name_any(), &DeleteParams::default().grace_period(0)).await;
        }
    }
}

fn identity(kind: &ApiResource, object: &DynamicObject) -> String {
    let namespace = object.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{}.{} {namespace}{}", kind.kind, kind.group, object.name_any())
}

fn line(kind: &ApiResource, object: &DynamicObject) -> String {
    let owners: Vec<String> =
        object.owner_references().iter().map(|owner| format!("{} {}", owner.kind, owner.name)).collect();
    let line = format!("{} {}, owners {owners:?}", kind.kind, object.name_any());
    if !kind.group.ends_with("cluster.x-k8s.io") {
        return line;
    }
    let array = |pointer: &str| object.data.pointer(pointer).and_then(|found| found.as_array()).cloned();
    let conditions: BTreeSet<String> = array("/status/conditions")
        .unwrap_or_default()
        .iter()
        .map(|found| {
            format!("{}={}({})", text(&found["type"]), text(&found["status"]), text(&found["reason"]))
        })
        .collect();
    let count = |field: &str| object.data["status"][field].to_string();
    format!(
        "{line}, finalizers {:?}, replicas {}/{}, phase {}, endpoint {}, {conditions:?}",
        object.finalizers(),
        count("readyReplicas"),
        count("replicas"),
        count("phase"),
        object.data["spec"]["controlPlaneEndpoint"],
    )
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}
