//! `hangar install`: applies the objects of `hangar_plan::install`, and waits until the API server serves their kinds.
//!
//! It is idempotent: objects that are as desired are left alone, others are changed, and a second run makes what a
//! failed run did not. CRDs that somebody else installed are never changed; that is checked before the first write.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use hangar_api::reference::is_kind;
use hangar_kit::apply::{Applied, Applier};
use hangar_kit::client::{ClientOptions, client};
use hangar_plan::flow::Read;
use hangar_plan::install::{self, CONTROLLERS_ROLE, MANAGED_BY, MANAGED_BY_LABEL};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams};
use kube::core::{DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube::discovery::ApiResource;
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;
use crate::error::Trying;

pub use hangar_plan::install::{Options, Target};

/// Who applies, in managed fields.
const FIELD_MANAGER: &str = "hangar-install";

/// An API server takes milliseconds to take a CRD into service, and seconds when it has a hundred others to do.
const ESTABLISH_LIMIT: Duration = Duration::from_secs(60);

/// What became of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Such as `Deployment hangar-system/hangar-manager`.
    pub object: String,
    /// `created`, `changed`, `unchanged` or `deleted`.
    pub outcome: &'static str,
}

/// The objects as a YAML stream.
pub fn print(options: &Options) -> Result<String, Error> {
    Ok(install::to_yaml(&install::objects(options)?)?)
}

/// Applies everything; `report` hears of each object as it is done.
pub async fn apply(config: Config, options: &Options, mut report: impl FnMut(Progress)) -> Result<(), Error> {
    let client = client(config, &ClientOptions::default())?;
    let objects = install::objects(options)?;
    refuse_foreign_definitions(&client, &objects).await?;
    refuse_missing_namespaces(&client, options).await?;
    let (definitions, others): (Vec<&Value>, Vec<&Value>) =
        objects.iter().partition(|object| is_definition(object));
    let applier = Applier::new(FIELD_MANAGER);
    // The namespace is the first of the others, and CRDs need none.
    for object in &definitions {
        report(apply_one(&client, &applier, object).await?);
    }
    for object in &definitions {
        wait_until_established(&client, object).await?;
    }
    for object in others {
        report(apply_one(&client, &applier, object).await?);
    }
    end_rights_elsewhere(&client, options, report).await
}

fn is_definition(object: &Value) -> bool {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    is_kind::<CustomResourceDefinition>(text("apiVersion"), text("kind"))
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

async fn refuse_foreign_definitions(client: &Client, objects: &[Value]) -> Result<(), Error> {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let mut foreign = Vec::new();
    for object in objects.iter().filter(|object| is_definition(object)) {
        let name = name_of(object);
        let found = api.get_metadata_opt(name).await.trying(|| format!("read the CRD {name}"))?;
        let Some(found) = found else { continue };
        let labels = found.labels();
        if labels.get(MANAGED_BY_LABEL).map(String::as_str) != Some(MANAGED_BY) {
            let owner =
                labels.get(hangar_api::names::PROVIDER_LABEL).or_else(|| labels.get(MANAGED_BY_LABEL));
            let owner = owner.map_or("unknown provider", String::as_str);
            foreign.push(format!("{name} ({owner})"));
        }
    }
    if foreign.is_empty() { Ok(()) } else { Err(Error::ForeignDefinitions { names: foreign.join(", ") }) }
}

/// Roles need their namespace, which is not ours to create.
async fn refuse_missing_namespaces(client: &Client, options: &Options) -> Result<(), Error> {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
    let mut missing = Vec::new();
    for name in options.namespaces.names().into_iter().flatten().filter(|name| **name != options.namespace) {
        let found = api.get_metadata_opt(name).await.trying(|| format!("read the namespace {name}"))?;
        if found.is_none() {
            missing.push(name.as_str());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::MissingNamespaces { names: missing.join(", ") }) }
}

/// Deletes the Roles of an earlier installation in namespaces that this one does not name.
async fn end_rights_elsewhere(
    client: &Client,
    options: &Options,
    mut report: impl FnMut(Progress),
) -> Result<(), Error> {
    let ours = ListParams::default()
        .labels(&format!("{MANAGED_BY_LABEL}={MANAGED_BY}"))
        .fields(&format!("metadata.name={CONTROLLERS_ROLE}"));
    let bindings: Api<RoleBinding> = Api::all(client.clone());
    let found =
        bindings.list(&ours).await.trying(|| "list the RoleBindings of earlier installations".to_owned())?;
    for binding in found.items.iter().filter(|binding| install::is_left_over(options, binding)) {
        let namespace = binding.namespace().unwrap_or_default();
        // The binding goes last: a run that fails between them finds it again.
        remove::<Role>(client, &namespace, &mut report).await?;
        remove::<RoleBinding>(client, &namespace, &mut report).await?;
    }
    Ok(())
}

async fn remove<K>(client: &Client, namespace: &str, report: &mut impl FnMut(Progress)) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let object = format!("{} {namespace}/{CONTROLLERS_ROLE}", K::kind(&()));
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    match api.delete(CONTROLLERS_ROLE, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
        deleted => drop(deleted.trying(|| format!("delete {object}"))?),
    }
    report(Progress { object, outcome: "deleted" });
    Ok(())
}

