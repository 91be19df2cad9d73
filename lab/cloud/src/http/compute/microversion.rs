//! Microversions: which format a client asks for.

use std::fmt;

use super::super::request::Request;
use crate::model::Refusal;

/// A microversion of Nova.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u16, pub(crate) u16);

/// What a client gets that asks for nothing.
pub(crate) const SMALLEST: Version = Version(2, 1);
/// Changes of answers up to here are honoured.
pub(crate) const LARGEST: Version = Version(2, 90);

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.0, self.1)
    }
}

/// The version that a call is in. The newer header wins.
pub(crate) fn of(request: &Request) -> Result<Version, Refusal> {
    let modern = request.header("openstack-api-version").and_then(|value| value.strip_prefix("compute "));
    let Some(text) = modern.or_else(|| request.header("x-openstack-nova-api-version")) else {
        return Ok(SMALLEST);
    };
    if text == "latest" {
        return Ok(LARGEST);
    }
    let parsed = text
        .trim()
        .split_once('.')
        .and_then(|(major, minor)| Some(Version(major.parse().ok()?, minor.parse().ok()?)));
    let Some(version) = parsed else {
        let words =
            format!("API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum.");
        return Err(Refusal::bad(words));
    };
    if version < SMALLEST || version > LARGEST {
        let words = format!(
            "Version {version} is not supported by the API. Minimum is {SMALLEST} and maximum is {LARGEST}."
        );
        return Err(Refusal::new(406, "InvalidGlobalAPIVersion", words));
    }
    Ok(version)
}
