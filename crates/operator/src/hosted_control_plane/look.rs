//! What is in the tenant: looked at when something is to be learned, remembered until then, changed by own writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use hangar_kit::ObjectKey;
use hangar_kit::apply::is_contained;
use hangar_kit::client::KubeconfigSource as _;
use hangar_kit::error::{Error, is_lost, status_code};
use hangar_plan::flow::{Outcome, Read, Unknown};
use hangar_plan::hosted_control_plane::names::DESIRED_ANNOTATION;
use hangar_plan::hosted_control_plane::{
    ObjectIdentity, Observed, TenantFacts, TenantObject, tenant_leftovers, tenant_objects,
};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams, PropagationPolicy};
use kube::core::DynamicObject;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fail::{Problem, is_conflict};
use super::run::{Bench, delete, resource};
use super::{ControlPlanes, FIELD_MANAGER};

/// What drifts in a tenant is put back within this time.
const LOOK_EVERY: Duration = Duration::from_mins(5);
/// While a tenant has few nodes, more are on their way, and some replica counts follow them.
const LOOK_SOON: Duration = Duration::from_secs(20);
/// With so many nodes, no replica count depends on their number any more.
const ENOUGH_NODES: u32 = 2;
/// Reads of one look that are under way together.
const READS_AT_ONCE: usize = 8;

/// What was last seen of each tenant.
#[derive(Default)]
pub(super) struct Looks(Mutex<BTreeMap<ObjectKey, Look>>);

struct Look {
    /// Of the kubeconfig it was seen through: another one may lead elsewhere.
    revision: Option<String>,
    at: Instant,
    facts: TenantFacts,
}

impl Look {
    fn age_limit(&self) -> Duration {
        if self.facts.nodes < ENOUGH_NODES { LOOK_SOON } else { LOOK_EVERY }
    }
}

impl Looks {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a control plane: the next observation looks again.
    pub(super) fn forget(&self, control_plane: &ObjectKey) {
        self.all().remove(control_plane);
    }

    /// Keeps what own writes made of the facts.
    pub(super) fn fold(&self, control_plane: &ObjectKey, facts: &TenantFacts) {
        if let Some(look) = self.all().get_mut(control_plane) {
            look.facts = facts.clone();
        }
    }

    /// When the next look is due, if there was one.
    pub(super) fn due_in(&self, control_plane: &ObjectKey) -> Option<Duration> {
        let all = self.all();
        let look = all.get(control_plane)?;
        Some(look.age_limit().saturating_sub(look.at.elapsed()))
    }

    fn recent(&self, control_plane: &ObjectKey, revision: Option<&str>) -> Option<TenantFacts> {
        let all = self.all();
        let look = all.get(control_plane)?;
        let is_recent = look.at.elapsed() < look.age_limit() && look.revision.as_deref() == revision;
        is_recent.then(|| look.facts.clone())
    }
}

impl ControlPlanes {
    /// Fills in what is known of the tenant.
    pub(super) async fn look_at_tenant(
        &self,
        observed: &mut Observed,
        control_plane: &ObjectKey,
        cluster: &ObjectKey,
    ) {
        let unknown = |why: &str| Read::Unknown(Unknown::new(why));
        if observed.control_plane.metadata.deletion_timestamp.is_some() {
            observed.tenant = unknown("the control plane is being deleted");
            return;
        }
        if observed.api_server.iter().all(|facts| facts.ready < 1) {
            observed.tenant = unknown("no API server is ready");
            return;
        }
        let revision = self.tenants.source().revision(cluster);
        if let Some(facts) = self.looks.recent(control_plane, revision.as_deref()) {
            observed.tenant = Read::One(facts);
            let asked = asked(observed);
            if let Read::One(facts) = &observed.tenant
                && asked.iter().all(|(identity, _)| facts.objects.contains_key(identity))
            {
                return;
            }
        }
        observed.tenant = match self.looked(observed, cluster).await {
            Ok(facts) => {
                let look = Look { revision, at: Instant::now(), facts: facts.clone() };
                self.looks.all().insert(control_plane.clone(), look);
                Read::One(facts)
            }
            Err(why) => {
                self.looks.forget(control_plane);
                unknown(&why)
            }
        };
    }

    async fn looked(&self, observed: &mut Observed, cluster: &ObjectKey) -> Result<TenantFacts, String> {
        let client = self.tenants.client(cluster).await.map_err(|error| error.to_string())?;
        let nodes = Api::<Node>::all(client.clone()).list_metadata(&ListParams::default().limit(500)).await;
        let nodes = nodes.map_err(|error| format!("cannot list its nodes: {error}"))?;
        let more = nodes.metadata.remaining_item_count.unwrap_or_default();
        let count = i64::try_from(nodes.items.len()).unwrap_or(i64::MAX).saturating_add(more);
        let nodes = u32::try_from(count).unwrap_or(u32::MAX);
        // What is desired may depend on the number of nodes.
        observed.tenant = Read::One(TenantFacts { nodes, ..TenantFacts::default() });
        let reads = stream::iter(asked(observed))
            .map(|(identity, desired)| {
                let client = client.clone();
                async move {
                    let found = read(&client, &identity, desired.as_ref()).await;
                    (identity, found)
                }
            })
            .buffered(READS_AT_ONCE);
        let found: Vec<(ObjectIdentity, kube::Result<TenantObject>)> = reads.collect().await;
        let mut facts = TenantFacts { nodes, ..TenantFacts::default() };
        for (identity, result) in found {
            match result {
                Ok(object) => {
                    facts.objects.insert(identity, object);
                }
                Err(error) if is_lost(&error) => return Err(format!("cannot read {identity}: {error}")),
                // The others go on; this one is left alone until it can be read.
                Err(error) => tracing::warn!(object = %identity, %error, "not read in the tenant"),
            }
        }
        Ok(facts)
    }
}

