//! An object of a list or an event of a watch, read apart from the others.
//!
//! kube reads a list as a whole: one object with a value that its type cannot hold, or that nests deeper than a parser
//! goes, would fail the list, and every event, for everybody. Here each object is only skipped over at first, which
//! works at any depth, and then read on its own. One that cannot be read is kept as what identifies it.
//!
//! So is one with a reference into another namespace, which the type has no field for: followed at home, it would lead
//! to another object than its author meant.

use std::{borrow::Cow, collections::BTreeMap, marker::PhantomData};

use hangar_api::{conversion, names::STASH_ANNOTATION};
use hangar_plan::unreadable::Unreadable;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::{Api, Resource, core::ObjectMeta};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, IgnoredAny},
};
use serde_json::value::RawValue;

/// The longest text about a field: it goes into conditions.
const TEXT_LIMIT: usize = 300;

/// An object, or what can be said of one that cannot be read.
#[derive(Clone, Debug)]
pub(super) enum Item<K> {
    Readable(K),
    Unreadable(Box<Unreadable>),
}

/// Where objects are listed: all that a request for items of a kind needs to know.
pub(super) struct Place<K>(String, PhantomData<fn() -> K>);

/// The same objects, read one by one.
pub(super) fn apart<K: Resource + Clone + DeserializeOwned + 'static>(api: Api<K>) -> Api<Item<K>> {
    let place = Place(api.resource_url().to_owned(), PhantomData);
    Api::all_with(api.into_client(), &place)
}

impl<K: Resource + 'static> Resource for Item<K> {
    type DynamicType = Place<K>;
    type Scope = K::Scope;

    fn kind(_: &Place<K>) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn group(_: &Place<K>) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn version(_: &Place<K>) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn plural(_: &Place<K>) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn url_path(place: &Place<K>, _: Option<&str>) -> String {
        place.0.clone()
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Readable(object) => object.meta(),
            Self::Unreadable(object) => &object.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Readable(object) => object.meta_mut(),
            Self::Unreadable(object) => &mut object.metadata,
        }
    }
}

impl<'de, K: Resource + DeserializeOwned> Deserialize<'de> for Item<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let mut text = Cow::Borrowed(raw.get());
        let mut read = serde_json::from_str::<K>(&text);
        if read.is_err()
            && let Some(shorter) = without_managed_fields(&text)
        {
            text = Cow::Owned(shorter);
            read = serde_json::from_str(&text);
        }
        let why = match read {
            Ok(object) => match reference_elsewhere(object.meta(), &text) {
                None => return Ok(Self::Readable(object)),
                Some(why) => why,
            },
            Err(_) => why::<K>(&text),
        };
        unreadable(&text, why).map(Self::Unreadable).map_err(D::Error::custom)
    }
}

/// What is wrong with a reference into another namespace.
fn reference_elsewhere(metadata: &ObjectMeta, text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed {
        kind: String,
    }
    metadata.annotations.as_ref()?.get(STASH_ANNOTATION)?;
    let typed: Typed = serde_json::from_str(text).ok()?;
    let (field, namespace) = conversion::reference_elsewhere(&typed.kind, metadata)?;
    Some(format!(
        "{field}: it names the namespace {}, and references stay in the namespace of the object",
        shortened(&namespace, TEXT_LIMIT / 3)
    ))
}

/// The object without its managedFields, which nobody here reads: they repeat how deeply the object is nested, and hold
/// times that any client may choose.
fn without_managed_fields(text: &str) -> Option<String> {
    let mut object: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let mut metadata: BTreeMap<String, &RawValue> =
        serde_json::from_str(object.get("metadata")?.get()).ok()?;
    metadata.remove("managedFields")?;
    let metadata = serde_json::value::to_raw_value(&metadata).ok()?;
    object.insert("metadata".to_owned(), &metadata);
    serde_json::to_string(&object).ok()
}

/// What is left of an object. Fails only for what no API server sends: an object without metadata.
fn unreadable(text: &str, why: String) -> Result<Box<Unreadable>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Outline {
        metadata: Identity,
        status: Option<Box<RawValue>>,
    }
    #[derive(Deserialize, Default)]
    struct Status {
        #[serde(default)]
        conditions: Vec<serde_json::Value>,
    }
    let outline: Outline = serde_json::from_str(text)?;
    let status: Option<Status> = outline.status.and_then(|raw| serde_json::from_str(raw.get()).ok());
    Ok(Box::new(Unreadable {
        metadata: outline.metadata.into(),
        conditions: status.unwrap_or_default().conditions,
        why,
    }))
}

/// Metadata without what may itself be unreadable: of times only whether there is one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<IgnoredAny>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

impl From<Identity> for ObjectMeta {
    fn from(identity: Identity) -> Self {
        Self {
            name: identity.name,
            namespace: identity.namespace,
            uid: identity.uid,
            resource_version: identity.resource_version,
            generation: identity.generation,
            creation_timestamp: identity.creation_timestamp.and_then(|time| time.parse().ok()).map(Time),
            deletion_timestamp: identity.deletion_timestamp.map(|_| Time(jiff::Timestamp::UNIX_EPOCH)),
            labels: identity.labels,
            annotations: identity.annotations,
            finalizers: identity.finalizers,
            owner_references: identity.owner_references,
            ..Self::default()
        }
    }
}

/// The field that could not be read, and what is wrong with it.
fn why<K: DeserializeOwned>(text: &str) -> String {
    let read: Result<K, _> = serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text));
    let Err(error) = read else { return "it cannot be read".to_owned() };
    let (path, problem) = (error.path().to_string(), error.inner().to_string());
    // Where it stands in the answer helps nobody.
    let problem = problem.split(" at line ").next().unwrap_or_default();
    let problem = match problem {
        "recursion limit exceeded" => "it is nested too deeply".to_owned(),
        other => other.replace("expected i32", "expected a whole number of 32 bits"),
    };
    format!("{}: {}", shortened(&path, TEXT_LIMIT / 3), shortened(&problem, TEXT_LIMIT))
}

fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use hangar_api::cluster::v1beta2::Machine;
    use k8s_openapi::api::core::v1::Secret;
    use kube::core::{DynamicObject, ObjectList, PartialObjectMeta, WatchEvent};
    use serde_json::{Value, json};

    use super::*;

    fn machine(name: &str, seconds: i64) -> Value {
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "namespace": "evil", "uid": "u", "resourceVersion": "7", "generation": 2,
                "labels": {"a": "b"}, "finalizers": ["f"], "deletionTimestamp": "2026-01-01T00:00:00Z",
                "managedFields": [{"time": "10000-01-01T00:00:00Z"}]},
            "spec": {"clusterName": "demo", "minReadySeconds": seconds, "bootstrap": {},
                "infrastructureRef": {"apiGroup": "g", "kind": "K", "name": "n"}},
            "status": {"conditions": [{"type": "Ready"}]},
        })
    }

    fn nested(depth: usize) -> String {
        let (open, close) = ("{\"a\":".repeat(depth), "}".repeat(depth));
        format!(r#"{{"metadata":{{"name":"deep","uid":"u"}},"spec":{open}1{close}}}"#)
    }

    fn list(items: &[String]) -> String {
        format!(r#"{{"kind":"List","apiVersion":"v1","metadata":{{}},"items":[{}]}}"#, items.join(","))
    }

    fn whys<K: Resource + DeserializeOwned + Clone>(text: &str) -> Vec<Result<String, String>> {
        let list: ObjectList<Item<K>> = serde_json::from_str(text).unwrap();
        let said = |item: Item<K>| match item {
            Item::Readable(object) => Ok(object.meta().name.clone().unwrap()),
            Item::Unreadable(object) => Err(object.why),
        };
        list.items.into_iter().map(said).collect()
    }

    #[test]
    fn an_object_that_cannot_be_read_fails_alone_and_says_which_field() {
        let mut fine = machine("fine", 7);
        fine["status"] = json!({});
        let text = list(&[machine("bad", 3_000_000_000).to_string(), fine.to_string(), nested(9000)]);
        let whys = whys::<Machine>(&text);
        let number = "spec.minReadySeconds: invalid value: integer `3000000000`, \
            expected a whole number of 32 bits";
        assert_eq!(whys[0], Err(number.to_owned()));
        assert_eq!(whys[1], Ok("fine".to_owned()));
        assert_eq!(
            whys[2],
            Ok("deep".to_owned()),
            "what the type has no field for is passed over, however deep"
        );
    }

    #[test]
    fn what_identifies_it_is_kept_and_times_are_not_needed_for_it() {
        let item: Item<Machine> = serde_json::from_str(&machine("bad", 3_000_000_000).to_string()).unwrap();
        let Item::Unreadable(object) = item else { panic!("{item:?}") };
        let meta = &object.metadata;
        assert_eq!((meta.name.as_deref(), meta.namespace.as_deref()), (Some("bad"), Some("evil")));
        assert_eq!((meta.resource_version.as_deref(), meta.generation), (Some("7"), Some(2)));
        assert!(meta.deletion_timestamp.is_some() && meta.finalizers.is_some());
        assert_eq!(object.conditions, [json!({"type": "Ready"})]);
        assert!(object.why.starts_with("spec.minReadySeconds: "), "{}", object.why);
    }

    #[test]
    fn a_reference_into_another_namespace_is_named_and_not_followed() {
        let stored = |namespace: &str| {
            let reference = json!({"apiVersion": "g/v1", "kind": "K", "name": "n", "namespace": namespace});
            let old = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine",
                "metadata": {"name": "m", "namespace": "team-a", "uid": "u"},
                "spec": {"clusterName": "demo", "infrastructureRef": reference,
                    "bootstrap": {"dataSecretName": "d"}},
            });
            conversion::convert(old, "cluster.x-k8s.io/v1beta2", &conversion::NoVersions).unwrap()
        };
        let mut secret = stored("team-b");
        secret.as_object_mut().unwrap().remove("kind");
        let items = [stored("team-b"), stored("team-a"), secret].map(|item| item.to_string());
        let why = "spec.infrastructureRef.namespace: it names the namespace team-b, and references stay in the \
            namespace of the object";
        let fine = Ok("m".to_owned());
        assert_eq!(whys::<Machine>(&list(&items[..2])), [Err(why.to_owned()), fine.clone()]);
        assert_eq!(whys::<PartialObjectMeta<Secret>>(&list(&items[2..])), [fine]);
    }

    #[test]
    fn depth_and_odd_times_matter_to_no_kind_of_watch() {
        let text = list(&[nested(9000), nested(3)]);
        let read = whys::<DynamicObject>(&text);
        let why = read[0].clone().unwrap_err();
        assert!(why.ends_with("it is nested too deeply") && why.len() < 500, "{why}");
        assert_eq!(read[1], Ok("deep".to_owned()));
        let odd = list(&[machine("odd", 7).to_string(), nested(3)]);
        let read = whys::<PartialObjectMeta<Secret>>(&odd);
        assert!(read.iter().all(Result::is_ok), "{read:?}");
        let event = format!(r#"{{"type":"ADDED","object":{}}}"#, nested(9000));
        let event: WatchEvent<Item<DynamicObject>> = serde_json::from_str(&event).unwrap();
        assert!(matches!(event, WatchEvent::Added(Item::Unreadable(_))));
    }
}
