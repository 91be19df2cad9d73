//! Checks addresses and networks for several kinds.

use std::net::IpAddr;

use serde_json::Value;

use super::FieldError;

const NETWORK: &str = "it must be a network such as 192.168.0.0/16 or fd00::/48";
const ADDRESS: &str = "it must be an address such as 192.168.0.1 or fd00::1";

/// A complaint if the value is a string and no network. Anything but a string is the schema's to refuse.
pub(super) fn check_network(path: impl Into<String>, value: Option<&Value>) -> Option<FieldError> {
    let text = value?.as_str()?;
    (!is_network(text)).then(|| FieldError::invalid(path, text, NETWORK))
}

/// A complaint if the value is a string and no address. An empty one counts as not given.
pub(super) fn check_address(path: impl Into<String>, value: Option<&Value>) -> Option<FieldError> {
    let text = value?.as_str()?;
    (!text.is_empty() && text.parse::<IpAddr>().is_err()).then(|| FieldError::invalid(path, text, ADDRESS))
}

/// The items of a list; none where there is no list.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

fn is_network(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u8>()) else { return false };
    length <= if address.is_ipv4() { 32 } else { 128 }
}
