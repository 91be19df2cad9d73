//! Applies the plan's objects in the management cluster.

use std::fmt::Debug;

use hangar_kit::ObjectKey;
use hangar_kit::apply::Rule;
use hangar_kit::error::{Error, Result};
use hangar_kit::watch::Watch;
use hangar_plan::hosted_control_plane::ObjectIdentity;
use k8s_openapi::NamespaceResourceScope;
use kube::core::DynamicObject;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ControlPlanes;

impl ControlPlanes {
    /// Applies everything, in order. One that fails stops no other; the failures are returned.
    pub(super) async fn apply(&self, objects: &[DynamicObject]) -> Vec<(ObjectIdentity, Error)> {
        let mut failed = Vec::new();
        for object in objects {
            if let Err(error) = self.apply_one(object).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "an object was not applied");
                failed.push((ObjectIdentity::of(object), error));
            }
        }
        failed
    }

    async fn apply_one(&self, object: &DynamicObject) -> Result<()> {
        let watches = &self.context.watches;
        let kind = object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
        match kind {
            "ConfigMap" => self.typed(watches.config_maps(), object).await,
            "Service" => self.typed(watches.services(), object).await,
            "StatefulSet" => self.typed(watches.stateful_sets(), object).await,
            "Deployment" => self.typed(watches.deployments(), object).await,
            "PodDisruptionBudget" => self.typed(watches.pod_disruption_budgets(), object).await,
            "NetworkPolicy" => self.typed(watches.network_policies(), object).await,
            // Without a store it would be sent at every pass.
            _ => Err(Error::Malformed {
                what: format!("{kind} {}", ObjectKey::of(object)),
                problem: "objects of this kind are not watched, so they cannot be kept".to_owned(),
            }),
        }
    }

    async fn typed<K>(&self, watch: &Watch<K>, object: &DynamicObject) -> Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug
            + Send
            + Sync
            + 'static,
    {
        let key = ObjectKey::of(object);
        let typed = serde_json::to_value(object).and_then(serde_json::from_value::<K>);
        let malformed = |error: serde_json::Error| Error::Malformed {
            what: format!("{} {key}", K::kind(&())),
            problem: error.to_string(),
        };
        let desired = typed.map_err(malformed)?;
        let api: Api<K> = Api::namespaced(self.context.client(), key.namespace_or_empty());
        let live = watch.get(&key);
        let live = live.as_ref().map(|kept| &kept.value);
        if let Some(written) = self.applier.apply(&api, &desired, live, Rule::Own).await?.object() {
            watch.written(written);
        }
        Ok(())
    }
}
