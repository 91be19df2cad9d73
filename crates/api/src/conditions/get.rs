//! Reading conditions, of our types and of foreign objects.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use serde_json::Value;

use super::{Finding, Severity, Status, remove, renamed, set, set_severity};
use crate::cluster::legacy_condition::LegacyCondition;

/// An object that has conditions of the v1beta2 contract's shape.
pub trait HasConditions {
    /// Its conditions.
    fn conditions(&self) -> &[Condition];
    /// Its conditions, to be changed by [`super::set()`].
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
    /// Says which generation everything is about.
    fn observe(&mut self, generation: Option<i64>) {
        let _ = generation;
    }
    /// The list of the older contract's shape, where there is one beside the other.
    fn older_mut(&mut self) -> Option<&mut Vec<LegacyCondition>> {
        None
    }
}

/// A status that findings are written into, in whichever shape its contract has.
pub trait Conditioned: Clone + Default {
    /// The condition of a type.
    fn condition(&self, type_: &str) -> Option<Condition>;
    /// Makes a condition of a finding.
    fn write(&mut self, finding: &Finding, generation: Option<i64>, now: Timestamp);
    /// Takes a condition away.
    fn forget(&mut self, type_: &str);
    /// Says which generation all of it is about, and repeats these conditions under these names in the older shape.
    fn conclude(&mut self, generation: Option<i64>, older: &[(&str, &'static str)], now: Timestamp) {
        let _ = (generation, older, now);
    }
}

impl<T: HasConditions + Clone + Default> Conditioned for T {
    fn condition(&self, type_: &str) -> Option<Condition> {
        get(self, type_).cloned()
    }

    fn write(&mut self, finding: &Finding, generation: Option<i64>, now: Timestamp) {
        set(self, finding, generation, now);
    }

    fn forget(&mut self, type_: &str) {
        remove(self, type_);
    }

    fn conclude(&mut self, generation: Option<i64>, older: &[(&str, &'static str)], now: Timestamp) {
        self.observe(generation);
        for (type_, name) in older {
            let finding = get(self, type_).map(|condition| renamed(condition, name));
            if let (Some(finding), Some(older)) = (finding, self.older_mut()) {
                set_severity(older, &finding, Severity::Info, now);
            }
        }
    }
}

/// The condition of a type.
pub fn get<'object>(
    object: &'object (impl HasConditions + ?Sized),
    type_: &str,
) -> Option<&'object Condition> {
    object.conditions().iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of a type is True. Absent is not.
pub fn is_true(object: &(impl HasConditions + ?Sized), type_: &str) -> bool {
    status(object, type_) == Some(Status::True)
}

/// Status of the condition of a type.
pub fn status(object: &(impl HasConditions + ?Sized), type_: &str) -> Option<Status> {
    get(object, type_).map(|condition| Status::parse(&condition.status))
}

/// The conditions of a foreign object: of the v1beta2 contract's shape wherever it keeps them, else of the v1beta1
/// contract's shape. What is malformed is left out: a foreign status must not stop us.
pub fn from_json(object: &Value) -> Vec<Condition> {
    // Kinds on their way from one contract to the other carry the new shape in a corner.
    ["/status/v1beta2/conditions", "/status/conditions"]
        .iter()
        .filter_map(|path| object.pointer(path)?.as_array())
        .find(|list| !list.is_empty())
        .map(|list| list.iter().filter_map(condition).collect())
        .unwrap_or_default()
}

/// The condition of a type of a foreign object.
pub fn get_from_json(object: &Value, type_: &str) -> Option<Condition> {
    from_json(object).into_iter().find(|condition| condition.type_ == type_)
}

fn condition(value: &Value) -> Option<Condition> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let time = text("lastTransitionTime").parse::<Timestamp>().unwrap_or(Timestamp::UNIX_EPOCH);
    let type_ = Some(text("type")).filter(|type_| !type_.is_empty())?;
    Some(Condition {
        type_: type_.to_owned(),
        status: Status::parse(text("status")).as_str().to_owned(),
        reason: text("reason").to_owned(),
        message: text("message").to_owned(),
        last_transition_time: Time(time),
        observed_generation: value.get("observedGeneration").and_then(Value::as_i64),
    })
}
