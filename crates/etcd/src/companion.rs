//! What a snapshot alone cannot give back: authorities, service account keys, the encryption configuration.
//!
//! It is the second object of a backup (`.keys`), always encrypted: Secrets by what they hold, and in each the files by
//! their names, as JSON.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::zeroize::{Zeroize as _, Zeroizing};
use serde::{Deserialize, Serialize};

use crate::Error;

const FORMAT: u32 = 1;
const WHAT: &str = "the keys of a backup";

/// The files of one Secret, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Secrets by what they hold.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyFiles(BTreeMap<String, Files>);

impl Drop for KeyFiles {
    fn drop(&mut self) {
        self.0.values_mut().flat_map(BTreeMap::values_mut).for_each(Vec::zeroize);
    }
}

impl fmt::Debug for KeyFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u32,
    secrets: BTreeMap<String, BTreeMap<String, String>>,
}

impl KeyFiles {
    /// Adds a Secret by what it holds, such as `ca`.
    pub fn add(&mut self, name: impl Into<String>, files: Files) {
        self.0.insert(name.into(), files);
    }

    pub fn get(&self, name: &str) -> Option<&Files> {
        self.0.get(name)
    }

    /// What is there.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// As it is stored, before it is encrypted.
    pub fn to_json(&self) -> Zeroizing<Vec<u8>> {
        let encoded = |files: &Files| {
            files.iter().map(|(name, content)| (name.clone(), STANDARD.encode(content))).collect()
        };
        let secrets = self.0.iter().map(|(name, files)| (name.clone(), encoded(files))).collect();
        // Strings alone: this cannot fail.
        Zeroizing::new(serde_json::to_vec(&Written { format: FORMAT, secrets }).unwrap_or_default())
    }

    /// What was stored. It was encrypted with the key of the control plane, and is still only believed if it has the form.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        // The error of the parser would repeat content.
        let written: Written =
            serde_json::from_slice(bytes).map_err(|_| Error::unusable(WHAT, "they cannot be read"))?;
        if written.format != FORMAT {
            let why = format!("their format is {}, and this version knows {FORMAT}", written.format);
            return Err(Error::unusable(WHAT, why));
        }
        let mut read = Self::default();
        for (name, files) in written.secrets {
            let decoded: Result<Files, _> = files
                .into_iter()
                .map(|(file, text)| STANDARD.decode(text).map(|content| (file, content)))
                .collect();
            read.add(name, decoded.map_err(|_| Error::unusable(WHAT, "a file is no base64"))?);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> KeyFiles {
        let mut files = KeyFiles::default();
        files.add("ca", BTreeMap::from([("tls.key".to_owned(), b"hidden\xff".to_vec())]));
        files.add("encryption", Files::new());
        files
    }

    #[test]
    fn key_files_come_back_as_they_were() {
        let read = KeyFiles::from_json(&files().to_json()).unwrap();
        assert_eq!(read, files());
        assert_eq!(read.names().collect::<Vec<_>>(), ["ca", "encryption"]);
        assert_eq!(format!("{read:?}"), r#"{"ca", "encryption"}"#);
    }

    #[test]
    fn key_files_of_another_form_are_refused_without_their_content() {
        for wrong in
            ["", "{}", r#"{"format":2,"secrets":{}}"#, r#"{"format":1,"secrets":{"ca":{"k":"hidden?"}}}"#]
        {
            let error = KeyFiles::from_json(wrong.as_bytes()).unwrap_err().to_string();
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}