async fn apply_one(client: &Client, applier: &Applier, object: &Value) -> Result<Progress, Error> {
    let desired: DynamicObject = serde_json::from_value(object.clone()).map_err(Error::Malformed)?;
    let kind = object["kind"].as_str().unwrap_or_default();
    let (group, version) = match object["apiVersion"].as_str().unwrap_or_default() {
        grouped if grouped.contains('/') => grouped.split_once('/').unwrap_or_default(),
        version => ("", version),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let (api, label) = match &desired.metadata.namespace {
        Some(namespace) => (
            Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource),
            format!("{kind} {namespace}/{}", desired.name_any()),
        ),
        None => (Api::all_with(client.clone(), &resource), format!("{kind} {}", desired.name_any())),
    };
    let live = api.get_opt(&desired.name_any()).await.trying(|| format!("read {label}"))?;
    let applied = match &live {
        Some(live) => {
            let keep = |body| install::keeping_paths(body, &live.data);
            applier.apply_keeping(&api, &desired, live, keep).await?
        }
        None => applier.apply(&api, &desired, Read::Absent).await?,
    };
    let outcome = match applied {
        Applied::Unchanged => "unchanged",
        Applied::Created(_) => "created",
        Applied::Changed(_) => "changed",
        Applied::Terminating | Applied::Vanished => "being deleted",
    };
    Ok(Progress { object: label, outcome })
}

async fn wait_until_established(client: &Client, object: &Value) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = name_of(object);
    let start = Instant::now();
    loop {
        let found = api.get(name).await.trying(|| format!("read the CRD {name}"))?;
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True") {
            return Ok(());
        }
        if start.elapsed() > ESTABLISH_LIMIT {
            let texts = conditions.iter().filter(|condition| condition.status != "True").map(|condition| {
                format!("{}: {}", condition.type_, condition.message.as_deref().unwrap_or_default())
            });
            return Err(Error::NotEstablished {
                name: name.to_owned(),
                seconds: ESTABLISH_LIMIT.as_secs(),
                reason: texts.collect::<Vec<_>>().join(", "),
            });
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The manager's Deployment has at least one pod that serves, and none of an older kind.
pub async fn wait_until_available(config: Config, namespace: &str) -> Result<(), Error> {
    let api: Api<Deployment> = Api::namespaced(client(config, &ClientOptions::default())?, namespace);
    let start = Instant::now();
    loop {
        let found = api.get(install::NAME).await.trying(|| "read the manager's Deployment".to_owned())?;
        let status = found.status.clone().unwrap_or_default();
        let wanted = found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let is_observed = status.observed_generation >= found.metadata.generation;
        if is_observed && status.updated_replicas == Some(wanted) && status.available_replicas == Some(wanted)
        {
            return Ok(());
        }
        if start.elapsed() > ESTABLISH_LIMIT * 2 {
            let reasons =
                status.conditions.unwrap_or_default().into_iter().filter_map(|condition| condition.message);
            return Err(Error::NotAvailable {
                seconds: start.elapsed().as_secs(),
                reason: reasons.collect::<Vec<_>>().join(" "),
            });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
