//! Ways into clouds: one session per credential, found through the Secret that an identity reference names.
//!
//! The Secret is read live each time, because it carries no label of ours to watch it by, and because credentials that
//! were replaced must count at once. Reading it costs one call; logging in is what a session saves: it is kept as long as
//! the Secret's version, and shared by all references that lead to the same credential in the same region.
//!
//! Every session is fenced: a write is sent only if it ends, at the latest, while we still lead.

mod convert;
mod copies;
mod events;
mod find;
mod gates;
mod outcome;
mod owned;
mod reconcile;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hangar_api::conditions::Actor;
use hangar_api::infrastructure::v1beta1::{IdentityReference, IdentityType};
use hangar_openstack::{CallGate, CloudConfig, Error, Fingerprint, Session, SessionOptions};
use hangar_plan::openstack::CloudTrouble;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};

pub(crate) use convert::{group, network, port, router, server, subnet, zone};
pub(crate) use copies::copied_from;
pub(crate) use events::record;
pub(crate) use find::{
    find_flavor, find_group, find_image, find_network, find_router, find_server_group, find_subnet, read_all,
};
pub(crate) use outcome::{created, done};
pub(crate) use owned::Owned;
pub(crate) use reconcile::{InCloud, Reconciler};

use crate::context::{Parts, WRITE_LIMIT};
use gates::{Counted, Fence};

/// The key of the Secret with the clouds.
const CLOUDS_KEY: &str = "clouds.yaml";
/// The key of the Secret with certificate authorities.
const AUTHORITY_KEY: &str = "cacert";

/// Sessions of clouds.
pub(crate) struct Clouds {
    client: Client,
    options: SessionOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By namespace, Secret, cloud and region: the Secret's version and the session it led to.
    identities: BTreeMap<(String, String, String, String), (String, Fingerprint)>,
    sessions: BTreeMap<Fingerprint, Session>,
}

impl Clouds {
    pub(crate) fn new(parts: &Parts) -> Self {
        let mut gates: Vec<Arc<dyn CallGate>> = vec![
            Arc::new(Fence(Arc::clone(&parts.leadership))),
            Arc::new(Counted(parts.metrics.calls.clone())),
        ];
        gates.extend(parts.cloud_gates.iter().cloned());
        let options = SessionOptions { gates, write_limit: WRITE_LIMIT, ..SessionOptions::default() };
        Self { client: parts.client.clone(), options, state: Mutex::default() }
    }

    /// A session that is logged in, or why there is none.
    pub(crate) async fn session(
        &self,
        namespace: &str,
        identity: &IdentityReference,
    ) -> Result<Session, CloudTrouble> {
        if identity.type_ == IdentityType::ClusterIdentity {
            let message = "identityRef.type ClusterIdentity is not supported";
            return Err(trouble("Unsupported", message, Actor::ClusterOwner));
        }
        let secret = self.secret(namespace, identity).await?;
        let session = self.kept(namespace, identity, &secret)?;
        match session.authenticate().await {
            Ok(()) => Ok(session),
            Err(error) => Err(refused(&error)),
        }
    }

    async fn secret(&self, namespace: &str, identity: &IdentityReference) -> Result<Secret, CloudTrouble> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        match api.get_opt(&identity.name).await {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => {
                self.forget(&key(namespace, identity));
                let message = format!(
                    "there is no Secret {namespace}/{}, which identityRef names: create it, with the cloud {:?} \
                     under the key {CLOUDS_KEY:?}",
                    identity.name, identity.cloud_name
                );
                Err(trouble("CredentialsNotFound", message, Actor::ClusterOwner))
            }
            Err(error) => Err(trouble("CredentialsUnreadable", error.to_string(), Actor::Operator)),
        }
    }

    fn kept(
        &self,
        namespace: &str,
        identity: &IdentityReference,
        secret: &Secret,
    ) -> Result<Session, CloudTrouble> {
        let key = key(namespace, identity);
        let version = format!("{:?}/{:?}", secret.uid(), secret.resource_version());
        if let Some(session) = self.state().known(&key, &version) {
            return Ok(session);
        }
        let config = config(identity, secret)?;
        let fingerprint = config.fingerprint();
        let made = Session::new(config, self.options.clone()).map_err(|error| refused(&error))?;
        let mut state = self.state();
        let session = state.sessions.entry(fingerprint).or_insert(made).clone();
        state.identities.insert(key, (version, fingerprint));
        state.tidy();
        Ok(session)
    }

    fn forget(&self, key: &(String, String, String, String)) {
        let mut state = self.state();
        if state.identities.remove(key).is_some() {
            state.tidy();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn known(&self, key: &(String, String, String, String), version: &str) -> Option<Session> {
        let (known, fingerprint) = self.identities.get(key)?;
        (known == version).then(|| self.sessions.get(fingerprint).cloned()).flatten()
    }

    /// Drops sessions that nothing leads to any more.
    fn tidy(&mut self) {
        let used: Vec<Fingerprint> = self.identities.values().map(|(_, fingerprint)| *fingerprint).collect();
        self.sessions.retain(|fingerprint, _| used.contains(fingerprint));
    }
}

fn key(namespace: &str, identity: &IdentityReference) -> (String, String, String, String) {
    (namespace.to_owned(), identity.name.clone(), identity.cloud_name.clone(), identity.region.clone())
}

fn config(identity: &IdentityReference, secret: &Secret) -> Result<CloudConfig, CloudTrouble> {
    let data = secret.data.as_ref();
    let value = |key: &str| data.and_then(|data| data.get(key)).map(|value| value.0.as_slice());
    let name = secret.name_any();
    let invalid = |why: String| {
        let message = format!("the Secret {name}: {why}");
        trouble("CredentialsInvalid", message, Actor::ClusterOwner)
    };
    let Some(clouds) = value(CLOUDS_KEY) else {
        return Err(invalid(format!("it has no key {CLOUDS_KEY:?}")));
    };
    let mut config =
        CloudConfig::from_yaml(clouds, &identity.cloud_name).map_err(|error| invalid(error.to_string()))?;
    if let Some(authority) = value(AUTHORITY_KEY).filter(|authority| !authority.is_empty()) {
        config = config.with_cacert(authority).map_err(|error| invalid(error.to_string()))?;
    }
    if !identity.region.is_empty() {
        config = config.with_region(&identity.region);
    }
    Ok(config)
}

fn refused(error: &Error) -> CloudTrouble {
    let actor = if error.is_user_fault() { Actor::ClusterOwner } else { Actor::Cloud };
    trouble(error.category(), words(error), actor)
}

/// An error with what caused it.
pub(super) fn words(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// What people have to know who wait for a deletion: without the cloud's word nothing is let go, for what is in it would
/// stay there unseen. Where the cloud itself is away it will be back; where they must act they are told how.
pub(crate) fn while_deleting(mut trouble: CloudTrouble, finalizer: &str) -> CloudTrouble {
    if trouble.actor == Actor::ClusterOwner {
        trouble.message = format!(
            "{}; as long as this is so nothing of this object is deleted in the cloud, and it stays (to give up what is \
             left there, remove the finalizer {finalizer} by hand)",
            trouble.message
        );
    }
    trouble
}

fn trouble(reason: &'static str, message: impl Into<String>, actor: Actor) -> CloudTrouble {
    CloudTrouble { reason, message: message.into(), actor }
}
