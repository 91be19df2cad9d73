//! What can be done beyond applying objects: each a call that has an outcome.

use std::collections::BTreeMap;
use std::fmt;

use hangar_api::contract::Endpoint;
use kube::core::DynamicObject;

use super::material::{Content, Material};
use super::observed::{InfrastructureFacts, ObjectIdentity};
use crate::flow::{self, StepId};

/// One call of a hosted control plane's plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Marks the control plane as ours before anything is made for it.
    Claim(Claim),
    /// Mints a key and what belongs to it into a Secret.
    Mint(Box<Mint>),
    /// Writes `spec.controlPlaneEndpoint` of the control plane itself, by merge patch.
    PublishEndpoint(Endpoint),
    /// Writes `spec.controlPlaneEndpoint` of the infrastructure object, by merge patch with its uid: other providers
    /// accept that only while its host is empty, which was seen.
    PublishInfrastructureEndpoint {
        /// The object as it was seen.
        target: InfrastructureFacts,
        /// What it gets.
        endpoint: Endpoint,
    },
    /// Patches an annotation onto a running pod, so that kubelet brings changed Secrets to it at once. The pod's
    /// template stays as it is: nothing restarts.
    RefreshPod {
        /// Name of the pod.
        pod: String,
        /// Its uid, which the patch carries.
        uid: String,
        /// Annotations to set, by merge patch.
        annotations: BTreeMap<String, String>,
    },
    /// Applies an object in the tenant, with the uid that was seen if there was one.
    ApplyTenant {
        /// The object; it carries the hash of itself in [`super::names::DESIRED_ANNOTATION`].
        object: Box<DynamicObject>,
        /// The uid of the one that is there.
        uid: Option<String>,
    },
    /// Deletes an object of ours in the tenant that is no longer wanted.
    DeleteTenant {
        /// Which one.
        object: ObjectIdentity,
        /// Its uid: a precondition.
        uid: String,
    },
    /// Deletes an object of ours in the management cluster, in the foreground: it is there until its pods are gone.
    Delete {
        /// Which one.
        object: ObjectIdentity,
        /// Its uid: a precondition.
        uid: String,
    },
    /// Removes our finalizer: nothing is left that needs order.
    Release {
        /// The finalizer.
        finalizer: &'static str,
    },
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

/// What marks a control plane as ours. One patch with the resourceVersion that was seen: finalizer and annotations are
/// there together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Our finalizer; added where it is missing.
    pub finalizer: &'static str,
    /// Annotations to set: the render epoch, and what keeps the object where it is.
    pub annotations: BTreeMap<String, String>,
}

/// A Secret to mint.
#[derive(Clone, Debug, PartialEq)]
pub struct Mint {
    /// What it holds.
    pub material: Material,
    /// The Secret without its data: name, namespace, type, labels, owner. The edge adds `data` and the annotations of
    /// [`super::SecretFacts::annotations`], and applies it as our own object.
    pub secret: DynamicObject,
    /// What its data must be.
    pub content: Content,
    /// Hash of `content`, for [`super::SecretFacts::intent`].
    pub intent: String,
    /// Why now.
    pub why: MintReason,
}

/// Why something is minted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MintReason {
    /// There is none.
    Missing,
    /// Something else is needed now: names, lifetime or server.
    Changed,
    /// Another authority is in place than the one that signed.
    OtherIssuer,
    /// Two thirds of its validity are over.
    Renewal,
}

impl fmt::Display for MintReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Missing => "there is none",
            Self::Changed => "something else is needed than what it was made for",
            Self::OtherIssuer => "another authority is in place than the one that signed it",
            Self::Renewal => "two thirds of its validity are over",
        })
    }
}

impl flow::Step for Step {
    fn id(&self) -> StepId {
        match self {
            Self::Claim(_) => StepId::new("claim", "control-plane", "self"),
            Self::Mint(mint) => {
                StepId::new("mint", "secret", mint.secret.metadata.name.clone().unwrap_or_default())
            }
            Self::PublishEndpoint(_) => StepId::new("publish-endpoint", "control-plane", "self"),
            Self::PublishInfrastructureEndpoint { target, .. } => {
                StepId::new("publish-endpoint", "infrastructure", format!("{} {}", target.kind, target.name))
            }
            Self::RefreshPod { pod, .. } => StepId::new("refresh", "pod", pod),
            Self::ApplyTenant { object, .. } => {
                StepId::new("apply", "tenant", ObjectIdentity::of(object).to_string())
            }
            Self::DeleteTenant { object, .. } => StepId::new("delete", "tenant", object.to_string()),
            Self::Delete { object, .. } => StepId::new("delete", "management", object.to_string()),
            Self::Release { .. } => StepId::new("release", "control-plane", "self"),
        }
    }
}
