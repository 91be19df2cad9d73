//! Finds which version of a foreign kind implements the contract, from the labels of the CRDs.
//!
//! Only the metadata of CRDs is watched: their schemas are tens of megabytes, which no controller reads. They also show
//! which kinds of other projects are there (`hangar_plan::neighbours`).

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_api::contract::{self, Choice};
use hangar_api::conversion::VersionLookup;
use hangar_api::{crd, naming};
use hangar_kit::watch::{Kept, Watch, WatchBuilder};
use hangar_kit::{Error, ObjectKey};
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::exposure::SOME_NAMESPACES;
use hangar_plan::namespaces::Namespaces;
use hangar_plan::neighbours::Neighbour;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::core::PartialObjectMeta;
use tokio_util::sync::CancellationToken;

use crate::context::Handles;

type Definitions = Watch<PartialObjectMeta<CustomResourceDefinition>, Option<Choice>>;

/// The contract versions of kinds.
#[derive(Clone)]
pub(crate) enum Contracts {
    /// Of every CRD in the cluster, kept current by a watch.
    Watched(Definitions),
    /// Of the kinds that Hangar has itself. A manager of some namespaces has no right to watch all CRDs, so it knows no
    /// kinds of other providers; of neighbours it watches each by name.
    BuiltIn(Arc<BTreeMap<String, Choice>>, Arc<BTreeMap<Neighbour, Definitions>>),
}

impl Contracts {
    /// As a manager with these handles may know them.
    pub(crate) fn of(handles: &Handles, stop: &CancellationToken) -> Self {
        let start = |builder: WatchBuilder<PartialObjectMeta<CustomResourceDefinition>>| {
            let watch = builder.project(stop, |definition| {
                contract::chosen(&definition.metadata.labels.unwrap_or_default())
            });
            let counted = watch.clone();
            handles.metrics.watch.add(watch.name(), move || counted.stats());
            watch
        };
        let all = || Api::all(handles.client.clone());
        if handles.namespaces != Namespaces::All {
            let named = |kind: Neighbour| {
                let name = kind.definition();
                (kind, start(WatchBuilder::new(&name, all()).only(&name)))
            };
            return Self::built_in(Neighbour::ALL.into_iter().map(named).collect());
        }
        Self::Watched(start(WatchBuilder::new("customresourcedefinitions", all())))
    }

    fn built_in(neighbours: BTreeMap<Neighbour, Definitions>) -> Self {
        let known = crd::all().into_iter().filter_map(|definition| {
            let choice = contract::chosen(&definition.metadata.labels.unwrap_or_default())?;
            Some((definition.metadata.name?, choice))
        });
        Self::BuiltIn(Arc::new(known.collect()), Arc::new(neighbours))
    }

    /// Whether a kind of another project is there, and is not being taken away.
    pub(crate) fn has(&self, kind: Neighbour) -> Read<()> {
        let watch = match self {
            Self::Watched(watch) => watch,
            Self::BuiltIn(_, neighbours) => match neighbours.get(&kind) {
                Some(watch) => watch,
                None => return Read::Absent,
            },
        };
        watch.get(&ObjectKey::cluster(kind.definition())).filter(|kept| !kept.is_terminating).map(drop)
    }

    /// True while the CRDs that tell this are being listed for the first time.
    pub(crate) fn is_starting(&self) -> bool {
        let is_starting = |watch: &Definitions| !watch.is_synced() && watch.stats().errors == 0;
        match self {
            Self::Watched(watch) => is_starting(watch),
            Self::BuiltIn(_, neighbours) => neighbours.values().any(is_starting),
        }
    }

    /// Calls the function whenever one of them comes or goes.
    pub(crate) fn on_neighbours(&self, call: impl Fn() + Clone + Send + Sync + 'static) {
        let names: Arc<Vec<String>> =
            Arc::new(Neighbour::ALL.into_iter().map(Neighbour::definition).collect());
        let subscribe = |watch: &Definitions| {
            let (names, call) = (Arc::clone(&names), call.clone());
            watch.each(move |change| {
                let is_there = |side: &Option<Arc<Kept<Option<Choice>>>>| {
                    side.as_ref().is_some_and(|kept| !kept.is_terminating)
                };
                if names.contains(&change.key.name) && is_there(&change.before) != is_there(&change.after) {
                    call();
                }
            });
        };
        match self {
            Self::Watched(watch) => subscribe(watch),
            Self::BuiltIn(_, neighbours) => neighbours.values().for_each(subscribe),
        }
    }

    /// The version and contract of a kind: absent when there is no such CRD, or its labels name none.
    pub(crate) fn choice(&self, group: &str, kind: &str) -> Read<Choice> {
        let name = naming::custom_resource(group, kind);
        match self {
            Self::BuiltIn(known, _) => known.get(&name).cloned().map_or(Read::Absent, Read::One),
            Self::Watched(watch) => match watch.get(&ObjectKey::cluster(name)) {
                Read::One(kept) => kept.value.clone().map_or(Read::Absent, Read::One),
                Read::Unknown(unknown) => Read::Unknown(unknown),
                Read::Absent | Read::Many(_) => Read::Absent,
            },
        }
    }

    /// The version of a CRD as an object: another one whenever something about it changes. Absent when there is none.
    pub(crate) fn definition(&self, name: &str) -> Read<String> {
        match self {
            Self::BuiltIn(..) => Read::unknown(SOME_NAMESPACES),
            Self::Watched(watch) => {
                watch.get(&ObjectKey::cluster(name)).map(|kept| kept.resource_version.clone())
            }
        }
    }

    /// Calls the function with the name of each CRD that comes, changes or goes.
    pub(crate) fn each(&self, call: impl Fn(&str) + Send + Sync + 'static) {
        if let Self::Watched(watch) = self {
            watch.each(move |change| call(&change.key.name));
        }
    }

    /// Returns when they were listed once, or cannot be.
    pub(crate) async fn listed(&self) -> Result<(), Error> {
        match self {
            Self::BuiltIn(_, neighbours) => {
                for watch in neighbours.values() {
                    watch.listed().await?;
                }
                Ok(())
            }
            Self::Watched(watch) => watch.listed().await,
        }
    }

    /// Returns when every CRD was seen once.
    pub(crate) async fn synced(&self) {
        if let Self::Watched(watch) = self {
            watch.synced().await;
        }
    }
}

impl VersionLookup for Contracts {
    fn version(&self, group: &str, kind: &str) -> Option<String> {
        // Conversion is total: while the CRDs are unknown, the version that the object itself kept is used.
        self.choice(group, kind).known().ok()?.pop().map(|choice| choice.version)
    }
}
