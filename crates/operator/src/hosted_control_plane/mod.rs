//! The controller of HostedControlPlanes: it makes observations from the stores, and calls from plans. All decisions
//! are in `hangar_plan::hosted_control_plane`.
//!
//! It owns the HostedControlPlane's status, our finalizer on it, and everything that names it as controller: Secrets,
//! ConfigMaps, Services, workloads, budgets, policies. In the tenant it owns the objects that carry the hash of what we
//! desired.
//!
//! Invariants
//! - A key is created by POST, and replaced only if the Secret still has the uid and resourceVersion that were read:
//!   two managers, or a stale store, can never mint over each other.
//! - Keys are in memory only while something is signed or written. Facts about them are annotations of their Secrets,
//!   and only metadata is kept in a store.
//! - The tenant is called only if there is something to learn or to do: what was read is remembered for some minutes,
//!   and our own writes are folded into it. If a tenant cannot be reached, its part of the observation is Unknown.
//! - At rest etcd is only asked for its alarms and its size, over plain HTTP and without a certificate. Its members are
//!   called while the plan wants their list. If no member answers, nothing follows.
//! - Backups of etcd run beside the passes. Their keys and credentials are read when one begins.
//! - If nothing changed, nothing is sent. That holds for objects, status and tenant.

mod addons;
mod backup;
mod etcd;
mod look;
mod lookups;
mod master;
mod material;
mod members;
mod metrics;
mod mint;
mod news;
mod observe;
mod remembered;
mod restore;
mod run;
mod sources;
mod watch;
mod ways;
pub(crate) mod workload;

use std::sync::Arc;
use std::time::Duration;

use hangar_api::controlplane::v1alpha1::{HostedControlPlane, HostedControlPlaneStatus};
use hangar_kit::ObjectKey;
use hangar_kit::client::Tenants;
use hangar_kit::error::Error;
use hangar_kit::event::Event;
use hangar_kit::tenant::{Addons, Nodes};
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::controllers::Controller;
use hangar_plan::flow::{Ending, Read};
use hangar_plan::hosted_control_plane::names::{ADDONS_NAMESPACE, ADDONS_SELECTOR};
use hangar_plan::hosted_control_plane::{
    Material, NOT_ASKED, Observed, TenantStep, Wanted, members_to_ask, sources as named_sources,
};
use kube::Client;
use tokio::task::JoinSet;

use crate::context::{Context, KubeconfigSecrets, Watches};
use crate::reconcile::{self, Case, Edge, Rehearsal, Rehearse};
use addons::Reasons;
use backup::Backups;
use look::Looks;
use lookups::Lookups;
use master::Masters;
use material::{Given, copies};
use members::Members;
use mint::Authorities;
use restore::Searches;
use sources::Sources;

/// The field manager of everything we write; it never changes.
const FIELD_MANAGER: &str = "hangar-hosted-control-plane";

/// What is kept between passes: ways into tenants, what was last seen there, what etcd told, what people brought.
struct ControlPlanes {
    /// By our own kubeconfig, which exists before anybody else's.
    tenants: Arc<Tenants<KubeconfigSecrets>>,
    nodes: Arc<Nodes<KubeconfigSecrets>>,
    addons: Arc<Addons<KubeconfigSecrets>>,
    looks: Arc<Looks>,
    members: Arc<Members>,
    lookups: Lookups,
    reasons: Reasons,
    given: Given,
    masters: Masters,
    sources: Sources,
    searches: Searches,
    backups: Arc<Backups>,
    /// A preview writes no keys, so there is nothing to compare. Where it runs, pods cannot be reached.
    is_rehearsed: bool,
}

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let edge = ControlPlanes::new(context, false);
    let (nodes, addons) = (Arc::clone(&edge.nodes), Arc::clone(&edge.addons));
    let looks = Arc::clone(&edge.looks);
    let backups = Arc::clone(&edge.backups);
    metrics::show(context, &edge.members);
    reconcile::spawn(context, running, edge, |builder| {
        let mut builder = watch::watched(context, builder, &nodes, &addons, &looks);
        backups.run_in(builder.long_work(backup::AT_ONCE));
        builder
    });
}

/// The same for a preview.
pub(crate) fn rehearsed(context: &Context) -> Box<dyn Rehearse> {
    Rehearsal::boxed(context, ControlPlanes::new(context, true))
}

impl ControlPlanes {
    fn new(context: &Context, is_rehearsed: bool) -> Self {
        let tenants = context.tenants_by(Material::OperatorAccess);
        let nodes = Nodes::new(Arc::clone(&tenants), &context.stop);
        let selected = (ADDONS_NAMESPACE, ADDONS_SELECTOR);
        let addons = Addons::new(Arc::clone(&tenants), &context.stop, selected);
        Self {
            tenants,
            nodes,
            addons: Arc::new(addons),
            looks: Arc::default(),
            members: Arc::default(),
            lookups: Lookups::default(),
            reasons: Reasons::default(),
            given: Given::default(),
            masters: Masters::default(),
            sources: Sources::default(),
            searches: Searches::default(),
            backups: Arc::default(),
            is_rehearsed,
        }
    }
}

