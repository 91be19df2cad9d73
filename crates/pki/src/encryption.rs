//! Encryption keys, and fingerprints of keys that have no certificate.

use base64::Engine;
use sha2::{Digest, Sha256};

use crate::SecretText;
use crate::certificate::hexadecimal;

/// Length of a key for `secretbox`, in bytes.
const KEY_LENGTH: usize = 32;

/// A random key for encryption at rest, in base64 as the API server's configuration has it.
pub fn encryption_key() -> SecretText {
    let bytes: [u8; KEY_LENGTH] = rand::random();
    SecretText::new(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// SHA-256 of a text, in hexadecimal. Safe to show for public keys, and for whatever holds a random key of full length:
/// those cannot be guessed.
pub fn fingerprint(content: impl AsRef<[u8]>) -> String {
    hexadecimal(&Sha256::digest(content.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_length_that_secretbox_needs_and_differ() {
        let (one, two) = (encryption_key(), encryption_key());
        let bytes = base64::engine::general_purpose::STANDARD.decode(one.expose()).unwrap();
        assert_eq!(bytes.len(), 32);
        assert_ne!(one, two);
        assert_eq!(format!("{one:?}"), "SecretText(hidden)");
    }

    #[test]
    fn fingerprints_are_sha256() {
        assert_eq!(fingerprint(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
