//! The parts that names are made of: of hosts, of objects, and of groups of APIs.

/// Whether a text is one part: lower case letters and digits, and dashes between them. How long it may be is not the same
/// everywhere.
pub(crate) fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}