impl Edge for ControlPlanes {
    const CONTROLLER: Controller = Controller::HostedControlPlane;
    const FIELD_MANAGER: &'static str = FIELD_MANAGER;

    type Root = HostedControlPlane;
    type Observed = Observed;
    type Scratch = Authorities;

    fn watch(watches: &Watches) -> &Watch<HostedControlPlane> {
        watches.control_planes()
    }

    fn status(root: &HostedControlPlane) -> Option<&HostedControlPlaneStatus> {
        root.status.as_ref()
    }

    fn observe(&self, context: &Context, root: &Kept<HostedControlPlane>) -> Observed {
        let mut observed = observe::observe(context, root);
        observed.backup = self.backups.state(&root.key, &observed);
        observed
    }

    fn is_starting(&self, context: &Context, _: &HostedControlPlane) -> bool {
        context.neighbours.is_starting()
    }

    async fn read(&self, case: &Case<'_, Self>, observed: &mut Observed, wanted: Wanted) {
        let Some(names) = observed.names() else { return };
        match wanted {
            Wanted::Secrets => {
                observed.secrets = self.secrets(case.context, &names, &case.seen().uid).await;
                observed.copies = copies(case.context, &names, &case.seen().uid);
            }
            Wanted::Tenant => {
                let cluster = ObjectKey::namespaced(names.namespace(), names.cluster());
                self.look_at_tenant(case, observed, &cluster).await;
                self.look_at_addons(case.key(), observed, &cluster).await;
            }
            Wanted::Ways => {
                let root = (case.key(), case.seen().uid.as_str());
                observed.ways = self.look_at_ways(case.context, root, observed, &names).await;
            }
            Wanted::Backup => {
                observed.restorable = self.look_for_backup(case.context, case.key(), observed).await;
            }
            Wanted::Sources => {
                let wanted = named_sources(&observed.control_plane.spec.settings);
                observed.sources = self.sources.look(case.context, case.key(), &wanted).await;
            }
            Wanted::Members if self.is_rehearsed => {
                observed.etcd_members = Read::unknown("a preview does not ask etcd");
            }
            Wanted::Members => {
                observed.etcd_members = self.members.look(case.key(), observed).await;
            }
            Wanted::MemberList => {
                observed.etcd_list = self.look_at_member_list(case, observed).await;
            }
        }
    }

    async fn tenant(
        &self,
        context: &Context,
        observed: &Observed,
        step: &TenantStep,
    ) -> Result<Client, Error> {
        if step.is_of_rights() {
            return self.master(context, observed).await;
        }
        self.tenants.writer(&observe::cluster_key(observed)).await
    }

    fn news(
        &self,
        root: &HostedControlPlane,
        before: Option<&HostedControlPlaneStatus>,
        after: &HostedControlPlaneStatus,
    ) -> Vec<Event> {
        news::of(root, before, after)
    }

    fn remember(&self, case: &Case<'_, Self>, observed: &Observed, ending: Ending) {
        match &observed.tenant {
            Read::One(facts) if ending != Ending::Outdated => self.looks.fold(case.key(), facts),
            _ => {
                self.looks.forget(case.key());
                self.reasons.forget(case.key());
            }
        }
        if members_to_ask(observed).is_empty() {
            self.members.forget(case.key());
        }
        // Once it is on record nobody looks for it again.
        if observed.restorable == Read::unknown(NOT_ASKED) {
            self.searches.forget(case.key());
        }
        if observed.sources.is_empty() {
            self.sources.forget(case.key());
        }
        self.masters.drop_old();
        if case.root().is_none() {
            self.tenants.forget(&observe::cluster_key(observed));
            self.masters.forget(&observe::cluster_key(observed));
        }
    }

    fn due_in(&self, key: &ObjectKey) -> Option<Duration> {
        let due = [
            self.looks.due_in(key),
            self.reasons.due_in(key),
            self.members.due_in(key),
            self.lookups.due_in(key),
            self.sources.due_in(key),
            self.searches.due_in(key),
        ];
        due.into_iter().flatten().min()
    }

    async fn let_go(&self, context: &Context, key: &ObjectKey) -> Result<(), Error> {
        material::let_go(context, key).await
    }

    fn forget(&self, _: &Context, key: &ObjectKey) {
        self.looks.forget(key);
        self.members.forget(key);
        self.lookups.forget(key);
        self.reasons.forget(key);
        self.sources.forget(key);
        self.searches.forget(key);
    }
}
