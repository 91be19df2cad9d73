//! Decides which changes of a control plane's status become events.

use hangar_api::conditions::Status;
use hangar_api::controlplane::v1alpha1::{HostedControlPlane, HostedControlPlaneStatus};
use hangar_kit::event::{Event, Severity};

/// Conditions whose change of status is worth an event.
const TOLD: [&str; 3] = ["Available", "CertificatesValid", "Paused"];
/// The condition that tells of settings which are refused or miss something: each other message is news.
const SETTINGS: &str = "SettingsEffective";

pub(super) fn of(
    root: &HostedControlPlane,
    before: Option<&HostedControlPlaneStatus>,
    after: &HostedControlPlaneStatus,
) -> Vec<Event> {
    // That a control plane which is being deleted goes away is no news.
    if root.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let find = |status: &HostedControlPlaneStatus, type_: &str| {
        status.conditions.iter().find(|condition| condition.type_ == type_).cloned()
    };
    let told = TOLD.iter().filter_map(|type_| {
        let now = find(after, type_)?;
        let was = before.and_then(|status| find(status, type_)).map(|found| Status::parse(&found.status));
        let is = Status::parse(&now.status);
        let (severity, reason) = transition(type_, was, is).filter(|_| was != Some(is))?;
        let note = if now.message.is_empty() { now.reason } else { now.message };
        Some(Event { severity, reason, action: "Observe", note })
    });
    let settings = find(after, SETTINGS).filter(|now| {
        let was = before.and_then(|status| find(status, SETTINGS));
        was.is_none_or(|was| (was.reason, was.message) != (now.reason.clone(), now.message.clone()))
    });
    let settings = settings.filter(|now| Status::parse(&now.status) == Status::False).map(|now| Event {
        severity: Severity::Warning,
        reason: "SettingsNotEffective",
        action: "Observe",
        note: now.message,
    });
    told.chain(settings).collect()
}

/// What a change of a condition is called, where it is news.
fn transition(type_: &str, was: Option<Status>, is: Status) -> Option<(Severity, &'static str)> {
    match (type_, was, is) {
        ("Available", _, Status::True) => Some((Severity::Normal, "Available")),
        ("Available", Some(Status::True), Status::False) => Some((Severity::Warning, "NotAvailable")),
        ("CertificatesValid", Some(Status::True), Status::False) => {
            Some((Severity::Warning, "CertificatesNotValid"))
        }
        ("Paused", _, Status::True) => Some((Severity::Normal, "Paused")),
        ("Paused", Some(Status::True), _) => Some((Severity::Normal, "Resumed")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_becomes_an_event() {
        assert_eq!(transition("Available", None, Status::False), None, "it has only begun");
        assert!(transition("Available", Some(Status::False), Status::True).is_some());
        assert!(transition("Available", Some(Status::True), Status::False).is_some());
        assert_eq!(transition("CertificatesValid", None, Status::False), None, "keys are being made");
        assert!(transition("CertificatesValid", Some(Status::True), Status::False).is_some());
        assert_eq!(transition("Paused", None, Status::False), None);
    }
}
