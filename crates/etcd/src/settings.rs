//! The store of backups as a Secret describes it, and the key that encrypts them.
//!
//! People write both. Nothing here is believed: values are bounded, parsed and refused with the name of their key, and
//! no message repeats a value.

use secrecy::SecretString;

use crate::{Addressing, BackupKey, Error, StoreConfig, StoreLimits};

const SECRET: &str = "the Secret of the store";
const KEY_SECRET: &str = "the Secret with the key of backups";

/// Longer than any of the texts has to be.
const LONGEST: usize = 4 << 10;
/// Of authorities: some fifty certificates.
const LONGEST_AUTHORITIES: usize = 128 << 10;

/// What most stores besides AWS take, whatever they are called.
const DEFAULT_REGION: &str = "us-east-1";

/// Under which names a Secret has what a store needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreKeys {
    pub access_key_id: String,
    pub secret_access_key: String,
    /// `HOST[:PORT]`, or `https://HOST[:PORT]`, or `http://` where it is said. The Secret need not have it: then it is
    /// AWS, in the region.
    pub host: String,
    /// The Secret need not have it.
    pub region: String,
    /// The bucket; the text after the first slash is a prefix.
    pub bucket: String,
    /// Of temporary credentials. The Secret need not have it.
    pub session_token: String,
    /// PEM of authorities that are trusted besides those of the system. The Secret need not have it.
    pub certificate_authority: String,
    /// `path` or `virtualHost`. The Secret need not have it.
    pub addressing: String,
}

impl Default for StoreKeys {
    fn default() -> Self {
        let own = str::to_owned;
        Self {
            access_key_id: own("accessKeyID"),
            secret_access_key: own("secretAccessKey"),
            host: own("host"),
            region: own("region"),
            bucket: own("bucket"),
            session_token: own("sessionToken"),
            certificate_authority: own("certificateAuthority"),
            addressing: own("addressing"),
        }
    }
}

impl StoreKeys {
    /// The same with other names: what there is for each, where there is something.
    #[must_use]
    pub fn renamed<'a>(self, mut name: impl FnMut(&str) -> Option<&'a str>) -> Self {
        let mut other = |usual: String| name(&usual).map(str::to_owned).unwrap_or(usual);
        Self {
            access_key_id: other(self.access_key_id),
            secret_access_key: other(self.secret_access_key),
            host: other(self.host),
            region: other(self.region),
            bucket: other(self.bucket),
            session_token: other(self.session_token),
            certificate_authority: other(self.certificate_authority),
            addressing: other(self.addressing),
        }
    }

    /// Reads the store out of a Secret's data.
    pub fn read<'a>(&self, data: impl Fn(&str) -> Option<&'a [u8]>) -> Result<StoreConfig, Error> {
        let text = |key: &str, longest| text(SECRET, key, data(key), longest);
        let given = |key: &str| text(key, LONGEST);
        let needed = |key: &str| given(key)?.ok_or_else(|| lacks(SECRET, key));
        let region = given(&self.region)?.unwrap_or(DEFAULT_REGION).to_owned();
        let endpoint = match given(&self.host)? {
            Some(host) if host.contains("://") => host.to_owned(),
            Some(host) => format!("https://{host}"),
            None => format!("https://s3.{region}.amazonaws.com"),
        };
        let bucket = needed(&self.bucket)?;
        let (bucket, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
        let addressing = match given(&self.addressing)? {
            None | Some("path") => Addressing::Path,
            Some("virtualHost") => Addressing::VirtualHost,
            Some(_) => {
                let why = format!("the value of {:?} must be path or virtualHost", self.addressing);
                return Err(Error::unusable(SECRET, why));
            }
        };
        let secret = |text: &str| SecretString::from(text.to_owned());
        Ok(StoreConfig {
            endpoint,
            region,
            bucket: bucket.to_owned(),
            prefix: prefix.trim_matches('/').to_owned(),
            access_key: needed(&self.access_key_id)?.to_owned(),
            secret_key: secret(needed(&self.secret_access_key)?),
            session_token: given(&self.session_token)?.map(secret),
            authorities: text(&self.certificate_authority, LONGEST_AUTHORITIES)?.map(str::to_owned),
            addressing,
            limits: StoreLimits::default(),
            addresses: None,
            gates: Vec::new(),
        })
    }
}

