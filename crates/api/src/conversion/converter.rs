//! One kind's conversion between a spoke version and the hub.
//!
//! [`Convert`] is what a kind implements: four total functions over typed values. They destructure every struct
//! without `..`, so that a new field does not compile until its conversion is written. [`Converter`] is the
//! same behind function pointers over JSON, which is what the registry lists.

use super::lenient;
use super::stash::{Stash, TooLarge};
use super::versions::VersionLookup;
use super::{ConversionError, Named, api_version, difference};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Converts one kind between a spoke version and the hub, the version that is stored.
///
/// The functions are pure and never fail. What they cannot express they drop: the engine notices and stashes it.
pub trait Convert {
    /// API group of the kind.
    const GROUP: &'static str;
    /// The kind.
    const KIND: &'static str;
    /// The older version.
    const SPOKE: &'static str = "v1beta1";
    /// The stored version.
    const HUB: &'static str = "v1beta2";
    /// `spec` in the older version.
    type SpokeSpec: Serialize + DeserializeOwned + Default;
    /// `status` in the older version; [`NoStatus`] if the kind has none.
    type SpokeStatus: Serialize + DeserializeOwned + Default;
    /// `spec` in the stored version.
    type HubSpec: Serialize + DeserializeOwned + Default;
    /// `status` in the stored version; [`NoStatus`] if the kind has none.
    type HubStatus: Serialize + DeserializeOwned + Default;

    /// `spec` from the older to the stored version.
    fn spec_up(spec: Self::SpokeSpec) -> Self::HubSpec;
    /// `status` from the older to the stored version.
    fn status_up(status: Self::SpokeStatus) -> Self::HubStatus;
    /// `spec` from the stored to the older version.
    fn spec_down(spec: Self::HubSpec, context: &Context<'_>) -> Self::SpokeSpec;
    /// `status` from the stored to the older version.
    fn status_down(status: Self::HubStatus, context: &Context<'_>) -> Self::SpokeStatus;
}

/// The status of a kind that has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct NoStatus {}

/// What a conversion towards the older version may ask for beside the object.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    namespace: Option<&'a str>,
    versions: Versions<'a>,
}

/// Where versions of referenced kinds come from.
#[derive(Clone, Copy)]
enum Versions<'a> {
    /// Asked from the outside.
    Known(&'a dyn VersionLookup),
    /// The referenced kind stands where its version would be. A stashed version then counts as unchanged exactly as
    /// long as group and kind of the reference are, whatever CRDs came or went between the two conversions.
    Kind,
}

impl Context<'_> {
    /// The namespace of the object, in which all its references are.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace
    }

    /// The `apiVersion` of a referenced kind. An unknown kind gets `v1beta1` (the core group `v1`), unless the stash
    /// knows better.
    pub fn api_version(&self, group: &str, kind: &str) -> String {
        let fallback = if group.is_empty() { "v1" } else { "v1beta1" };
        match self.versions {
            Versions::Known(versions) => {
                let version = versions.version(group, kind);
                api_version::join(group, version.as_deref().unwrap_or(fallback))
            }
            Versions::Kind => format!("{group}/?{kind}"),
        }
    }
}

/// A kind's conversion, as listed in the registry.
#[derive(Clone, Copy)]
pub struct Converter {
    /// API group of the kind.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The older version.
    pub spoke: &'static str,
    /// The stored version.
    pub hub: &'static str,
    up: fn(Map<String, Value>) -> Map<String, Value>,
    down: fn(Map<String, Value>, &Context<'_>) -> Map<String, Value>,
}

impl Converter {
    /// The conversion of a kind.
    pub const fn of<C: Convert>() -> Self {
        Self { group: C::GROUP, kind: C::KIND, spoke: C::SPOKE, hub: C::HUB, up: up::<C>, down: down::<C> }
    }

    /// From the older to the stored version. This fails only if something would be lost, and never for an object that is
    /// stored, or is being deleted: nothing must keep its finalizers from being removed.
    pub(super) fn to_hub(
        self,
        object: Map<String, Value>,
        versions: &dyn VersionLookup,
    ) -> Result<Map<String, Value>, ConversionError> {
        let source = Dissected::of(object, self.kind);
        let mut stash = source.stash;
        let is_leaving = is_leaving(&source.envelope);
        if stash.is_incomplete && !is_leaving {
            return Err(ConversionError::Incomplete { object: self.named(&source.envelope) });
        }
        let mut body = Value::Object((self.up)(source.body.clone()));
        restore(&mut body, None, stash.remove(self.hub));

        let Value::Object(body) = body else {
            return Ok(source.envelope);
        };
        let namespace = namespace(&source.envelope);
        let back = |versions| {
            Value::Object((self.down)(body.clone(), &Context { namespace: namespace.as_deref(), versions }))
        };
        let now = back(Versions::Known(versions));
        let mut lost = difference::between(&Value::Object(source.body), &back(Versions::Kind));
        // The version that the referenced kind's CRD names needs no stash: the reference follows the CRD.
        lost.retain(|difference| !difference::holds(&now, &difference.path, difference.was.as_ref()));
        stash.set(self.spoke, lost);
        let mut envelope = source.envelope;
        match stash.write(&mut envelope) {
            Err(TooLarge(size)) if !is_leaving => {
                return Err(ConversionError::TooLarge { object: self.named(&envelope), size });
            }
            Err(_) | Ok(()) => {}
        }
        Ok(assemble(envelope, self.group, self.hub, body))
    }

