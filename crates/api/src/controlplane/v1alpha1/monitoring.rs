//! What is made for those who collect metrics.

use std::collections::BTreeMap;

use hangar_wire::wire;

use super::GoDuration;

/// What is made for those who collect the metrics of the control plane.
#[wire]
#[serde(default)]
pub struct Monitoring {
    /// Makes PodMonitors for etcd, API server, controller manager and scheduler, in a management cluster that has the
    /// kind (Prometheus Operator); an empty object is enough. None are made when it is not given.
    pub pod_monitors: Option<PodMonitors>,
}

/// PodMonitors of the control plane.
#[wire]
#[serde(default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.interval) || (duration(self.interval) >= duration('5s') && duration(self.interval) <= duration('1h'))",
    "message": "interval must be between 5s and 1h",
}]))]
pub struct PodMonitors {
    /// Labels of the PodMonitors, by which a Prometheus selects them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub labels: BTreeMap<String, String>,
    /// How often metrics are collected, in whole seconds; as the Prometheus is configured when empty.
    pub interval: Option<GoDuration>,
}
