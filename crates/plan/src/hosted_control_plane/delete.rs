//! Plans the deletion of a control plane, in an order in which nothing hangs.
//!
//! Nothing is deleted in the tenant: whoever deletes a Cluster deletes its Machines first. API servers are deleted
//! before etcd, because one that loses etcd while it stops takes more than a minute. Keys are deleted last, so that
//! everything before can still be examined. Objects that need no order are garbage collected with the control plane.
//!
//! If several objects are being deleted, the condition names the one that was asked last. They mostly end in the order
//! in which they were asked, so the condition stays the same until the last is gone: that is one write for a stage
//! instead of one per object, and still a name if one of them hangs.

use hangar_api::conditions::{Actor, Finding, Waiting};
use hangar_api::names::{
    ALLOW_DELETION_ANNOTATION, DELETE_FOR_MOVE_ANNOTATION, HOSTED_CONTROL_PLANE_FINALIZER,
};

use super::conditions::deleting;
use super::material::Material;
use super::names::Names;
use super::observed::{
    ClaimFacts, ClusterFacts, ObjectIdentity, Observed, SecretFacts, ServiceFacts, WorkloadFacts,
};
use super::{Draft, backup, is_referred, step, volumes};
use crate::conditions::shared::unreadable;
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::Read;

pub(super) fn draft(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    if !draft.has_finalizer(HOSTED_CONTROL_PLANE_FINALIZER) {
        return draft.say(deleting::RELEASED.waits("the finalizers of others to be removed"));
    }
    // Without names nobody ever owned it, so nothing was ever made for it.
    if let Some(names) = observed.names() {
        if let Some(waiting) = controllers(draft, &names) {
            return draft.say(deleting::DELETING.waiting(waiting));
        }
        // Nothing is written any more.
        if let Some(finding) = backup::last(draft) {
            return draft.say(finding);
        }
        for phase in [etcd, claims, keys] {
            if let Some(waiting) = phase(draft, &names) {
                return draft.say(deleting::DELETING.waiting(waiting));
            }
        }
    }
    draft.step(step::release(draft.metadata(), HOSTED_CONTROL_PLANE_FINALIZER));
    draft.say(deleting::RELEASING.waits("the finalizer to be removed"));
}

/// Whether it was deleted though its Cluster lives, refers to it, and nobody consented: admission was off then. What
/// would be lost is everything in etcd.
pub(super) fn is_held(observed: &Observed, cluster: &ClusterFacts) -> bool {
    let metadata = &observed.control_plane.metadata;
    let has = |name: &str| metadata.annotations.as_ref().is_some_and(|present| present.contains_key(name));
    let is_claimed =
        metadata.finalizers.iter().flatten().any(|finalizer| finalizer == HOSTED_CONTROL_PLANE_FINALIZER);
    is_claimed
        && !cluster.is_deleting
        && is_referred(observed, cluster)
        && !has(ALLOW_DELETION_ANNOTATION)
        && !has(DELETE_FOR_MOVE_ANNOTATION)
}

pub(super) fn held() -> Finding {
    deleting::HELD
        .waits(format!(
            "the Cluster to be deleted, or the annotation {ALLOW_DELETION_ANNOTATION} on this object"
        ))
        .because(
            "it was deleted, but its Cluster lives and would lose its etcd; a deletion cannot be taken back",
        )
}

/// Something of ours that can be deleted.
trait Deletable {
    fn uid(&self) -> Option<&str>;
    fn is_deleting(&self) -> bool;
}

impl Deletable for WorkloadFacts {
    fn uid(&self) -> Option<&str> {
        Some(&self.uid)
    }

    fn is_deleting(&self) -> bool {
        self.is_deleting
    }
}

impl Deletable for ClaimFacts {
    fn uid(&self) -> Option<&str> {
        Some(&self.uid)
    }

    fn is_deleting(&self) -> bool {
        self.is_deleting
    }
}

impl Deletable for ServiceFacts {
    fn uid(&self) -> Option<&str> {
        Some(&self.uid)
    }

