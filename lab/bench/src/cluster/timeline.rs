//! The timeline of one run: what happened, in seconds since its beginning.

use std::fmt;
use std::time::Instant;

use anyhow::Context;
use serde_json::Value;

use super::PATIENCE;
use crate::watch::{Event, Watches, holds, runs};

pub(super) const APPLIED: &str = "manifests applied";
pub(super) const ETCD_READY: &str = "etcd Ready";
pub(super) const API_SERVER_READY: &str = "pod of the API server Ready";
pub(super) const SERVING: &str = "API server answers at its address";
pub(super) const KUBECONFIG: &str = "kubeconfig there";
pub(super) const NETWORK_APPLIED: &str = "flannel applied";
pub(super) const NODE_READY: &str = "Node Ready";
pub(super) const SAID_READY: &str = "MachineDeployment says so";

/// A moment that a watch tells.
struct Milestone {
    name: &'static str,
    watch: &'static str,
    is_reached: fn(&Value) -> bool,
}

const fn milestone(name: &'static str, watch: &'static str, is_reached: fn(&Value) -> bool) -> Milestone {
    Milestone { name, watch, is_reached }
}

/// Of both sides; the floor has fewer of them.
const MILESTONES: [Milestone; 19] = [
    milestone("HostedControlPlane claimed", "hostedcontrolplanes", |it| {
        it["metadata"]["ownerReferences"][0].is_object()
    }),
    milestone("first authority there", "secrets", is_authority),
    milestone("StatefulSet of etcd there", "statefulsets", |_| true),
    milestone("pod of etcd there", "pods", |it| runs(it, "etcd")),
    milestone("pod of etcd scheduled, network made", "pods", |it| {
        runs(it, "etcd") && holds(it, "PodReadyToStartContainers")
    }),
    milestone(ETCD_READY, "pods", |it| runs(it, "etcd") && holds(it, "Ready")),
    milestone("pod of the API server there", "pods", |it| runs(it, "kube-apiserver")),
    milestone(API_SERVER_READY, "pods", |it| runs(it, "kube-apiserver") && holds(it, "Ready")),
    milestone("controller-manager Ready", "pods", |it| {
        runs(it, "kube-controller-manager") && holds(it, "Ready")
    }),
    milestone("scheduler Ready", "pods", |it| runs(it, "kube-scheduler") && holds(it, "Ready")),
    milestone(KUBECONFIG, "secrets", is_kubeconfig),
    milestone("HostedControlPlane Available", "hostedcontrolplanes", |it| holds(it, "Available")),
    milestone("OpenStackCluster ready", "openstackclusters", |it| it["status"]["ready"] == true),
    milestone("Machine there", "machines", |_| true),
    milestone("bootstrap data there", "secrets", is_worker_data),
    milestone("server ACTIVE", "openstackmachines", |it| it["status"]["instanceState"] == "ACTIVE"),
    milestone("Node registered", "nodes", |_| true),
    milestone(NODE_READY, "nodes", |it| holds(it, "Ready")),
    milestone(SAID_READY, "machinedeployments", |it| it["status"]["readyReplicas"] == 1),
];

/// The Secret with a worker's data: it alone says in which format they are.
pub(super) fn is_worker_data(secret: &Value) -> bool {
    secret["kind"] == "Secret" && secret["data"]["format"].is_string()
}

/// The Secret with the cluster's kubeconfig.
pub(super) fn is_kubeconfig(secret: &Value) -> bool {
    secret["metadata"]["name"] == format!("{}-kubeconfig", super::CLUSTER)
}

/// The Secret with the cluster's first certificate.
fn is_authority(secret: &Value) -> bool {
    secret["metadata"]["name"] == format!("{}-ca", super::CLUSTER)
}

pub(super) struct Timeline {
    start: Instant,
    marks: Vec<(&'static str, f64)>,
}

impl Timeline {
    pub(super) fn begin() -> Self {
        Self { start: Instant::now(), marks: Vec::new() }
    }

    /// Only the first time counts.
    pub(super) fn mark(&mut self, name: &'static str, at: Instant) {
        if self.seconds(name).is_none() {
            self.marks.push((name, at.saturating_duration_since(self.start).as_secs_f64()));
        }
    }

    /// When it happened.
    pub(super) fn seconds(&self, name: &str) -> Option<f64> {
        self.marks.iter().find(|(known, _)| *known == name).map(|(_, seconds)| *seconds)
    }

    /// All of it, in the order of time.
    pub(super) fn in_order(&self) -> Vec<(&'static str, f64)> {
        let mut marks = self.marks.clone();
        marks.sort_by(|left, right| left.1.total_cmp(&right.1));
        marks
    }

    /// Takes in what the watches tell until `name` happened.
    pub(super) fn follow(&mut self, watches: &Watches, name: &'static str) -> anyhow::Result<()> {
        self.follow_with(watches, name, |_| ()).map(drop)
    }

    /// The same, with a function that sees each event.
    pub(super) fn follow_with(
        &mut self,
        watches: &Watches,
        name: &'static str,
        mut look: impl FnMut(&Event),
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.seconds(name).is_none() {
            let event = watches.next(deadline).with_context(|| format!("waiting for: {name}"))?;
            look(&event);
            for milestone in MILESTONES.iter().filter(|milestone| milestone.watch == event.watch) {
                if (milestone.is_reached)(&event.object) {
                    self.mark(milestone.name, event.at);
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, seconds)) in self.in_order().into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{seconds:.1} {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_first_time_counts_and_time_decides_the_order() {
        let mut timeline = Timeline::begin();
        let later = |seconds| timeline.start + Duration::from_secs(seconds);
        let (two, one, three) = (later(2), later(1), later(3));
        timeline.mark("second", two);
        timeline.mark("first", one);
        timeline.mark("second", three);
        assert_eq!(timeline.to_string(), "1.0 first, 2.0 second");
    }

    #[test]
    fn milestones_are_told_apart() {
        let pod = json!({
            "spec": {"containers": [{"name": "kube-apiserver"}, {"name": "konnectivity-server"}]},
            "status": {"conditions": [{"type": "Ready", "status": "False"}]},
        });
        let reached: Vec<&str> = MILESTONES
            .iter()
            .filter(|it| it.watch == "pods" && (it.is_reached)(&pod))
            .map(|it| it.name)
            .collect();
        assert_eq!(reached, ["pod of the API server there"]);
    }
}
