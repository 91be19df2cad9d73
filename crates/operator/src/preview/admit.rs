//! Treats the objects of files as an API server would: it applies defaults, schema and admission rules, and reports
//! each error with file and field.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_api::conversion::{ConversionError, NoVersions, convert};
use hangar_kit::overlay::{Admit, Overlay, Place};
use hangar_plan::admission::{self, Judgement, Operation, Request};
use hangar_plan::preview::schema;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::Error;
use crate::admission::Others;
use crate::context::Context;

/// Kinds that are in no namespace.
const CLUSTER_SCOPED: [&str; 8] = [
    "Namespace",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "StorageClass",
    "PriorityClass",
    "GatewayClass",
    "Node",
];

static DEFINITIONS: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(hangar_api::crd::all);

/// One object of a file.
#[derive(Clone, Debug)]
pub struct Given {
    /// As it was written.
    pub object: Value,
    /// The file; `-` is standard input.
    pub file: String,
    /// Its number in the file, from 1.
    pub document: usize,
    /// The namespace of objects that name none.
    pub namespace: String,
}

/// Everything that is wrong, a line each.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines.join("\n"))]
pub struct Refused {
    pub lines: Vec<String>,
}

impl Given {
    /// The objects of a file; lists are taken apart.
    pub fn read(text: &str, file: &str, namespace: &str) -> Result<Vec<Self>, Error> {
        let broken = |error: serde_saphyr::Error| {
            Error::Refused(Refused {
                lines: vec![format!("{file}: {}", error.to_string().replace('\n', " "))],
            })
        };
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(broken)?;
        let documents = documents.into_iter().enumerate().filter(|(_, document)| !document.is_null());
        let objects = documents.flat_map(|(index, document)| match document["items"].as_array() {
            Some(items) if document["kind"] == "List" => {
                items.iter().map(|item| (index, item.clone())).collect()
            }
            _ => vec![(index, document)],
        });
        let given = objects.map(|(index, object)| Self {
            object,
            file: file.to_owned(),
            document: index + 1,
            namespace: namespace.to_owned(),
        });
        Ok(given.collect())
    }

    fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// A complaint about this object.
    fn line(&self, why: impl std::fmt::Display) -> String {
        let (kind, name) = (self.text("/kind"), self.text("/metadata/name"));
        format!("{}, document {}, {kind} {name}: {why}", self.file, self.document)
    }

    pub(super) fn refused(&self, why: &str) -> Error {
        Error::Refused(Refused { lines: vec![self.line(why)] })
    }

