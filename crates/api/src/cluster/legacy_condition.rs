//! Conditions in the format of v1beta1, which both versions contain.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A condition in the format of v1beta1, with a severity.
#[wire(without_default)]
#[derive(Eq)]
pub struct LegacyCondition {
    /// When the status changed last.
    pub last_transition_time: Time,
    /// Message that explains the status to users.
    #[schemars(length(min = 1, max = 10240))]
    pub message: Option<String>,
    /// Reason of the status: one CamelCase word, for programs.
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,
    /// Severity of the status False: Error, Warning, Info or empty.
    #[schemars(length(max = 32))]
    pub severity: Option<String>,
    /// True, False or Unknown.
    pub status: String,
    /// Type of the condition.
    #[schemars(length(min = 1, max = 256))]
    pub r#type: String,
}

impl LegacyCondition {
    /// The same in the newer shape.
    pub fn newer(&self) -> Condition {
        Condition {
            last_transition_time: self.last_transition_time.clone(),
            message: self.message.clone().unwrap_or_default(),
            observed_generation: None,
            reason: self.reason.clone().unwrap_or_default(),
            status: self.status.clone(),
            type_: self.r#type.clone(),
        }
    }
}
