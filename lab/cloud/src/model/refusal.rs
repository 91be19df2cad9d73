//! A refusal: what the model answers instead of doing what it was asked.
//!
//! All services share one type. The services write refusals differently (Nova names the status, Neutron the exception,
//! Keystone its title), which the HTTP layer does.

/// Why a call was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub status: u16,
    /// Name of the exception, as Neutron's clients see it.
    pub kind: String,
    /// The service's own message.
    pub message: String,
}

impl Refusal {
    /// Of any status.
    pub fn new(status: u16, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, kind: kind.into(), message: message.into() }
    }

    /// 400: the request makes no sense.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(400, "HTTPBadRequest", message)
    }

    /// 400 with an exception of its own.
    pub fn invalid(kind: &str, message: impl Into<String>) -> Self {
        Self::new(400, kind, message)
    }

    /// 400 with the message of Neutron's attribute checks.
    pub fn attribute(name: &str, reason: impl std::fmt::Display) -> Self {
        Self::bad(format!("Invalid input for {name}. Reason: {reason}."))
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, "PolicyNotAuthorized", message)
    }

    pub fn not_found(kind: &str, message: impl Into<String>) -> Self {
        Self::new(404, kind, message)
    }

    pub fn conflict(kind: &str, message: impl Into<String>) -> Self {
        Self::new(409, kind, message)
    }

    /// 409 as Neutron refuses what goes over a quota.
    pub fn over_quota(resource: &str) -> Self {
        Self::conflict("OverQuota", format!("Quota exceeded for resources: ['{resource}']."))
    }
}
