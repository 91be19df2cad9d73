//! A control plane as pods, decided: from what was observed to objects, steps, status and report.
//!
//! ```text
//! Observed -> validate -> concerns, each alone -> Plan { objects, steps, status, report, wake }
//! ```
//!
//! Concerns (`certificates`, `etcd`, `api_server` and so on) are independent functions over one observation: none
//! sees another's result, so one that waits or complains stops no other. What depends on something else reads it from
//! the observation, where it is after it happened.
//!
//! Invariants
//! - Nothing is created, changed or deleted from a read that failed.
//! - `objects` of a plan are applied in order and never swept: what must go is a deletion among the steps.
//! - A workload that exists stays in the plan, whatever its gate says: gates are for first starts only.
//! - Keys are never here: [`Mint`] says what is needed, the edge mints it.
//! - The API server's flags do not depend on its address: a late address changes a Secret and restarts nothing.
//!   (The tunnel's server beside it reads its certificate once: a load balancer that is known by a host name, and the
//!   yearly renewal of that certificate, do roll the API servers, gently.)
//! - Everything is rendered for an [`Epoch`] that is recorded on the object before the first object is made. What an
//!   epoch renders never changes, so that a new Hangar rolls nobody.

mod api_server;
mod certificates;
mod controller_manager;
mod controllers;
mod core_dns;
mod delete;
mod endpoint;
mod epoch;
mod etcd;
mod exposure;
mod fold;
mod intended;
mod join;
mod konnectivity;
mod kube_proxy;
mod kubeconfigs;
pub mod material;
mod membership;
pub mod names;
mod object;
pub mod observed;
mod part;
mod pod;
mod report;
mod rights;
mod scheduler;
mod status;
pub mod step;
mod tenant;
mod tenant_pod;
mod tenant_rbac;
mod trust;
mod validate;
mod version;

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::conditions::{Actor, Finding, Waiting};
use hangar_api::controlplane::v1alpha1::HostedControlPlaneStatus;
use hangar_api::names::{BLOCK_MOVE_ANNOTATION, HOSTED_CONTROL_PLANE_FINALIZER};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;

pub use epoch::{Epoch, Recorded};
pub use material::{CertificateIntent, Content, Issuer, Material, Usage};
pub use membership::Membership;
pub use names::{Component, Names};
pub use observed::{
    ClusterFacts, InfrastructureFacts, NOT_ASKED, ObjectIdentity, Observed, PodFacts, SecretFacts,
    ServiceFacts, TenantFacts, TenantObject, WorkloadFacts,
};
pub use step::{Mint, MintReason, Step, TenantStep};
pub use validate::{API_SERVER_PORT, KONNECTIVITY_PORT, Lifetimes, Validated, validate};
pub use version::KubernetesVersion;

use crate::flow::{self, Frontier, Identified as _, Never, Outcome, Planner, Read, StepId, Wake};
use part::Part;
pub(crate) use report::without_effect;
use status::Draft;

/// Types of the conditions of a hosted control plane.
pub mod condition {
    pub use super::api_server::API_SERVER_READY;
    pub use super::certificates::CERTIFICATES_VALID;
    pub use super::controllers::CONTROLLERS_READY;
    pub use super::delete::DELETING;
    pub use super::endpoint::ENDPOINT_READY;
    pub use super::etcd::ETCD_CLUSTER_HEALTHY;
    pub use super::report::SETTINGS_EFFECTIVE;
    pub use super::status::{
        AVAILABLE, PAUSED, READY, ROLLING_OUT, SCALING_DOWN, SCALING_UP, SPECIFICATION_VALID,
    };
    pub use super::tenant::WORKLOAD_READY;
}

/// What the management cluster of one host has in common with a tenant: its add-ons, and what their pods consist of.
pub mod addons {
    pub use hangar_api::contract::Endpoint;

    pub use super::core_dns::CoreDns;
    pub use super::kube_proxy::KubeProxy;
    pub use super::pod::{plain_container, probe, restricted};
    pub use super::rights::{account, cluster_role, cluster_role_binding, subject_account, subject_user};
    pub use super::tenant_pod::{api_server_environment, config_map};
}

/// What could not be read tells nobody when it can be.
const READ_AGAIN: Duration = Duration::from_secs(30);

pub type Plan = flow::Plan<Step, HostedControlPlaneStatus>;

/// What has to be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// The Secrets that hold keys; those that people brought are read as a whole.
    Secrets,
    /// What of these is in the tenant.
    Tenant,
}

