//! Answers the webhook server's admission requests with the rules of `hangar_plan::admission`.
//!
//! Rules that need other objects get them from the manager's stores, or by a live read.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_kit::ObjectKey;
use hangar_kit::webhook::Verdict;
use hangar_plan::admission::{self, Lookup, Operation, RULES, Request};
use hangar_plan::flow::Read;
use hangar_plan::install::SCALE;
use hangar_plan::limits::Limits;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, Operation as Asked};
use kube::{Api, Client};
use serde::Serialize;
use serde_json::Value;
use tokio::runtime::Handle;

use crate::context::{Context, Foreign, Watches};

/// Half of what the API server waits for an answer.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// Gives an object its defaults.
pub(crate) fn mutate(review: &AdmissionRequest<DynamicObject>) -> Verdict {
    let Some(asked) = Asking::of(review) else { return Verdict::allow() };
    Verdict::change(&asked.object, &admission::defaulted(&asked.request(review)))
}

/// Checks a request; all complaints come at once.
pub(crate) fn validate(review: &AdmissionRequest<DynamicObject>, lookup: &dyn Lookup) -> Verdict {
    let Some(asked) = Asking::of(review) else { return Verdict::allow() };
    let judgement = admission::validate(&asked.request(review), lookup);
    let lines: Vec<String> = judgement.errors.iter().map(ToString::to_string).collect();
    let verdict = if lines.is_empty() { Verdict::allow() } else { Verdict::deny(lines.join("; ")) };
    judgement.warnings.into_iter().fold(verdict, Verdict::warn)
}

/// The objects of a request.
struct Asking {
    operation: Operation,
    /// The kind whose rules apply: not the object's own where that is a Scale.
    group: String,
    kind: String,
    object: Value,
    old: Option<Value>,
}

impl Asking {
    fn of(review: &AdmissionRequest<DynamicObject>) -> Option<Self> {
        let value = |object: Option<&DynamicObject>| serde_json::to_value(object?).ok();
        let (object, old) = (value(review.object.as_ref()), value(review.old_object.as_ref()));
        let (operation, object, old) = match review.operation {
            Asked::Create => (Operation::Create, object?, None),
            Asked::Update => (Operation::Update, object?, old),
            Asked::Delete => (Operation::Delete, old?, None),
            Asked::Connect => return None,
        };
        let (group, kind) = (review.kind.group.clone(), review.kind.kind.clone());
        match review.sub_resource.as_deref() {
            None => Some(Self { operation, group, kind, object, old }),
            Some(SCALE) => {
                let scaled = &review.resource;
                let mut rules = RULES.iter();
                let rules =
                    rules.find(|rules| rules.group == scaled.group && rules.plural == scaled.resource)?;
                let (group, kind) = (rules.group.to_owned(), rules.kind.to_owned());
                Some(Self { operation: Operation::Scale, group, kind, object, old })
            }
            // Nothing else is asked for.
            Some(_) => None,
        }
    }

    fn request<'request>(
        &'request self,
        review: &'request AdmissionRequest<DynamicObject>,
    ) -> Request<'request> {
        Request {
            operation: self.operation,
            group: &self.group,
            kind: &self.kind,
            namespace: review.namespace.as_deref().unwrap_or_default(),
            object: &self.object,
            old: self.old.as_ref(),
            is_dry_run: review.dry_run,
            user: review.user_info.username.as_deref().unwrap_or_default(),
        }
    }
}

/// Other objects by the manager's stores and client. Called on blocking threads only.
pub(crate) struct Others {
    client: Client,
    watches: Arc<Watches>,
    foreign: Arc<Foreign>,
    limits: Arc<Limits>,
    runtime: Handle,
    /// Who we are to the API server, once it was asked.
    manager: OnceLock<String>,
}

impl Others {
    /// To be called in the runtime that the calls are to run in.
    pub(crate) fn new(context: &Context) -> Self {
        let (watches, foreign) = (Arc::clone(&context.watches), Arc::clone(&context.foreign));
        let limits = Arc::clone(&context.handles.limits);
        Self {
            client: context.client(),
            watches,
            foreign,
            limits,
            runtime: Handle::current(),
            manager: OnceLock::new(),
        }
    }
}

fn readable(object: &impl Serialize) -> Read<Value> {
    serde_json::to_value(object).map_or_else(|error| Read::unknown(error.to_string()), Read::One)
}

/// The object of a read as JSON.
fn as_json<T>(found: Read<T>, show: impl Fn(&T) -> Read<Value>) -> Read<Value> {
    match found {
        Read::Unknown(unknown) => Read::Unknown(unknown),
        found => found.iter().next().map_or(Read::Absent, show),
    }
}

impl Lookup for Others {
    fn seen(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Read<Value> {
        let (api_group, kind, name) = (group.to_owned(), kind.to_owned(), name.to_owned());
        let reference = ContractVersionedObjectReference { api_group, kind, name };
        if reference.is::<Cluster>() {
            let found = self.watches.clusters().get(&ObjectKey::namespaced(namespace, &reference.name));
            return as_json(found, |kept| readable(&kept.value));
        }
        let found = self.foreign.kept(namespace, &reference);
        as_json(found, |(kept, _)| readable(&kept.value))
    }

    fn now(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Read<Value> {
        let resource = match self.foreign.resource(group, kind).known() {
            Err(unknown) => return Read::Unknown(unknown),
            Ok(mut found) => match found.pop() {
                Some(resource) => resource,
                None => return Read::unknown(format!("no version of {kind} is known")),
            },
        };
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let read = self.runtime.block_on(tokio::time::timeout(READ_LIMIT, api.get_opt(name)));
        match read {
            Ok(Ok(found)) => as_json(Read::found(found), readable),
            Ok(Err(error)) => Read::unknown(error.to_string()),
            Err(_) => Read::unknown(format!("no answer within {READ_LIMIT:?}")),
        }
    }

    fn manager(&self) -> Option<String> {
        if let Some(known) = self.manager.get() {
            return Some(known.clone());
        }
        let api: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let (parameters, review) = (PostParams::default(), SelfSubjectReview::default());
        let asked = self.runtime.block_on(tokio::time::timeout(READ_LIMIT, api.create(&parameters, &review)));
        let name = asked.ok()?.ok()?.status?.user_info?.username?;
        Some(self.manager.get_or_init(|| name).clone())
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }
}
