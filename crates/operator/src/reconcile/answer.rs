//! Converts the answers of the management cluster, a tenant or a cloud into outcomes. No other place does.

use std::time::Duration;

use hangar_api::conditions::shortened;
use hangar_etcd::RefusalKind;
use hangar_kit::call::Stopped;
use hangar_kit::error::{Error, Failure as _};
use hangar_plan::flow::{Failure, Outcome, Refusal};
use kube::core::Status;

/// Bytes of a message that are kept: enough for any, and a tenant's server can say what it likes.
const MESSAGE_LIMIT: usize = 2 << 10;

/// The outcome of a call to an API server.
pub(crate) fn of<T>(answer: kube::Result<T>) -> Outcome {
    answer.map_or_else(kubernetes, |_| Outcome::Done)
}

/// The same for a deletion: what is gone is gone.
pub(crate) fn of_deletion<T>(answer: kube::Result<T>) -> Outcome {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Outcome::Done,
        answer => of(answer),
    }
}

/// An API server said no, or nothing.
pub(crate) fn kubernetes(error: kube::Error) -> Outcome {
    if let Some(stopped) = Stopped::of(&error).filter(|stopped| !stopped.was_sent) {
        return Outcome::failed("NotSent", stopped.to_string());
    }
    match error {
        kube::Error::Api(status) => answered(&status),
        // Sent, and either unanswered or answered with something that cannot be read.
        kube::Error::Service(_)
        | kube::Error::HyperError(_)
        | kube::Error::ReadEvents(_)
        | kube::Error::SerdeError(_) => Outcome::Lost,
        error => Outcome::failed("ApiFailed", error.to_string()),
    }
}

fn answered(status: &Status) -> Outcome {
    let message = shortened(status.message.clone(), MESSAGE_LIMIT);
    let retry_after = status.details.as_ref().map(|details| u64::from(details.retry_after_seconds));
    let retry_after = retry_after.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    match status.code {
        // It changed, is gone, or came into being: read again.
        404 | 409 | 410 => Outcome::Stale,
        // The server gave up while the storage might still commit.
        504 => Outcome::Lost,
        400..=499 => Outcome::Refused(Refusal { message, retry_after }),
        _ => Outcome::Failed(Failure { category: "ApiFailed", message, is_retryable: true, retry_after }),
    }
}

/// A call of ours through the runtime did not work.
pub(crate) fn failed(error: Error) -> Outcome {
    match error {
        Error::Stale { .. } => Outcome::Stale,
        Error::Api { source, .. } => kubernetes(*source),
        Error::Foreign { .. } | Error::Malformed { .. } => Outcome::refused(error.to_string()),
        error => Outcome::Failed(Failure {
            category: error.category(),
            message: error.to_string(),
            is_retryable: error.is_retryable(),
            retry_after: error.retry_after(),
        }),
    }
}

/// The outcome of making something in a cloud.
pub(crate) fn made<T>(answer: Result<T, hangar_openstack::Error>, id: impl FnOnce(&T) -> String) -> Outcome {
    answer.map_or_else(|error| cloud(&error), |made| Outcome::Created(id(&made)))
}

/// The outcome of a change or a deletion in a cloud.
pub(crate) fn done<T>(answer: Result<T, hangar_openstack::Error>) -> Outcome {
    answer.map_or_else(|error| cloud(&error), |_| Outcome::Done)
}

fn cloud(error: &hangar_openstack::Error) -> Outcome {
    let (message, retry_after) = (words(error), error.retry_after());
    if error.is_lost() {
        return Outcome::Lost;
    }
    if error.is_refused() {
        return Outcome::Refused(Refusal { message, retry_after });
    }
    let (category, is_retryable) = (error.category(), error.is_retryable());
    Outcome::Failed(Failure { category, message, is_retryable, retry_after })
}

/// The outcome of a change of etcd's cluster that did not work.
pub(crate) fn etcd(error: &hangar_etcd::Error) -> Outcome {
    let message = words(error);
    if error.is_lost() {
        return Outcome::Lost;
    }
    match error.refusal().map(|refusal| refusal.kind) {
        // It was done, or undone, in the meantime: the list of members tells.
        Some(
            RefusalKind::MemberNotFound
            | RefusalKind::MemberExists
            | RefusalKind::PeerUrlExists
            | RefusalKind::NotLearner
            | RefusalKind::NotLeader,
        ) => Outcome::Stale,
        Some(_) => Outcome::Refused(Refusal { message, retry_after: None }),
        None => Outcome::Failed(Failure {
            category: error.category(),
            message,
            is_retryable: error.is_retryable(),
            retry_after: None,
        }),
    }
}

/// An error with what caused it.
pub(crate) fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16) -> Status {
        Status { code, message: "words".to_owned(), ..Status::failure("words", "Reason") }
    }

    #[test]
    fn each_answer_has_one_outcome() {
        assert_eq!(answered(&status(403)), Outcome::refused("words"));
        assert_eq!(answered(&status(429)), Outcome::refused("words"));
        assert_eq!([404, 409, 410].map(|code| answered(&status(code))), [const { Outcome::Stale }; 3]);
        assert_eq!(answered(&status(504)), Outcome::Lost);
        assert_eq!(answered(&status(500)), Outcome::failed("ApiFailed", "words"));
        let endless = Status { message: "ä".repeat(1 << 20), ..status(403) };
        assert!(answered(&endless).trouble().is_some_and(|words| words.len() <= MESSAGE_LIMIT));
    }

    #[test]
    fn what_was_never_sent_is_not_lost() {
        let stopped = |was_sent| {
            let stopped = Stopped { call: "create pods".to_owned(), why: "not the leader", was_sent };
            kubernetes(kube::Error::Service(Box::new(stopped)))
        };
        assert!(matches!(stopped(false), Outcome::Failed(_)));
        assert_eq!(stopped(true), Outcome::Lost);
    }
}
