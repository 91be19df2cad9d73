//! What the drafts of OpenStackClusters and OpenStackMachines share: an owner id, a cloud that may not answer, and
//! `Ready` as the first condition that does not hold.

use std::time::Duration;

use hangar_api::conditions::{Actor, Bad, Finding};

use super::conditions::ownership;
use super::owner::{record_project, recorded_project};
use super::request::{LISTED, awaited, left, requested};
use super::{Access, CloudTrouble, OWNER_ID_ANNOTATION, Request, claim, release};
use crate::conditions::shared::{paused, reads};
use crate::flow::{Draft, Drafted, StepOf, Write};

/// An observation of something in a cloud.
pub(crate) trait InCloud: Drafted {
    type Facts;

    /// How long until something is read again that must change and is not watched.
    const POLL: Duration;
    const FINALIZER: &'static str;
    /// The condition that tells of the object as a whole.
    const MAIN: &'static str;

    fn cloud(&self) -> &Access<Self::Facts>;
    fn fresh_owner_id(&self) -> &str;
    /// The region and the project that the credentials lead to, if the cloud was asked.
    fn project(&self) -> Option<&str>;
    /// How long a request may still be carried out after its answer was lost.
    fn settling(&self) -> Duration;
    /// What the last step of a condition said when it did not work.
    fn trouble_about(&self, type_: &str) -> Option<&CloudTrouble>;
    /// Whether the object as a whole is not ready because of it.
    fn is_essential(finding: &Finding) -> bool {
        !finding.is_good()
    }
}

impl<P> Draft<'_, P>
where
    P: InCloud,
    StepOf<P>: From<Write>,
{
    /// Puts the owner id on the object, before anything is created.
    pub(crate) fn claim(&mut self) {
        self.report
            .decide("mark the object with an owner id", "everything that is made for it carries that id");
        self.step(claim(self.metadata(), self.observed.fresh_owner_id(), P::FINALIZER));
        self.say(ownership::STARTING.about(P::MAIN).waits("the owner id to be written"));
    }

    /// The owner id is another object's.
    pub(crate) fn copied(&mut self, other: &str) {
        let on = format!("the annotation {OWNER_ID_ANNOTATION} to be removed");
        let why = format!("it was copied from {other}, and what carries it in the cloud belongs there");
        self.broken(ownership::OWNER_ID_COPIED.about(P::MAIN), &on, why);
    }

    /// Nothing of ours was ever made, or is left: lets the object go.
    pub(crate) fn release(&mut self) {
        self.step(release(self.metadata(), P::FINALIZER));
    }

    /// Nothing of ours is left: lets the object go once nothing can come any more.
    pub(crate) fn release_settled(&mut self) {
        let deleting = ownership::DELETING.about(P::MAIN);
        if let Some((what, Some(left))) = self.unanswered() {
            self.say(deleting.by(Actor::Cloud, awaited(what)));
            self.again(left.min(LISTED));
        } else {
            self.release();
            self.say(deleting.waits("the finalizer to be removed"));
        }
    }

    /// What was asked for whose answer was lost, and how long it may still come.
    fn unanswered(&self) -> Option<(&str, Option<Duration>)> {
        let (at, what) = requested(self.metadata().annotations.as_ref())?;
        Some((what, left(at, self.observed.settling(), self.observed.now())))
    }

    /// What the cloud says, or else why it cannot be asked is said.
    pub(crate) fn with_cloud(&mut self, access: &'static str, work: impl FnOnce(&mut Self, &P::Facts)) {
        match self.observed.cloud() {
            Access::NotAsked => self.unknown(access, "the cloud was not asked"),
            Access::Trouble(trouble) => self.trouble(access, trouble, "access to the cloud"),
            Access::Facts(facts) => {
                if self.is_in_its_project() {
                    let is_staying = self.metadata().deletion_timestamp.is_none();
                    if let (true, Some((_, None))) = (is_staying, self.unanswered()) {
                        self.step(Request::Other("").forget());
                    }
                    work(self, facts);
                }
            }
        }
    }

    /// Whether the credentials lead where everything was made. With others nothing would be found: all would be made a
    /// second time, or a deletion would end with everything left behind. Else it is said, or recorded first.
    fn is_in_its_project(&mut self) -> bool {
        let observed = self.observed;
        match (recorded_project(self.metadata()), observed.project()) {
            (_, None) => true,
            (Some(recorded), Some(found)) if recorded == found => true,
            (Some(recorded), Some(found)) => {
                let on = format!("credentials for {recorded} (region/project)");
                let why = format!(
                    "identityRef leads to {found}; nothing is created, deleted or released there (to give up what is in \
                     {recorded}, remove the finalizer {} by hand)",
                    P::FINALIZER
                );
                self.broken(ownership::OTHER_PROJECT.about(P::MAIN), &on, why);
                false
            }
            (None, Some(_)) if self.metadata().deletion_timestamp.is_some() => true,
            (None, Some(found)) => {
                let step = record_project(found);
                self.step(step);
                self.say(ownership::STARTING.about(P::MAIN).waits("the project to be recorded"));
                false
            }
        }
    }

    /// Another provider made what the object names, and Hangar does not know its things.
    pub(crate) fn made_by_another(&mut self) {
        let on = format!("the provider that made it, or the annotation {OWNER_ID_ANNOTATION}");
        let why = format!(
            "the status or the provider id names things in the cloud that do not carry an owner id of Hangar; nothing is \
             created, deleted or released (to give up what is in the cloud, remove the finalizer {} by hand)",
            P::FINALIZER
        );
        self.say(ownership::MADE_BY_ANOTHER.about(P::MAIN).waits(on).because(why));
    }

    /// Something is being done; what went wrong so far is added.
    pub(crate) fn working(&mut self, reason: Bad, on: &str) {
        match self.observed.trouble_about(reason.reason().type_) {
            None => self.say(reason.by(Actor::Hangar, on)),
            Some(trouble) => self.trouble(reason.reason().type_, trouble, on),
        }
    }

    /// The specification, or what it names, has to change.
    pub(crate) fn broken(&mut self, reason: Bad, on: &str, why: impl Into<String>) {
        self.say(reason.waits(on).because(why));
        self.again(P::POLL);
    }

    /// A read failed: nothing is created or deleted from it.
    pub(crate) fn unknown(&mut self, type_: &'static str, why: &str) {
        let unread = reads::NOT_READABLE.about(type_);
        let on = "everything that belongs to this object to be readable";
        self.say(unread.by(Actor::Hangar, on).because(why));
        self.again(P::POLL);
    }

    fn trouble(&mut self, type_: &'static str, trouble: &CloudTrouble, on: &str) {
        let CloudTrouble { reason, message, actor } = trouble;
        self.say(reason.about(type_).by(actor.clone(), on).because(message));
        self.again(P::POLL);
    }

    /// The first thing that keeps the object from being ready.
    pub(crate) fn blocker(&self) -> Option<&Finding> {
        self.said().iter().find(|finding| P::is_essential(finding) && finding.type_() != paused::TYPE)
    }

    /// Says `Ready`: as the first essential condition that does not hold. Where nothing was said it stays as it was.
    pub(crate) fn conclude(&mut self, type_: &'static str, ready: impl Into<Finding>) {
        if self.said().iter().any(|finding| finding.type_() != paused::TYPE) {
            self.say(self.blocker().map_or_else(|| ready.into(), |blocker| blocker.clone().about(type_)));
        }
    }
}
