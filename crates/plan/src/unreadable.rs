//! Objects that the types of their kind cannot read: the schema allowed a value that they cannot hold.
//!
//! Such an object exists: nobody may decide as if it did not. All that is done with it is to say so, in a condition that
//! every kind has (`readable`) and that goes with the first plan after the field was corrected.

use hangar_api::conditions::{Conditioned, Finding};
use jiff::Timestamp;
use kube::core::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::conditions::shared::readable;

/// What is known of an object that cannot be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unreadable {
    /// What identifies it and what it belongs to; what could not be read of it is left out.
    pub metadata: ObjectMeta,
    /// Its conditions, as they are.
    pub conditions: Vec<Value>,
    /// The field, and what is wrong with it.
    pub why: String,
}

/// The fields of the status that say why an object cannot be read; nothing if they say so already.
pub fn status<S>(object: &Unreadable, now: Timestamp) -> Option<Value>
where
    S: Conditioned + PartialEq + Serialize + DeserializeOwned,
{
    // Conditions that cannot be read either are left out: their controller says them again.
    let before: S = serde_json::from_value(json!({"conditions": object.conditions})).unwrap_or_default();
    let mut after = before.clone();
    after.write(&finding(object), object.metadata.generation, now);
    if after == before {
        return None;
    }
    let mut status = serde_json::to_value(&after).ok()?;
    Some(json!({"conditions": status["conditions"].take()}))
}

fn finding(object: &Unreadable) -> Finding {
    let is_held = object.metadata.deletion_timestamp.is_some()
        && object.metadata.finalizers.iter().flatten().next().is_some();
    let held = if is_held { ", without which it cannot be released and deleted" } else { "" };
    readable::FIELD_NOT_READABLE.waits(format!("a value that Hangar can read{held}")).because(&object.why)
}

#[cfg(test)]
mod tests {
    use hangar_api::cluster::v1beta2::MachineStatus;
    use hangar_api::infrastructure::v1beta1::OpenStackMachineStatus;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn object(conditions: Value) -> Unreadable {
        Unreadable {
            metadata: ObjectMeta { generation: Some(3), ..ObjectMeta::default() },
            conditions: serde_json::from_value(conditions).unwrap(),
            why: "spec.minReadySeconds: 3000000000 is not a whole number of 32 bits".to_owned(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    const MESSAGE: &str = "spec.minReadySeconds: 3000000000 is not a whole number of 32 bits; \
        waiting for a value that Hangar can read (the cluster owner must act)";

    #[test]
    fn it_is_said_once_beside_what_was_said_before() {
        let ready = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "1970-01-01T00:00:01Z", "observedGeneration": 2});
        let mut object = object(json!([ready]));
        let said = status::<MachineStatus>(&object, at(5)).unwrap();
        let readable = json!({"type": "Readable", "status": "False", "reason": "FieldNotReadable",
            "message": MESSAGE, "lastTransitionTime": "1970-01-01T00:00:05Z", "observedGeneration": 3});
        assert_eq!(said, json!({"conditions": [ready, readable]}));
        object.conditions = serde_json::from_value(said["conditions"].clone()).unwrap();
        assert_eq!(status::<MachineStatus>(&object, at(9)), None);
    }

    #[test]
    fn the_older_shape_has_a_severity() {
        let said = status::<OpenStackMachineStatus>(&object(json!([])), at(5)).unwrap();
        let readable = json!({"type": "Readable", "status": "False", "reason": "FieldNotReadable",
            "severity": "Error", "message": MESSAGE, "lastTransitionTime": "1970-01-01T00:00:05Z"});
        assert_eq!(said, json!({"conditions": [readable]}));
    }

    #[test]
    fn one_that_is_being_deleted_says_that_it_is_held() {
        let mut object = object(json!([{"type": 7}]));
        object.metadata.deletion_timestamp = Some(Time(at(1)));
        object.metadata.finalizers = Some(vec!["machine.cluster.x-k8s.io".to_owned()]);
        let said = status::<MachineStatus>(&object, at(5)).unwrap();
        let message = said["conditions"][0]["message"].as_str().unwrap();
        assert!(message.contains("without which it cannot be released and deleted"), "{message}");
    }
}
