//! Opens sessions with clouds: one session for each credential and region, found through the Secret that an
//! `identityRef` names.
//!
//! The Secret is read live in every pass that needs the cloud: it has no label of ours by which it could be watched,
//! and replaced credentials must take effect at once. The read costs one call. A session saves the login: it is kept
//! until the Secret changes, and all references that lead to the same credential and region share it. They also share
//! the lists of the project ([`Project`]).
//!
//! The cloud and the region of a reference are free text, so users could fill the memory with references. References
//! that were not used for [`UNUSED`] are dropped; if there are more than [`MOST_IDENTITIES`], the namespace that has the
//! most of them loses the one unused for longest.
//!
//! Every session is fenced: a write is sent only if it ends, at the latest, while the lease is certain to last.

mod convert;
mod copies;
mod demands;
mod find;
mod ids;
mod project;
mod server;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hangar_api::conditions::{Actor, Bad};
use hangar_api::infrastructure::v1beta1::{IdentityReference, IdentityType};
use hangar_kit::ObjectKey;
use hangar_openstack::{CallGate, CloudConfig, Error, Fingerprint, Limits, Session, SessionOptions};
use hangar_plan::openstack::CloudTrouble;
use hangar_plan::openstack::conditions::cloud;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(crate) use convert::{group, network, port, router, subnet, zone};
pub(crate) use copies::copied_from;
pub(crate) use find::{find_network, find_router, find_subnet, read_all};
pub(crate) use ids::CloudId;
pub(crate) use project::Project;
pub(crate) use server::{preflight, server_facts};

use crate::context::Handles;
use crate::gates::{Counted, Fence};
use crate::reconcile::CLOUD_LIMIT;
use crate::reconcile::answer::words;
use demands::Listeners;

/// The key of the Secret with the clouds.
const CLOUDS_KEY: &str = "clouds.yaml";
/// The key of the Secret with certificate authorities.
const AUTHORITY_KEY: &str = "cacert";

/// Of a cloud or a region: Keystone's limit for the names of regions.
const LONGEST_NAME: usize = 255;
/// The most ways that are kept: a session with its connections and authorities is some hundred kilobytes.
const MOST_IDENTITIES: usize = 256;
/// A way that nobody took for this long is dropped; every object with things in a cloud is looked at more often.
const UNUSED: Duration = Duration::from_secs(15 * 60);

/// Sessions of clouds.
pub(crate) struct Clouds {
    client: Client,
    options: SessionOptions,
    state: Arc<Mutex<State>>,
    listeners: Arc<Listeners>,
    _forgetting: JoinSet<()>,
}

#[derive(Default)]
struct State {
    identities: BTreeMap<Key, Identity>,
    projects: BTreeMap<Fingerprint, Arc<Project>>,
}

/// Namespace, Secret, cloud and region.
type Key = (String, String, String, String);

/// What a reference led to.
struct Identity {
    version: String,
    fingerprint: Fingerprint,
    used: Instant,
}

impl Clouds {
    pub(crate) fn new(handles: &Handles) -> Self {
        let mut gates: Vec<Arc<dyn CallGate>> = vec![
            Arc::new(Fence(Arc::clone(&handles.leadership))),
            Arc::new(Counted(handles.metrics.calls.clone())),
        ];
        gates.extend(handles.cloud_gates.iter().cloned());
        // What the lease is certain to outlast.
        let limits = Limits::default().with_writes_within(CLOUD_LIMIT);
        let options = SessionOptions { gates, limits, ..SessionOptions::default() };
        let state = Arc::<Mutex<State>>::default();
        let (kept, leadership) = (Arc::clone(&state), Arc::clone(&handles.leadership));
        let mut forgetting = JoinSet::new();
        // What the next leader does is in no list that we keep: if we lead again, we begin anew.
        forgetting.spawn(async move {
            loop {
                leadership.changed(true).await;
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
                leadership.changed(false).await;
            }
        });
        // Objects that are gone take no way any more, and so nobody else notices theirs.
        let kept = Arc::clone(&state);
        forgetting.spawn(async move {
            loop {
                tokio::time::sleep(UNUSED / 3).await;
                kept.lock().unwrap_or_else(PoisonError::into_inner).tidy();
            }
        });
        let listeners = Arc::default();
        Self { client: handles.client.clone(), options, state, listeners, _forgetting: forgetting }
    }

    /// Calls this with every object that had asked for lists which are there now.
    pub(crate) fn on_lists(&self, listener: impl Fn(&ObjectKey) + Send + Sync + 'static) {
        self.listeners.add(listener);
    }

