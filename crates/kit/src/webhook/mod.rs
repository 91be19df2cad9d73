//! The webhook server: admission and conversion over TLS, and the renewal of its certificate.
//!
//! - [`Webhooks`] registers handlers by path. They never wait for a leader; every replica serves all of them.
//! - [`WebhookServer`] is the listener. Its certificate is in a [`CertificateSlot`] and can be swapped while requests
//!   run.
//! - Either [`CertificateDirectory`] fills the slot (files that are provided and renewed externally) or
//!   [`IssuedCertificate`] (we issue into a Secret which all replicas read).
//! - [`IssuedCertificate::keep`] is the leader's part: it renews, and writes our certificate authority into the webhook
//!   configurations and CRDs that it is given, if they carry our label, and again whenever they change.
//!
//! Only API servers are answered: the paths begin with a random token (`path`). All requests together hold a limited
//! number of bytes (`room`), and connections that have not named a known path are few and short (`strangers`).
//!
//! A change of authority never fails a request: the new authority is trusted everywhere before the first certificate is
//! signed with it, and the old one stays trusted until the next change. `certificates` decides the next step, without
//! I/O.

mod certificates;
mod depth;
mod directory;
mod handlers;
mod inject;
mod issued;
mod keep;
mod path;
mod room;
mod server;
mod strangers;
mod target;
mod verdict;

pub use certificates::RenewalPolicy;
pub use directory::CertificateDirectory;
pub use handlers::Webhooks;
pub use issued::{CERTIFICATE_SECRET, IssuedCertificate};
pub use server::{CertificateSlot, WebhookServer};
pub use target::WebhookTarget;
pub use verdict::Verdict;

/// Carried by webhook configurations and CRDs whose webhook is ours: others are left alone.
pub const WEBHOOK_LABEL: &str = "hangar.cluster.x-k8s.io/webhook";

/// What can go wrong with the server or its certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The port cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: std::net::SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The server ended by itself.
    #[error("the webhook server failed")]
    Serve(#[source] std::io::Error),
    /// The address that API servers should call is none.
    #[error("the webhook address {0:?} is not an https URL with a host and without a query")]
    Target(String),
    /// A certificate or key cannot be used for TLS.
    #[error("the webhook certificate cannot be used: {0}")]
    Certificate(String),
    /// Files of the certificate directory cannot be read.
    #[error("cannot read {path}")]
    File {
        path: std::path::PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The clocks disagree.
    #[error("{0}")]
    Clocks(String),
    #[error("cannot mint the webhook certificate")]
    Mint(#[from] hangar_pki::Error),
    /// The API server refused or did not answer.
    #[error("cannot {what}")]
    Call {
        what: String,
        /// What the client said.
        #[source]
        source: Box<kube::Error>,
    },
}