/// What to look for: everything that is desired, and what may be left over.
fn asked(observed: &Observed) -> Vec<(ObjectIdentity, Option<Value>)> {
    let desired = tenant_objects(observed).into_iter();
    let desired = desired.map(|object| (ObjectIdentity::of(&object), serde_json::to_value(&object).ok()));
    let leftovers = tenant_leftovers(observed).into_iter().map(|identity| (identity, None));
    desired.chain(leftovers).collect()
}

async fn read(
    client: &Client,
    identity: &ObjectIdentity,
    desired: Option<&Value>,
) -> kube::Result<TenantObject> {
    let Ok(api) = api(client, identity) else {
        return Ok(TenantObject::Foreign);
    };
    let Some(live) = api.get_opt(&identity.name).await? else {
        return Ok(TenantObject::Absent);
    };
    let annotations = live.metadata.annotations.as_ref();
    let Some(applied) = annotations.and_then(|annotations| annotations.get(DESIRED_ANNOTATION)).cloned()
    else {
        return Ok(TenantObject::Foreign);
    };
    let uid = live.metadata.uid.clone().unwrap_or_default();
    let is_drifted = match (desired, serde_json::to_value(&live)) {
        (Some(desired), Ok(live)) => !is_contained(desired, &live),
        _ => false,
    };
    Ok(TenantObject::Ours { uid, applied: Some(applied), is_drifted })
}

fn api(client: &Client, identity: &ObjectIdentity) -> Result<Api<DynamicObject>, Problem> {
    let resource = resource(&identity.api_version, &identity.kind)?;
    Ok(if identity.namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), &identity.namespace, &resource)
    })
}

impl Bench<'_> {
    async fn tenant(&self) -> Result<Client, Problem> {
        let cluster = self.cluster.as_ref().ok_or(Problem::Lost)?;
        Ok(self.this.tenants.client(cluster).await?)
    }

    /// Applies an object in the tenant: never over one of another, never a successor of one that was seen.
    pub(super) async fn apply_in_tenant(&self, object: &DynamicObject, uid: Option<&str>) -> Outcome {
        match self.applied_in_tenant(object, uid).await {
            Ok(Some(created)) => Outcome::Created(created),
            Ok(None) => Outcome::Done,
            Err(problem) => problem.outcome(),
        }
    }

    async fn applied_in_tenant(
        &self,
        object: &DynamicObject,
        uid: Option<&str>,
    ) -> Result<Option<String>, Problem> {
        let identity = ObjectIdentity::of(object);
        let api = api(&self.tenant().await?, &identity)?;
        let body = serde_json::to_value(object);
        let mut body = body.map_err(|error| Problem::failed("Malformed", error.to_string(), false))?;
        if let Some(uid) = uid {
            body["metadata"]["uid"] = json!(uid);
        }
        // Only what is ours already is taken over from others.
        let parameters = PatchParams { force: uid.is_some(), ..PatchParams::apply(FIELD_MANAGER) };
        match api.patch(&identity.name, &parameters, &Patch::Apply(&body)).await {
            Ok(applied) if uid.is_none() => Ok(Some(applied.metadata.uid.unwrap_or_default())),
            Ok(_) => Ok(None),
            // Another object has the name: the API server calls a wrong uid invalid.
            Err(error) if uid.is_some() && status_code(&error) == Some(422) && names_uid(&error) => {
                Err(Problem::Lost)
            }
            Err(error) if uid.is_none() && is_conflict(&error) => Err(Problem::Refused(format!(
                "{identity} exists in the tenant and has fields that others manage"
            ))),
            // Its namespace or its kind is missing: reading again at once would not bring it.
            Err(error) if uid.is_none() && status_code(&error) == Some(404) => {
                let error = Error::api(format!("apply {identity} in the tenant"), error);
                Err(error.into())
            }
            Err(error) => Err(Problem::api(format!("apply {identity} in the tenant"), error)),
        }
    }

    pub(super) async fn delete_in_tenant(&self, object: &ObjectIdentity, uid: &str) -> Result<(), Problem> {
        let api = api(&self.tenant().await?, object)?;
        delete(&api, object, uid, PropagationPolicy::Background).await
    }
}

fn names_uid(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.field == "metadata.uid")
}
