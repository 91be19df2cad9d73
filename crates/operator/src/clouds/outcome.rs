//! What a cloud's answer means to a plan.

use hangar_openstack::Error;
use hangar_plan::flow::{Failure, Outcome};

use super::words;

/// The outcome of making something.
pub(crate) fn created<T>(answer: Result<T, Error>, id: impl FnOnce(&T) -> String) -> Outcome {
    match answer {
        Ok(made) => Outcome::Created(id(&made)),
        Err(error) => failed(&error),
    }
}

/// The outcome of a change or a deletion.
pub(crate) fn done<T>(answer: Result<T, Error>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Done,
        Err(error) => failed(&error),
    }
}

fn failed(error: &Error) -> Outcome {
    if error.is_lost() {
        return Outcome::Lost;
    }
    if error.is_refused() {
        return Outcome::Refused(words(error));
    }
    Outcome::Failed(Failure {
        category: error.category(),
        message: words(error),
        is_retryable: error.is_retryable(),
    })
}
