//! Reads the ConfigMaps and Secrets of users that the API server's pods mount: their keys, with a hash of each content.
//! The content itself is not kept.
//!
//! Such objects carry no label of ours, and all Secrets of a management cluster are too many to watch. So they are read
//! again after some minutes, soon while one is missing, and at once where the store has another version: it has those that
//! carry the Cluster's label.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_kit::error::Error;
use hangar_pki::fingerprint;
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::{Source, SourceFacts, SourceKind};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::ObjectMeta;
use tokio::time::Instant;

use super::remembered::{Due, Remembered};
use crate::context::Context;

/// Nobody tells us of a change.
const LOOK_EVERY: Duration = Duration::from_mins(3);
/// Whoever brings what is missing waits for the condition.
const LOOK_SOON: Duration = Duration::from_secs(15);

type Found = BTreeMap<Source, Read<SourceFacts>>;

/// What was read for each control plane.
pub(super) type Sources = Remembered<Look>;

pub(super) struct Look {
    at: Instant,
    /// Versions that were read, by source.
    versions: BTreeMap<Source, String>,
    found: Found,
}

impl Due for Look {
    fn due_in(&self) -> Duration {
        let is_complete = self.found.values().all(|read| matches!(read, Read::One(_)));
        let limit = if is_complete { LOOK_EVERY } else { LOOK_SOON };
        limit.saturating_sub(self.at.elapsed())
    }
}

impl Look {
    /// Whether the store has another version of one of them than was read.
    fn is_outdated(&self, context: &Context, namespace: &str) -> bool {
        self.found.keys().any(|source| {
            let known = stored(context, namespace, source);
            known.is_some() && known.as_ref() != self.versions.get(source)
        })
    }
}

/// The version that the store has, where it has the object at all.
fn stored(context: &Context, namespace: &str, source: &Source) -> Option<String> {
    let key = ObjectKey::namespaced(namespace, source.name.clone());
    match source.kind {
        SourceKind::ConfigMap => {
            let kept = context.watches.config_maps().get(&key);
            kept.iter().next().map(|kept| kept.resource_version.clone())
        }
        SourceKind::Secret => {
            let kept = context.watches.secrets().get(&key);
            kept.iter().next().map(|kept| kept.resource_version.clone())
        }
    }
}

impl Sources {
    /// What there is of these, or was a while ago.
    pub(super) async fn look(
        &self,
        context: &Context,
        control_plane: &ObjectKey,
        wanted: &BTreeSet<Source>,
    ) -> Found {
        let namespace = control_plane.namespace_or_empty();
        if let Some(look) = self.all().get(control_plane)
            && look.found.keys().eq(wanted)
            && !look.due_in().is_zero()
            && !look.is_outdated(context, namespace)
        {
            return look.found.clone();
        }
        let mut look = Look { at: Instant::now(), versions: BTreeMap::new(), found: BTreeMap::new() };
        for source in wanted {
            let read = match read(context, namespace, source).await {
                Ok(Some((version, facts))) => {
                    look.versions.insert(source.clone(), version);
                    Read::One(facts)
                }
                Ok(None) => Read::Absent,
                Err(error) => Read::unknown(error.to_string()),
            };
            look.found.insert(source.clone(), read);
        }
        let found = look.found.clone();
        self.all().insert(control_plane.clone(), look);
        found
    }
}

/// Version and facts of one object, if there is one.
async fn read(
    context: &Context,
    namespace: &str,
    source: &Source,
) -> Result<Option<(String, SourceFacts)>, Error> {
    let failed = |error| Error::api(format!("read {source}"), error);
    let version = |metadata: &ObjectMeta| metadata.resource_version.clone().unwrap_or_default();
    match source.kind {
        SourceKind::ConfigMap => {
            let api: Api<ConfigMap> = Api::namespaced(context.client(), namespace);
            let found = api.get_opt(&source.name).await.map_err(failed)?;
            Ok(found.map(|map| {
                let texts = map.data.unwrap_or_default().into_iter();
                let texts = texts.map(|(key, text)| (key, ByteString(text.into_bytes())));
                let all = texts.chain(map.binary_data.unwrap_or_default());
                (version(&map.metadata), facts(all))
            }))
        }
        SourceKind::Secret => {
            let api: Api<Secret> = Api::namespaced(context.client(), namespace);
            let found = api.get_opt(&source.name).await.map_err(failed)?;
            Ok(found.map(|secret| (version(&secret.metadata), facts(secret.data.unwrap_or_default()))))
        }
    }
}

fn facts(contents: impl IntoIterator<Item = (String, ByteString)>) -> SourceFacts {
    let hash = |(key, content): (String, ByteString)| (key, fingerprint(&content.0));
    SourceFacts { keys: contents.into_iter().map(hash).collect() }
}