impl BackupKey {
    /// What a Secret has under that name.
    pub fn read<'a>(name: &str, data: impl Fn(&str) -> Option<&'a [u8]>) -> Result<Self, Error> {
        Self::new(data(name).ok_or_else(|| lacks(KEY_SECRET, name))?)
    }
}

fn lacks(what: &'static str, key: &str) -> Error {
    Error::unusable(what, format!("it has no key {key:?}"))
}

/// A text without the line end that files have; nothing where it is missing or empty.
fn text<'a>(
    what: &'static str,
    key: &str,
    bytes: Option<&'a [u8]>,
    longest: usize,
) -> Result<Option<&'a str>, Error> {
    let Some(bytes) = bytes else { return Ok(None) };
    let found = std::str::from_utf8(bytes).ok().filter(|found| found.len() <= longest).map(str::trim);
    let is_fine = |found: &&str| !found.chars().any(|one| one.is_control() && one != '\n' && one != '\r');
    match found.filter(is_fine) {
        Some("") => Ok(None),
        Some(found) => Ok(Some(found)),
        None => Err(Error::unusable(what, format!("the value of {key:?} is no text, or too long"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use secrecy::ExposeSecret as _;

    use super::*;

    fn read(keys: &StoreKeys, data: &[(&str, &str)]) -> Result<StoreConfig, String> {
        let data: BTreeMap<String, Vec<u8>> =
            data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
        keys.read(|key| data.get(key).map(Vec::as_slice)).map_err(|error| error.to_string())
    }

    const LEAST: [(&str, &str); 3] =
        [("accessKeyID", "me"), ("secretAccessKey", "hidden\n"), ("bucket", "backups/etcd/prod")];

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        LEAST.iter().chain(more).copied().collect()
    }

    #[test]
    fn a_store_is_what_its_secret_says() {
        let keys = StoreKeys::default();
        let store = read(&keys, &LEAST).unwrap();
        assert_eq!(store.endpoint, "https://s3.us-east-1.amazonaws.com");
        assert_eq!((store.bucket.as_str(), store.prefix.as_str()), ("backups", "etcd/prod"));
        assert_eq!(store.secret_key.expose_secret(), "hidden");
        assert_eq!(store.addressing, Addressing::Path);
        let given = [
            ("host", "s3.example.org:9000"),
            ("region", "lab"),
            ("addressing", "virtualHost"),
            ("sessionToken", "t"),
            ("certificateAuthority", "-----BEGIN CERTIFICATE-----\nx\n"),
        ];
        let store = read(&keys, &with(&given)).unwrap();
        assert_eq!((store.endpoint.as_str(), store.region.as_str()), ("https://s3.example.org:9000", "lab"));
        assert_eq!(store.addressing, Addressing::VirtualHost);
        assert!(store.session_token.is_some() && store.authorities.is_some());
        let plain = read(&keys, &with(&[("host", "http://minio.team:9000")])).unwrap();
        assert_eq!(plain.endpoint, "http://minio.team:9000");
    }

    #[test]
    fn keys_may_have_other_names() {
        let keys = StoreKeys { bucket: "BUCKET".to_owned(), ..StoreKeys::default() };
        assert_eq!(read(&keys, &with(&[("BUCKET", "other")])).unwrap().bucket, "other");
    }

    #[test]
    fn what_is_wrong_is_said_by_its_key_and_without_its_value() {
        let keys = StoreKeys::default();
        for missing in 0..LEAST.len() {
            let mut data = LEAST.to_vec();
            let (key, _) = data.remove(missing);
            assert_eq!(
                read(&keys, &data).unwrap_err(),
                format!("the Secret of the store: it has no key {key:?}")
            );
        }
        for (key, value) in
            [("addressing", "hidden-value"), ("host", "hidden-value\0"), ("region", "hidden-value\u{7}")]
        {
            let error = read(&keys, &with(&[(key, value)])).unwrap_err();
            assert!(error.contains(key) && !error.contains("hidden"), "{error}");
        }
    }

    #[test]
    fn a_backup_key_is_read_by_its_name() {
        let key = BackupKey::generate().unwrap();
        let text = key.to_base64().expose_secret().to_owned();
        let read = |name: &str| BackupKey::read(name, |asked| (asked == "key").then_some(text.as_bytes()));
        assert_eq!(read("key").unwrap().name(), key.name());
        assert!(read("other").unwrap_err().to_string().contains("has no key \"other\""));
    }
}
