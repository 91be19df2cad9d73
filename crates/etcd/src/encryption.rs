//! Encryption of a stream, with a key that is not in the bucket.
//!
//! ```text
//! header:  "HGRBKUP1" | chunk size as a power of two, 1 byte | 7 zeros | salt, 32 bytes | mark of the key, 32 bytes
//! chunks:  up to 64 KiB of ciphertext | tag, 16 bytes         (as often as needed; the last one may be shorter)
//! ```
//!
//! This is the STREAM construction with AES-256-GCM. Each object has a key of its own, which HKDF-SHA-256 makes of the
//! given key, the salt, the first 48 bytes of the header and the **context**: the name of the backup. So nonces are just
//! counters: eleven bytes of number, and one that is 1 in the last chunk only.
//!
//! - A chunk that is changed, missing, repeated or in another place does not open: its number is in the nonce.
//! - An object that ends early does not open: its last chunk was not encrypted as the last. Cut off between two chunks that
//!   is known for certain ([`EncryptionFault::CutOff`]).
//! - An object that was moved to the name of another backup does not open: the context is another one. Who can write to
//!   the bucket cannot pass an old state off as a new one.
//! - The mark of the key tells a wrong key from damage, and ties the object to one key, which GCM alone does not.
//!
//! Why not a file format that exists, such as age: it would bring its own cryptography into the tree, for recipients and
//! passphrases that nobody needs here.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::{constant_time, hmac, rand};
use base64::Engine;
use secrecy::zeroize::Zeroize;

use crate::id::hex;
use crate::{EncryptionFault, Error};

const MAGIC: &[u8; 8] = b"HGRBKUP1";
const CHUNK_POWER: u8 = 16;
const CHUNK: usize = 1 << CHUNK_POWER;
const TAG: usize = 16;
const KEY: usize = 32;
/// What keys are derived with, and what comes before the mark of the key.
const PREFIX: usize = 48;
pub(crate) const HEADER: usize = PREFIX + KEY;

const CONTENT: &[u8] = b"hangar/backup/content/1";
const MARK: &[u8] = b"hangar/backup/mark/1";
const NAME: &[u8] = b"hangar/backup/name/1";

/// A key that encrypts backups: 32 random bytes.
#[derive(Clone)]
pub struct BackupKey([u8; KEY]);

impl Drop for BackupKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for BackupKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BackupKey({})", self.name())
    }
}

impl BackupKey {
    /// 32 bytes, or 32 bytes written as base64, as they are in a Secret.
    pub fn new(bytes: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "the key for backups";
        if let Ok(key) = <[u8; KEY]>::try_from(bytes) {
            return Ok(Self(key));
        }
        let text = std::str::from_utf8(bytes).map(str::trim).unwrap_or_default();
        let mut decoded = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
        let key = <[u8; KEY]>::try_from(decoded.as_slice());
        decoded.zeroize();
        key.map(Self).map_err(|_| Error::unusable(WHAT, "it needs 32 bytes, as they are or as base64"))
    }

    /// A new random one.
    pub fn generate() -> Result<Self, Error> {
        let mut key = [0; KEY];
        rand::fill(&mut key).map_err(|_| Error::unusable("randomness", "the system gave none"))?;
        Ok(Self(key))
    }

    /// As it is stored in a Secret.
    pub fn to_base64(&self) -> secrecy::SecretString {
        base64::engine::general_purpose::STANDARD.encode(self.0).into()
    }

    /// Tells keys apart and nothing about them: 16 hexadecimal digits, which manifests carry.
    pub fn name(&self) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), NAME);
        hex(tag.as_ref().get(..8).unwrap_or_default())
    }

    fn derive(&self, prefix: &[u8], what: &[u8], context: &[u8]) -> Option<[u8; KEY]> {
        struct Length;
        impl KeyType for Length {
            fn len(&self) -> usize {
                KEY
            }
        }
        let salt = prefix.get(16..PREFIX)?;
        let derived: Prk = Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let mut key = [0; KEY];
        // Each part has a fixed length but the last, so that no two lists of parts are the same bytes.
        derived.expand(&[what, prefix, context], Length).ok()?.fill(&mut key).ok()?;
        Some(key)
    }

    fn cipher(&self, prefix: &[u8], context: &str) -> Option<LessSafeKey> {
        let mut key = self.derive(prefix, CONTENT, context.as_bytes())?;
        let unbound = UnboundKey::new(&AES_256_GCM, &key).ok();
        key.zeroize();
        unbound.map(LessSafeKey::new)
    }
}

fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    for (byte, digit) in bytes.iter_mut().skip(3).zip(number.to_be_bytes()) {
        *byte = digit;
    }
    bytes[NONCE_LEN - 1] = u8::from(is_last);
    Nonce::assume_unique_for_key(bytes)
}