    /// Everything that its kind and schema say, and the object with defaults.
    fn checked(&self) -> Result<Value, Vec<String>> {
        let mut object = self.object.clone();
        let missing =
            ["/apiVersion", "/kind", "/metadata/name"].into_iter().find(|field| self.text(field).is_empty());
        if let Some(field) = missing {
            let field = field.trim_start_matches('/').replace('/', ".");
            return Err(vec![self.line(format!("{field}: Required value: it must be set"))]);
        }
        if !CLUSTER_SCOPED.contains(&self.text("/kind")) && self.text("/metadata/namespace").is_empty() {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        encode(&mut object);
        let (group, version) = self.text("/apiVersion").split_once('/').unwrap_or_default();
        let Some(definition) = definition(group, self.text("/kind")) else { return Ok(object) };
        let Some(of_version) = schema::of(definition, version) else {
            let served = definition.spec.versions.iter().map(|found| found.name.as_str()).collect::<Vec<_>>();
            let why =
                format!("apiVersion: Invalid value: {version:?}: known versions are {}", served.join(", "));
            return Err(vec![self.line(why)]);
        };
        schema::default(of_version, &mut object);
        object = admission::defaulted(&request(&object, None));
        let complaints = schema::check(of_version, &object);
        if !complaints.is_empty() {
            return Err(complaints.iter().map(|complaint| self.line(complaint)).collect());
        }
        stored(object).map_err(|error| vec![self.line(error)])
    }
}

/// The objects with their defaults, if all of them fit their schemas.
pub(super) fn prepared(given: Vec<Given>) -> Result<Vec<(Given, Value)>, Error> {
    let mut lines = Vec::new();
    let mut objects = Vec::new();
    for given in given {
        match given.checked() {
            Ok(object) => objects.push((given, object)),
            Err(complaints) => lines.extend(complaints),
        }
    }
    if lines.is_empty() { Ok(objects) } else { Err(Error::Refused(Refused { lines })) }
}

/// What the rules of admission say, with the objects there already: warnings, or everything that is refused.
pub(super) async fn validated(
    context: &Context,
    overlay: &Overlay,
    objects: &[(Given, Value)],
    is_offline: bool,
) -> Result<Vec<String>, Error> {
    let written = overlay.written();
    // What is there and not in the file stays, as when the file is applied.
    let merged = |object: &Value| {
        let place = Place::of(object)?;
        let written = written.iter().find(|written| written.place == place).filter(|_| !is_offline)?;
        Some((written.after.clone()?, written.before.clone()))
    };
    // The first answers start the stores that the rules look into.
    let mut answers = Vec::new();
    for _ in 0..2 {
        answers.clear();
        for (_, object) in objects {
            let (object, old) = merged(object).unwrap_or_else(|| (object.clone(), None));
            let others = Others::new(context);
            let judged = move || admission::validate(&request(&object, old.as_ref()), &others);
            let judgement = tokio::task::spawn_blocking(judged).await;
            answers.push(judgement.map_err(|error| Error::ControllerEnded(error.to_string()))?);
        }
        context.listed().await?;
    }
    let told = |lines: fn(&Judgement) -> Vec<String>| {
        let of = |((given, _), judgement): (&(Given, Value), &Judgement)| -> Vec<String> {
            lines(judgement).iter().map(|line| given.line(line)).collect()
        };
        objects.iter().zip(&answers).flat_map(of).collect::<Vec<_>>()
    };
    let lines = told(|judgement| judgement.errors.iter().map(ToString::to_string).collect());
    let warnings = told(|judgement| judgement.warnings.clone());
    if lines.is_empty() { Ok(warnings) } else { Err(Error::Refused(Refused { lines })) }
}

fn request<'request>(object: &'request Value, old: Option<&'request Value>) -> Request<'request> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    Request {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        group: text("/apiVersion").split_once('/').map_or("", |(group, _)| group),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        object,
        old,
        is_dry_run: true,
        user: "",
    }
}

/// What the API server does to objects that controllers write.
pub(super) fn admission() -> Admit {
    Arc::new(|object| {
        let (group, version) =
            object["apiVersion"].as_str().unwrap_or_default().split_once('/').unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default();
        if let Some(schema) = definition(group, kind).and_then(|found| schema::of(found, version)) {
            schema::default(schema, object);
            *object = admission::defaulted(&request(object, None));
        }
    })
}

/// The CRDs that Hangar installs, as objects.
pub(super) fn definitions() -> Vec<Value> {
    let object = |definition: &CustomResourceDefinition| serde_json::to_value(definition).unwrap_or_default();
    DEFINITIONS.iter().map(object).collect()
}

fn definition(group: &str, kind: &str) -> Option<&'static CustomResourceDefinition> {
    DEFINITIONS.iter().find(|found| found.spec.group == group && found.spec.names.kind == kind)
}

/// The object in the version that is stored.
fn stored(object: Value) -> Result<Value, ConversionError> {
    let (group, _) = object["apiVersion"].as_str().unwrap_or_default().split_once('/').unwrap_or_default();
    let found = definition(group, object["kind"].as_str().unwrap_or_default());
    let version = found.and_then(|found| found.spec.versions.iter().find(|version| version.storage));
    let Some(version) = version else { return Ok(object) };
    let version = format!("{group}/{}", version.name);
    convert(object, &version, &NoVersions)
}

/// Plain text of a Secret as it is stored.
fn encode(object: &mut Value) {
    if object["kind"] != "Secret" || object["apiVersion"] != "v1" {
        return;
    }
    let plain = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    for (key, value) in plain.iter().filter_map(Value::as_object).flatten() {
        object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
}
