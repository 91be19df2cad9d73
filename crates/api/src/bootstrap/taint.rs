//! Taints a node registers with, in the shape both versions share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A taint that the node carries from its registration on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What happens to pods that do not tolerate the taint: `NoSchedule`, `PreferNoSchedule` or
    /// `NoExecute`.
    pub effect: String,
    /// Key of the taint.
    pub key: String,
    /// When the taint was added; set for `NoExecute` taints only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
    /// Value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}
