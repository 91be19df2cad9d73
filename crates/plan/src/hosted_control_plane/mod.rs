//! Plans a control plane as pods: from an observation to objects, steps, status and report.
//!
//! ```text
//! Observed -> validate -> concerns, each alone -> Plan { objects, steps, status, report, wake }
//! ```
//!
//! Concerns (`certificates`, `etcd`, `api_server` and so on) are independent functions of one observation: none sees
//! the result of another, so one that waits or fails stops no other. A concern that depends on something else reads
//! that from the observation, after it has happened.
//!
//! Invariants
//! - Nothing is created, changed or deleted from a read that failed.
//! - The `objects` of a plan are applied in order. An object that is missing there is not deleted: deletions are steps.
//! - A workload that exists stays in the plan, whatever its gate says: a gate only delays its creation.
//! - Plans contain no keys: [`Mint`] says what is needed, the edge mints it.
//! - The API server's flags do not depend on its address: a late address changes a Secret and restarts nothing. (The
//!   tunnel's server beside it reads its certificate only at its start. So a load balancer with a host name, and the
//!   yearly renewal of that certificate, do replace the API server's pods, one after the other.)
//! - Everything is rendered for the [`Epoch`] that is recorded on the HostedControlPlane before the first object is
//!   made. What an epoch renders never changes, so a new Hangar restarts no control plane.

mod access;
mod address;
mod ages;
mod alarms;
mod api_server;
mod audit;
mod authentication;
pub mod backup;
mod certificates;
mod changes;
mod cilium_policies;
pub(crate) mod conditions;
mod controller_manager;
mod controllers;
mod core_dns;
mod database;
mod defragmentation;
mod delete;
mod endpoint;
mod epoch;
mod etcd;
pub mod etcd_calls;
mod etcd_rollout;
mod etcd_settings;
pub mod exposure;
mod flags;
mod fold;
mod growth;
mod intended;
mod join;
mod joining;
mod kept;
mod konnectivity;
mod kube_proxy;
mod kube_proxy_settings;
mod kubeconfigs;
pub mod material;
mod membership;
mod mounts;
pub mod names;
mod network_policies;
mod node_ranges;
mod object;
pub mod observed;
mod placement;
mod pod;
mod pod_monitors;
mod program;
mod restore;
mod rights;
mod rolling_out;
mod roster;
mod running_addons;
mod scheduler;
mod servers;
mod setting;
mod sources;
mod status;
pub mod step;
mod tenant;
mod tenant_pod;
mod tenant_rbac;
mod traffic;
mod trust;
mod unsupported;
pub(crate) mod upgrade;
mod validate;
mod version;
mod volumes;

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::conditions::Finding;
use hangar_api::controlplane::v1alpha1::{HostedControlPlane, HostedControlPlaneStatus};
use hangar_api::names::{BLOCK_MOVE_ANNOTATION, HOSTED_CONTROL_PLANE_FINALIZER};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde::Serialize;

pub use alarms::{Alarm, health_path, members_to_ask, told_alarm};
pub use database::{DATABASE_PATH, DatabaseLines, DatabaseSize};
pub use epoch::{Epoch, Recorded};
pub use kubeconfigs::{KubeconfigFacts, server_of};
pub use material::{CertificateIntent, Content, Issuer, Material, Usage};
pub use membership::{Joining, MOST_MEMBERS, Membership};
pub use names::{Component, Names};
pub use observed::{
    ClaimFacts, ClusterFacts, InfrastructureFacts, MemberFacts, NOT_ASKED, ObjectIdentity, Observed,
    OwnedObject, PodFacts, SecretFacts, ServiceFacts, TenantFacts, TenantObject, WorkloadFacts,
};
pub use restore::{BackupFacts, Restoration, Search, access as restore_access, data_of as data_to_replace};
pub use running_addons::{AddonFacts, tenants_words};
pub use sources::{Source, SourceFacts, SourceKind, sources};
pub use step::{Mint, MintReason, OwnStep, Step, TenantStep};
pub use validate::{API_SERVER_PORT, KONNECTIVITY_PORT, Lifetimes, Validated, validate};
pub use version::KubernetesVersion;

