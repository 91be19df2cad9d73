//! What an answer means to a plan, and what the end of a pass means to the queue.

use std::time::Duration;

use hangar_kit::controller::Settled;
use hangar_kit::error::{Failure as _, is_lost};
use hangar_kit::execute::{Ending, Pass, Ran, Workbench};
use hangar_plan::flow::{Failure, NotYet, Outcome};

/// Something was refused: nothing we watch says when it would work, so it is tried again.
const REFUSED: Duration = Duration::from_secs(10);
/// Something failed that can work by itself.
const FAILED: Duration = Duration::from_secs(2);
/// An answer was lost, or the lease runs out: look again soon.
const SOON: Duration = Duration::from_millis(500);

/// The outcome of a call to an API server.
pub(crate) fn of_kubernetes<T>(answer: Result<T, kube::Error>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Done,
        Err(error) if is_lost(&error) => Outcome::Lost,
        Err(kube::Error::Api(status)) if (400..500).contains(&status.code) => {
            Outcome::Refused(status.message)
        }
        Err(error) => {
            Outcome::Failed(Failure { category: "ApiFailed", message: error.to_string(), is_retryable: true })
        }
    }
}

/// The outcome of a call of ours through the runtime.
pub(crate) fn of_kit<T>(answer: Result<T, hangar_kit::Error>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Done,
        Err(hangar_kit::Error::Api { source, .. }) => of_kubernetes::<()>(Err(*source)),
        Err(error) => Outcome::Failed(Failure {
            category: error.category(),
            message: error.to_string(),
            is_retryable: error.is_retryable(),
        }),
    }
}

/// What to tell the queue after a pass whose status is written.
pub(crate) fn settled<W: Workbench>(pass: &Pass<W>) -> Settled {
    let soon = |reason: &'static str| Settled::NotYet(NotYet::new(reason, SOON));
    match pass.ending {
        Ending::OutOfRounds => Settled::NotYet(NotYet::new("more steps are left", Duration::ZERO)),
        Ending::AnswerLost => soon("an answer was lost"),
        Ending::Fenced => soon("the lease ends before a call would"),
        Ending::AtRest => match pass.ran.iter().find(|ran| !ran.outcome.is_success()) {
            Some(Ran { step, outcome }) => {
                let is_passing = matches!(outcome, Outcome::Failed(failure) if failure.is_retryable);
                let after = if is_passing { FAILED } else { REFUSED };
                Settled::NotYet(NotYet::new(format!("{step}: {outcome}"), after))
            }
            None => Settled::Done(pass.plan.wake),
        },
    }
}
