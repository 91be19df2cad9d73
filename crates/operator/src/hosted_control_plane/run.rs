//! Runs the steps of one pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_kit::ObjectKey;
use hangar_kit::error::{Error, Result, status_code};
use hangar_kit::execute::Workbench;
use hangar_kit::finalizer;
use hangar_kit::watch::{Kept, Watch};
use hangar_pki::Authority;
use hangar_plan::flow::{Outcome, Plan, Read};
use hangar_plan::hosted_control_plane::{
    Claim, InfrastructureFacts, Material, ObjectIdentity, Observed, SecretFacts, Step, plan,
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::fail::Problem;
use super::{ControlPlanes, FIELD_MANAGER, observe};
use crate::context::Watches;

/// One pass over one control plane.
pub(super) struct Bench<'a> {
    pub(super) this: &'a ControlPlanes,
    pub(super) key: &'a ObjectKey,
    /// The Cluster's key, once it is known: tenants are known by it.
    pub(super) cluster: Option<ObjectKey>,
    known: Mutex<BTreeMap<Material, SecretFacts>>,
    /// By fingerprint. Keys of authorities are held for this pass and no longer.
    authorities: Mutex<BTreeMap<String, Arc<Authority>>>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(this: &'a ControlPlanes, root: &'a Kept<HostedControlPlane>) -> Self {
        let name = observe::owner_name(&this.owner(root), root);
        let cluster = name.map(|name| ObjectKey { namespace: root.key.namespace.clone(), name });
        Self { this, key: &root.key, cluster, known: Mutex::default(), authorities: Mutex::default() }
    }

    pub(super) fn client(&self) -> Client {
        self.this.context.client()
    }

    pub(super) fn watches(&self) -> &Watches {
        &self.this.context.watches
    }

    fn roots(&self) -> &Watch<HostedControlPlane> {
        self.watches().control_planes()
    }

    fn api(&self) -> Api<HostedControlPlane> {
        Api::namespaced(self.client(), self.key.namespace_or_empty())
    }

    /// The control plane as it is now, our own writes included.
    fn root(&self) -> Result<Arc<Kept<HostedControlPlane>>, Problem> {
        match self.roots().get(self.key) {
            Read::One(kept) => Ok(kept),
            Read::Absent | Read::Many(_) => Err(Problem::Lost),
            Read::Unknown(unknown) => Err(observe::unknown(self.key, unknown).into()),
        }
    }

    /// Notes the facts of what was minted, for folding.
    pub(super) fn know(&self, material: Material, facts: SecretFacts) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(material, facts);
    }

    pub(super) fn known_authority(&self, fingerprint: &str) -> Option<Arc<Authority>> {
        self.authorities.lock().unwrap_or_else(PoisonError::into_inner).get(fingerprint).cloned()
    }

    pub(super) fn remember_authority(&self, authority: Authority) -> Arc<Authority> {
        let (fingerprint, authority) = (authority.certificate().fingerprint(), Arc::new(authority));
        let mut all = self.authorities.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(fingerprint, Arc::clone(&authority));
        authority
    }

    /// One patch of the control plane itself, for the version that is known now.
    async fn patch_root(&self, root: &Kept<HostedControlPlane>, mut patch: Value) -> Result<(), Problem> {
        patch["metadata"]["uid"] = json!(root.uid);
        patch["metadata"]["resourceVersion"] = json!(root.resource_version);
        let patched = self.api().patch(&self.key.name, &parameters(), &Patch::Merge(&patch)).await;
        let patched = patched.map_err(|error| Problem::api(format!("patch {}", self.key), error))?;
        self.roots().written(patched);
        Ok(())
    }

    async fn claim(&self, claim: &Claim) -> Result<(), Problem> {
        let root = self.root()?;
        let mut finalizers = root.metadata.finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|present| present == claim.finalizer) {
            finalizers.push(claim.finalizer.to_owned());
        }
        let metadata = json!({ "finalizers": finalizers, "annotations": claim.annotations });
        self.patch_root(&root, json!({ "metadata": metadata })).await
    }

    async fn publish(&self, endpoint: &Endpoint) -> Result<(), Problem> {
        let root = self.root()?;
        let present = root.spec.settings.control_plane_endpoint.as_ref();
        if present.is_some_and(|present| present.is_valid() && present != endpoint) {
            // Somebody was faster.
            return Err(Problem::Lost);
        }
        self.patch_root(&root, json!({ "metadata": {}, "spec": { "controlPlaneEndpoint": endpoint } })).await
    }

    async fn publish_infrastructure(
        &self,
        target: &InfrastructureFacts,
        endpoint: &Endpoint,
    ) -> Result<(), Problem> {
        let resource = resource(&target.api_version, &target.kind)?;
        let watch = self.this.context.foreign.watch(&resource);
        let namespace = self.key.namespace_or_empty();
        let Read::One(kept) = watch.get(&ObjectKey::namespaced(namespace, &target.name)) else {
            return Err(Problem::Lost);
        };
        if kept.uid != target.uid || !observe::endpoint(&kept).host.is_empty() {
            return Err(Problem::Lost);
        }
        // The version makes it certain that the host is still empty.
        let patch = json!({
            "metadata": { "uid": kept.uid, "resourceVersion": kept.resource_version },
            "spec": { "controlPlaneEndpoint": endpoint },
        });
        let api: Api<DynamicObject> = Api::namespaced_with(self.client(), namespace, &resource);
        let patched = api.patch(&target.name, &parameters(), &Patch::Merge(&patch)).await;
        let patched =
            patched.map_err(|error| Problem::api(format!("patch {} {}", target.kind, target.name), error))?;
        watch.written(patched);
        Ok(())
    }

    async fn refresh(
        &self,
        pod: &str,
        uid: &str,
        annotations: &BTreeMap<String, String>,
    ) -> Result<(), Problem> {
        let api: Api<Pod> = Api::namespaced(self.client(), self.key.namespace_or_empty());
        let patch = json!({ "metadata": { "uid": uid, "annotations": annotations } });
        let patched = api.patch(pod, &parameters(), &Patch::Merge(&patch)).await;
        let patched = patched.map_err(|error| Problem::api(format!("patch pod {pod}"), error))?;
        self.watches().pods().written(patched);
        Ok(())
    }

    async fn delete(&self, object: &ObjectIdentity, uid: &str) -> Result<(), Problem> {
        let resource = resource(&object.api_version, &object.kind)?;
        let api: Api<DynamicObject> = Api::namespaced_with(self.client(), &object.namespace, &resource);
        delete(&api, object, uid, PropagationPolicy::Foreground).await
    }

    async fn release(&self, name: &str) -> Result<(), Problem> {
        let root = self.root()?;
        match finalizer::remove(&self.api(), &root.value, name).await {
            Ok(Some(left)) if left.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) => {
                // Without finalizers it is gone.
                self.roots().removed(self.key, &root.uid);
                Ok(())
            }
            Ok(Some(left)) => {
                self.roots().written(left);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(Error::Stale { .. }) => Err(Problem::Lost),
            Err(Error::Api { what, source }) => Err(Problem::api(what, *source)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Deletes one object, the one with that uid; one that is gone is deleted.
pub(super) async fn delete(
    api: &Api<DynamicObject>,
    object: &ObjectIdentity,
    uid: &str,
    propagation: PropagationPolicy,
) -> Result<(), Problem> {
    let parameters = DeleteParams {
        preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
        propagation_policy: Some(propagation),
        ..DeleteParams::default()
    };
    match api.delete(&object.name, &parameters).await {
        Ok(_) => Ok(()),
        Err(error) if status_code(&error) == Some(404) => Ok(()),
        Err(error) => Err(Problem::api(format!("delete {object}"), error)),
    }
}

/// How an object's API is called. Kinds of Kubernetes itself and of providers have regular plurals.
pub(super) fn resource(api_version: &str, kind: &str) -> Result<ApiResource, Problem> {
    let types = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
    let kind = GroupVersionKind::try_from(&types)
        .map_err(|error| Problem::failed("Malformed", error.to_string(), false))?;
    Ok(ApiResource::from_gvk(&kind))
}

pub(super) fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn done(result: Result<(), Problem>) -> Outcome {
    result.map_or_else(Problem::outcome, |()| Outcome::Done)
}

impl Workbench for Bench<'_> {
    type Observation = Observed;
    type Step = Step;
    type Status = hangar_api::controlplane::v1alpha1::HostedControlPlaneStatus;
    type Object = DynamicObject;
    type Error = Error;

    async fn observe(&self) -> Result<Observed> {
        match self.roots().get(self.key) {
            Read::One(root) => Ok(self.this.observed(&root).await),
            Read::Unknown(unknown) => Err(observe::unknown(self.key, unknown)),
            Read::Absent | Read::Many(_) => Err(Error::Stale { what: self.key.to_string() }),
        }
    }

    fn plan(&self, observation: &Observed) -> Plan<Step, Self::Status> {
        plan(observation)
    }

    async fn run(&self, step: &Step, _limit: Duration) -> Outcome {
        match step {
            Step::Claim(claim) => done(self.claim(claim).await),
            Step::Mint(mint) => self.mint(mint).await,
            Step::PublishEndpoint(endpoint) => done(self.publish(endpoint).await),
            Step::PublishInfrastructureEndpoint { target, endpoint } => {
                done(self.publish_infrastructure(target, endpoint).await)
            }
            Step::RefreshPod { pod, uid, annotations } => done(self.refresh(pod, uid, annotations).await),
            Step::ApplyTenant { object, uid } => self.apply_in_tenant(object, uid.as_deref()).await,
            Step::DeleteTenant { object, uid } => done(self.delete_in_tenant(object, uid).await),
            Step::Delete { object, uid } => done(self.delete(object, uid).await),
            Step::Release { finalizer } => done(self.release(finalizer).await),
        }
    }

    fn fold(&self, observation: &mut Observed, step: &Step, outcome: &Outcome) {
        observation.fold(step, outcome);
        if !outcome.is_success() {
            return;
        }
        match step {
            Step::Mint(mint) => {
                let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(facts) = known.get(&mint.material) {
                    observation.secrets.insert(mint.material, Read::One(facts.clone()));
                }
            }
            // Others may have changed more of it: what the API server returned is what it is.
            Step::Claim(_) | Step::PublishEndpoint(_) => {
                if let Read::One(root) = self.roots().get(self.key) {
                    observation.control_plane = root.value.clone();
                }
            }
            _ => {}
        }
    }
}
