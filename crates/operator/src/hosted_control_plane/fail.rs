//! What went wrong, as outcomes of steps and as failures of a reconcile.

use std::time::Duration;

use hangar_kit::error::{self, Error, Failure as _, status_code};
use hangar_plan::flow::{self, Outcome};

/// Why a step had no effect, or may have had.
#[derive(Debug)]
pub(super) enum Problem {
    /// What was seen is no longer so, or no answer came: read again.
    Lost,
    /// Understood, and declined.
    Refused(String),
    /// It did not happen.
    Failed(flow::Failure),
}

impl Problem {
    pub(super) fn failed(category: &'static str, message: String, is_retryable: bool) -> Self {
        Self::Failed(flow::Failure { category, message, is_retryable })
    }

    /// A failed call of an API server. A conflict, or an object that is gone, means that we planned from the past.
    pub(super) fn api(what: impl Into<String>, source: kube::Error) -> Self {
        if error::is_lost(&source) || matches!(status_code(&source), Some(404 | 409)) {
            tracing::debug!(error = %source, "the world is not as it was seen");
            return Self::Lost;
        }
        let words = source.to_string();
        let error = Error::api(what, source);
        Self::failed(error.category(), format!("{error}: {words}"), error.is_retryable())
    }

    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Lost => Outcome::Lost,
            Self::Refused(words) => Outcome::Refused(words),
            Self::Failed(failure) => Outcome::Failed(failure),
        }
    }
}

impl From<hangar_pki::Error> for Problem {
    fn from(error: hangar_pki::Error) -> Self {
        Self::failed("MintingFailed", error.to_string(), true)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::failed(error.category(), error.to_string(), error.is_retryable())
    }
}

/// What a person has to do something about, in words; nothing for what passes by itself.
pub(super) fn refusal(error: &Error) -> Option<String> {
    match error {
        Error::Foreign { .. } | Error::FieldConflict { .. } | Error::Malformed { .. } => {
            Some(error.to_string())
        }
        Error::Api { source, .. } => match source.as_ref() {
            kube::Error::Api(status) if matches!(status.code, 400 | 401 | 403 | 405 | 413 | 422) => {
                Some(status.message.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Something of that name exists, or it changed.
pub(super) fn is_conflict(error: &kube::Error) -> bool {
    status_code(error) == Some(409)
}

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    /// A read, an apply, a status.
    #[error(transparent)]
    Kit(#[from] Error),
    /// A step; everything else was done.
    #[error("{step}: {failure}")]
    Step {
        /// Which.
        step: String,
        /// Why.
        failure: flow::Failure,
    },
}

impl error::Failure for ReconcileError {
    fn category(&self) -> &'static str {
        match self {
            Self::Kit(error) => error.category(),
            Self::Step { failure, .. } => failure.category,
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Kit(error) => error.is_retryable(),
            Self::Step { failure, .. } => failure.is_retryable,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Kit(error) => error.retry_after(),
            Self::Step { .. } => None,
        }
    }
}