impl Planner for Observed {
    type Wanted = Wanted;
    type Own = Box<Mint>;
    type Tenant = TenantStep;
    type Cloud = Never;
    type Status = HostedControlPlaneStatus;
    type Object = DynamicObject;

    fn wanted(&self) -> Option<Wanted> {
        // A name that nothing can be named after has nothing to be looked for.
        self.names()?;
        if self.secrets.is_empty() {
            return Some(Wanted::Secrets);
        }
        (self.tenant == Read::unknown(NOT_ASKED)).then_some(Wanted::Tenant)
    }

    fn assume(&mut self, wanted: Wanted) -> Option<Wanted> {
        match wanted {
            Wanted::Secrets => Some(Wanted::Secrets),
            Wanted::Tenant => {
                self.tenant = Read::unknown(flow::NOT_CALLED);
                None
            }
        }
    }

    fn plan(&self) -> Plan {
        let mut draft = Draft::new(self);
        draft.counters();
        let part = decide(self, &mut draft);
        for finding in part.findings {
            draft.finding(finding);
        }
        Plan {
            objects: part.objects,
            steps: Frontier::from_iter(part.steps),
            status: draft.finish(),
            report: part.report,
            wake: if self.has_unread() {
                part.wake.sooner(Wake::after(self.now, READ_AGAIN))
            } else {
                part.wake
            },
        }
    }

    /// Minting answers [`Outcome::Created`] with the metadata of the Secret, or with no more than the fingerprint of what
    /// was minted. Applying in the tenant answers [`Outcome::Created`] or [`Outcome::Done`].
    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        let Some(id) = outcome.made() else {
            return self.troubles.extend(outcome.trouble().map(|words| (step.id(), words.to_owned())));
        };
        match step {
            Step::Write(write) => self.written(write),
            Step::Own(mint) => {
                let metadata = serde_json::from_str::<ObjectMeta>(id).ok();
                let facts = metadata.and_then(|metadata| SecretFacts::of(&metadata));
                let facts = facts.unwrap_or_else(|| self.minted(mint, id.to_owned()));
                self.secrets.insert(mint.material, Read::One(facts));
            }
            Step::Tenant(TenantStep::Apply { object, uid }) => {
                let annotations = object.metadata.annotations.as_ref();
                let applied =
                    annotations.and_then(|annotations| annotations.get(names::DESIRED_ANNOTATION)).cloned();
                let uid = uid.clone().unwrap_or_else(|| id.to_owned());
                let object = ObjectIdentity::of(object);
                self.in_tenant(object, TenantObject::Ours { uid, applied, is_drifted: false });
            }
            Step::Tenant(TenantStep::Delete { object, .. }) => {
                self.in_tenant(object.clone(), TenantObject::Absent);
            }
            Step::Cloud(never) => match *never {},
        }
    }

    fn not_applied(&mut self, object: StepId, outcome: &Outcome) {
        // What passes by itself is no news; what was refused is.
        if let Outcome::Refused(refusal) = outcome {
            self.troubles.insert(object, refusal.message.clone());
        }
    }
}

/// The objects that the tenant should have now, in order; empty while something they need is not known. Observers read
/// these in the tenant, before they plan.
pub fn tenant_objects(observed: &Observed) -> Vec<DynamicObject> {
    validated(observed).map(|validated| tenant::objects(observed, &validated)).unwrap_or_default()
}

/// Objects that the tenant may still have from earlier settings and that are no longer wanted.
pub fn tenant_leftovers(observed: &Observed) -> Vec<ObjectIdentity> {
    validated(observed).map(|validated| tenant::leftovers(&validated)).unwrap_or_default()
}

/// What can be rendered, if anything: an owner, an epoch, and nothing wrong.
fn validated(observed: &Observed) -> Option<Validated<'_>> {
    let Read::One(cluster) = &observed.cluster else { return None };
    if !is_referred(observed, cluster) {
        return None;
    }
    let Recorded::Known(epoch) = Epoch::recorded(&observed.control_plane) else { return None };
    validate(&observed.control_plane, cluster, epoch).ok()
}

/// Whether the Cluster means this control plane. Owner and label may be those of another that somebody copied; two of
/// one Cluster would work on the same objects.
fn is_referred(observed: &Observed, cluster: &ClusterFacts) -> bool {
    cluster.control_plane.is_some() && cluster.control_plane == observed.control_plane.metadata.name
}

