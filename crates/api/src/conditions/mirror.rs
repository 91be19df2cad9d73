//! Shows one condition of another object under a name of ours.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Finding, Status, Waiting};

/// The reason while the other object does not report the condition.
pub const NOT_YET_REPORTED: &str = "NotYetReported";

/// The source's status, reason and message under the type `as_type`; Unknown, with who must act, while the source does
/// not report it. Messages are taken over as they are: they name their own actor.
pub fn mirror(source: Option<&Condition>, as_type: &str, missing: &Waiting) -> Finding {
    match source {
        None => Finding::unknown(as_type, NOT_YET_REPORTED, missing),
        Some(source) => {
            // The v1beta1 contract allows an empty reason, the schema of ours does not.
            let reason = if source.reason.is_empty() { as_type } else { &source.reason };
            let status = Status::parse(&source.status);
            let message = match (status, source.message.is_empty()) {
                (Status::True, _) | (_, false) => source.message.clone(),
                (_, true) => missing.to_string(),
            };
            Finding::made(as_type, status, reason, message)
        }
    }
}
