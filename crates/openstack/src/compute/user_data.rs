//! User data: what a server reads at its first boot. It contains join tokens, so it is as secret as a password.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Nova takes at most this many bytes, counted in base64.
pub const MAX_USER_DATA_BYTES: usize = 65_535;

/// User data is longer than Nova takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("user data has {encoded} bytes in base64; Nova accepts at most {MAX_USER_DATA_BYTES}")]
pub struct UserDataTooLong {
    /// Its length in base64.
    pub encoded: usize,
}

/// User data, checked for length.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData {
    encoded: String,
}

impl UserData {
    /// Of these bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, UserDataTooLong> {
        let encoded = STANDARD.encode(bytes);
        if encoded.len() > MAX_USER_DATA_BYTES {
            return Err(UserDataTooLong { encoded: encoded.len() });
        }
        Ok(Self { encoded })
    }

    pub(super) fn encoded(&self) -> &str {
        &self.encoded
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UserData({} bytes in base64)", self.encoded.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_counts_base64() {
        assert!(UserData::new(&vec![0; 49_149]).is_ok());
        assert_eq!(UserData::new(&vec![0; 49_152]).unwrap_err().encoded, 65_536);
    }

    #[test]
    fn it_is_not_shown() {
        let data = UserData::new(b"token: abcdef.0123456789abcdef").unwrap();
        assert_eq!(format!("{data:?}"), "UserData(40 bytes in base64)");
    }
}