use crate::admission::FieldError;
use crate::conditions::shared::unreadable;
use crate::flow::{self, Identified as _, Never, Outcome, Planner, Read, StepId, dynamic, has_root};
use crate::{limits, referred};
pub(crate) use backup::errors as backup_errors;
use conditions::{not_rendered, nothing_done};
pub(crate) use placement::{errors as placement_errors, placements};
pub(crate) use pod::{REGISTRY, image_name, registry};
pub(crate) use program::{HOSTED, Program, hosted_programs, refused_flags};
pub(crate) use validate::{DEFAULT_DOMAIN, refused};

/// What the management cluster of one host has in common with a tenant: its add-ons, and what their pods consist of.
pub mod addons {
    pub use hangar_api::contract::Endpoint;

    pub use super::core_dns::CoreDns;
    pub use super::kube_proxy::KubeProxy;
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
    /// What the members of etcd tell.
    Members,
    /// Who belongs to etcd's cluster.
    MemberList,
    /// What some ways in need besides Services.
    Ways,
    /// The backup that is asked for.
    Backup,
    /// What the ConfigMaps and Secrets hold that [`sources()`] names.
    Sources,
}

impl Planner for Observed {
    type Wanted = Wanted;
    type Own = OwnStep;
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
        if self.ways.route_api == Read::unknown(NOT_ASKED) {
            return Some(Wanted::Ways);
        }
        if sources::is_unread(self) {
            return Some(Wanted::Sources);
        }
        if self.restorable == Read::unknown(NOT_ASKED)
            && validated(self).is_some_and(|validated| restore::is_unread(self, &validated))
        {
            return Some(Wanted::Backup);
        }
        if self.etcd_members == Read::unknown(NOT_ASKED) {
            return Some(Wanted::Members);
        }
        if self.etcd_list == Read::unknown(NOT_ASKED) && etcd_calls::is_wanted(self) {
            return Some(Wanted::MemberList);
        }
        // What belongs into the tenant depends on what serves it.
        let is_asked = self.tenant == Read::unknown(NOT_ASKED) && !self.api_server_pods.is_unknown();
        is_asked.then_some(Wanted::Tenant)
    }

    fn assume(&mut self, wanted: Wanted) -> Option<Wanted> {
        match wanted {
            // A preview has these, too.
            Wanted::Secrets | Wanted::Sources | Wanted::Ways => Some(wanted),
            Wanted::Tenant => {
                self.tenant = Read::unknown(flow::NOT_CALLED);
                None
            }
            Wanted::Backup => {
                self.restorable = Read::unknown(flow::NOT_CALLED);
                None
            }
            Wanted::Members => {
                self.etcd_members = Read::unknown(flow::NOT_CALLED);
                None
            }
            Wanted::MemberList => {
                self.etcd_list = Read::unknown(flow::NOT_CALLED);
                None
            }
        }
    }

    fn plan(&self) -> Plan {
        let mut draft = Draft::new(self);
        if !is_anothers(self) {
            status::counters(&mut draft);
        }
        decide(&mut draft);
        if self.has_unread() {
            draft.again(READ_AGAIN);
        }
        draft.finish()
    }

    /// Minting answers [`Outcome::Created`] with the metadata of the Secret, or with no more than the fingerprint of what
    /// was minted. Applying in the tenant answers [`Outcome::Created`] or [`Outcome::Done`].
    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        let Some(id) = outcome.made() else {
            return self.troubles.extend(outcome.trouble().map(|words| (step.id(), words.to_owned())));
        };
        match step {
            Step::Write(write) => self.written(write),
            Step::Own(OwnStep::Mint(mint)) => {
                let metadata = serde_json::from_str::<ObjectMeta>(id).ok();
                let facts = metadata.and_then(|metadata| SecretFacts::of(&metadata));
                let facts = facts.or_else(|| self.copied(mint));
                let facts = facts.unwrap_or_else(|| self.minted(mint, id.to_owned()));
                let place =
                    if mint.why == MintReason::Deleted { &mut self.copies } else { &mut self.secrets };
                place.insert(mint.material, Read::One(facts));
            }
            Step::Own(OwnStep::Etcd(step)) => {
                self.etcd_list.iter_mut().for_each(|list| list.fold(step, id));
                if step.change == etcd_calls::MemberChange::Defragment {
                    self.defragmented();
                }
            }
            Step::Own(OwnStep::Backup(step)) => self.backup = step.begun(),
            Step::Tenant(TenantStep::Apply { object, uid }) => {
                let annotations = object.metadata.annotations.as_ref();
                let applied =
                    annotations.and_then(|annotations| annotations.get(names::DESIRED_ANNOTATION)).cloned();
                let uid = uid.clone().unwrap_or_else(|| id.to_owned());
                let object = ObjectIdentity::of(object);
                self.in_tenant(object.clone(), TenantObject::Ours { uid, applied, is_drifted: false });
                self.after_rights(&object);
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

type Draft<'a> = flow::Draft<'a, Observed>;

impl Draft<'_> {
    /// Adds an object of the management cluster that has to exist as written.
    fn apply(&mut self, object: &impl Serialize) {
        self.objects.push(dynamic(object));
    }
}

has_root!(HostedControlPlane in control_plane);

/// The objects that the tenant should have now, in order; empty while something they need is not known. Observers read
/// these in the tenant, before they plan.
pub fn tenant_objects(observed: &Observed) -> Vec<DynamicObject> {
    validated(observed).map(|validated| tenant::objects(observed, &validated)).unwrap_or_default()
}

/// What gives Hangar its rights in the tenant. Observers look at these before they look at anything else there.
pub fn tenant_rights(observed: &Observed) -> Vec<DynamicObject> {
    validated(observed).map(|validated| access::objects(validated.epoch)).unwrap_or_default()
}

/// Objects that the tenant may still have from earlier settings and that are no longer wanted.
pub fn tenant_leftovers(observed: &Observed) -> Vec<ObjectIdentity> {
    validated(observed).map(|validated| tenant::leftovers(&validated)).unwrap_or_default()
}

/// The Deployments and DaemonSets among [`tenant_objects`], each with the selector of its pods.
pub fn tenant_addons(observed: &Observed) -> Vec<(ObjectIdentity, String)> {
    validated(observed).map(|validated| running_addons::addons(observed, &validated)).unwrap_or_default()
}

/// What can be rendered, if anything: an owner, an epoch, nothing wrong, and nothing beyond the limits.
fn validated(observed: &Observed) -> Option<Validated<'_>> {
    let Read::One(cluster) = &observed.cluster else { return None };
    if !is_referred(observed, cluster) {
        return None;
    }
    let Recorded::Known(epoch) = Epoch::recorded(&observed.control_plane) else { return None };
    allowed(observed, cluster, epoch).ok()
}

