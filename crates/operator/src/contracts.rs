//! Finds which version of a foreign kind implements the contract, from the labels of the CRDs.
//!
//! Only the metadata of CRDs is watched: their schemas are tens of megabytes, which no controller reads.

use hangar_api::contract::{self, Choice};
use hangar_api::conversion::VersionLookup;
use hangar_api::naming;
use hangar_kit::metrics::WatchMetrics;
use hangar_kit::watch::{Watch, WatchBuilder};
use hangar_kit::{Error, ObjectKey};
use hangar_plan::flow::Read;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

/// The contract versions of every CRD in the cluster, kept current by a watch.
#[derive(Clone)]
pub(crate) struct Contracts {
    watch: Watch<PartialObjectMeta<CustomResourceDefinition>, Option<Choice>>,
}

impl Contracts {
    pub(crate) fn watch(client: Client, metrics: &WatchMetrics, stop: &CancellationToken) -> Self {
        let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
        let watch = WatchBuilder::new("customresourcedefinitions", api)
            .project(stop, |definition| contract::chosen(&definition.metadata.labels.unwrap_or_default()));
        let counted = watch.clone();
        metrics.add(watch.name(), move || counted.stats());
        Self { watch }
    }

    /// The version and contract of a kind: absent when there is no such CRD, or its labels name none.
    pub(crate) fn choice(&self, group: &str, kind: &str) -> Read<Choice> {
        let key = ObjectKey::cluster(naming::custom_resource(group, kind));
        match self.watch.get(&key) {
            Read::One(kept) => kept.value.clone().map_or(Read::Absent, Read::One),
            Read::Unknown(unknown) => Read::Unknown(unknown),
            Read::Absent | Read::Many(_) => Read::Absent,
        }
    }

    /// The same, unless they cannot be listed.
    pub(crate) async fn listed(&self) -> Result<(), Error> {
        self.watch.listed().await
    }

    /// Returns when every CRD was seen once.
    pub(crate) async fn synced(&self) {
        self.watch.synced().await;
    }
}

impl VersionLookup for Contracts {
    fn version(&self, group: &str, kind: &str) -> Option<String> {
        // Conversion is total: while the CRDs are unknown, the version that the object itself kept is used.
        self.choice(group, kind).known().ok()?.pop().map(|choice| choice.version)
    }
}
