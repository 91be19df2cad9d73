//! Evicts pods whose image name now refers to another image; their controllers create them again.
//!
//! An eviction, unlike a deletion, respects disruption budgets. Static pods are started again by their seals. A pod
//! without a controller is left to its owner. A pod that ended runs nothing, and a pod whose machine was started after
//! it starts with the newer image anyway.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{EvictParams, ListParams};
use kube::{Api, Client, ResourceExt};

use crate::cluster::{Starts, has_ended, is_of_before};
use crate::error::{Result, Trying};
use crate::images::Listing;

/// What became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Evicted {
    /// Those that are made anew.
    pub(crate) gone: usize,
    /// Those that cannot be evicted now.
    pub(crate) refused: usize,
}

/// Evicts them.
pub(crate) async fn evict(client: &Client, images: &Listing, starts: &Starts) -> Result<Evicted> {
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await.trying("list the pods")?;
    let mut evicted = Evicted::default();
    for pod in pods.iter().filter(|pod| is_stale(pod, images, starts)) {
        let api = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        match api.evict(&pod.name_any(), &EvictParams::default()).await {
            Ok(_) => evicted.gone += 1,
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            // By its budget (429), or by somebody's own rule: it must not keep us from repairing ours.
            Err(kube::Error::Api(_)) => evicted.refused += 1,
            Err(error) => return Err(error).trying(format!("evict the pod {}", pod.name_any())),
        }
    }
    Ok(evicted)
}

fn is_stale(pod: &Pod, images: &Listing, starts: &Starts) -> bool {
    // The node is the owner of what kubelet reports of static pods.
    let is_made_anew =
        pod.owner_references().iter().any(|owner| owner.controller == Some(true) && owner.kind != "Node");
    let runs = pod.metadata.deletion_timestamp.is_none() && !has_ended(pod) && !is_of_before(pod, starts);
    is_made_anew && runs && images.is_replaced(pod)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::images::listing::tests::{listing, pod};

    fn owned(owner: &str, id: &str) -> Pod {
        let owner = json!({"apiVersion": "v1", "kind": owner, "name": "x", "uid": "1", "controller": true});
        let mut pod = pod("example.org/proxy:v1", id);
        pod.metadata.owner_references = Some(vec![serde_json::from_value(owner).unwrap()]);
        pod
    }

    #[test]
    fn only_pods_that_come_back_are_stale() {
        let (images, older, current) = (listing(), "sha256:0123", "sha256:4567");
        let is_stale = |pod: &Pod| is_stale(pod, &images, &Starts::default());
        assert!(is_stale(&owned("DaemonSet", older)));
        assert!(is_stale(&owned("ReplicaSet", older)));
        assert!(!is_stale(&owned("ReplicaSet", current)));
        assert!(!is_stale(&owned("Node", older)), "a static pod");
        assert!(!is_stale(&pod("example.org/proxy:v1", older)), "a pod that somebody made by hand");
        let mut going = owned("DaemonSet", older);
        going.metadata.deletion_timestamp = Some(serde_json::from_str("\"2026-01-01T00:00:00Z\"").unwrap());
        assert!(!is_stale(&going));
    }

    #[test]
    fn what_does_not_run_is_not_stale() {
        let images = listing();
        let since = &Starts([("m".to_owned(), "2026-01-01T00:00:10Z".parse().unwrap())].into());
        let started = |time: &str| {
            let mut pod = owned("ReplicaSet", "sha256:0123");
            pod.spec.as_mut().unwrap().node_name = Some("m".to_owned());
            let state = json!({"running": {"startedAt": time}});
            let status = pod.status.as_mut().unwrap();
            status.container_statuses.as_mut().unwrap()[0].state = serde_json::from_value(state).unwrap();
            pod
        };
        assert!(is_stale(&started("2026-01-01T00:00:10Z"), &images, since));
        assert!(!is_stale(&started("2026-01-01T00:00:09Z"), &images, since), "before its machine");
        let mut ended = owned("Job", "sha256:0123");
        ended.status.as_mut().unwrap().phase = Some("Succeeded".to_owned());
        assert!(!is_stale(&ended, &images, since));
    }
}
