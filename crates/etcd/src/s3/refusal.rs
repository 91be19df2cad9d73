//! What a store means when it says no: a code in XML, or only a status.

use http::StatusCode;

use super::answer::ErrorAnswer;
use crate::Call;
use crate::text::clean;

/// A store's no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {text}")]
pub struct StoreRefusal {
    pub call: Call,
    pub kind: StoreRefusalKind,
    /// Of HTTP.
    pub status: u16,
    /// The store's own code and words.
    pub text: String,
}

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreRefusalKind {
    NoSuchBucket,
    NoSuchKey,
    NoSuchUpload,
    /// The credentials are known, and may not do this.
    Denied,
    /// The credentials are not known, or the secret is another one.
    WrongCredentials,
    /// Our clock and theirs differ by more than some minutes.
    ClockSkew,
    /// The bucket is in another region, or at another address.
    WrongPlace,
    /// A quota, or a disk.
    NoSpace,
    /// Ask later.
    Overloaded,
    /// An error of its own; a write may be done.
    Internal,
    /// The request itself: a bug, or a store that lacks something.
    Other,
}

impl StoreRefusalKind {
    fn of(status: StatusCode, code: &str) -> Self {
        match code {
            "NoSuchBucket" => Self::NoSuchBucket,
            "NoSuchKey" => Self::NoSuchKey,
            "NoSuchUpload" => Self::NoSuchUpload,
            "AccessDenied" | "AllAccessDisabled" | "AccountProblem" | "InvalidObjectState" => Self::Denied,
            // The last one is versitygw's word for an unknown access key.
            "InvalidAccessKeyId"
            | "XAdminUserNotFound"
            | "SignatureDoesNotMatch"
            | "ExpiredToken"
            | "InvalidToken" => Self::WrongCredentials,
            "RequestTimeTooSkewed" => Self::ClockSkew,
            "AuthorizationHeaderMalformed" | "PermanentRedirect" | "TemporaryRedirect" => Self::WrongPlace,
            "QuotaExceeded" | "XMinioStorageFull" | "InsufficientStorage" | "TooManyBuckets" => Self::NoSpace,
            "SlowDown" | "ServiceUnavailable" | "Busy" | "RequestTimeout" | "RequestLimitExceeded" => {
                Self::Overloaded
            }
            "InternalError" => Self::Internal,
            _ => match status.as_u16() {
                300..=399 => Self::WrongPlace,
                401 => Self::WrongCredentials,
                403 => Self::Denied,
                429 | 503 => Self::Overloaded,
                507 => Self::NoSpace,
                500..=599 => Self::Internal,
                _ => Self::Other,
            },
        }
    }

    /// True when a write may be done all the same: servers in between answer for the store.
    pub fn is_unknown(self) -> bool {
        matches!(self, Self::Internal)
    }

    /// True when the same call may succeed later without an action of a person.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Overloaded | Self::Internal | Self::NoSuchUpload)
    }

    /// Stable, one word in `PascalCase`: the event reason and the metric label.
    pub fn category(self) -> &'static str {
        match self {
            Self::NoSuchBucket => "BucketMissing",
            Self::NoSuchKey => "ObjectMissing",
            Self::NoSuchUpload => "UploadMissing",
            Self::Denied => "StoreDenied",
            Self::WrongCredentials => "StoreCredentials",
            Self::ClockSkew => "StoreClock",
            Self::WrongPlace => "StoreAddress",
            Self::NoSpace => "StoreFull",
            Self::Overloaded => "StoreBusy",
            Self::Internal => "StoreFailed",
            Self::Other => "StoreRefused",
        }
    }
}

impl StoreRefusal {
    pub(super) fn read(call: &Call, status: StatusCode, body: &[u8]) -> Self {
        let answer = ErrorAnswer::read(body).unwrap_or_default();
        let kind = StoreRefusalKind::of(status, &answer.code);
        let text = match (answer.code.as_str(), answer.message.as_str()) {
            ("", "") => status.to_string(),
            (code, "") => clean(code),
            (code, message) => clean(&format!("{code}: {message}")),
        };
        Self { call: call.clone(), kind, status: status.as_u16(), text }
    }
}
