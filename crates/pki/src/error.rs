//! Errors of minting and reading.

/// A failure of this crate. Messages never contain key material.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text holds no certificate, or one that cannot be read.
    #[error("not a readable certificate: {0}")]
    UnreadableCertificate(String),
    /// The text holds no private key of a kind we can sign with.
    #[error("not a usable private key: {0}")]
    UnusableKey(String),
    /// None of the given certificates carries the public half of the given key.
    #[error("the private key belongs to none of the given certificates")]
    KeyMismatch,
    /// A certificate that may not sign was given as an authority.
    #[error("{0:?} is not a certificate authority")]
    NotAnAuthority(String),
    /// The authority has expired, so nothing it signs would be accepted.
    #[error("the authority {name:?} expired at {expired_at}")]
    AuthorityExpired {
        /// The authority's common name.
        name: String,
        expired_at: jiff::Timestamp,
    },
    /// The intent asks for something that cannot be a certificate.
    #[error("cannot issue a certificate for {common_name:?}: {reason}")]
    ImpossibleIntent {
        /// The common name asked for.
        common_name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The signing library refused.
    #[error("signing failed")]
    Signing(#[source] rcgen::Error),
    /// A kubeconfig could not be written as text.
    #[error("cannot render the kubeconfig: {0}")]
    Rendering(String),
    /// A kubeconfig that others wrote cannot be used.
    #[error("{field} {why}")]
    UnusableKubeconfig {
        /// Where in it, without what is there.
        field: String,
        why: &'static str,
    },
}
