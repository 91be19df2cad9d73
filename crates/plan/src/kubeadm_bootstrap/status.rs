//! What a KubeadmConfig says about itself.

use hangar_api::bootstrap::v1beta2::{KubeadmConfigInitializationStatus, KubeadmConfigStatus};
use hangar_api::conditions::{self, Actor, Finding, Part, Waiting};

use super::{KeyOfSecret, Observed};
use crate::flow::{self, Read, Unknown};

const READY: &str = "Ready";
const DATA_SECRET: &str = "DataSecretAvailable";
const CERTIFICATES: &str = "CertificatesAvailable";
const PAUSED: &str = "Paused";

/// Why the data is not there yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    pub(super) reason: &'static str,
    pub(super) waiting: Waiting,
    /// Nothing that we watch would say when it is over.
    pub(super) needs_polling: bool,
}

impl Wait {
    fn new(reason: &'static str, actor: Actor, on: impl Into<String>) -> Self {
        Self { reason, waiting: Waiting::new(actor, on), needs_polling: false }
    }

    fn because(mut self, detail: Option<&str>) -> Self {
        if let Some(detail) = detail {
            self.waiting = self.waiting.because(detail);
        }
        self
    }

    fn polling(mut self) -> Self {
        self.needs_polling = true;
        self
    }

    pub(super) fn owner() -> Self {
        let actor = Actor::Controller("the controller of Machines".to_owned());
        Self::new("WaitingForMachine", actor, "a Machine that uses this configuration")
    }

    pub(super) fn cluster() -> Self {
        Self::new("WaitingForCluster", Actor::ClusterOwner, "the Cluster that the label names")
    }

    pub(super) fn infrastructure() -> Self {
        let actor = Actor::Controller("the infrastructure provider".to_owned());
        Self::new("WaitingForClusterInfrastructure", actor, "the Cluster's infrastructure")
    }

    pub(super) fn control_plane() -> Self {
        let actor = Actor::Controller("the control plane provider".to_owned());
        Self::new("WaitingForControlPlaneInitialized", actor, "the first answer of the control plane")
    }

    pub(super) fn endpoint() -> Self {
        let actor = Actor::Controller("the control plane provider".to_owned());
        Self::new("WaitingForControlPlaneEndpoint", actor, "the Cluster's endpoint")
    }

    pub(super) fn authority(cluster: &str) -> Self {
        let actor = Actor::Controller("the control plane provider".to_owned());
        Self::new("WaitingForCertificates", actor, format!("tls.crt and tls.key in the Secret {cluster}-ca"))
    }

    pub(super) fn content(key: &KeyOfSecret) -> Self {
        let on = format!("the key {:?} of the Secret {}", key.key, key.name);
        Self::new("WaitingForSecret", Actor::ClusterOwner, on).polling()
    }

    pub(super) fn foreign_secret(name: &str) -> Self {
        let on = format!("the name {name} of a Secret that belongs to something else");
        Self::new("SecretNameTaken", Actor::ClusterOwner, on)
    }

    pub(super) fn unsupported(refused: &[String]) -> Self {
        Self::new("UnsupportedConfiguration", Actor::ClusterOwner, "a configuration that can be honoured")
            .because(Some(&refused.join("; ")))
    }

    pub(super) fn unrenderable(problem: &str) -> Self {
        Self::new("UnsupportedConfiguration", Actor::ClusterOwner, "a configuration that can be written")
            .because(Some(problem))
    }

    pub(super) fn unknown(what: &str, unknown: &Unknown) -> Self {
        Self::new("NotYetKnown", Actor::Hangar, format!("a look at {what}"))
            .because(Some(&unknown.why))
            .polling()
    }

    pub(super) fn tenant(why: &str) -> Self {
        let actor = Actor::Controller("the control plane provider".to_owned());
        Self::new("ControlPlaneUnreachable", actor, "the API server of the Cluster")
            .because(Some(why))
            .polling()
    }

    pub(super) fn token(trouble: Option<&str>) -> Self {
        Self::new("CreatingToken", Actor::Hangar, "a bootstrap token").because(trouble)
    }

    pub(super) fn data(trouble: Option<&str>) -> Self {
        Self::new("CreatingDataSecret", Actor::Hangar, "the data Secret").because(trouble)
    }

    /// Who can end it, in the report's words.
    pub(super) fn actor(&self) -> flow::Actor {
        (&self.waiting.actor).into()
    }
}

/// How it stands with the data.
pub(super) enum Data {
    /// Paused or not ours: what was said stays.
    Untouched,
    Waiting(Wait),
    /// There, with what is odd about it.
    Available {
        remark: Option<String>,
    },
}

/// The status to write.
pub(super) fn status(observed: &Observed, data: &Data) -> KubeadmConfigStatus {
    let mut status = observed.config.status.clone().unwrap_or_default();
    let generation = observed.config.metadata.generation;
    let set = |status: &mut KubeadmConfigStatus, finding| {
        conditions::set(status, finding, generation, observed.now);
    };
    if observed.is_paused() {
        let waiting = Waiting::new(Actor::ClusterOwner, "the end of the pause");
        set(&mut status, Finding::raised(PAUSED, "Paused", &waiting));
        return status;
    }
    set(&mut status, Finding::clear(PAUSED, "NotPaused"));
    match data {
        Data::Untouched => return status,
        Data::Waiting(wait) => {
            if let Some(finding) = certificates(observed, wait) {
                set(&mut status, finding);
            }
            set(&mut status, Finding::fails(DATA_SECRET, wait.reason, &wait.waiting));
        }
        Data::Available { remark } => {
            status.data_secret_name = Some(observed.name().to_owned());
            status.initialization =
                Some(KubeadmConfigInitializationStatus { data_secret_created: Some(true) });
            set(&mut status, Finding::holds(CERTIFICATES, "Available"));
            let finding = Finding::holds(DATA_SECRET, "Available");
            set(&mut status, remark.iter().fold(finding, Finding::remark));
        }
    }
    let parts = [Part::positive(DATA_SECRET), Part::positive(CERTIFICATES).optional()];
    let ready = conditions::summary(&status, READY, &parts);
    set(&mut status, ready);
    status.observed_generation = generation;
    status
}

/// The certificates are looked at only when everything else is there.
fn certificates(observed: &Observed, wait: &Wait) -> Option<Finding> {
    if wait.reason == "WaitingForCertificates" {
        return Some(Finding::fails(CERTIFICATES, wait.reason, &wait.waiting));
    }
    matches!(observed.authority_hashes, Read::One(_)).then(|| Finding::holds(CERTIFICATES, "Available"))
}
