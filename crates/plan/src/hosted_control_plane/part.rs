//! What one concern contributes to a plan.

use hangar_api::conditions::{Actor, Finding, Waiting};
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde::Serialize;

use super::step::Step;
use crate::flow::{Report, Wake, dynamic};

/// What one concern contributes.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) objects: Vec<DynamicObject>,
    pub(super) steps: Vec<Step>,
    pub(super) report: Report,
    pub(super) findings: Vec<Finding>,
    pub(super) wake: Wake,
}

impl Part {
    /// The condition holds.
    pub(super) fn holds(&mut self, type_: &str, reason: &str) {
        self.findings.push(Finding::holds(type_, reason));
    }

    /// The condition does not hold, and somebody must act.
    pub(super) fn fails(&mut self, type_: &str, reason: &str, waiting: &Waiting) {
        self.wait(waiting, None);
        self.findings.push(Finding::fails(type_, reason, waiting));
    }

    /// Nobody can tell.
    pub(super) fn unknown(&mut self, type_: &str, reason: &str, waiting: &Waiting) {
        self.wait(waiting, None);
        self.findings.push(Finding::unknown(type_, reason, waiting));
    }

    /// Something is waited for, whether or not a condition says so.
    pub(super) fn wait(&mut self, waiting: &Waiting, since: Option<Timestamp>) {
        let what = match &waiting.detail {
            Some(detail) => format!("{}: {detail}", waiting.on),
            None => waiting.on.clone(),
        };
        self.report.wait(what, since, (&waiting.actor).into());
    }

    /// An object of the management cluster that should exist as written.
    pub(super) fn apply(&mut self, object: &impl Serialize) {
        self.objects.push(dynamic(object));
    }

    /// Appends another part.
    pub(super) fn absorb(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.steps.extend(other.steps);
        self.report.absorb(other.report);
        self.findings.extend(other.findings);
        self.wake = self.wake.sooner(other.wake);
    }
}

/// The management cluster: its scheduler, its kubelets, its controllers.
pub(super) fn management_cluster() -> Actor {
    Actor::Controller("the management cluster".to_owned())
}
