//! Finds which version of a foreign kind implements the contract, from the labels of the CRDs.
//!
//! Only the metadata of CRDs is watched: their schemas are tens of megabytes, which no controller reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use hangar_api::contract::{self, Choice};
use hangar_api::conversion::VersionLookup;
use hangar_api::{crd, naming};
use hangar_kit::watch::{Watch, WatchBuilder};
use hangar_kit::{Error, ObjectKey};
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::exposure::SOME_NAMESPACES;
use hangar_plan::namespaces::Namespaces;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::core::PartialObjectMeta;
use tokio_util::sync::CancellationToken;

use crate::context::Handles;

/// The contract versions of kinds.
#[derive(Clone)]
pub(crate) enum Contracts {
    /// Of every CRD in the cluster, kept current by a watch.
    Watched(Watch<PartialObjectMeta<CustomResourceDefinition>, Option<Choice>>),
    /// Of the kinds that Hangar has itself. A manager of some namespaces has no right to watch all CRDs, so it knows no
    /// kinds of other providers.
    BuiltIn(Arc<BTreeMap<String, Choice>>),
}

impl Contracts {
    /// As a manager with these handles may know them.
    pub(crate) fn of(handles: &Handles, stop: &CancellationToken) -> Self {
        if handles.namespaces != Namespaces::All {
            return Self::built_in();
        }
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(handles.client.clone());
        let watch = WatchBuilder::new("customresourcedefinitions", api)
            .project(stop, |definition| contract::chosen(&definition.metadata.labels.unwrap_or_default()));
        let counted = watch.clone();
        handles.metrics.watch.add(watch.name(), move || counted.stats());
        Self::Watched(watch)
    }

    fn built_in() -> Self {
        let known = crd::all().into_iter().filter_map(|definition| {
            let choice = contract::chosen(&definition.metadata.labels.unwrap_or_default())?;
            Some((definition.metadata.name?, choice))
        });
        Self::BuiltIn(Arc::new(known.collect()))
    }

    /// The version and contract of a kind: absent when there is no such CRD, or its labels name none.
    pub(crate) fn choice(&self, group: &str, kind: &str) -> Read<Choice> {
        let name = naming::custom_resource(group, kind);
        match self {
            Self::BuiltIn(known) => known.get(&name).cloned().map_or(Read::Absent, Read::One),
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
            Self::BuiltIn(_) => Read::unknown(SOME_NAMESPACES),
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

    /// The same, unless they cannot be listed.
    pub(crate) async fn listed(&self) -> Result<(), Error> {
        match self {
            Self::BuiltIn(_) => Ok(()),
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