    /// From the stored to the older version.
    pub(super) fn to_spoke(
        self,
        object: Map<String, Value>,
        versions: &dyn VersionLookup,
    ) -> Map<String, Value> {
        let source = Dissected::of(object, self.kind);
        let mut stash = source.stash;
        let namespace = namespace(&source.envelope);
        let down = |versions| {
            let context = Context { namespace: namespace.as_deref(), versions };
            Value::Object((self.down)(source.body.clone(), &context))
        };
        let mut body = down(Versions::Known(versions));
        restore(&mut body, Some(&down(Versions::Kind)), stash.remove(self.spoke));

        let Value::Object(body) = body else {
            return source.envelope;
        };
        let back = Value::Object((self.up)(body.clone()));
        stash.set(self.hub, difference::between(&Value::Object(source.body), &back));
        let mut envelope = source.envelope;
        if stash.write(&mut envelope).is_err() {
            stash.write_incomplete(&mut envelope);
        }
        assemble(envelope, self.group, self.spoke, body)
    }

    fn named(self, envelope: &Map<String, Value>) -> Named {
        let text = |field: &str| {
            let found = envelope.get("metadata").and_then(|metadata| metadata.get(field));
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        Named { kind: self.kind, namespace, name, older: self.spoke, stored: self.hub }
    }
}

impl std::fmt::Debug for Converter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Converter({}/{}, {} to {})", self.group, self.kind, self.spoke, self.hub)
    }
}

/// An object taken apart: `spec` and `status`, the stash, and all the rest.
struct Dissected {
    envelope: Map<String, Value>,
    body: Map<String, Value>,
    stash: Stash,
}

impl Dissected {
    fn of(mut object: Map<String, Value>, kind: &str) -> Self {
        let mut body = Map::new();
        for part in ["spec", "status"] {
            if let Some(value) = object.remove(part) {
                body.insert(part.to_owned(), value);
            }
        }
        let stash = Stash::take(&mut object, kind);
        Self { envelope: object, body, stash }
    }
}

fn assemble(
    mut envelope: Map<String, Value>,
    group: &str,
    version: &str,
    body: Map<String, Value>,
) -> Map<String, Value> {
    envelope.insert("apiVersion".to_owned(), Value::String(api_version::join(group, version)));
    envelope.extend(body);
    envelope
}

fn is_leaving(envelope: &Map<String, Value>) -> bool {
    let time = envelope.get("metadata").and_then(|metadata| metadata.get("deletionTimestamp"));
    time.is_some_and(|time| !time.is_null())
}

fn namespace(envelope: &Map<String, Value>) -> Option<String> {
    envelope.get("metadata")?.get("namespace")?.as_str().map(str::to_owned)
}

/// Restores what this version lost earlier, wherever it was not changed since. `judged` is the document in which
/// "changed" is decided, the body itself if not given.
fn restore(body: &mut Value, judged: Option<&Value>, differences: Vec<difference::Difference>) {
    let before;
    let judged = if let Some(judged) = judged {
        judged
    } else {
        before = body.clone();
        &before
    };
    for difference in differences {
        if difference::holds(judged, &difference.path, difference.had.as_ref()) {
            difference::put(body, &difference.path, difference.was);
        }
    }
}

fn up<C: Convert>(mut body: Map<String, Value>) -> Map<String, Value> {
    let spec = C::spec_up(lenient::read(body.remove("spec").unwrap_or_default()));
    let status = body.remove("status").map(|status| C::status_up(lenient::read(status)));
    join(&spec, status.as_ref())
}

fn down<C: Convert>(mut body: Map<String, Value>, context: &Context<'_>) -> Map<String, Value> {
    let spec = C::spec_down(lenient::read(body.remove("spec").unwrap_or_default()), context);
    let status = body.remove("status").map(|status| C::status_down(lenient::read(status), context));
    join(&spec, status.as_ref())
}

/// Our own types always serialise; should one not, its part is left out and the stash holds the original.
fn join(spec: &impl Serialize, status: Option<&impl Serialize>) -> Map<String, Value> {
    let parts = [
        ("spec", serde_json::to_value(spec).ok()),
        ("status", status.and_then(|s| serde_json::to_value(s).ok())),
    ];
    parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))).collect()
}
