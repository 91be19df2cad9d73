//! Shows one condition of another object under a name of ours.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Finding, Status};

/// The source's status, reason and message under the type `as_type`. Messages are taken over as they are: they name
/// their own actor.
pub fn renamed(source: &Condition, as_type: &'static str) -> Finding {
    // The v1beta1 contract allows an empty reason, the schema of ours does not.
    let reason = if source.reason.is_empty() { as_type } else { &source.reason };
    Finding::made(as_type, Status::parse(&source.status), reason.to_owned(), source.message.clone())
}

/// The source's status, reason and message as well, or `missing` while there is no source. What
/// `missing` waits for is shown where the source has no message.
pub fn mirror(type_: &'static str, source: Option<&Condition>, missing: Finding) -> Finding {
    let Some(source) = source else { return missing };
    let mirrored = renamed(source, type_);
    Finding { waiting: missing.waiting.filter(|_| !mirrored.is_good), ..mirrored }
}
