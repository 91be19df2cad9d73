//! Where the pods of a control plane run in the management cluster.

use std::collections::BTreeMap;

use hangar_wire::wire;
use k8s_openapi::api::core::v1::{Affinity, Toleration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// On which nodes of the management cluster pods run. The limits of the manager decide which labels and taints may be
/// named.
#[wire]
#[serde(default)]
pub struct Placement {
    /// Labels that nodes must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that pods tolerate. Each names the key of a taint.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// Nodes and pods to be near to, or away from. Pods are those of the same namespace: `namespaces` and
    /// `namespaceSelector` are refused. At most 8192 bytes as JSON.
    pub affinity: Option<Affinity>,
    /// How the pods of each component are spread. One that is given replaces the default for its topology key: of hosts
    /// (`kubernetes.io/hostname`), and of zones (`topology.kubernetes.io/zone`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["topologyKey"]))]
    pub topology_spread: Vec<TopologySpread>,
}

/// How the pods of one component are spread over nodes with different values of a label.
#[wire]
pub struct TopologySpread {
    /// The label of nodes.
    #[schemars(length(min = 1, max = 317))]
    pub topology_key: String,
    /// By how many pods two of the values may differ; 1 when empty.
    #[schemars(range(min = 1, max = 100))]
    pub max_skew: Option<i32>,
    /// What becomes of a pod that cannot be placed so; `ScheduleAnyway` when empty.
    pub when_unsatisfiable: Option<WhenUnsatisfiable>,
}

/// What becomes of a pod that cannot be spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WhenUnsatisfiable {
    /// It waits.
    DoNotSchedule,
    /// It runs where there is room.
    #[default]
    ScheduleAnyway,
}
