//! Taints a node registers with; both versions have the same type.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A taint that the node carries from its registration on.
#[wire]
pub struct Taint {
    /// What happens to pods that do not tolerate the taint: `NoSchedule`, `PreferNoSchedule` or
    /// `NoExecute`.
    pub effect: String,
    /// Key of the taint.
    pub key: String,
    /// When the taint was added; set for `NoExecute` taints only.
    pub time_added: Option<Time>,
    /// Value of the taint.
    pub value: Option<String>,
}
