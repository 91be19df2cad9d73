//! Converts workloads, pods and Services into the facts that plans decide from.

use std::collections::BTreeMap;

use hangar_api::conditions::shortened;
use hangar_plan::hosted_control_plane::names::{
    AUDIT_PROXY, COMPONENT_LABEL, Component, QUOTA_ANNOTATION, RENEWED_ANNOTATION, SERVED_ANNOTATION,
    VERSION_LABEL,
};
use hangar_plan::hosted_control_plane::{ClaimFacts, PodFacts, ServiceFacts, WorkloadFacts};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ContainerState, PersistentVolumeClaim, Pod, PodTemplateSpec, Service};
use kube::ResourceExt as _;

/// Users rely on this name.
const API_SERVER_CONTAINER: &str = "kube-apiserver";

/// From which template a StatefulSet's controller made a pod.
const REVISION_LABEL: &str = "controller-revision-hash";

/// Bytes of a container's last words.
const WORDS_BYTES: usize = 400;

type Texts = Option<BTreeMap<String, String>>;

fn text(texts: &Texts, name: &str) -> Option<String> {
    texts.as_ref().and_then(|texts| texts.get(name)).cloned()
}

fn version(template: Option<&PodTemplateSpec>) -> Option<String> {
    text(&template?.metadata.as_ref()?.labels, VERSION_LABEL)
}

pub(crate) fn stateful_set(kept: &StatefulSet) -> WorkloadFacts {
    let (spec, status) = (kept.spec.as_ref(), kept.status.clone().unwrap_or_default());
    WorkloadFacts {
        uid: kept.uid().unwrap_or_default(),
        is_deleting: kept.metadata.deletion_timestamp.is_some(),
        is_observed: status.observed_generation >= kept.metadata.generation,
        desired: spec.and_then(|spec| spec.replicas).unwrap_or(1),
        existing: status.replicas,
        updated: status.updated_replicas.unwrap_or_default(),
        ready: status.ready_replicas.unwrap_or_default(),
        available: status.available_replicas.unwrap_or_default(),
        version: version(spec.map(|spec| &spec.template)),
        audit_proxy: None,
        renewed: None,
        quota: spec.and_then(|spec| text(&spec.template.metadata.as_ref()?.annotations, QUOTA_ANNOTATION)),
        volume: spec.and_then(|spec| requested(spec.volume_claim_templates.as_ref()?.first()?)),
        revision: status.update_revision,
    }
}

/// The size that a claim asks for.
fn requested(claim: &PersistentVolumeClaim) -> Option<String> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    Some(requests.get("storage")?.0.clone())
}

/// The image of the audit proxy.
fn audit_proxy(template: &PodTemplateSpec) -> Option<String> {
    let mut containers = template.spec.as_ref()?.containers.iter();
    containers.find(|container| container.name == AUDIT_PROXY)?.image.clone()
}

pub(crate) fn deployment(kept: &Deployment) -> WorkloadFacts {
    let (spec, status) = (kept.spec.as_ref(), kept.status.clone().unwrap_or_default());
    WorkloadFacts {
        uid: kept.uid().unwrap_or_default(),
        is_deleting: kept.metadata.deletion_timestamp.is_some(),
        is_observed: status.observed_generation >= kept.metadata.generation,
        desired: spec.and_then(|spec| spec.replicas).unwrap_or(1),
        existing: status.replicas.unwrap_or_default(),
        updated: status.updated_replicas.unwrap_or_default(),
        ready: status.ready_replicas.unwrap_or_default(),
        available: status.available_replicas.unwrap_or_default(),
        version: version(spec.map(|spec| &spec.template)),
        audit_proxy: spec.and_then(|spec| audit_proxy(&spec.template)),
        renewed: spec
            .and_then(|spec| text(&spec.template.metadata.as_ref()?.annotations, RENEWED_ANNOTATION)),
        quota: None,
        volume: None,
        revision: None,
    }
}

