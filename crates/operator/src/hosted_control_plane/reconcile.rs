//! One reconcile: observe, run, apply, tell, and say when to come back.

use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::error::{Error, Result};
use hangar_kit::execute::{Ending, Pass, Workbench as _, execute};
use hangar_plan::flow::{NotYet, Outcome, Read, Wake};
use jiff::Timestamp;

use super::fail::{ReconcileError, refusal};
use super::run::Bench;
use super::{ControlPlanes, observe};
use crate::context::WRITE_LIMIT;

/// A new control plane mints some twenty Secrets and its tenant gets some thirty objects; one pass does either.
const ROUNDS: usize = 64;

/// The world has moved under us: its events are on their way.
const READ_AGAIN: Duration = Duration::from_millis(500);
/// Whoever refused does not tell us when the reason is gone.
const TRY_AGAIN: Duration = Duration::from_mins(1);

impl Reconcile for ControlPlanes {
    type Error = ReconcileError;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, ReconcileError> {
        let root = match self.context.watches.control_planes().get(key) {
            Read::One(root) => root,
            Read::Unknown(unknown) => return Err(observe::unknown(key, unknown).into()),
            Read::Absent | Read::Many(_) => {
                self.looks.forget(key);
                return Ok(Settled::done());
            }
        };
        let bench = Bench::new(self, &root);
        let mut pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, ROUNDS).await?;
        self.remember(key, &pass);
        if pass.ending == Ending::Fenced {
            return Err(Error::Fenced { what: key.to_string() }.into());
        }
        let failed = self.apply(&pass.plan.objects).await;
        for (object, error) in &failed {
            pass.observation.troubles.extend(refusal(error).map(|words| (object.applying(), words)));
        }
        if !failed.is_empty() {
            pass.plan.status = bench.plan(&pass.observation).status;
        }
        // Our own writes of this pass are in the store: the status is compared with what is there now.
        if let Read::One(root) = self.context.watches.control_planes().get(key) {
            self.tell_steps(&root, &pass.ran).await;
            self.write_status(&root, &pass.plan.status).await?;
        } else if let Some(cluster) = &bench.cluster {
            self.tenants.forget(cluster);
            self.looks.forget(key);
        }
        if let Some((_, error)) = failed.into_iter().next() {
            return Err(error.into());
        }
        self.settled(key, &pass)
    }
}

impl ControlPlanes {
    /// Keeps what the pass made of the tenant, unless an answer is missing.
    fn remember(&self, key: &ObjectKey, pass: &Pass<Bench<'_>>) {
        match &pass.observation.tenant {
            Read::One(facts) if pass.ending != Ending::AnswerLost => self.looks.fold(key, facts),
            _ => self.looks.forget(key),
        }
    }

    /// When to come back.
    fn settled(&self, key: &ObjectKey, pass: &Pass<Bench<'_>>) -> Result<Settled, ReconcileError> {
        for ran in &pass.ran {
            if let Outcome::Failed(failure) = &ran.outcome {
                let (step, failure) = (ran.step.to_string(), failure.clone());
                return Err(ReconcileError::Step { step, failure });
            }
        }
        match pass.ending {
            Ending::OutOfRounds => return Ok(not_yet("there is more to do", Duration::ZERO)),
            Ending::AnswerLost => return Ok(not_yet("what was planned from has changed", READ_AGAIN)),
            Ending::AtRest | Ending::Fenced => {}
        }
        let now = Timestamp::now();
        let mut wake = pass.plan.wake;
        if pass.ran.iter().any(|ran| matches!(ran.outcome, Outcome::Refused(_))) {
            wake = wake.sooner(Wake::after(now, TRY_AGAIN));
        }
        if let Some(length) = self.looks.due_in(key) {
            wake = wake.sooner(Wake::after(now, length));
        }
        Ok(Settled::Done(wake))
    }
}

fn not_yet(reason: &'static str, after: Duration) -> Settled {
    Settled::NotYet(NotYet::new(reason, after))
}
