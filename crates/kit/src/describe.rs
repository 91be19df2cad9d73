//! Reads everything that belongs to one Cluster, for `hangar describe` and for the progress of `hangar up`.
//!
//! The reads are live, a handful of lists, because the command is rare. References name kinds of any provider, so
//! objects are read as raw JSON, in the version their API server prefers.

use std::collections::{BTreeMap, BTreeSet};

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_plan::describe::Objects;
use kube::api::{DynamicObject, ListParams};
use kube::discovery::{self, ApiGroup};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

/// Everything around a Cluster; nothing if there is no such Cluster.
pub async fn read(client: &Client, namespace: &str, name: &str) -> Result<Option<Objects>> {
    let clusters: Api<Cluster> = Api::namespaced(client.clone(), namespace);
    let found = clusters.get_opt(name).await;
    let Some(cluster) =
        found.map_err(|source| Error::api(format!("read Cluster {namespace}/{name}"), source))?
    else {
        return Ok(None);
    };
    let mut objects = Objects { cluster: value(&cluster)?, others: Vec::new() };
    let selector = ListParams::default().labels(&format!("{CLUSTER_NAME_LABEL}={name}"));
    list::<MachineDeployment>(client, namespace, &selector, &mut objects.others).await?;
    list::<MachineSet>(client, namespace, &selector, &mut objects.others).await?;
    list::<Machine>(client, namespace, &selector, &mut objects.others).await?;
    let references: BTreeSet<Reference> =
        std::iter::once(&objects.cluster).chain(&objects.others).flat_map(references).collect();
    let mut groups = BTreeMap::new();
    for reference in references {
        objects.others.extend(referred(client, namespace, &reference, &mut groups).await?);
    }
    Ok(Some(objects))
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reference {
    group: String,
    kind: String,
    name: String,
}

fn references(object: &Value) -> Vec<Reference> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    ["/spec/controlPlaneRef", "/spec/infrastructureRef", "/spec/bootstrap/configRef"]
        .into_iter()
        .filter_map(|path| object.pointer(path))
        .map(|found| Reference {
            group: text(found, "apiGroup"),
            kind: text(found, "kind"),
            name: text(found, "name"),
        })
        .filter(|reference| !reference.name.is_empty())
        .collect()
}

async fn referred(
    client: &Client,
    namespace: &str,
    reference: &Reference,
    groups: &mut BTreeMap<String, Option<ApiGroup>>,
) -> Result<Option<Value>> {
    if !groups.contains_key(&reference.group) {
        // A group that is not served is an answer: what it names is missing.
        let found = discovery::group(client, &reference.group).await.ok();
        groups.insert(reference.group.clone(), found);
    }
    let group = groups.get(&reference.group).and_then(Option::as_ref);
    let Some((resource, _)) = group.and_then(|group| group.recommended_kind(&reference.kind)) else {
        return Ok(None);
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let what = || format!("read {} {namespace}/{}", reference.kind, reference.name);
    let found = api.get_opt(&reference.name).await.map_err(|source| Error::api(what(), source))?;
    found.map(|object| value(&object)).transpose()
}

async fn list<K>(client: &Client, namespace: &str, selector: &ListParams, into: &mut Vec<Value>) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let found = api.list(selector).await;
    for object in found.map_err(|source| Error::api(format!("list {}", K::plural(&())), source))? {
        let mut object = value(&object)?;
        // Items of a list do not say what they are.
        object["kind"] = K::kind(&()).into();
        into.push(object);
    }
    Ok(())
}

fn value(object: &impl Serialize) -> Result<Value> {
    serde_json::to_value(object)
        .map_err(|error| Error::Malformed { what: "an object".to_owned(), problem: error.to_string() })
}