/// A pod and which part of the control plane it belongs to.
pub(crate) struct OwnPod {
    component: Option<String>,
    pub(super) facts: PodFacts,
}

impl OwnPod {
    pub(super) fn is_of(&self, component: Component) -> bool {
        self.component.as_deref() == Some(component.as_str())
    }
}

pub(crate) fn own_pod(pod: &Pod) -> OwnPod {
    OwnPod { component: text(&pod.metadata.labels, COMPONENT_LABEL), facts: self::pod(pod) }
}

fn pod(kept: &Pod) -> PodFacts {
    let conditions = kept.status.as_ref().and_then(|status| status.conditions.as_ref());
    let holds = |name: &str| {
        conditions.into_iter().flatten().any(|found| found.type_ == name && found.status == "True")
    };
    PodFacts {
        name: kept.name_any(),
        uid: kept.uid().unwrap_or_default(),
        is_deleting: kept.metadata.deletion_timestamp.is_some(),
        is_ready_to_start: holds("PodReadyToStartContainers"),
        is_ready: holds("Ready"),
        address: kept.status.as_ref().and_then(|status| status.pod_ip.as_ref()?.parse().ok()),
        version: text(&kept.metadata.labels, VERSION_LABEL),
        served: text(&kept.metadata.annotations, SERVED_ANNOTATION),
        renewed: text(&kept.metadata.annotations, RENEWED_ANNOTATION),
        quota: text(&kept.metadata.annotations, QUOTA_ANNOTATION),
        revision: text(&kept.metadata.labels, REVISION_LABEL),
        started_at: started_at(kept),
        trouble: trouble(kept),
    }
}

/// When its API server started, where one runs. A container that starts again makes a new certificate for itself.
fn started_at(pod: &Pod) -> Option<Timestamp> {
    let mut containers = pod.status.as_ref()?.container_statuses.iter().flatten();
    let container = containers.find(|container| container.name == API_SERVER_CONTAINER)?;
    Some(container.state.as_ref()?.running.as_ref()?.started_at.as_ref()?.0)
}

/// What keeps a pod's containers from running, where something is wrong: not the states every start goes through.
pub(super) fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let of_container = containers.into_iter().find_map(|container| {
        let words = container.state.as_ref().and_then(state)?;
        let last = container.last_state.as_ref().and_then(last_words);
        let last = last.map(|last| format!("; {last}")).unwrap_or_default();
        Some(format!("{}: {words}{last}", container.name))
    });
    of_container.or_else(|| {
        let unscheduled = status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
        Some(words(unscheduled.reason.as_deref(), unscheduled.message.as_deref()))
    })
}

fn state(state: &ContainerState) -> Option<String> {
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let is_normal = matches!(reason, "" | "ContainerCreating" | "PodInitializing");
        return (!is_normal).then(|| words(waiting.reason.as_deref(), waiting.message.as_deref()));
    }
    let ended = state.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
    let line = ended.message.as_deref().and_then(last_line);
    let words = words(ended.reason.as_deref(), line.as_deref());
    Some(format!("ended with exit code {}: {words}", ended.exit_code))
}

/// How a container ended that is started again: with what exit code, and the last line that it wrote.
fn last_words(state: &ContainerState) -> Option<String> {
    let ended = state.terminated.as_ref().filter(|ended| ended.exit_code != 0)?;
    let line = ended.message.as_deref().and_then(last_line);
    let line = line.map(|line| format!(": {line}")).unwrap_or_default();
    Some(format!("it last ended with exit code {}{line}", ended.exit_code))
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(shortened(line.to_owned(), WORDS_BYTES))
}

fn words(reason: Option<&str>, message: Option<&str>) -> String {
    let given = [reason, message].into_iter().flatten().map(str::trim).filter(|text| !text.is_empty());
    given.collect::<Vec<_>>().join(": ")
}