/// What can be rendered and may be, or why not.
fn allowed<'observed>(
    observed: &'observed Observed,
    cluster: &ClusterFacts,
    epoch: Epoch,
) -> Result<Validated<'observed>, Box<Finding>> {
    let control_plane = &observed.control_plane;
    let all = |errors: Vec<FieldError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let validated = validate(control_plane, cluster, epoch, &observed.limits).map_err(|errors| {
        Box::new(not_rendered::INVALID.waits("a specification that can be rendered").because(all(errors)))
    })?;
    let wrong = audit::lacking(observed, &validated).or_else(|| upgrade::error(observed, &validated));
    if let Some(error) = wrong {
        let finding = not_rendered::INVALID.waits("a specification that can be rendered");
        return Err(Box::new(finding.because(error.to_string())));
    }
    let excess = limits::excess(&observed.limits, &control_plane.spec);
    if excess.is_empty() {
        return Ok(validated);
    }
    Err(Box::new(
        not_rendered::NOT_ALLOWED.waits("a specification that the limits allow").because(all(excess)),
    ))
}

/// Whether the Cluster means this control plane. Owner and label may be those of another that somebody copied; two of
/// one Cluster would work on the same objects.
fn is_referred(observed: &Observed, cluster: &ClusterFacts) -> bool {
    cluster.control_plane.is_some() && cluster.control_plane == observed.control_plane.metadata.name
}

