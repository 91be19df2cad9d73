//! A management cluster and a tenant, as small as they can be: what is there, and how a sweep runs on it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::super::super::*;
use super::super::fixture::{
    ADDRESS, TUNNEL_ADDRESS, claim, control_plane, created, fingerprint, now, run_addons,
};
use crate::flow::crash::World;
use crate::flow::{Frontier, Outcome, Read, StepId};
use crate::hosted_control_plane::material::Content;

/// A management cluster and a tenant, as small as they can be.
#[derive(Clone)]
pub(super) struct Clusters {
    /// Whether the tenant's API server can be reached.
    pub(super) is_reachable: bool,
    /// Whether whoever gives addresses and accepts routes does so.
    pub(super) is_exposed: bool,
    /// Whether load balancers get names, which are looked up, and no addresses.
    pub(super) is_named: bool,
    pub(super) plans: Rc<RefCell<BTreeMap<String, Frontier<Action>>>>,
    pub(super) control_plane: HostedControlPlane,
    pub(super) infrastructure: Endpoint,
    pub(super) objects: Objects,
    pub(super) deleting: BTreeSet<ObjectIdentity>,
    /// Workloads that the cluster has brought up.
    pub(super) running: BTreeSet<ObjectIdentity>,
    /// The claims that etcd's StatefulSet has led to, by member.
    pub(super) claims: BTreeSet<i32>,
    /// The versions of etcd's members that run. The first one leads.
    pub(super) members: BTreeMap<i32, String>,
    /// What is in the directories of each member's volume.
    pub(super) volumes: BTreeMap<i32, BTreeMap<String, String>>,
    /// The backup in the bucket.
    pub(super) backup: Option<BackupFacts>,
    /// The versions of API servers that serve.
    pub(super) servers: Vec<String>,
    /// The version of the controller manager, and of the scheduler, that runs.
    pub(super) controllers: BTreeMap<&'static str, String>,
    /// A version of API servers that does not become ready.
    pub(super) broken: Option<&'static str>,
    /// The new API server that does not become ready.
    pub(super) stuck: Option<String>,
    /// The highest version that served.
    pub(super) highest: Option<KubernetesVersion>,
    pub(super) secrets: BTreeMap<Material, SecretFacts>,
    pub(super) copies: BTreeMap<Material, SecretFacts>,
    pub(super) served: Option<String>,
    pub(super) tenant: BTreeMap<ObjectIdentity, String>,
    pub(super) minted: BTreeMap<Material, usize>,
    pub(super) violations: Vec<String>,
}

pub(super) type Objects = BTreeMap<ObjectIdentity, (String, Rc<DynamicObject>)>;

/// A call, or an object to apply as the executor does after its calls.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    Call(super::super::super::Step),
    Apply(String, Rc<DynamicObject>),
}

#[derive(Clone, Debug)]
pub(super) struct Action {
    id: StepId,
    effect: Rc<Effect>,
}

impl Action {
    pub(super) fn new(id: StepId, effect: Effect) -> Self {
        Self { id, effect: Rc::new(effect) }
    }

    pub(super) fn effect(&self) -> &Effect {
        &self.effect
    }
}

impl flow::Identified for Action {
    fn id(&self) -> StepId {
        self.id.clone()
    }
}

pub(super) struct Seen {
    /// Tells states apart: what the world was when it was read, and what was folded in since.
    key: String,
    pub(super) observed: Observed,
    objects: BTreeMap<ObjectIdentity, String>,
}

/// Tenant objects that are left to apply: they are all alike.
pub(super) const TENANT_OBJECTS: usize = 6;

