//! Short hashes of what is desired. Equal values have equal hashes, because `serde_json` sorts the keys of maps.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// 128 bits of SHA-256, in hexadecimal: nobody attacks these, they only tell versions apart.
pub(crate) fn text(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(16).fold(String::new(), |mut hash, byte| {
        // Writing into a String cannot fail.
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

/// The hash of a document.
pub(crate) fn value(value: &Value) -> String {
    text(&value.to_string())
}