fn decide(observed: &Observed, draft: &mut Draft<'_>) -> Part {
    let mut part = Part::default();
    let cluster = match &observed.cluster {
        Read::Unknown(unknown) => {
            // Not even whether it is paused can be told.
            part.wait(&Waiting::new(Actor::Hangar, "a look at the Cluster").because(&unknown.why), None);
            return part;
        }
        read => read.iter().next(),
    };
    let is_paused = validate::is_paused(&observed.control_plane, cluster);
    draft.paused(is_paused);
    if is_paused {
        part.report.decide("do nothing", "reconciliation is paused");
        return part;
    }
    if observed.control_plane.metadata.deletion_timestamp.is_some() {
        draft.leaving();
        return delete::plan(observed);
    }
    let Some(cluster) = cluster else {
        let waiting = Waiting::new(Actor::ClusterOwner, "a Cluster that owns this control plane");
        draft.unavailable("NoOwner", &waiting);
        part.wait(&waiting, None);
        return part;
    };
    if !is_referred(observed, cluster) {
        let other = cluster.control_plane.as_ref();
        let other = other.map_or_else(|| "none".to_owned(), |name| format!("HostedControlPlane {name}"));
        let waiting =
            Waiting::new(Actor::ClusterOwner, format!("Cluster {} to refer to this one", cluster.name))
                .because(format!("of all control planes of this kind it refers to {other}"));
        draft.left_alone("NotReferenced", &waiting);
        part.wait(&waiting, None);
        return part;
    }
    let epoch = match Epoch::recorded(&observed.control_plane) {
        Recorded::Known(epoch) => epoch,
        Recorded::Nothing => Epoch::CURRENT,
        Recorded::Strange(text) => {
            let waiting = Waiting::new(Actor::Operator, "a Hangar that knows its render epoch")
                .because(format!("it was rendered with epoch {text}, by a newer Hangar"));
            draft.invalid("NewerEpoch", &waiting);
            part.wait(&waiting, None);
            return part;
        }
    };
    match validate(&observed.control_plane, cluster, epoch) {
        Err(errors) => {
            let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let waiting = Waiting::new(Actor::ClusterOwner, "a specification that can be rendered")
                .because(words.join("; "));
            draft.invalid("Invalid", &waiting);
            part.wait(&waiting, None);
        }
        Ok(validated) => render(observed, &validated, draft, &mut part),
    }
    part
}

/// All concerns, each alone. Until the epoch is recorded nothing is rendered: a newer Hangar might do it differently.
fn render(observed: &Observed, validated: &Validated<'_>, draft: &mut Draft<'_>, part: &mut Part) {
    part.absorb(claim(observed, validated));
    if Epoch::recorded(&observed.control_plane) == Recorded::Nothing {
        draft.unavailable(
            "NotClaimed",
            &Waiting::new(Actor::Hangar, "the control plane to be marked as ours"),
        );
        return;
    }
    for concern in [
        certificates::plan,
        exposure::plan,
        etcd::plan,
        api_server::plan,
        controllers::plan,
        endpoint::plan,
        tenant::plan,
        report::plan,
    ] {
        part.absorb(concern(observed, validated));
    }
    let findings: Vec<Finding> = std::mem::take(&mut part.findings);
    draft.rendered(validated, findings);
}

/// Marks the control plane as ours, where something of the mark is missing.
fn claim(observed: &Observed, validated: &Validated<'_>) -> Part {
    let mut part = Part::default();
    let metadata = &observed.control_plane.metadata;
    let present =
        |name: &str| metadata.annotations.as_ref().is_some_and(|present| present.contains_key(name));
    // It holds data that would not move with it.
    let wanted = [
        (names::EPOCH_ANNOTATION, validated.epoch.as_str()),
        (names::IDENTITY_ANNOTATION, validated.names.identity()),
        (BLOCK_MOVE_ANNOTATION, "true"),
    ];
    let annotations: BTreeMap<String, String> = wanted
        .into_iter()
        .filter(|(name, _)| !present(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let finalizer = HOSTED_CONTROL_PLANE_FINALIZER;
    let has_finalizer = metadata.finalizers.iter().flatten().any(|present| present == finalizer);
    if !has_finalizer || !annotations.is_empty() {
        part.report.decide(
            "claim the control plane",
            "everything is rendered with the epoch, and named after the identity, that are recorded first",
        );
        part.steps.push(step::claim(metadata, finalizer, &annotations));
    }
    part
}

#[cfg(test)]
mod tests;
