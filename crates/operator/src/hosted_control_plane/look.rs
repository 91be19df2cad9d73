//! Reads what is in a tenant, and remembers it until the next read is due. Our own writes update what is remembered.
//!
//! The number of Nodes comes from a watch, which is kept for every tenant with a ready API server, also for an idle
//! one: at rest it costs one call in half an hour, and it shows the first Node of an idle tenant. The watch ends some
//! minutes after the API server is no longer ready.
//!
//! The other objects, about forty, take some fifteen reads. While these find no change they become rare: once an hour in a
//! tenant with Nodes, and every six hours in one without. What users notice first does not wait for them: in a tenant
//! with Nodes the Deployments and DaemonSets of add-ons are watched, and an edit of one is put back at once. An object of
//! another in the place of ours is looked for every five minutes, because its owner may wait for ours.

use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_kit::client::KubeconfigSource as _;
use hangar_kit::error::{Error, is_lost, status_code};
use hangar_plan::flow::{Read, Unknown};
use hangar_plan::hosted_control_plane::{
    KubernetesVersion, ObjectIdentity, Observed, TenantFacts, TenantObject, tenant_leftovers, tenant_objects,
    tenant_rights,
};
use kube::core::DynamicObject;
use tokio::time::Instant;

use super::ControlPlanes;
use super::remembered::{Due, Remembered};
use super::run::APPLIER;
use crate::context::Context;
use crate::reconcile::{Case, WRITE_LIMIT};

/// A look that found something new is followed by another after this time, and by each further one after twice as long.
const LOOK_SOON: Duration = Duration::from_secs(20);
/// Where one of another is in the place of ours: nobody tells us when it is gone.
const LOOK_OFTEN: Duration = Duration::from_mins(5);
/// What drifts in a tenant with Nodes and is not watched is put back within this time.
const LOOK_EVERY: Duration = Duration::from_hours(1);
/// Where there are no Nodes, nothing depends on it.
const LOOK_RARELY: Duration = Duration::from_hours(6);

/// How long an API server is given to learn of rights that were written, and how often it is asked.
const RIGHTS_PAUSE: Duration = Duration::from_millis(50);
const RIGHTS_TRIES: u32 = 40;

/// What was last seen of each tenant.
pub(super) type Looks = Remembered<Look>;

/// What the watch of a tenant's Nodes shows.
struct Counted {
    nodes: u32,
    oldest_kubelet: Option<KubernetesVersion>,
}

impl Counted {
    /// With nothing else that is known of the tenant.
    fn facts(&self) -> TenantFacts {
        let oldest_kubelet = self.oldest_kubelet.clone();
        TenantFacts { nodes: self.nodes, oldest_kubelet, ..TenantFacts::default() }
    }
}

pub(super) struct Look {
    /// Of the kubeconfig it was seen through: another one may lead elsewhere.
    revision: Option<String>,
    at: Instant,
    /// How many looks in a row have found the same.
    same: u32,
    /// Whether something was edited since.
    is_doubted: bool,
    facts: TenantFacts,
}

impl Look {
    fn age_limit(&self) -> Duration {
        let is_foreign = |object: &TenantObject| *object == TenantObject::Foreign;
        let limit = if self.facts.objects.values().any(is_foreign) {
            LOOK_OFTEN
        } else if self.facts.nodes > 0 {
            LOOK_EVERY
        } else {
            LOOK_RARELY
        };
        LOOK_SOON.saturating_mul(1 << self.same.min(16)).min(limit)
    }
}

impl Due for Look {
    fn due_in(&self) -> Duration {
        if self.is_doubted {
            return Duration::ZERO;
        }
        self.age_limit().saturating_sub(self.at.elapsed())
    }
}

impl Looks {
    /// Makes the next look due: somebody edited something.
    pub(super) fn doubt(&self, control_plane: &ObjectKey) {
        if let Some(look) = self.all().get_mut(control_plane) {
            look.is_doubted = true;
        }
    }

    /// Keeps what own writes made of the facts.
    pub(super) fn fold(&self, control_plane: &ObjectKey, facts: &TenantFacts) {
        if let Some(look) = self.all().get_mut(control_plane) {
            look.facts = facts.clone();
        }
    }

    /// Whether there was a look.
    fn is_known(&self, control_plane: &ObjectKey, revision: Option<&str>) -> bool {
        self.all().get(control_plane).is_some_and(|look| look.revision.as_deref() == revision)
    }

    /// What is remembered, with the present number of Nodes. Another number makes the next look due soon.
    fn recent(
        &self,
        control_plane: &ObjectKey,
        revision: Option<&str>,
        counted: &Counted,
    ) -> Option<TenantFacts> {
        let mut all = self.all();
        let look = all.get_mut(control_plane).filter(|look| look.revision.as_deref() == revision)?;
        if look.facts.nodes != counted.nodes {
            look.same = 0;
            look.facts.nodes = counted.nodes;
        }
        look.facts.oldest_kubelet.clone_from(&counted.oldest_kubelet);
        (!look.due_in().is_zero()).then(|| look.facts.clone())
    }

