//! Mints and reads keys, certificates and kubeconfigs.
//!
//! Plans say *what* a certificate must be ([`Intent`]); this crate makes it, and it is the only place that signs
//! anything. It imports nothing else of the project, does no I/O, and takes the time as an argument. Its randomness
//! cannot be injected: keys and serial numbers are drawn inside, so results are never compared byte for byte, only by
//! what [`Certificate`] reads back from them.
//!
//! Invariants:
//! - private keys are held in [`PrivateKeyPem`] or [`SecretText`], whose `Debug` shows nothing;
//! - every certificate has a random serial, an authority and a subject key identifier, and explicit usages;
//! - no certificate outlives the authority that signed it.

mod authority;
mod certificate;
mod encryption;
mod error;
mod intent;
mod kubeconfig;
mod mint;
mod secret;
mod service_account;

pub use authority::Authority;
pub use certificate::{Certificate, Subject};
pub use encryption::{encryption_key, fingerprint};
pub use error::Error;
pub use intent::{Algorithm, Intent, Usage};
pub use kubeconfig::{Credentials, Kubeconfig, Trust};
pub use mint::issue;
pub use secret::{KeyPairPem, PrivateKeyPem, SecretText};
pub use service_account::ServiceAccountKeys;
