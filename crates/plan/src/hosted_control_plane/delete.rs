//! The end of a control plane, in the order in which nothing hangs.
//!
//! The tenant is left alone: whoever deletes a cluster deletes its machines first. API servers go before etcd, because
//! one that loses etcd while it stops takes more than a minute for it. Keys go last, so that everything before can
//! still be looked into. What needs no order is garbage collected when the control plane itself is gone.
//!
//! Of several objects that are going the condition names the one that was asked last. They mostly go in the order in
//! which they were asked, so it stays the same until the last is gone: one write for a phase instead of one for each
//! object, and still a name where one of them hangs.

use hangar_api::conditions::{Actor, Finding, Waiting};
use hangar_api::names::HOSTED_CONTROL_PLANE_FINALIZER;

use super::material::Material;
use super::names::Names;
use super::observed::{ObjectIdentity, Observed, SecretFacts, ServiceFacts, WorkloadFacts};
use super::part::{Part, management_cluster};
use super::step;
use crate::flow::Read;

/// Whether the control plane is being deleted.
pub const DELETING: &str = "Deleting";

pub(super) fn plan(observed: &Observed) -> Part {
    let mut part = Part::default();
    let finalizers = observed.control_plane.metadata.finalizers.iter().flatten();
    if !finalizers.into_iter().any(|finalizer| finalizer == HOSTED_CONTROL_PLANE_FINALIZER) {
        // Ours is gone; others may still hold it.
        part.findings.push(Finding::raised(
            DELETING,
            "Released",
            &Waiting::new(management_cluster(), "others"),
        ));
        return part;
    }
    let Some(names) = observed.names() else {
        // Nobody ever owned it, so nothing was ever made for it.
        part.steps.push(step::release(&observed.control_plane.metadata, HOSTED_CONTROL_PLANE_FINALIZER));
        part.findings.push(Finding::raised(
            DELETING,
            "Releasing",
            &Waiting::new(Actor::Hangar, "the finalizer"),
        ));
        return part;
    };
    for phase in [controllers, etcd, keys] {
        if let Some(waiting) = phase(observed, &names, &mut part) {
            part.wait(&waiting, None);
            part.findings.push(Finding::raised(DELETING, "Deleting", &waiting));
            return part;
        }
    }
    part.steps.push(step::release(&observed.control_plane.metadata, HOSTED_CONTROL_PLANE_FINALIZER));
    part.findings.push(Finding::raised(DELETING, "Releasing", &Waiting::new(Actor::Hangar, "the finalizer")));
    part
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

fn controllers(observed: &Observed, names: &Names, part: &mut Part) -> Option<Waiting> {
    let deployment = ("apps/v1", "Deployment");
    [
        gone(&observed.scheduler, names, deployment, names.scheduler(), part),
        gone(&observed.controller_manager, names, deployment, names.controller_manager(), part),
        gone(&observed.api_server, names, deployment, names.api_server(), part),
    ]
    .into_iter()
    .flatten()
    .next_back()
}

fn etcd(observed: &Observed, names: &Names, part: &mut Part) -> Option<Waiting> {
    [
        gone(&observed.service, names, ("v1", "Service"), names.api_server_service(), part),
        gone(&observed.tunnel, names, ("v1", "Service"), names.konnectivity_service(), part),
        gone(&observed.etcd, names, ("apps/v1", "StatefulSet"), names.etcd(), part),
    ]
    .into_iter()
    .flatten()
    .next_back()
}

fn keys(observed: &Observed, names: &Names, part: &mut Part) -> Option<Waiting> {
    let mut waiting = None;
    for material in Material::ALL.into_iter().rev() {
        let read = observed.secret(material);
        if matches!(read, Read::One(facts) if !facts.is_ours) {
            // People brought it, it stays theirs.
            continue;
        }
        let read = read.map(Clone::clone);
        let wait = gone(&read, names, ("v1", "Secret"), names.secret(material), part);
        waiting = wait.or(waiting);
    }
    waiting
}

/// Asks for an object to be deleted; what is waited for until it is seen to be gone.
fn gone<T: Deletable>(
    read: &Read<T>,
    names: &Names,
    (api_version, kind): (&str, &str),
    name: String,
    part: &mut Part,
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
        Read::Unknown(unknown) => {
            Some(Waiting::new(Actor::Hangar, format!("a look at {object}")).because(&unknown.why))
        }
        Read::One(facts) if facts.is_deleting() => waiting(management_cluster()),
        Read::One(facts) => {
            if let Some(uid) = facts.uid() {
                part.steps.push(step::delete(&object, uid));
            }
            waiting(Actor::Hangar)
        }
        Read::Many(_) => waiting(Actor::Operator),
    }
}
