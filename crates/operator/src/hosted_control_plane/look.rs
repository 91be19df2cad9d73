//! Reads what is in a tenant, and remembers it until the next read is due. Our own writes update what is remembered.
//!
//! The number of Nodes comes from a watch, which is kept for every tenant with a ready API server, also for an idle
//! one: at rest it costs one call in five minutes, and it shows the first Node of an idle tenant. The watch ends some
//! minutes after the API server is no longer ready.
//!
//! The other objects, about forty, are read one by one. While these reads find no change they become rare: every five
//! minutes in a tenant with Nodes, and once an hour in one without. For a tenant without Nodes that is, with the watch,
//! less than one call per minute.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_kit::client::KubeconfigSource as _;
use hangar_kit::error::{Error, is_lost, status_code};
use hangar_plan::flow::{Read, Unknown};
use hangar_plan::hosted_control_plane::{
    ObjectIdentity, Observed, TenantFacts, TenantObject, tenant_leftovers, tenant_objects, tenant_rights,
};
use kube::core::DynamicObject;
use tokio::time::Instant;

use super::ControlPlanes;
use super::run::APPLIER;
use crate::context::Context;
use crate::reconcile::{Case, WRITE_LIMIT};

/// A look that found something new is followed by another after this time, and by each further one after twice as long.
const LOOK_SOON: Duration = Duration::from_secs(20);
/// What drifts in a tenant with Nodes is put back within this time.
const LOOK_EVERY: Duration = Duration::from_mins(5);
/// Where there are no Nodes, nothing depends on it.
const LOOK_RARELY: Duration = Duration::from_hours(1);

/// How long an API server is given to learn of rights that were written, and how often it is asked.
const RIGHTS_PAUSE: Duration = Duration::from_millis(50);
const RIGHTS_TRIES: u32 = 40;

/// What was last seen of each tenant.
#[derive(Default)]
pub(super) struct Looks(Mutex<BTreeMap<ObjectKey, Look>>);

struct Look {
    /// Of the kubeconfig it was seen through: another one may lead elsewhere.
    revision: Option<String>,
    at: Instant,
    /// How many looks in a row have found the same.
    same: u32,
    facts: TenantFacts,
}

impl Look {
    fn age_limit(&self) -> Duration {
        let is_foreign = |object: &TenantObject| *object == TenantObject::Foreign;
        // Nobody tells us when one of another is gone.
        let is_rare = self.facts.nodes == 0 && !self.facts.objects.values().any(is_foreign);
        let limit = if is_rare { LOOK_RARELY } else { LOOK_EVERY };
        LOOK_SOON.saturating_mul(1 << self.same.min(16)).min(limit)
    }

    fn due_in(&self) -> Duration {
        self.age_limit().saturating_sub(self.at.elapsed())
    }
}

impl Looks {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a control plane: the next observation looks again.
    pub(super) fn forget(&self, control_plane: &ObjectKey) {
        self.all().remove(control_plane);
    }

    /// Keeps what own writes made of the facts.
    pub(super) fn fold(&self, control_plane: &ObjectKey, facts: &TenantFacts) {
        if let Some(look) = self.all().get_mut(control_plane) {
            look.facts = facts.clone();
        }
    }

    /// When to come back, if there was a look.
    pub(super) fn due_in(&self, control_plane: &ObjectKey) -> Option<Duration> {
        let all = self.all();
        let look = all.get(control_plane)?;
        Some(look.due_in())
    }

    /// Whether there was a look that is not due again.
    fn is_recent(&self, control_plane: &ObjectKey, revision: Option<&str>) -> bool {
        let all = self.all();
        let look = all.get(control_plane).filter(|look| look.revision.as_deref() == revision);
        look.is_some_and(|look| !look.due_in().is_zero())
    }

    /// What is remembered, with the present number of Nodes. Another number makes the next look due soon.
    fn recent(&self, control_plane: &ObjectKey, revision: Option<&str>, nodes: u32) -> Option<TenantFacts> {
        let mut all = self.all();
        let look = all.get_mut(control_plane).filter(|look| look.revision.as_deref() == revision)?;
        if look.facts.nodes != nodes {
            look.same = 0;
            look.facts.nodes = nodes;
        }
        (!look.due_in().is_zero()).then(|| look.facts.clone())
    }

    fn keep(&self, control_plane: &ObjectKey, revision: Option<String>, facts: TenantFacts) {
        let mut all = self.all();
        let before = all.get(control_plane).filter(|look| look.facts == facts);
        let same = before.map_or(0, |look| look.same.saturating_add(1));
        all.insert(control_plane.clone(), Look { revision, at: Instant::now(), same, facts });
    }
}

