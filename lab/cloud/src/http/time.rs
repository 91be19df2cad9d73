//! Times as the services write them.

use jiff::Timestamp;

pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2026-01-02T03:04:05.000000Z`, as Keystone writes.
pub(crate) fn microseconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// `2026-01-02T03:04:05.000000`, as Nova's usage attributes are written.
pub(crate) fn microseconds_bare(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string()
}
