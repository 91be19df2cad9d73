//! The ten calls of S3 that backups need, for any server that speaks it.
//!
//! Addresses are in path style unless asked otherwise, because most servers outside of AWS have no names for buckets.
//! Every request is signed with its body's digest (Signature Version 4), so that the server checks what arrives, and
//! nothing is used that only some servers have: no checksums in trailers, no conditional writes.
//!
//! A write is sent once. What a lost answer means is decided by what the write is: putting an object or a part twice is
//! the same as once, and an upload that was not completed is found and ended later.

mod answer;
mod calls;
mod refusal;
mod resolve;
mod sign;
mod transport;
mod upload;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use secrecy::SecretString;

pub(crate) use answer::Object;
pub use refusal::{StoreRefusal, StoreRefusalKind};
pub(crate) use transport::Body;
pub(crate) use upload::Upload;

use crate::call::Gates;
use crate::{CallGate, Error};

/// How a bucket is named in an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressing {
    /// `https://host/bucket/key`
    #[default]
    Path,
    /// `https://bucket.host/key`
    VirtualHost,
}

/// How long calls may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Of making a connection.
    pub connect: Duration,
    /// Of a short call.
    pub call: Duration,
    /// Of one part of an upload, of 8 MiB.
    pub part: Duration,
    /// Between two pieces of an object that is read.
    pub idle: Duration,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(30),
            part: Duration::from_mins(5),
            idle: Duration::from_secs(60),
        }
    }
}

/// Whether an address may be connected to, or why not: a name leads wherever its owner wants. Asked after it was
/// resolved, for every connection.
pub type AddressRule = Arc<dyn Fn(IpAddr) -> Result<(), String> + Send + Sync>;

/// Where a store is, and who we are there.
#[derive(Clone)]
pub struct StoreConfig {
    /// `https://HOST[:PORT]`, without the bucket. `http` is accepted: some stores are on the same host.
    pub endpoint: String,
    pub region: String,
    pub bucket: String,
    /// Before all keys; may be empty.
    pub prefix: String,
    pub access_key: String,
    pub secret_key: SecretString,
    /// Of temporary credentials.
    pub session_token: Option<SecretString>,
    /// PEM of authorities that are trusted besides those of the system.
    pub authorities: Option<String>,
    pub addressing: Addressing,
    pub limits: StoreLimits,
    /// Without one, every address.
    pub addresses: Option<AddressRule>,
    pub gates: Vec<Arc<dyn CallGate>>,
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StoreConfig")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("addressing", &self.addressing)
            .finish_non_exhaustive()
    }
}

/// A bucket that can be called.
#[derive(Clone)]
pub(crate) struct Bucket {
    transport: transport::Transport,
    signer: sign::Signer,
    /// Scheme and authority.
    origin: String,
    /// What is signed as the host: the authority without a port that is the scheme's own.
    host: String,
    /// Before the key, with a slash at its end.
    root: String,
    limits: StoreLimits,
    gates: Gates,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Bucket({}{})", self.origin, self.root)
    }
}

impl Bucket {
    pub(crate) fn new(config: &StoreConfig) -> Result<Self, Error> {
        const ADDRESS: &str = "the address of the store";
        let uri: Uri =
            config.endpoint.trim_end_matches('/').parse().map_err(|error| Error::unusable(ADDRESS, error))?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "https" | "http"));
        let (Some(scheme), Some(authority)) = (scheme, uri.authority()) else {
            return Err(Error::unusable(ADDRESS, "it needs the form https://HOST[:PORT]"));
        };
        if authority.as_str().contains('@') || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(Error::unusable(ADDRESS, "it has more than https://HOST[:PORT]"));
        }
        if !is_bucket_name(&config.bucket) {
            return Err(Error::unusable("the bucket", format!("{:?} is no name of a bucket", config.bucket)));
        }
        for (what, text) in
            [("the region of the store", &config.region), ("the access key", &config.access_key)]
        {
            let is_word = |character: char| character.is_ascii_graphic() && !matches!(character, '/' | ',');
            if text.is_empty() || !text.chars().all(is_word) {
                return Err(Error::unusable(what, "it is empty, or has characters that it cannot have"));
            }
        }
        // Literal addresses are connected to without being resolved.
        let literal = authority.host().trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if let (Some(rule), Ok(address)) = (&config.addresses, literal) {
            rule(address).map_err(|why| Error::unusable(ADDRESS, why))?;
        }
        let usual = if scheme == "https" { 443 } else { 80 };
        let port = authority.port_u16().filter(|port| *port != usual);
        let name = match config.addressing {
            Addressing::Path => authority.host().to_owned(),
            Addressing::VirtualHost => format!("{}.{}", config.bucket, authority.host()),
        };
        let host = port.map_or(name.clone(), |port| format!("{name}:{port}"));
        let root = match config.addressing {
            Addressing::Path => format!("/{}/", config.bucket),
            Addressing::VirtualHost => "/".to_owned(),
        };
        Ok(Self {
            transport: transport::Transport::new(
                config.authorities.as_deref(),
                config.addresses.clone(),
                config.limits.connect,
            )?,
            signer: sign::Signer::new(config),
            origin: format!("{scheme}://{host}"),
            host,
            root,
            limits: config.limits,
            gates: Gates::new(config.gates.clone()),
        })
    }
}

/// What AWS and the others agree on; older AWS buckets may have more characters.
fn is_bucket_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (3..=63).contains(&name.len()) && name.bytes().all(is_fine) && !name.contains("..")
}

#[cfg(test)]
mod tests;