impl ControlPlanes {
    /// Fills in what is known of the tenant.
    pub(super) async fn look_at_tenant(
        &self,
        case: &Case<'_, Self>,
        observed: &mut Observed,
        cluster: &ObjectKey,
    ) {
        let control_plane = case.key();
        let unknown = |why: &str| Read::Unknown(Unknown::new(why));
        let revision = self.tenants.source().revision(cluster);
        if !self.looks.is_recent(control_plane, revision.as_deref()) {
            let lacking = self.lacking(case.context, observed, cluster).await;
            if let Some(tenant) = lacking.map_or_else(|why| Some(unknown(&why)), |facts| facts.map(Read::One))
            {
                self.looks.forget(control_plane);
                observed.tenant = tenant;
                return;
            }
        }
        let nodes = match self.count_nodes(cluster).await {
            Ok(nodes) => nodes,
            Err(Unknown { why }) => {
                self.looks.forget(control_plane);
                observed.tenant = unknown(&why);
                return;
            }
        };
        if let Some(facts) = self.looks.recent(control_plane, revision.as_deref(), nodes) {
            observed.tenant = Read::One(facts);
            let (desired, leftovers) = asked(observed);
            let mut asked = desired.iter().map(ObjectIdentity::of).chain(leftovers);
            if let Read::One(facts) = &observed.tenant
                && asked.all(|identity| facts.objects.contains_key(&identity))
            {
                return;
            }
        }
        observed.tenant = match self.looked(observed, cluster, nodes).await {
            Ok(facts) => {
                self.looks.keep(control_plane, revision, facts.clone());
                Read::One(facts)
            }
            Err(why) => {
                self.looks.forget(control_plane);
                unknown(&why)
            }
        };
    }

    /// What is there of Hangar's own rights, where they are not as they should be. Nothing else can be read then, so it
    /// is read with other rights.
    async fn lacking(
        &self,
        context: &Context,
        observed: &Observed,
        cluster: &ObjectKey,
    ) -> Result<Option<TenantFacts>, String> {
        let client = self.tenants.client(cluster).await.map_err(|error| error.to_string())?;
        let desired = tenant_rights(observed);
        let mut found = APPLIER.look(&client, &desired, &[]).await;
        let was_denied = found.values().any(is_denied);
        if was_denied {
            let master = self.master(context, observed).await.map_err(|error| error.to_string())?;
            found = APPLIER.look(&master, &desired, &[]).await;
        }
        let mut facts = TenantFacts { lacks_rights: true, ..TenantFacts::default() };
        for (identity, result) in found {
            facts.objects.insert(identity, result.map_err(|error| error.to_string())?);
        }
        if !was_denied || !facts.has(&desired) {
            return Ok((!facts.has(&desired)).then_some(facts));
        }
        // An API server learns of new rights in its own time.
        for _ in 0..RIGHTS_TRIES {
            if !APPLIER.look(&client, &desired, &[]).await.values().any(is_denied) {
                return Ok(None);
            }
            tokio::time::sleep(RIGHTS_PAUSE).await;
        }
        Ok(Some(facts))
    }

    /// How many Nodes the tenant has.
    async fn count_nodes(&self, cluster: &ObjectKey) -> Result<u32, Unknown> {
        let lease = self.nodes.subscribe(cluster);
        if lease.count().is_err() {
            // Where the tenant is known to be away, nobody waits.
            self.tenants.client(cluster).await.map_err(|error| Unknown::new(error.to_string()))?;
            lease.ready(WRITE_LIMIT).await;
        }
        lease.count().map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    async fn looked(
        &self,
        observed: &mut Observed,
        cluster: &ObjectKey,
        nodes: u32,
    ) -> Result<TenantFacts, String> {
        let client = self.tenants.client(cluster).await.map_err(|error| error.to_string())?;
        // What is desired may depend on the number of nodes.
        observed.tenant = Read::One(TenantFacts { nodes, ..TenantFacts::default() });
        let (desired, leftovers) = asked(observed);
        let mut facts = TenantFacts { nodes, ..TenantFacts::default() };
        for (identity, result) in APPLIER.look(&client, &desired, &leftovers).await {
            match result {
                Ok(object) => {
                    facts.objects.insert(identity, object);
                }
                Err(Error::Api { source, .. }) if is_lost(&source) => {
                    return Err(format!("cannot read {identity}: {source}"));
                }
                // The others go on; this one is left alone until it can be read.
                Err(error) => tracing::warn!(object = %identity, %error, "not read in the tenant"),
            }
        }
        Ok(facts)
    }
}

fn is_denied(result: &Result<TenantObject, Error>) -> bool {
    matches!(result, Err(Error::Api { source, .. }) if status_code(source) == Some(403))
}

/// What to look for: everything that is desired, and what may be left over.
fn asked(observed: &Observed) -> (Vec<DynamicObject>, Vec<ObjectIdentity>) {
    (tenant_objects(observed), tenant_leftovers(observed))
}