    fn is_deleting(&self) -> bool {
        self.is_deleting
    }
}

impl Deletable for SecretFacts {
    fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    fn is_deleting(&self) -> bool {
        self.is_deleting
    }
}

fn controllers(draft: &mut Draft<'_>, names: &Names) -> Option<Waiting> {
    let observed = draft.observed;
    let deployment = ("apps/v1", "Deployment");
    [
        gone(draft, &observed.scheduler, names, deployment, names.scheduler()),
        gone(draft, &observed.controller_manager, names, deployment, names.controller_manager()),
        gone(draft, &observed.api_server, names, deployment, names.api_server()),
    ]
    .into_iter()
    .flatten()
    .next_back()
}

fn etcd(draft: &mut Draft<'_>, names: &Names) -> Option<Waiting> {
    let observed = draft.observed;
    [
        gone(draft, &observed.service, names, ("v1", "Service"), names.api_server_service()),
        gone(draft, &observed.tunnel, names, ("v1", "Service"), names.konnectivity_service()),
        gone(draft, &observed.etcd, names, ("apps/v1", "StatefulSet"), names.etcd()),
    ]
    .into_iter()
    .flatten()
    .next_back()
}

/// Nothing else deletes the volumes. Those that an earlier control plane left under the same names stay: they hold its
/// data, and nobody asked for their end.
fn claims(draft: &mut Draft<'_>, names: &Names) -> Option<Waiting> {
    let observed = draft.observed;
    let found = match &observed.etcd_claims {
        Read::Unknown(unknown) => return Some(unreadable("etcd's claims", unknown)),
        read => read.iter(),
    };
    let claim = ("v1", "PersistentVolumeClaim");
    let (own, others): (Vec<&ClaimFacts>, Vec<_>) = found.partition(|claim| volumes::is_own(observed, claim));
    for other in others {
        let why = "it is older than the control plane and not on record";
        draft.report.decide(format!("leave PersistentVolumeClaim {}", other.name), why);
    }
    let mut waiting = None;
    for facts in own {
        waiting = gone(draft, &Read::One(facts.clone()), names, claim, facts.name.clone()).or(waiting);
    }
    waiting
}

fn keys(draft: &mut Draft<'_>, names: &Names) -> Option<Waiting> {
    let observed = draft.observed;
    let mut waiting = None;
    for material in Material::ALL.into_iter().rev() {
        let read = observed.secret(material);
        if matches!(read, Read::One(facts) if !facts.is_ours) {
            // People brought it, it stays theirs.
            continue;
        }
        let copy = observed.copies.get(&material).cloned().unwrap_or(Read::Absent);
        for (read, name) in [(read.map(Clone::clone), names.secret(material)), (copy, names.copy(material))] {
            // Nothing needs what is in it any more.
            if let Read::One(facts) = &read
                && facts.is_held()
                && let Some(step) = step::let_go(&name, facts)
            {
                draft.step(step);
            }
            waiting = gone(draft, &read, names, ("v1", "Secret"), name).or(waiting);
        }
    }
    waiting
}

/// Asks for an object to be deleted; what is waited for until it is seen to be gone.
fn gone<T: Deletable>(
    draft: &mut Draft<'_>,
    read: &Read<T>,
    names: &Names,
    (api_version, kind): (&str, &str),
    name: String,
) -> Option<Waiting> {
    let object = ObjectIdentity {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: names.namespace().to_owned(),
        name,
    };
    let waiting = |actor| Some(Waiting::new(actor, format!("{object} to be gone")));
    match read {
        Read::Absent => None,
        Read::Unknown(unknown) => Some(unreadable(&object.to_string(), unknown)),
        Read::One(facts) if facts.is_deleting() => waiting(MANAGEMENT_CLUSTER),
        Read::One(facts) => {
            if let Some(uid) = facts.uid() {
                draft.step(step::delete(&object, uid));
            }
            waiting(Actor::Hangar)
        }
        Read::Many(_) => waiting(Actor::Operator),
    }
}