/// Encrypts a stream.
pub(crate) struct Encryptor {
    cipher: LessSafeKey,
    number: u64,
    plain: Vec<u8>,
}

impl Encryptor {
    /// Writes the header to `out`.
    pub(crate) fn begin(key: &BackupKey, context: &str, out: &mut Vec<u8>) -> Result<Self, Error> {
        let failed = || Error::unusable("encryption", "the cryptographic library refused");
        let mut prefix = [0; PREFIX];
        prefix[..8].copy_from_slice(MAGIC);
        prefix[8] = CHUNK_POWER;
        rand::fill(&mut prefix[16..]).map_err(|_| failed())?;
        let mark = key.derive(&prefix, MARK, &[]).ok_or_else(failed)?;
        let cipher = key.cipher(&prefix, context).ok_or_else(failed)?;
        out.extend_from_slice(&prefix);
        out.extend_from_slice(&mark);
        Ok(Self { cipher, number: 0, plain: Vec::with_capacity(CHUNK) })
    }

    /// A full chunk is encrypted only when more comes: until then it may be the last.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        while !bytes.is_empty() {
            if self.plain.len() == CHUNK {
                self.encrypt(false, out)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.plain.len()));
            self.plain.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.encrypt(true, out)
    }

    fn encrypt(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        self.cipher
            .seal_in_place_append_tag(nonce(self.number, is_last), Aad::empty(), &mut self.plain)
            .map_err(|_| Error::unusable("encryption", "the cryptographic library refused"))?;
        out.extend_from_slice(&self.plain);
        self.plain.clear();
        self.number += 1;
        Ok(())
    }
}

/// Opens what was encrypted.
pub(crate) struct Decryptor {
    key: BackupKey,
    context: String,
    header: Vec<u8>,
    cipher: Option<LessSafeKey>,
    number: u64,
    encrypted: Vec<u8>,
}

impl Decryptor {
    pub(crate) fn new(key: &BackupKey, context: &str) -> Self {
        Self {
            key: key.clone(),
            context: context.to_owned(),
            header: Vec::with_capacity(HEADER),
            cipher: None,
            number: 0,
            encrypted: Vec::with_capacity(CHUNK + TAG),
        }
    }

    /// Takes the next bytes, however they are cut, and gives what they opened to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EncryptionFault> {
        if self.cipher.is_none() {
            let (header, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
            self.header.extend_from_slice(header);
            bytes = rest;
            if self.header.len() < HEADER {
                return Ok(());
            }
            self.cipher = Some(self.read_header()?);
        }
        while !bytes.is_empty() {
            if self.encrypted.len() == CHUNK + TAG {
                self.open(false, out)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK + TAG - self.encrypted.len()));
            self.encrypted.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, out: &mut Vec<u8>) -> Result<(), EncryptionFault> {
        if self.cipher.is_none() {
            let is_ours =
                !self.header.is_empty() && MAGIC.starts_with(self.header.get(..8).unwrap_or(&self.header));
            return Err(if is_ours { EncryptionFault::CutOff } else { EncryptionFault::NotEncrypted });
        }
        // Every stream has a last chunk, which has at least its tag.
        if self.encrypted.len() < TAG {
            return Err(EncryptionFault::CutOff);
        }
        let copy = self.encrypted.clone();
        if self.open(true, out).is_ok() {
            return Ok(());
        }
        // Genuine, and encrypted as one that others follow.
        self.encrypted = copy;
        let is_middle = self.open(false, &mut Vec::new()).is_ok();
        Err(if is_middle { EncryptionFault::CutOff } else { EncryptionFault::Altered })
    }

    fn read_header(&self) -> Result<LessSafeKey, EncryptionFault> {
        let (prefix, mark) = self.header.split_at(PREFIX);
        if !prefix.starts_with(MAGIC) {
            return Err(EncryptionFault::NotEncrypted);
        }
        if prefix[8] != CHUNK_POWER || prefix[9..16] != [0; 7] {
            return Err(EncryptionFault::UnknownFormat);
        }
        let expected = self.key.derive(prefix, MARK, &[]).ok_or(EncryptionFault::Altered)?;
        constant_time::verify_slices_are_equal(&expected, mark).map_err(|_| EncryptionFault::WrongKey)?;
        self.key.cipher(prefix, &self.context).ok_or(EncryptionFault::Altered)
    }

    fn open(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<(), EncryptionFault> {
        let cipher = self.cipher.as_ref().ok_or(EncryptionFault::NotEncrypted)?;
        let opened = cipher.open_in_place(nonce(self.number, is_last), Aad::empty(), &mut self.encrypted);
        let opened = opened.map_err(|_| EncryptionFault::Altered)?;
        // An empty last chunk exists only where there is nothing else: else the one before would have been the last.
        if opened.is_empty() && self.number > 0 {
            return Err(EncryptionFault::Altered);
        }
        out.extend_from_slice(opened);
        self.encrypted.clear();
        self.number += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
