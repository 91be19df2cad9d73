//! Parses requests to an overlay: which object or collection they name.

use std::fmt;

use http::Uri;
use serde_json::Value;

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its API group, empty for the core group.
    pub group: String,
    pub plural: String,
    /// None for cluster-scoped objects.
    pub namespace: Option<String>,
    pub name: String,
}

impl Place {
    /// Where an object belongs; none when it does not name its kind or itself.
    pub fn of(object: &Value) -> Option<Self> {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (api_version, kind) = (text("/apiVersion")?, text("/kind")?);
        Some(Self {
            group: api_version.split_once('/').map_or("", |(group, _)| group).to_owned(),
            plural: super::plural(kind),
            namespace: text("/metadata/namespace").map(str::to_owned),
            name: text("/metadata/name")?.to_owned(),
        })
    }

    /// The path of its API.
    pub(super) fn path(&self, api_version: &str) -> String {
        format!("{}/{}", collection(api_version, self.namespace.as_deref(), &self.plural), self.name)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        write!(formatter, "{}.{}/{namespace}/{}", self.plural, self.group, self.name)
    }
}

fn collection(api_version: &str, namespace: Option<&str>, plural: &str) -> String {
    let root = if api_version.contains('/') { "/apis" } else { "/api" };
    match namespace {
        Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{api_version}/{plural}"),
    }
}

/// What a request is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) api_version: String,
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: Option<String>,
    /// None for a collection.
    pub(super) name: Option<String>,
    pub(super) is_status: bool,
    pub(super) is_watch: bool,
    /// In whose name something is applied.
    pub(super) manager: String,
    pub(super) labels: Vec<(String, Option<String>)>,
}

impl Target {
    /// None for what is no object of an API group.
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        let mut parts = uri.path().trim_matches('/').split('/');
        let (group, version) = match parts.next()? {
            "api" => ("", parts.next()?),
            "apis" => (parts.next()?, parts.next()?),
            _ => return None,
        };
        let rest: Vec<&str> = parts.collect();
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let [plural, rest @ ..] = rest else { return None };
        let query: Vec<(String, String)> = uri.query().map(pairs).unwrap_or_default();
        let given = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let labels = given("labelSelector").unwrap_or_default().split(',').filter(|part| !part.is_empty());
        Some(Self {
            api_version: if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") },
            group: group.to_owned(),
            plural: (*plural).to_owned(),
            namespace,
            name: rest.first().map(|name| (*name).to_owned()),
            is_status: rest.get(1) == Some(&"status"),
            is_watch: matches!(given("watch"), Some("true" | "1")),
            manager: given("fieldManager").unwrap_or_default().to_owned(),
            labels: labels
                .map(|part| match part.split_once('=') {
                    Some((key, value)) => (key.to_owned(), Some(value.trim_start_matches('=').to_owned())),
                    None => (part.to_owned(), None),
                })
                .collect(),
        })
    }

    pub(super) fn place(&self, name: &str) -> Place {
        Place {
            group: self.group.clone(),
            plural: self.plural.clone(),
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// The collection without pages: one list is one moment.
    pub(super) fn list(&self) -> String {
        let selector = self.labels.iter().map(|(key, value)| match value {
            Some(value) => format!("{key}%3D{value}"),
            None => key.clone(),
        });
        let selector = selector.collect::<Vec<_>>().join("%2C").replace('/', "%2F");
        let path = collection(&self.api_version, self.namespace.as_deref(), &self.plural);
        if selector.is_empty() { path } else { format!("{path}?labelSelector={selector}") }
    }

    /// Whether a list of this collection shows an object.
    pub(super) fn shows(&self, place: &Place, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        place.group == self.group
            && place.plural == self.plural
            && (self.namespace.is_none() || place.namespace == self.namespace)
            && self.labels.iter().all(|(key, value)| match value {
                Some(value) => labels[key] == *value,
                None => !labels[key].is_null(),
            })
    }
}

fn pairs(query: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        ["%2F/", "%2f/", "%3D=", "%3d=", "%2C,", "%2c,"]
            .iter()
            .fold(text, |text, code| text.replace(&code[..3], &code[3..]))
    };
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (decoded(key), decoded(value))).collect()
}
