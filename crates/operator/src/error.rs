//! The errors that end a manager or an installation.

use std::net::SocketAddr;

/// A failure that a person has to look at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no usable kubeconfig, and this is no pod.
    #[error("no Kubernetes configuration was found: set KUBECONFIG or --kubeconfig, or run in a pod")]
    NoConfiguration(#[source] Box<kube::config::InferConfigError>),
    /// The named kubeconfig or context does not work.
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[source] Box<kube::config::KubeconfigError>),
    /// A call of the runtime failed.
    #[error(transparent)]
    Kit(#[from] hangar_kit::Error),
    /// A port is taken.
    #[error("cannot listen on {address} for {purpose}")]
    Listen { purpose: &'static str, address: SocketAddr, source: std::io::Error },
    /// The webhook server or its certificate.
    #[error(transparent)]
    Webhook(#[from] hangar_kit::webhook::Error),
    #[error(transparent)]
    Lease(#[from] hangar_kit::lease::Error),
    #[error(transparent)]
    Telemetry(#[from] hangar_kit::telemetry::Error),
    /// The process cannot listen for signals.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// A controller ended although nobody asked it to; the log says where.
    #[error("a controller ended: {0}")]
    ControllerEnded(String),
    /// The API server refused or did not answer.
    #[error("cannot {action}")]
    Call {
        action: String,
        /// Why it did not work.
        #[source]
        source: Box<kube::Error>,
    },
    /// CRDs that somebody else installed.
    #[error(
        "these CRDs belong to another provider and are left alone: {names}; choose the controllers that are yours \
         with --controllers, or remove the other provider first"
    )]
    ForeignDefinitions {
        /// The names with their owners.
        names: String,
    },
    /// Namespaces that the manager should look after.
    #[error("these namespaces of --namespaces do not exist: {names}; create them first")]
    MissingNamespaces { names: String },
    /// A CRD was not taken into service.
    #[error("the CRD {name} was not established within {seconds} s: {reason}")]
    NotEstablished {
        name: String,
        /// How long we waited.
        seconds: u64,
        /// What the API server says about it.
        reason: String,
    },
    /// The manager does not run.
    #[error("the manager was not available after {seconds} s: {reason}")]
    NotAvailable {
        /// How long we waited.
        seconds: u64,
        /// What the Deployment says about it.
        reason: String,
    },
    /// The installation could not be written down.
    #[error("cannot render the installation")]
    Render(#[from] hangar_plan::install::Error),
    /// An object that a preview needs.
    #[error("an object cannot be read: {0}")]
    Unreadable(String),
    /// Objects of a file that an API server would not take.
    #[error(transparent)]
    Refused(#[from] crate::preview::Refused),
    /// An object of the installation is none.
    #[error("an object of the installation has no metadata")]
    Malformed(#[source] serde_json::Error),
}

/// Adds what was tried to an error of the client.
pub(crate) trait Trying<T> {
    fn trying(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Trying<T> for Result<T, kube::Error> {
    fn trying(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Call { action: action(), source: Box::new(source) })
    }
}