    /// The project that credentials lead to, with a session that is logged in, and the text that is recorded of it; or why
    /// there is none.
    pub(crate) async fn project(
        &self,
        namespace: &str,
        identity: &IdentityReference,
    ) -> Result<(Arc<Project>, String), CloudTrouble> {
        if identity.type_ == IdentityType::ClusterIdentity {
            let message = "identityRef.type ClusterIdentity is not supported";
            return Err(trouble(cloud::UNSUPPORTED, message, Actor::ClusterOwner));
        }
        for (field, text) in [("cloudName", &identity.cloud_name), ("region", &identity.region)] {
            if text.len() > LONGEST_NAME {
                let message = format!("identityRef.{field} has more than {LONGEST_NAME} characters");
                return Err(trouble(cloud::CREDENTIALS_INVALID, message, Actor::ClusterOwner));
            }
        }
        let secret = self.secret(namespace, identity).await?;
        let project = self.kept(namespace, identity, &secret)?;
        let place = project.place().await.map_err(|error| refused(&error))?;
        Ok((project, place))
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
                Err(trouble(cloud::CREDENTIALS_NOT_FOUND, message, Actor::ClusterOwner))
            }
            Err(error) => Err(trouble(cloud::CREDENTIALS_UNREADABLE, error.to_string(), Actor::Operator)),
        }
    }

    fn kept(
        &self,
        namespace: &str,
        identity: &IdentityReference,
        secret: &Secret,
    ) -> Result<Arc<Project>, CloudTrouble> {
        let key = key(namespace, identity);
        let version = format!("{:?}/{:?}", secret.uid(), secret.resource_version());
        if let Some(project) = self.state().known(&key, &version) {
            return Ok(project);
        }
        let config = config(identity, secret)?;
        let fingerprint = config.fingerprint();
        let made = Session::new(config, self.options.clone()).map_err(|error| refused(&error))?;
        Ok(self.state().keep(key, version, fingerprint, || Project::new(made, Arc::clone(&self.listeners))))
    }

    fn forget(&self, key: &Key) {
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
    fn known(&mut self, key: &Key, version: &str) -> Option<Arc<Project>> {
        let identity = self.identities.get_mut(key).filter(|identity| identity.version == version)?;
        identity.used = Instant::now();
        let project = self.projects.get(&identity.fingerprint).cloned();
        self.tidy();
        project
    }

    fn keep(
        &mut self,
        key: Key,
        version: String,
        fingerprint: Fingerprint,
        made: impl FnOnce() -> Project,
    ) -> Arc<Project> {
        let project = Arc::clone(self.projects.entry(fingerprint).or_insert_with(|| Arc::new(made())));
        self.identities.insert(key, Identity { version, fingerprint, used: Instant::now() });
        self.tidy();
        project
    }

    /// Drops ways that nobody takes, then those too many, then projects that nothing leads to any more.
    fn tidy(&mut self) {
        self.identities.retain(|_, identity| identity.used.elapsed() < UNUSED);
        while self.identities.len() > MOST_IDENTITIES {
            let mut counts = BTreeMap::<&str, usize>::new();
            for (namespace, ..) in self.identities.keys() {
                *counts.entry(namespace).or_default() += 1;
            }
            let first = self.identities.iter().min_by_key(|((namespace, ..), identity)| {
                (Reverse(counts.get(namespace.as_str()).copied()), identity.used)
            });
            let Some(first) = first.map(|(key, _)| key.clone()) else { break };
            self.identities.remove(&first);
        }
        let used: BTreeSet<Fingerprint> =
            self.identities.values().map(|identity| identity.fingerprint).collect();
        self.projects.retain(|fingerprint, _| used.contains(fingerprint));
    }
}

fn key(namespace: &str, identity: &IdentityReference) -> Key {
    (namespace.to_owned(), identity.name.clone(), identity.cloud_name.clone(), identity.region.clone())
}

fn config(identity: &IdentityReference, secret: &Secret) -> Result<CloudConfig, CloudTrouble> {
    let data = secret.data.as_ref();
    let value = |key: &str| data.and_then(|data| data.get(key)).map(|value| value.0.as_slice());
    let name = secret.name_any();
    let invalid = |why: String| {
        let message = format!("the Secret {name}: {why}");
        trouble(cloud::CREDENTIALS_INVALID, message, Actor::ClusterOwner)
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
    if error.is_unauthorized() {
        let message = format!(
            "{}; these credentials are tried again when the Secret changes, and otherwise after 1 to 10 minutes, so that \
             the account is not locked",
            words(error)
        );
        return trouble(cloud::UNAUTHORIZED, message, Actor::ClusterOwner);
    }
    let actor = if error.is_user_fault() { Actor::ClusterOwner } else { Actor::Cloud };
    trouble(cloud::named(error.category()), words(error), actor)
}

/// What people have to know who wait for a deletion: without the cloud's word nothing is let go, for what is in it would
/// stay there unseen. Where the cloud itself is away it will be back; where they must act they are told how.
pub(crate) fn told(mut trouble: CloudTrouble, finalizer: Option<&str>) -> CloudTrouble {
    if let (Actor::ClusterOwner, Some(finalizer)) = (&trouble.actor, finalizer) {
        trouble.message = format!(
            "{}; as long as this is so nothing of this object is deleted in the cloud, and it stays (to give up what is \
             left there, remove the finalizer {finalizer} by hand)",
            trouble.message
        );
    }
    trouble
}

fn trouble(reason: Bad, message: impl Into<String>, actor: Actor) -> CloudTrouble {
    CloudTrouble { reason, message: message.into(), actor }
}

#[cfg(test)]
mod tests;
