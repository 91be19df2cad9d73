//! A plan in the making, for both kinds: steps and conditions are added to it until it is finished.
//!
//! Every condition that does not hold names who must act, and whatever is not watched is read again after
//! [`Subject::POLL`].

use std::time::Duration;

use hangar_api::cluster::legacy_condition::LegacyCondition;
use hangar_api::conditions::{Actor, Finding, Severity, Status, Waiting, set_severity};
use jiff::Timestamp;

use super::{Access, CloudTrouble, Noted, OWNER_ID_ANNOTATION, ready_last};
use crate::flow::{self, Frontier, Plan, Report, Wake};

/// What a draft has to know about the observation it is made from.
pub(crate) trait Subject {
    type Step: flow::Identified;
    type Status: Clone + Default;
    type Facts;

    /// How long until everything is read again when nothing is going on.
    const RESYNC: Duration;
    /// How long until something is read again that must change and is not watched.
    const POLL: Duration;
    /// The condition that tells of the object as a whole.
    const MAIN_CONDITION: &'static str;
    /// The condition that tells whether the cloud can be asked.
    const ACCESS_CONDITION: &'static str;

    fn now(&self) -> Timestamp;
    fn is_paused(&self) -> bool;
    fn status(&self) -> Option<&Self::Status>;
    fn cloud(&self) -> &Access<Self::Facts>;
    /// What the last step of a condition said when it did not work.
    fn trouble_about(&self, type_: &str) -> Option<&CloudTrouble>;
    /// The step that puts the owner id and the finalizer on the object.
    fn claim(&self) -> Self::Step;
    fn conditions(status: &mut Self::Status) -> &mut Vec<LegacyCondition>;
}

/// A plan in the making.
pub(crate) struct Draft<'a, S: Subject> {
    pub(crate) observed: &'a S,
    pub(crate) steps: Frontier<S::Step>,
    pub(crate) status: S::Status,
    pub(crate) noted: Vec<Noted>,
    pub(crate) report: Report,
    pub(crate) wake: Wake,
}

impl<'a, S: Subject> Draft<'a, S> {
    pub(crate) fn new(observed: &'a S) -> Self {
        Self {
            observed,
            steps: Frontier::default(),
            status: observed.status().cloned().unwrap_or_default(),
            noted: Vec::new(),
            report: Report::default(),
            wake: Wake::after(observed.now(), S::RESYNC),
        }
    }

    /// Adds a step.
    pub(crate) fn step(&mut self, step: impl Into<S::Step>) {
        self.steps.push(step.into());
    }

    /// Plans again after this long at the latest.
    pub(crate) fn again(&mut self, after: Duration) {
        self.wake = self.wake.sooner(Wake::after(self.observed.now(), after));
    }

    /// Puts the owner id on the object, before anything is created.
    pub(crate) fn claim(&mut self) {
        self.report
            .decide("mark the object with an owner id", "everything that is made for it carries that id");
        self.steps.push(self.observed.claim());
        self.wait(S::MAIN_CONDITION, "Starting", Actor::Hangar, "the owner id to be written");
    }

    /// The owner id is another object's.
    pub(crate) fn copied(&mut self, other: &str) {
        self.broken(
            S::MAIN_CONDITION,
            "OwnerIdCopied",
            &format!("the annotation {OWNER_ID_ANNOTATION} to be removed"),
            &format!("it was copied from {other}, and what carries it in the cloud belongs there"),
        );
    }

    /// Does the work with what the cloud says, or tells why the cloud cannot be asked.
    pub(crate) fn with_cloud(&mut self, work: fn(&mut Self, &S::Facts)) {
        match self.observed.cloud() {
            Access::NotAsked => self.unknown(S::ACCESS_CONDITION, "the cloud was not asked"),
            Access::Trouble(trouble) => self.trouble(S::ACCESS_CONDITION, trouble, "access to the cloud"),
            Access::Facts(facts) => {
                if S::ACCESS_CONDITION != S::MAIN_CONDITION {
                    self.noted.push(Noted::holds(S::ACCESS_CONDITION, "Authenticated"));
                }
                work(self, facts);
            }
        }
    }

    /// Somebody else has to act first, and it will be seen.
    pub(crate) fn wait(&mut self, type_: &str, reason: &str, actor: Actor, on: &str) {
        let waiting = Waiting::new(actor, on);
        self.report.wait(waiting.clone());
        self.noted.push(Noted::waits(type_, reason, &waiting));
    }

    /// Something is being done; what went wrong so far is added.
    pub(crate) fn working(&mut self, type_: &str, reason: &str, on: &str) {
        match self.observed.trouble_about(type_) {
            None => self.wait(type_, reason, Actor::Hangar, on),
            Some(trouble) => self.trouble(type_, trouble, on),
        }
    }

    /// The specification, or what it names, has to change.
    pub(crate) fn broken(&mut self, type_: &str, reason: &str, on: &str, why: &str) {
        let waiting = Waiting::new(Actor::ClusterOwner, on).because(why);
        self.report.wait(waiting.clone());
        self.noted.push(Noted::fails(type_, reason, &waiting));
        self.again(S::POLL);
    }

    /// A read failed: nothing is created or deleted from it.
    pub(crate) fn unknown(&mut self, type_: &str, why: &str) {
        let waiting = Waiting::new(Actor::Hangar, "a look at what there is").because(why);
        self.report.wait(waiting.clone());
        self.noted.push(Noted::unknown(type_, "NotYetKnown", &waiting));
        self.again(S::POLL);
    }

    fn trouble(&mut self, type_: &str, trouble: &CloudTrouble, on: &str) {
        let waiting = Waiting::new(trouble.actor.clone(), on).because(trouble.message.clone());
        self.report.wait(waiting.clone());
        self.noted.push(Noted::fails(type_, trouble.reason, &waiting));
        self.again(S::POLL);
    }

    /// Writes the conditions and gives the plan.
    pub(crate) fn finish(self) -> Plan<S::Step, S::Status> {
        let Self { observed, steps, mut status, noted, report, wake } = self;
        let (conditions, now) = (S::conditions(&mut status), observed.now());
        if observed.is_paused() {
            // The older contract has no condition for it that tools know; ours says it all the same.
            let waiting = Waiting::new(Actor::ClusterOwner, "the end of the pause");
            let paused = Finding::loose("Paused", Status::True, "Paused", Some(&waiting));
            set_severity(conditions, &paused, Severity::Info, now);
        } else {
            conditions.retain(|condition| condition.r#type != "Paused");
            if !noted.is_empty() {
                ready_last(conditions, noted, now);
            }
        }
        Plan { objects: Vec::new(), steps, status, report, wake }
    }
}