impl Clusters {
    pub(super) fn new() -> Self {
        Self {
            is_reachable: false,
            is_exposed: true,
            is_named: false,
            plans: Rc::default(),
            control_plane: control_plane(&json!({"etcd": {"replicas": 3}, "replicas": 2})),
            infrastructure: Endpoint::default(),
            objects: BTreeMap::new(),
            deleting: BTreeSet::new(),
            running: BTreeSet::new(),
            claims: BTreeSet::new(),
            members: BTreeMap::new(),
            volumes: BTreeMap::new(),
            backup: None,
            servers: Vec::new(),
            controllers: BTreeMap::new(),
            broken: None,
            stuck: None,
            highest: None,
            secrets: BTreeMap::new(),
            copies: BTreeMap::new(),
            served: None,
            tenant: BTreeMap::new(),
            minted: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    /// Reached in this way, once somebody gives it an address.
    pub(super) fn reached_by(more: &Value) -> Self {
        let mut spec = json!({"etcd": {"replicas": 1}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Self { control_plane: control_plane(&spec), is_exposed: false, ..Self::new() }
    }

    pub(super) fn identity(kind: &str, name: &str) -> ObjectIdentity {
        let is_core = ["Service", "Secret", "PersistentVolumeClaim"].contains(&kind);
        let api_version = match kind {
            "TLSRoute" => "gateway.networking.k8s.io/v1alpha2",
            _ if is_core => "v1",
            _ => "apps/v1",
        };
        ObjectIdentity {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: "team".to_owned(),
            name: name.to_owned(),
        }
    }

    pub(super) fn is_running(&self, kind: &str, name: &str) -> bool {
        self.running.contains(&Self::identity(kind, name))
    }

    pub(super) fn exists(&self, kind: &str, name: &str) -> bool {
        self.objects.contains_key(&Self::identity(kind, name))
    }

    /// The state in words, cheaper than looking at all of it.
    pub(super) fn key(&self) -> String {
        let metadata = &self.control_plane.metadata;
        let objects: Vec<_> =
            self.objects.iter().map(|(identity, (hash, _))| (&identity.name, hash)).collect();
        let secrets: Vec<_> = (self.secrets.iter().chain(&self.copies))
            .map(|(material, facts)| (material, &facts.fingerprint, facts.is_deleting, &facts.finalizers))
            .collect();
        let deleting: Vec<_> = self.deleting.iter().map(|object| &object.name).collect();
        let spec = &self.control_plane.spec;
        let pods = (
            (&self.members, &self.volumes, &self.backup, &spec.settings.etcd),
            &self.servers,
            &self.controllers,
            &self.stuck,
            &spec.version,
            spec.replicas,
        );
        format!(
            "{pods:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {} {} {objects:?} {deleting:?} {:?} {:?} {secrets:?} {} {:?} {:?} {}",
            metadata.finalizers,
            metadata.annotations,
            metadata.deletion_timestamp,
            self.control_plane.spec.settings.control_plane_endpoint,
            self.control_plane.spec.settings.exposure,
            self.control_plane.spec.settings.gateway,
            self.is_exposed,
            self.is_named,
            self.infrastructure,
            self.running.len(),
            self.claims,
            self.copies.len(),
            self.served,
            self.tenant,
            self.is_reachable,
        )
    }

    pub(super) fn violated(&mut self, what: &str) {
        self.violations.push(what.to_owned());
    }
}

impl World for Clusters {
    type Observation = Seen;
    type Step = Action;
    type EndState = (Vec<String>, Vec<String>, Vec<String>, Vec<String>, String);

    fn observe(&self) -> Seen {
        let mut observed = created(&json!({}));
        observed.control_plane = self.control_plane.clone();
        if let Read::One(infrastructure) = &mut observed.infrastructure {
            infrastructure.endpoint = self.infrastructure.clone();
        }
        for (material, facts) in &self.secrets {
            observed.secrets.insert(*material, Read::One(facts.clone()));
        }
        for (material, facts) in &self.copies {
            observed.copies.insert(*material, Read::One(facts.clone()));
        }
        if self.control_plane.metadata.deletion_timestamp.is_some() {
            observed.cluster.iter_mut().for_each(|cluster| cluster.is_deleting = true);
        }
        observed.etcd = self.workload("StatefulSet", "demo-etcd");
        observed.api_server = self.workload("Deployment", "demo-apiserver");
        observed.controller_manager = self.workload("Deployment", "demo-controller-manager");
        observed.scheduler = self.workload("Deployment", "demo-scheduler");
        observed.etcd_claims = Read::found(self.claims.iter().map(|ordinal| {
            let mut claim = claim(*ordinal);
            claim.is_deleting = self.deleting.contains(&Self::identity("PersistentVolumeClaim", &claim.name));
            claim
        }));
        self.pods(&mut observed);
        observed.restorable = self.backup.clone().map_or(Read::Absent, Read::One);
        observed.service = self.service("api-demo", ADDRESS);
        observed.tunnel = self.service("konnectivity-demo", TUNNEL_ADDRESS);
        self.ways(&mut observed);
        if self.is_reachable && self.is_running("Deployment", "demo-apiserver") {
            let asked = tenant_objects(&observed);
            let state = |(index, object): (usize, &DynamicObject)| {
                let identity = ObjectIdentity::of(object);
                let applied = if index % 7 == 0 && index / 7 < TENANT_OBJECTS {
                    self.tenant.get(&identity).cloned()
                } else {
                    Some(desired(object))
                };
                let ours = |applied| TenantObject::Ours {
                    uid: "uid".to_owned(),
                    applied: Some(applied),
                    is_drifted: false,
                };
                (identity, applied.map_or(TenantObject::Absent, ours))
            };
            let objects = asked.iter().enumerate().map(state).collect();
            observed.tenant = Read::One(TenantFacts { nodes: 1, objects, ..TenantFacts::default() });
            run_addons(&mut observed);
        }
        let objects =
            self.objects.iter().map(|(identity, (hash, _))| (identity.clone(), hash.clone())).collect();
        Seen { key: self.key(), observed, objects }
    }

    fn plan(&self, seen: &Seen) -> Frontier<Action> {
        if let Some(known) = self.plans.borrow().get(&seen.key) {
            return known.clone();
        }
        let plan = seen.observed.plan();
        let calls = plan.steps.iter().map(|step| (step.id(), Effect::Call(step.clone())));
        let applies = plan.objects.iter().filter_map(|object| {
            let identity = ObjectIdentity::of(object);
            let hash = crate::hash::value(&serde_json::to_value(object).unwrap());
            let is_there = seen.objects.get(&identity) == Some(&hash);
            let id = StepId::new("apply", "management", identity.to_string());
            (!is_there).then(|| (id, Effect::Apply(hash, Rc::new(object.clone()))))
        });
        let frontier: Frontier<Action> =
            calls.chain(applies).map(|(id, effect)| Action::new(id, effect)).collect();
        self.plans.borrow_mut().insert(seen.key.clone(), frontier.clone());
        frontier
    }

    fn run(&mut self, action: &Action) -> Outcome {
        let step = match &*action.effect {
            Effect::Apply(hash, object) => {
                self.objects.insert(ObjectIdentity::of(object), (hash.clone(), Rc::clone(object)));
                return Outcome::Done;
            }
            Effect::Call(step) => step,
        };
        match step {
            Step::Write(flow::Write { action: flow::Action::Evict { target }, .. }) => {
                return self.evict(target);
            }
            Step::Write(write) => self.write(write),
            Step::Own(OwnStep::Mint(mint)) if matches!(mint.content, Content::Copy { .. }) => {
                return self.copy(mint);
            }
            Step::Own(OwnStep::Backup(_)) => self.violated("nobody asked for a backup"),
            Step::Own(OwnStep::Mint(mint)) => {
                *self.minted.entry(mint.material).or_default() += 1;
                if mint.content.is_irreplaceable() && self.secrets.contains_key(&mint.material) {
                    self.violated("something irreplaceable was minted twice");
                }
                if mint.content.issuer().is_some_and(|issuer| {
                    self.secrets.get(&issuer.material).map(|facts| &facts.fingerprint)
                        != Some(&issuer.fingerprint)
                }) {
                    return Outcome::refused("another authority is there");
                }
                let mut facts = SecretFacts {
                    uid: Some(format!("uid of {}", mint.material)),
                    finalizers: mint.secret.metadata.finalizers.clone().unwrap_or_default(),
                    intent: Some(mint.intent.clone()),
                    fingerprint: fingerprint(mint),
                    issuer: mint.content.issuer().map(|issuer| issuer.fingerprint.clone()),
                    serial: mint.content.serial().cloned(),
                    ..SecretFacts::minted(now(), mint.content.intent().map(|intent| intent.lifetime))
                };
                if mint.material.is_authority() {
                    facts.certificate = Some(format!("certificate of {}\n", mint.material));
                }
                self.secrets.insert(mint.material, facts);
                return Outcome::Created(fingerprint(mint));
            }
            Step::Tenant(TenantStep::Apply { object, .. }) => {
                self.tenant.insert(ObjectIdentity::of(object), desired(object));
            }
            Step::Tenant(TenantStep::Delete { object, .. }) => {
                self.tenant.remove(object);
            }
            Step::Own(OwnStep::Etcd(_)) => self.violated("nothing changes the members"),
            Step::Cloud(never) => match *never {},
        }
        Outcome::Done
    }

    fn fold(&self, seen: &mut Seen, action: &Action, outcome: &Outcome) {
        if outcome.is_success() {
            let _ = write!(seen.key, "\n{} {outcome}", action.id);
        }
        match &*action.effect {
            Effect::Call(step) => seen.observed.fold(step, outcome),
            Effect::Apply(hash, object) if outcome.is_success() => {
                seen.objects.insert(ObjectIdentity::of(object), hash.clone());
            }
            Effect::Apply(..) => {}
        }
    }

    fn settle(&mut self) {
        let gone = std::mem::take(&mut self.deleting);
        for object in &gone {
            self.objects.remove(object);
            self.running.remove(object);
            if object.kind == "Secret" {
                let names = Names::of(&self.control_plane, "demo").unwrap();
                self.secrets.retain(|material, _| names.secret(*material) != object.name);
                self.copies.retain(|material, _| names.copy(*material) != object.name);
            }
        }
        let names = |ordinal: &i32| format!("data-demo-etcd-{ordinal}");
        self.claims.retain(|ordinal| !gone.iter().any(|object| object.name == names(ordinal)));
        if self.exists("StatefulSet", "demo-etcd") {
            self.claims.extend(0..3);
        }
        self.run_pods();
        let workloads = ["StatefulSet", "Deployment", "Service", "TLSRoute"];
        let started = self.objects.keys().filter(|object| workloads.contains(&object.kind.as_str()));
        self.running = started.cloned().collect();
    }

    fn end_state(&self) -> Self::EndState {
        let objects = self.objects.iter().map(|(identity, (hash, _))| format!("{identity} {hash}"));
        let secrets = self.secrets.iter().map(|(material, facts)| format!("{material} {facts:?}"));
        let tenant = self.tenant.iter().map(|(identity, hash)| format!("{identity} {hash}"));
        let conditions = self.observe().observed.plan().status.conditions;
        let conditions =
            conditions.iter().map(|condition| format!("{}={}", condition.type_, condition.status));
        let state = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {} {:?} {:?}",
            self.members,
            self.servers,
            self.controllers,
            self.control_plane.metadata.finalizers,
            self.control_plane.metadata.annotations,
            self.control_plane.spec.settings.control_plane_endpoint,
            self.infrastructure,
            self.served,
            self.violations
        );
        let mut lines: Vec<String> = secrets.collect();
        lines.extend(conditions);
        (objects.collect(), lines, tenant.collect(), self.violations.clone(), state)
    }
}

pub(super) fn desired(object: &DynamicObject) -> String {
    object.metadata.annotations.as_ref().unwrap()[names::DESIRED_ANNOTATION].clone()
}
