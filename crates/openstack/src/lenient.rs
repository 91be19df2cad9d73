//! Reads `null` as an empty value, because services write both.

use serde::{Deserialize, Deserializer};

/// `null` where an empty value is meant: old rows in a service's database have it.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
