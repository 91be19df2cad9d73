//! Names of backups, and of those they belong to.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

const FORMAT: &str = "%Y%m%dT%H%M%SZ";

/// The name of a backup: its time, to the second, in UTC. Ids sort by age, as texts too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BackupId(Timestamp);

/// A text that is no id of a backup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of a backup, such as 20261118T194500Z")]
pub struct InvalidBackupId(String);

impl BackupId {
    /// Fractions of a second are dropped.
    pub fn at(time: Timestamp) -> Self {
        Self(Timestamp::from_second(time.as_second()).unwrap_or(time))
    }

    pub fn time(&self) -> Timestamp {
        self.0
    }
}

impl fmt::Display for BackupId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.to_zoned(TimeZone::UTC).strftime(FORMAT))
    }
}

impl FromStr for BackupId {
    type Err = InvalidBackupId;

    /// Only what it is written as: one backup has one name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidBackupId(crate::text::clean(text));
        let parsed = DateTime::strptime(FORMAT, text).map_err(|_| invalid())?;
        let time = parsed.to_zoned(TimeZone::UTC).map_err(|_| invalid())?;
        Some(Self(time.timestamp())).filter(|id| id.to_string() == text).ok_or_else(invalid)
    }
}

impl TryFrom<String> for BackupId {
    type Error = InvalidBackupId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<BackupId> for String {
    fn from(id: BackupId) -> Self {
        id.to_string()
    }
}

/// The control plane that backups are of: namespace and name, which Kubernetes keeps free of slashes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    namespace: String,
    name: String,
}

impl Owner {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Result<Self, crate::Error> {
        let owner = Self { namespace: namespace.into(), name: name.into() };
        let is_fine =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        for part in [&owner.namespace, &owner.name] {
            let is_dots = part.bytes().all(|byte| byte == b'.');
            if is_dots || part.len() > 253 || !part.bytes().all(is_fine) {
                return Err(crate::Error::unusable(
                    "the owner of backups",
                    format!("{part:?} is no name of an object"),
                ));
            }
        }
        Ok(owner)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_its_time_and_has_one_spelling() {
        let id = BackupId::at("2026-11-18T19:45:00.9Z".parse().unwrap());
        assert_eq!(id.to_string(), "20261118T194500Z");
        assert_eq!("20261118T194500Z".parse(), Ok(id));
        for wrong in
            ["", "2026-11-18T19:45:00Z", "20261118T194500", "20261318T194500Z", "20261118T194500Zx", "../x"]
        {
            assert!(wrong.parse::<BackupId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_owner_is_two_names_and_no_path() {
        assert_eq!(Owner::new("tenants", "demo.1").unwrap().to_string(), "tenants/demo.1");
        for (namespace, name) in [("", "demo"), ("a/b", "demo"), ("..", "demo"), ("a", "De mo")] {
            assert!(Owner::new(namespace, name).is_err(), "{namespace}/{name}");
        }
    }

    proptest! {
        #[test]
        fn texts_sort_as_times_do(one in 0_i64..250_000_000_000, other in 0_i64..250_000_000_000) {
            let id = |second| BackupId::at(Timestamp::from_second(second).unwrap());
            let (one, other) = (id(one), id(other));
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
            prop_assert_eq!(one.to_string().parse(), Ok(one));
        }
    }
}
