//! The steps of a control plane, beyond applying objects: each is one call with an outcome.

use std::collections::BTreeMap;
use std::fmt;

use hangar_api::contract::Endpoint;
use k8s_openapi::api::core::v1::Secret;
use kube::core::{DynamicObject, ObjectMeta};
use serde_json::json;

use super::backup::BackupStep;
use super::etcd_calls::EtcdStep;
use super::material::{Content, Material};
use super::names::KEPT_FINALIZER;
use super::observed::{ClaimFacts, InfrastructureFacts, ObjectIdentity, PodFacts, SecretFacts};
use crate::flow::{self, Action, Identified, StepId, Target, Write};

/// One call: writes to the management cluster, minting, calls to etcd's members, backups, and calls to the tenant.
pub type Step = flow::Step<OwnStep, TenantStep>;

/// What only this controller's edge can do.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnStep {
    Mint(Box<Mint>),
    Etcd(Box<EtcdStep>),
    Backup(BackupStep),
}

impl Identified for OwnStep {
    fn id(&self) -> StepId {
        match self {
            Self::Mint(mint) => {
                StepId::new("mint", "secret", mint.secret.metadata.name.clone().unwrap_or_default())
            }
            Self::Etcd(step) => step.id(),
            Self::Backup(step) => step.id(),
        }
    }
}

impl From<Mint> for Step {
    fn from(mint: Mint) -> Self {
        Self::Own(OwnStep::Mint(Box::new(mint)))
    }
}

impl From<EtcdStep> for Step {
    fn from(step: EtcdStep) -> Self {
        Self::Own(OwnStep::Etcd(Box::new(step)))
    }
}

impl From<BackupStep> for Step {
    fn from(step: BackupStep) -> Self {
        Self::Own(OwnStep::Backup(step))
    }
}

/// One call to the tenant.
#[derive(Clone, Debug, PartialEq)]
pub enum TenantStep {
    /// Applies an object, with the uid that was seen if there was one.
    Apply {
        /// The object; it carries the hash of itself in [`super::names::DESIRED_ANNOTATION`].
        object: Box<DynamicObject>,
        /// The uid of the one that is there.
        uid: Option<String>,
    },
    /// Deletes an object of ours that is no longer wanted.
    Delete {
        object: ObjectIdentity,
        /// Its uid: a precondition.
        uid: String,
    },
}

impl Identified for TenantStep {
    fn id(&self) -> StepId {
        match self {
            Self::Apply { object, .. } => {
                StepId::new("apply", "tenant", ObjectIdentity::of(object).to_string())
            }
            Self::Delete { object, .. } => StepId::new("delete", "tenant", object.to_string()),
        }
    }
}