    fn keep(&self, control_plane: &ObjectKey, revision: Option<String>, facts: TenantFacts) {
        let mut all = self.all();
        let before = all.get(control_plane).filter(|look| look.facts == facts);
        let same = before.map_or(0, |look| look.same.saturating_add(1));
        let look = Look { revision, at: Instant::now(), same, is_doubted: false, facts };
        all.insert(control_plane.clone(), look);
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
        // A look at all reads the rights as well, where they were there before.
        if !self.looks.is_known(control_plane, revision.as_deref())
            && let Some(tenant) = self.without_rights(case.context, observed, cluster).await
        {
            observed.tenant = tenant;
            return;
        }
        let counted = match self.count_nodes(cluster).await {
            Ok(counted) => counted,
            Err(Unknown { why }) => {
                self.looks.forget(control_plane);
                observed.tenant = unknown(&why);
                return;
            }
        };
        if let Some(facts) = self.looks.recent(control_plane, revision.as_deref(), &counted) {
            observed.tenant = Read::One(facts);
            let (desired, leftovers) = asked(observed);
            let mut asked = desired.iter().map(ObjectIdentity::of).chain(leftovers);
            if let Read::One(facts) = &observed.tenant
                && asked.all(|identity| facts.objects.contains_key(&identity))
            {
                return;
            }
        }
        observed.tenant = match self.looked(observed, cluster, &counted).await {
            Ok(facts) if facts.has(&tenant_rights(observed)) => {
                self.looks.keep(control_plane, revision, facts.clone());
                Read::One(facts)
            }
            Ok(_) => {
                self.looks.forget(control_plane);
                let lacking = self.without_rights(case.context, observed, cluster).await;
                lacking.unwrap_or_else(|| unknown("Hangar's rights changed during the look"))
            }
            Err(why) => {
                self.looks.forget(control_plane);
                unknown(&why)
            }
        };
    }

    /// What there is to say of a tenant in which Hangar lacks rights, or that does not answer; none if all is well.
    async fn without_rights(
        &self,
        context: &Context,
        observed: &Observed,
        cluster: &ObjectKey,
    ) -> Option<Read<TenantFacts>> {
        match self.lacking(context, observed, cluster).await {
            Ok(facts) => facts.map(Read::One),
            Err(why) => Some(Read::Unknown(Unknown::new(why))),
        }
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

    /// How many Nodes the tenant has, and how old their kubelets are.
    async fn count_nodes(&self, cluster: &ObjectKey) -> Result<Counted, Unknown> {
        let lease = self.nodes.subscribe(cluster);
        if lease.count().is_err() {
            // Where the tenant is known to be away, nobody waits.
            self.tenants.client(cluster).await.map_err(|error| Unknown::new(error.to_string()))?;
            lease.ready(WRITE_LIMIT).await;
        }
        let nodes = lease.count().map(|count| u32::try_from(count).unwrap_or(u32::MAX))?;
        let all = lease.all();
        let kubelets = all.iter().filter_map(|node| {
            // A tenant chooses what follows the patch.
            KubernetesVersion::parse(&node.info.as_ref()?.kubelet_version).map(|version| version.plain())
        });
        let oldest_kubelet = kubelets.min_by_key(KubernetesVersion::number);
        Ok(Counted { nodes, oldest_kubelet })
    }

    async fn looked(
        &self,
        observed: &mut Observed,
        cluster: &ObjectKey,
        counted: &Counted,
    ) -> Result<TenantFacts, String> {
        let client = self.tenants.client(cluster).await.map_err(|error| error.to_string())?;
        // What is desired may depend on the number of nodes.
        observed.tenant = Read::One(counted.facts());
        let (mut desired, leftovers) = asked(observed);
        desired.extend(tenant_rights(observed));
        let mut facts = counted.facts();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looks_become_rare_while_nothing_changes_and_an_edit_makes_one_due() {
        let (looks, key) = (Looks::default(), ObjectKey::namespaced("team", "demo"));
        let waits = |facts: &TenantFacts, times: usize| -> Vec<u64> {
            looks.forget(&key);
            let wait = |_| {
                looks.keep(&key, None, facts.clone());
                looks.due_in(&key).unwrap().as_secs()
            };
            (0..times).map(wait).collect()
        };
        let idle = TenantFacts::default();
        let used = TenantFacts { nodes: 3, ..TenantFacts::default() };
        let taken = TenantFacts {
            objects: [(ObjectIdentity::default(), TenantObject::Foreign)].into(),
            ..TenantFacts::default()
        };
        let counted = |nodes: u32| Counted { nodes, oldest_kubelet: None };
        assert_eq!(waits(&idle, 12)[8..], [5120, 10240, 20480, 21600]);
        assert_eq!(waits(&taken, 6), [20, 40, 80, 160, 300, 300]);
        assert_eq!(waits(&used, 10)[5..], [640, 1280, 2560, 3600, 3600]);
        assert!(looks.recent(&key, None, &counted(3)).is_some());
        looks.doubt(&key);
        assert_eq!(looks.due_in(&key), Some(Duration::ZERO));
        assert!(looks.recent(&key, None, &counted(3)).is_none());
        looks.keep(&key, None, used.clone());
        assert!(looks.recent(&key, None, &counted(3)).is_some());
        // The first Node of an idle tenant makes the next look due soon.
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(looks.recent(&key, None, &counted(4)).is_none());
    }
}