pub(crate) fn claim(kept: &PersistentVolumeClaim) -> ClaimFacts {
    let status = kept.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let holding = |names: &[&str]| {
        conditions.iter().find(|found| names.contains(&found.type_.as_str()) && found.status == "True")
    };
    let unmounted = holding(&["FileSystemResizePending"]);
    let failing = holding(&["ControllerResizeError", "NodeResizeError"]);
    ClaimFacts {
        name: kept.name_any(),
        uid: kept.uid().unwrap_or_default(),
        created_at: kept.metadata.creation_timestamp.as_ref().map(|time| time.0),
        is_deleting: kept.metadata.deletion_timestamp.is_some(),
        is_lost: status.phase.as_deref() == Some("Lost"),
        size: status.capacity.and_then(|capacity| Some(capacity.get("storage")?.0.clone())),
        requested: requested(kept),
        unmounted_since: unmounted.and_then(|found| Some(found.last_transition_time.as_ref()?.0)),
        trouble: failing.map(|found| {
            let words = words(found.reason.as_deref(), found.message.as_deref());
            shortened(if words.is_empty() { found.type_.clone() } else { words }, WORDS_BYTES)
        }),
    }
}

pub(crate) fn service(kept: &Service) -> ServiceFacts {
    let spec = kept.spec.clone().unwrap_or_default();
    let balancer = kept.status.clone().unwrap_or_default().load_balancer.unwrap_or_default();
    let ingress = balancer.ingress.unwrap_or_default();
    let ports = spec.ports.unwrap_or_default().into_iter();
    ServiceFacts {
        uid: kept.uid().unwrap_or_default(),
        is_deleting: kept.metadata.deletion_timestamp.is_some(),
        cluster_ip: spec.cluster_ip.filter(|address| !address.is_empty() && address != "None"),
        ingress_ips: ingress.iter().filter_map(|ingress| ingress.ip.clone()).collect(),
        ingress_hostnames: ingress.into_iter().filter_map(|ingress| ingress.hostname).collect(),
        node_ports: ports.filter_map(|port| Some((port.name.unwrap_or_default(), port.node_port?))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trouble_of(status: &serde_json::Value) -> Option<String> {
        trouble(&serde_json::from_value(json!({"metadata": {"name": "pod"}, "status": status})).unwrap())
    }

    #[test]
    fn a_pod_that_only_starts_is_in_no_trouble() {
        let waiting = |reason: &str| {
            json!({"containerStatuses": [{
                "name": "etcd", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                "state": {"waiting": {"reason": reason, "message": "words"}},
            }]})
        };
        assert_eq!(trouble_of(&waiting("ContainerCreating")), None);
        assert_eq!(
            trouble_of(&waiting("ImagePullBackOff")).as_deref(),
            Some("etcd: ImagePullBackOff: words")
        );
        assert_eq!(trouble_of(&json!({})), None);
    }

    #[test]
    fn a_pod_that_nobody_can_place_says_why() {
        let conditions = json!({"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes",
        }]});
        assert_eq!(trouble_of(&conditions).as_deref(), Some("Unschedulable: 0/3 nodes"));
    }

    #[test]
    fn a_container_that_ended_by_itself_is_in_no_trouble() {
        let ended = |code: i32| {
            json!({"containerStatuses": [{
                "name": "x", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                "state": {"terminated": {"exitCode": code, "reason": "Error"}},
            }]})
        };
        assert_eq!(trouble_of(&ended(0)), None);
        assert_eq!(trouble_of(&ended(2)).as_deref(), Some("x: ended with exit code 2: Error"));
    }

    #[test]
    fn a_container_that_crashes_says_its_last_words() {
        let crashing = json!({"containerStatuses": [{
            "name": "kube-apiserver", "ready": false, "restartCount": 3, "image": "", "imageID": "",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
            "lastState": {"terminated": {
                "exitCode": 1, "reason": "Error", "message": "I1 starting\nError: unknown flag: --x\n\n",
            }},
        }]});
        let words = "kube-apiserver: CrashLoopBackOff: back-off 40s; it last ended with exit code 1: \
            Error: unknown flag: --x";
        assert_eq!(trouble_of(&crashing).as_deref(), Some(words));
    }
}