/// Marks the control plane as ours before anything is made for it: finalizer and annotations are there together or not
/// at all.
pub(super) fn claim(metadata: &ObjectMeta, finalizer: &str, annotations: &BTreeMap<String, String>) -> Step {
    let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
    if !finalizers.iter().any(|present| present == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
    let fields = json!({ "metadata": { "finalizers": finalizers, "annotations": annotations } });
    Write::itself(StepId::new("claim", "control-plane", "self"), fields).into()
}

/// Records something on the control plane that is true from now on, whatever is seen later.
pub(super) fn record(name: &'static str, value: &str) -> Step {
    let fields = json!({ "metadata": { "annotations": { name: value } } });
    Write::itself(StepId::new("record", "control-plane", name), fields).into()
}

/// Writes `spec.controlPlaneEndpoint` of the control plane itself, and what is recorded with it.
pub(super) fn publish(endpoint: &Endpoint, record: Option<(&str, String)>) -> Step {
    let mut fields = json!({ "spec": { "controlPlaneEndpoint": endpoint } });
    if let Some((name, value)) = record {
        fields["metadata"] = json!({ "annotations": { name: value } });
    }
    Write::itself(StepId::new("publish-endpoint", "control-plane", "self"), fields).into()
}

/// Writes `spec.controlPlaneEndpoint` of the infrastructure object. Other providers accept that only while its host is
/// empty, which was seen.
pub(super) fn publish_to(infrastructure: &InfrastructureFacts, endpoint: &Endpoint) -> Step {
    let InfrastructureFacts { reference, uid, .. } = infrastructure;
    let name = format!("{} {}", reference.kind, reference.name);
    let id = StepId::new("publish-endpoint", "infrastructure", name);
    let fields = json!({ "spec": { "controlPlaneEndpoint": endpoint } });
    Write { id, action: Action::Change { target: Target::referred(reference, uid), fields } }.into()
}

/// Patches annotations onto a running pod, so that kubelet brings changed Secrets to it at once. The pod's template stays
/// as it is: nothing restarts.
pub(super) fn refresh(pod: &PodFacts, annotations: &BTreeMap<String, String>) -> Step {
    let fields = json!({ "metadata": { "annotations": annotations } });
    let target = target("v1", "Pod", &pod.name, &pod.uid);
    Write { id: StepId::new("refresh", "pod", &pod.name), action: Action::Change { target, fields } }.into()
}

/// Ends a pod, if its disruption budget allows it; its workload makes it again.
pub(super) fn evict(pod: &PodFacts) -> Step {
    let target = target("v1", "Pod", &pod.name, &pod.uid);
    Write { id: StepId::new("evict", "pod", &pod.name), action: Action::Evict { target } }.into()
}

/// Asks for a larger volume. The management cluster refuses it where the storage class cannot expand volumes.
pub(super) fn grow(claim: &ClaimFacts, size: &str) -> Step {
    let target = target("v1", "PersistentVolumeClaim", &claim.name, &claim.uid);
    let fields = json!({ "spec": { "resources": { "requests": { "storage": size } } } });
    Write { id: StepId::new("grow", "claim", &claim.name), action: Action::Change { target, fields } }.into()
}

/// Puts our finalizer on a Secret that cannot be replaced.
pub(super) fn hold(name: &str, facts: &SecretFacts) -> Option<Step> {
    let finalizers: Vec<String> =
        facts.finalizers.iter().cloned().chain([KEPT_FINALIZER.to_owned()]).collect();
    finalized("hold", name, facts, &finalizers)
}

/// Takes our finalizer away from a Secret.
pub(super) fn let_go(name: &str, facts: &SecretFacts) -> Option<Step> {
    let finalizers: Vec<String> =
        facts.finalizers.iter().filter(|found| *found != KEPT_FINALIZER).cloned().collect();
    finalized("let-go", name, facts, &finalizers)
}

fn finalized(verb: &'static str, name: &str, facts: &SecretFacts, finalizers: &[String]) -> Option<Step> {
    let target = target("v1", "Secret", name, facts.uid.as_ref()?);
    let fields = json!({ "metadata": { "finalizers": finalizers } });
    Some(Write { id: StepId::new(verb, "secret", name), action: Action::Change { target, fields } }.into())
}

/// Deletes an object of ours in the foreground: it is there until its pods are gone.
pub(super) fn delete(object: &ObjectIdentity, uid: &str) -> Step {
    let id = StepId::new("delete", "management", object.to_string());
    let target = target(&object.api_version, &object.kind, &object.name, uid);
    Write { id, action: Action::Delete { target, is_foreground: true } }.into()
}

/// Removes our finalizer: nothing is left that needs order.
pub(super) fn release(metadata: &ObjectMeta, finalizer: &str) -> Step {
    let id = StepId::new("release", "control-plane", "self");
    Write { id, ..Write::remove_finalizer(metadata, finalizer, "") }.into()
}

fn target(api_version: &str, kind: &str, name: &str, uid: &str) -> Target {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let own = |text: &str| text.to_owned();
    Target { group: own(group), kind: own(kind), name: own(name), uid: own(uid) }
}

impl ObjectIdentity {
    /// What applying an object of the plan is called, where it did not work: edges note it in
    /// [`super::Observed::troubles`].
    pub fn applying(&self) -> StepId {
        StepId::new("apply", "management", self.to_string())
    }

    /// The name of the object, if this is about applying one.
    pub(super) fn applied_by(step: &StepId) -> Option<&str> {
        (step.verb == "apply" && step.kind == "management").then_some(step.name.as_str())
    }
}

/// A Secret to mint.
#[derive(Clone, Debug, PartialEq)]
pub struct Mint {
    pub material: Material,
    /// The Secret without its data: name, namespace, type, labels, owner. The edge adds `data` and the annotations of
    /// [`super::SecretFacts::annotations`].
    pub secret: Secret,
    /// What its data must be.
    pub content: Content,
    /// Hash of `content`, for [`super::SecretFacts::intent`].
    pub intent: String,
    pub why: MintReason,
}

/// Why something is minted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MintReason {
    Missing,
    /// It is being deleted and cannot be replaced: what is in it has to be elsewhere first.
    Deleted,
    /// It was deleted and copied.
    Copied,
    /// Something else is needed now: names, lifetime or server.
    Changed,
    /// Another authority is in place than the one that signed.
    OtherIssuer,
    /// Somebody changed what is in it.
    Edited,
    /// Two thirds of its validity are over.
    Renewal,
}

impl fmt::Display for MintReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Missing => "there is none",
            Self::Deleted => "what it is a copy of was deleted and cannot be replaced",
            Self::Copied => "it was deleted and cannot be replaced",
            Self::Changed => "something else is needed than what it was made for",
            Self::OtherIssuer => "another authority is in place than the one that signed it",
            Self::Edited => "somebody changed what is in it",
            Self::Renewal => "two thirds of its validity are over",
        })
    }
}