/// Whether it was not made by Hangar, whose claim is finalizer and epoch at once.
fn is_anothers(observed: &Observed) -> bool {
    let finalizers = observed.control_plane.metadata.finalizers.iter().flatten();
    let has_finalizer = finalizers.into_iter().any(|finalizer| finalizer == HOSTED_CONTROL_PLANE_FINALIZER);
    has_finalizer && Epoch::recorded(&observed.control_plane) == Recorded::Nothing
}

fn decide(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let cluster = match &observed.cluster {
        // Not even whether it is paused can be told.
        Read::Unknown(unknown) => return draft.report.wait(unreadable("the Cluster", unknown)),
        read => read.iter().next(),
    };
    let is_cluster_paused = cluster.is_some_and(|cluster| cluster.is_paused);
    if draft.is_paused(referred::paused_by(draft.metadata(), is_cluster_paused)) {
        return draft.unattended();
    }
    if is_anothers(observed) {
        let why = format!(
            "it has the finalizer {HOSTED_CONTROL_PLANE_FINALIZER} and no annotation {}",
            names::EPOCH_ANNOTATION
        );
        let finding = nothing_done::MADE_BY_ANOTHER
            .waits("the provider that made it, or the annotation that Hangar wrote")
            .because(why);
        draft.unattended();
        return status::left_alone(draft, finding);
    }
    if draft.is_deleting() {
        if !cluster.is_some_and(|cluster| delete::is_held(observed, cluster)) {
            status::leaving(draft);
            return delete::draft(draft);
        }
        draft.say(delete::held());
    }
    let Some(cluster) = cluster else {
        let finding = nothing_done::NO_OWNER.waits("a Cluster that owns this control plane");
        return status::unavailable(draft, finding);
    };
    if !is_referred(observed, cluster) {
        let other = cluster.control_plane.as_ref();
        let other = other.map_or_else(|| "none".to_owned(), |name| format!("HostedControlPlane {name}"));
        let finding = nothing_done::NOT_REFERENCED
            .waits(format!("Cluster {} to refer to this one", cluster.name))
            .because(format!("of all control planes of this kind it refers to {other}"));
        draft.unattended();
        return status::left_alone(draft, finding);
    }
    let epoch = match Epoch::recorded(&observed.control_plane) {
        Recorded::Known(epoch) => epoch,
        Recorded::Nothing => Epoch::CURRENT,
        Recorded::Strange(text) => {
            let finding = not_rendered::NEWER_EPOCH
                .waits("a Hangar that knows its render epoch")
                .because(format!("it was rendered with epoch {text}, by a newer Hangar"));
            return status::invalid(draft, finding);
        }
    };
    match allowed(observed, cluster, epoch) {
        Err(finding) => status::invalid(draft, *finding),
        Ok(validated) => render(draft, &validated),
    }
}

/// All concerns, each alone. Until the epoch is recorded nothing is rendered: a newer Hangar might do it differently.
fn render(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    claim(draft, validated);
    if Epoch::recorded(&draft.observed.control_plane) == Recorded::Nothing {
        let finding = nothing_done::NOT_CLAIMED.waits("its finalizer and its render epoch to be written");
        return status::unavailable(draft, finding);
    }
    for concern in [
        certificates::draft,
        exposure::draft,
        // Before the pods that they are about.
        network_policies::draft,
        restore::draft,
        etcd::draft,
        upgrade::draft,
        api_server::draft,
        controllers::draft,
        endpoint::draft,
        tenant::draft,
        running_addons::draft,
        pod_monitors::draft,
        backup::draft,
        unsupported::draft,
    ] {
        concern(draft, validated);
    }
    status::rendered(draft, validated);
}

/// Marks the control plane as ours, where something of the mark is missing.
fn claim(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let metadata = draft.metadata();
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
    if !draft.has_finalizer(finalizer) || !annotations.is_empty() {
        draft.report.decide(
            "claim the control plane",
            "everything is rendered with the epoch, and named after the identity, that are recorded first",
        );
        draft.step(step::claim(metadata, finalizer, &annotations));
    }
}

#[cfg(test)]
mod tests;
