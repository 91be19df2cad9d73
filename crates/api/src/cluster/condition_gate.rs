//! Further conditions that count for an object's own Ready or Available.

use super::pattern;
use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A further condition that must hold before the object counts as ready or available.
#[wire(lenient)]
pub struct ConditionGate {
    /// Type of the condition on the same object.
    #[schemars(length(min = 1, max = 316), regex(pattern = pattern::CONDITION_TYPE))]
    pub condition_type: String,
    /// Whether True is good news (Positive, the default) or bad news (Negative).
    pub polarity: Option<ConditionPolarity>,
}

/// How the status of a condition is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionPolarity {
    /// True is good.
    #[default]
    Positive,
    /// True is bad.
    Negative,
}
