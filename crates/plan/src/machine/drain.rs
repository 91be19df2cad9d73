//! Plans the drain of a Node: which pods are evicted, and what holds the rest.
//!
//! The decision follows from pods, refusals and the time. Nothing is remembered: a pod that was evicted and is ending
//! is seen to be ending. The API server enforces disruption budgets, and its refusal is quoted.
//!
//! - Mirror pods and pods of DaemonSets stay: the former cannot be evicted, and the latter would come back.
//! - Pods with the label `cluster.x-k8s.io/drain` stay (`skip`) or are waited for (`wait-completed`).
//! - If the kubelet does not answer, nothing confirms that a pod has ended: a pod whose grace period is over counts as
//!   gone, and others are evicted with a grace period of a second.

use std::collections::BTreeMap;
use std::fmt;

use hangar_api::names;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;

use crate::flow::StepId;
use crate::referred;

/// The name of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodKey {
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for PodKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// What is kept of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    pub key: PodKey,
    pub uid: String,
    /// Whether a kubelet made it from a file.
    pub is_mirror: bool,
    /// Whether a DaemonSet manages it.
    pub is_daemon: bool,
    /// Whether its containers have ended for good.
    pub is_finished: bool,
    /// When its grace ends, once it was asked to leave.
    pub leaves_by: Option<Timestamp>,
    /// What its label says about drains.
    pub label: Option<String>,
}

impl From<Pod> for PodFacts {
    fn from(pod: Pod) -> Self {
        let metadata = pod.metadata;
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        let is_daemon = metadata
            .owner_references
            .iter()
            .flatten()
            .any(|owner| owner.controller == Some(true) && referred::is_kind::<DaemonSet>(owner));
        let is_mirror =
            metadata.annotations.iter().flatten().any(|(name, _)| name == "kubernetes.io/config.mirror");
        Self {
            key: PodKey {
                namespace: metadata.namespace.unwrap_or_default(),
                name: metadata.name.unwrap_or_default(),
            },
            uid: metadata.uid.unwrap_or_default(),
            is_mirror,
            is_daemon,
            is_finished: matches!(phase.as_str(), "Succeeded" | "Failed"),
            leaves_by: metadata.deletion_timestamp.map(|time| time.0),
            label: metadata.labels.and_then(|labels| labels.get(names::DRAIN_LABEL).cloned()),
        }
    }
}

/// A pod that does not leave, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub pod: PodKey,
    /// In the words of who refused.
    pub why: String,
}

/// What to do about the pods of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// To be asked to leave, with their uid.
    pub evict: Vec<(PodKey, String)>,
    pub leaving: Vec<PodKey>,
    /// To end by themselves.
    pub awaited: Vec<PodKey>,
    pub blocked: Vec<Blocked>,
}

impl Drain {
    /// Whether nothing is left to wait for.
    pub fn is_done(&self) -> bool {
        self.evict.is_empty() && self.leaving.is_empty() && self.awaited.is_empty() && self.blocked.is_empty()
    }
}

/// The identity of asking a pod to leave.
pub fn step(pod: &PodKey) -> StepId {
    StepId::new("evict", "pod", pod.to_string())
}

/// Decides about every pod of a Node.
pub fn drain<'pods>(
    pods: impl IntoIterator<Item = &'pods PodFacts>,
    refusals: &BTreeMap<StepId, String>,
    is_kubelet_silent: bool,
    now: Timestamp,
) -> Drain {
    let mut drain = Drain::default();
    for pod in pods {
        let label = pod.label.as_deref();
        if pod.is_mirror || pod.is_daemon || label == Some(names::DRAIN_SKIP) {
            continue;
        }
        match pod.leaves_by {
            Some(by) if is_kubelet_silent && by <= now => {}
            Some(_) => drain.leaving.push(pod.key.clone()),
            None if label == Some(names::DRAIN_WAIT_COMPLETED) => {
                if !pod.is_finished {
                    drain.awaited.push(pod.key.clone());
                }
            }
            None => match refusals.get(&step(&pod.key)) {
                Some(why) => drain.blocked.push(Blocked { pod: pod.key.clone(), why: why.clone() }),
                None => drain.evict.push((pod.key.clone(), pod.uid.clone())),
            },
        }
    }
    drain
}
