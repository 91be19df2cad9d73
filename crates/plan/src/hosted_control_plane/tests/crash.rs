//! Crash sweeps over creation, the objects in the tenant, scale, upgrades and deletion: the end is the same, no key that
//! must stay is minted twice, nothing is deleted before what needs it, and no version comes before the one that it needs.
//!
//! Plans are pure, so the plan of a state is made once and remembered; otherwise the sweep would plan tens of thousands
//! of times.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::super::exposure::{NodeFacts, RouteFacts};
use super::super::*;
use super::fixture::{
    ADDRESS, TUNNEL_ADDRESS, accept_routes, control_plane, created, fingerprint, gateway, now, pod,
    run_addons, see_gateway, through_gateway,
};
use crate::flow::crash::{World, sweep};
use crate::flow::{Frontier, Next, Outcome, Read, Rounds, Setbacks, StepId};
use crate::hosted_control_plane::material::Content;

/// A management cluster and a tenant, as small as they can be.
#[derive(Clone)]
struct Clusters {
    /// Whether the tenant's API server can be reached.
    is_reachable: bool,
    /// Whether whoever gives addresses and accepts routes does so.
    is_exposed: bool,
    /// Whether load balancers get names, which are looked up, and no addresses.
    is_named: bool,
    plans: Rc<RefCell<BTreeMap<String, Frontier<Action>>>>,
    control_plane: HostedControlPlane,
    infrastructure: Endpoint,
    objects: Objects,
    deleting: BTreeSet<ObjectIdentity>,
    /// Workloads that the cluster has brought up.
    running: BTreeSet<ObjectIdentity>,
    /// The claims that etcd's StatefulSet has led to, by member.
    claims: BTreeSet<i32>,
    /// The versions of etcd's members that run. The first one leads.
    members: BTreeMap<i32, String>,
    /// The versions of API servers that serve.
    servers: Vec<String>,
    /// The version of the controller manager, and of the scheduler, that runs.
    controllers: BTreeMap<&'static str, String>,
    /// A version of API servers that does not become ready.
    broken: Option<&'static str>,
    /// The new API server that does not become ready.
    stuck: Option<String>,
    /// The highest version that served.
    highest: Option<KubernetesVersion>,
    secrets: BTreeMap<Material, SecretFacts>,
    copies: BTreeMap<Material, SecretFacts>,
    served: Option<String>,
    tenant: BTreeMap<ObjectIdentity, String>,
    minted: BTreeMap<Material, usize>,
    violations: Vec<String>,
}

type Objects = BTreeMap<ObjectIdentity, (String, Rc<DynamicObject>)>;

/// A call, or an object to apply as the executor does after its calls.
#[derive(Clone, Debug)]
enum Effect {
    Call(super::super::Step),
    Apply(String, Rc<DynamicObject>),
}

#[derive(Clone, Debug)]
struct Action {
    id: StepId,
    effect: Rc<Effect>,
}

impl flow::Identified for Action {
    fn id(&self) -> StepId {
        self.id.clone()
    }
}

struct Seen {
    /// Tells states apart: what the world was when it was read, and what was folded in since.
    key: String,
    observed: Observed,
    objects: BTreeMap<ObjectIdentity, String>,
}

/// Tenant objects that are left to apply: they are all alike.
const TENANT_OBJECTS: usize = 6;

impl Clusters {
    fn new() -> Self {
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
    fn reached_by(more: &Value) -> Self {
        let mut spec = json!({"etcd": {"replicas": 1}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Self { control_plane: control_plane(&spec), is_exposed: false, ..Self::new() }
    }

    fn identity(kind: &str, name: &str) -> ObjectIdentity {
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

    fn workload(&self, kind: &str, name: &str) -> Read<WorkloadFacts> {
        let identity = Self::identity(kind, name);
        let Some((_, object)) = self.objects.get(&identity) else { return Read::Absent };
        let desired = i32::try_from(object.data["spec"]["replicas"].as_i64().unwrap()).unwrap();
        let ready = if self.running.contains(&identity) { desired } else { 0 };
        let version = self.template(kind, name).unwrap();
        let mut facts = WorkloadFacts {
            is_deleting: self.deleting.contains(&identity),
            ..super::fixture::workload(name, desired, ready, &version)
        };
        if name == "demo-apiserver" && self.stuck.is_some() {
            (facts.existing, facts.updated) = (desired + 1, 1);
        }
        Read::One(facts)
    }

    /// The version in the template of a workload.
    fn template(&self, kind: &str, name: &str) -> Option<String> {
        let (_, object) = self.objects.get(&Self::identity(kind, name))?;
        let labels = &object.data["spec"]["template"]["metadata"]["labels"];
        Some(labels[super::super::names::VERSION_LABEL].as_str().unwrap().to_owned())
    }

    fn replicas(&self, kind: &str, name: &str) -> usize {
        let (_, object) = &self.objects[&Self::identity(kind, name)];
        usize::try_from(object.data["spec"]["replicas"].as_u64().unwrap()).unwrap()
    }

    fn pods(&self, observed: &mut Observed) {
        let member = |(ordinal, version): (&i32, &String)| {
            let name = format!("demo-etcd-{ordinal}");
            let uid = format!("uid of {name} on {version}");
            PodFacts { uid, is_ready: true, ..pod(&name, version) }
        };
        observed.etcd_pods = Read::found(self.members.iter().map(member));
        let told = |ordinal: &i32| MemberFacts {
            name: format!("demo-etcd-{ordinal}"),
            is_leader: *ordinal == 0,
            ..MemberFacts::default()
        };
        if !self.members.is_empty() {
            observed.etcd_members = Read::found(self.members.keys().map(told));
        }
        let server = |(number, version): (usize, &String)| PodFacts {
            is_ready: true,
            served: self.served.clone(),
            ..pod(&format!("demo-apiserver-{number}"), version)
        };
        let stuck = self.stuck.iter().map(|version| PodFacts {
            served: self.served.clone(),
            trouble: Some("kube-apiserver: ImagePullBackOff".to_owned()),
            ..pod("demo-apiserver-stuck", version)
        });
        observed.api_server_pods = Read::found(self.servers.iter().enumerate().map(server).chain(stuck));
        let controllers = self.controllers.iter();
        observed.controller_pods =
            Read::found(controllers.map(|(name, version)| PodFacts { is_ready: true, ..pod(name, version) }));
    }

    /// Members may be missed one at a time, and the one that leads last.
    fn evict(&mut self, target: &flow::Target) -> Outcome {
        let found = self
            .members
            .iter()
            .find(|(ordinal, version)| target.uid == format!("uid of demo-etcd-{ordinal} on {version}"));
        let Some((ordinal, version)) = found.map(|(ordinal, version)| (*ordinal, version.clone())) else {
            return Outcome::Stale;
        };
        if self.members.len() < self.replicas("StatefulSet", "demo-etcd") {
            self.violated("a second member was restarted");
        }
        if ordinal == 0 && self.members.iter().any(|(other, of)| *other != 0 && *of == version) {
            self.violated("the leader was restarted before others");
        }
        self.members.remove(&ordinal);
        Outcome::Done
    }

    /// What the cluster's controllers and kubelets do: members that are missing start, others are replaced.
    fn run_pods(&mut self) {
        let number = |text: &String| KubernetesVersion::parse(text).unwrap().number();
        match self.template("StatefulSet", "demo-etcd") {
            Some(version) => {
                let all = self.replicas("StatefulSet", "demo-etcd");
                for ordinal in 0..i32::try_from(all).unwrap() {
                    self.members.entry(ordinal).or_insert_with(|| version.clone());
                }
            }
            None => self.members.clear(),
        }
        match self.template("Deployment", "demo-apiserver") {
            Some(version) if self.broken == Some(&version) => self.stuck = Some(version),
            Some(version) => {
                let wanted = KubernetesVersion::parse(&version).unwrap();
                let etcd = wanted.etcd_tag(Epoch::CURRENT);
                if self.members.values().any(|member| member.as_str() < etcd) {
                    self.violated("API servers came before their etcd");
                }
                if self.highest.as_ref().is_some_and(|highest| wanted.number() < highest.number()) {
                    self.violated("an older API server served again");
                }
                self.highest = Some(wanted);
                self.stuck = None;
                self.servers = vec![version; self.replicas("Deployment", "demo-apiserver")];
            }
            None => (self.servers, self.stuck) = (Vec::new(), None),
        }
        for name in ["demo-controller-manager", "demo-scheduler"] {
            let Some(version) = self.template("Deployment", name) else {
                self.controllers.remove(name);
                continue;
            };
            if self.servers.iter().any(|server| number(server) < number(&version)) {
                self.violated("controllers lead API servers");
            }
            self.controllers.insert(name, version);
        }
    }

    fn service(&self, name: &str, address: &str) -> Read<ServiceFacts> {
        let service = Self::identity("Service", name);
        let Some((_, object)) = self.objects.get(&service) else { return Read::Absent };
        let type_ = object.data["spec"]["type"].as_str().unwrap().to_owned();
        let is = |wanted: &str| type_ == wanted && self.is_exposed && self.running.contains(&service);
        let port = object.data["spec"]["ports"][0]["name"].as_str().unwrap().to_owned();
        Read::One(ServiceFacts {
            uid: format!("uid of {name}"),
            is_deleting: self.deleting.contains(&service),
            ingress_ips: (is("LoadBalancer") && !self.is_named)
                .then(|| address.to_owned())
                .into_iter()
                .collect(),
            ingress_hostnames: (is("LoadBalancer") && self.is_named)
                .then(|| format!("{name}.example.net"))
                .into_iter()
                .collect(),
            cluster_ip: is("ClusterIP").then(|| "10.0.0.7".to_owned()),
            node_ports: is("NodePort").then_some((port, 31000)).into_iter().collect(),
        })
    }

    fn route(&self, name: &str) -> Read<RouteFacts> {
        let route = Self::identity("TLSRoute", name);
        let accepted = |route: RouteFacts| RouteFacts { uid: format!("uid of {name}"), ..route };
        match self.objects.get(&route) {
            None => Read::Absent,
            Some(_) if !self.running.contains(&route) => Read::One(accepted(RouteFacts::default())),
            Some(_) => {
                let mut seen = created(&json!({}));
                accept_routes(&mut seen);
                seen.ways.route.map(accepted)
            }
        }
    }

    fn ways(&self, observed: &mut Observed) {
        observed.ways.nodes = Read::Absent;
        see_gateway(observed, &gateway());
        (observed.ways.route, observed.ways.tunnel_route) =
            (self.route("api-demo"), self.route("konnectivity-demo"));
        if self.is_exposed {
            let internal = vec!["10.0.0.5".parse().unwrap()];
            observed.ways.nodes = Read::One(NodeFacts { is_ready: true, internal, external: Vec::new() });
            if super::super::exposure::needs(observed).name.is_some() {
                observed.ways.resolved = Read::One(ADDRESS.parse().unwrap());
            }
        } else {
            observed.ways.gateway = Read::Absent;
        }
    }

    fn is_running(&self, kind: &str, name: &str) -> bool {
        self.running.contains(&Self::identity(kind, name))
    }

    fn exists(&self, kind: &str, name: &str) -> bool {
        self.objects.contains_key(&Self::identity(kind, name))
    }

    /// The state in words, cheaper than looking at all of it.
    fn key(&self) -> String {
        let metadata = &self.control_plane.metadata;
        let objects: Vec<_> =
            self.objects.iter().map(|(identity, (hash, _))| (&identity.name, hash)).collect();
        let secrets: Vec<_> = (self.secrets.iter().chain(&self.copies))
            .map(|(material, facts)| (material, &facts.fingerprint, facts.is_deleting, &facts.finalizers))
            .collect();
        let deleting: Vec<_> = self.deleting.iter().map(|object| &object.name).collect();
        let spec = &self.control_plane.spec;
        let pods =
            (&self.members, &self.servers, &self.controllers, &self.stuck, &spec.version, spec.replicas);
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

    fn violated(&mut self, what: &str) {
        self.violations.push(what.to_owned());
    }

    fn write(&mut self, write: &flow::Write) {
        match &write.action {
            flow::Action::Itself(_) => {
                let is_of_etcd =
                    write.id.verb == "record" && write.id.name == super::super::names::ETCD_ANNOTATION;
                if is_of_etcd && !self.is_running("StatefulSet", "demo-etcd") {
                    self.violated("etcd was recorded before it ran");
                }
                write.on_itself(&mut self.control_plane);
            }
            flow::Action::Change { fields, .. } if write.id.kind == "infrastructure" => {
                if self.infrastructure.host.is_empty() {
                    let endpoint = fields["spec"]["controlPlaneEndpoint"].clone();
                    self.infrastructure = serde_json::from_value(endpoint).unwrap();
                } else {
                    self.violated("an endpoint was overwritten");
                }
            }
            flow::Action::Change { target, fields } if target.kind == "Secret" => {
                let finalizers: Vec<String> =
                    serde_json::from_value(fields["metadata"]["finalizers"].clone()).unwrap();
                for place in [&mut self.secrets, &mut self.copies] {
                    for facts in place.values_mut().filter(|facts| facts.uid.as_ref() == Some(&target.uid)) {
                        facts.finalizers.clone_from(&finalizers);
                    }
                    place.retain(|_, facts| !facts.is_deleting || !facts.finalizers.is_empty());
                }
                let is_somewhere = |material: &Material| {
                    self.secrets.contains_key(material) || self.copies.contains_key(material)
                };
                if self.control_plane.metadata.deletion_timestamp.is_none()
                    && !Material::IRREPLACEABLE.iter().all(is_somewhere)
                {
                    self.violated("a key is nowhere");
                }
            }
            flow::Action::Change { fields, .. } => {
                let served = &fields["metadata"]["annotations"][super::super::names::SERVED_ANNOTATION];
                self.served = served.as_str().map(str::to_owned);
            }
            flow::Action::Delete { target, .. } => {
                self.delete(&Self::identity(&target.kind, &target.name));
            }
            flow::Action::Create { .. } | flow::Action::Evict { .. } => {
                self.violated("something was made that is not in the plan");
            }
        }
    }

    /// Makes a copy of a Secret, or a Secret of its copy.
    fn copy(&mut self, mint: &Mint) -> Outcome {
        let (from, to) = match mint.why {
            MintReason::Deleted => (&self.secrets, &self.copies),
            _ => (&self.copies, &self.secrets),
        };
        let Some(source) = from.get(&mint.material).cloned() else { return Outcome::Stale };
        if to.contains_key(&mint.material) {
            return Outcome::Stale;
        }
        let name = mint.secret.metadata.name.clone().unwrap_or_default();
        let finalizers = mint.secret.metadata.finalizers.clone().unwrap_or_default();
        let facts = SecretFacts {
            uid: Some(format!("uid of {name} again")),
            is_deleting: false,
            finalizers,
            ..source
        };
        let fingerprint = facts.fingerprint.clone();
        match mint.why {
            MintReason::Deleted => self.copies.insert(mint.material, facts),
            _ => self.secrets.insert(mint.material, facts),
        };
        Outcome::Created(fingerprint)
    }

    fn delete(&mut self, object: &ObjectIdentity) {
        let has_api_server = self.exists("Deployment", "demo-apiserver");
        if object.kind == "StatefulSet" && has_api_server {
            self.violated("etcd went before the API server");
        }
        if object.kind == "PersistentVolumeClaim" && self.exists("StatefulSet", "demo-etcd") {
            self.violated("a volume went before etcd");
        }
        let is_copy = object.name.ends_with("-copy");
        if object.kind == "Secret" && !is_copy && (has_api_server || self.exists("StatefulSet", "demo-etcd"))
        {
            self.violated("keys went before what uses them");
        }
        let names = Names::of(&self.control_plane, "demo").unwrap();
        for (place, is_copy) in [(&mut self.secrets, false), (&mut self.copies, true)] {
            for (material, facts) in place.iter_mut() {
                let name = if is_copy { names.copy(*material) } else { names.secret(*material) };
                if object.kind == "Secret" && name == object.name && !facts.finalizers.is_empty() {
                    // It is there until its finalizers are gone.
                    facts.is_deleting = true;
                    return;
                }
            }
        }
        self.deleting.insert(object.clone());
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
            let mut claim = super::fixture::claim(*ordinal);
            claim.is_deleting = self.deleting.contains(&Self::identity("PersistentVolumeClaim", &claim.name));
            claim
        }));
        self.pods(&mut observed);
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
            calls.chain(applies).map(|(id, effect)| Action { id, effect: Rc::new(effect) }).collect();
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
            Step::Own(mint) if matches!(mint.content, Content::Copy { .. }) => return self.copy(mint),
            Step::Own(mint) => {
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

fn desired(object: &DynamicObject) -> String {
    object.metadata.annotations.as_ref().unwrap()[super::super::names::DESIRED_ANNOTATION].clone()
}

/// More than any run needs.
const LIMIT: usize = 400;

#[test]
fn creating_survives_every_crash() {
    let world = Clusters::new();
    let swept = sweep(&world, LIMIT).unwrap();
    assert!(swept.points > 150, "{}", swept.points);
    let mut end = world.clone();
    converge(&mut end);
    let (objects, lines, _, violations, _) = end.end_state();
    assert_eq!(violations, Vec::<String>::new());
    assert!(lines.contains(&"Available=False".to_owned()), "nobody could log in yet: {lines:?}");
    assert!(objects.len() > 15, "{}", objects.len());
    let etcd = &end.objects
        [&ObjectIdentity { api_version: "v1".to_owned(), ..Clusters::identity("ConfigMap", "demo-etcd") }];
    assert!(etcd.1.data.to_string().contains("initial-cluster-state: existing"), "{:?}", etcd.1.data);
    // Names came late and cost the API server's certificate a second time, nothing else.
    let again: Vec<_> = end.minted.iter().filter(|(_, times)| **times > 1).collect();
    assert_eq!(again, [(&Material::ApiServer, &2)]);
}

#[test]
fn furnishing_the_tenant_survives_every_crash() {
    let mut world = Clusters::new();
    converge(&mut world);
    world.is_reachable = true;
    let swept = sweep(&world, LIMIT).unwrap();
    // And the kubeconfig, once its user is bound.
    assert_eq!(swept.trace.len(), TENANT_OBJECTS + 1, "{:?}", swept.trace);
    converge(&mut world);
    let (_, lines, tenant, violations, _) = world.end_state();
    assert!(lines.contains(&"Available=True".to_owned()), "{lines:?}");
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!(tenant.len(), TENANT_OBJECTS);
    assert!(lines.contains(&"WorkloadReady=True".to_owned()), "{lines:?}");
}

#[test]
fn deleting_survives_every_crash() {
    let mut world = Clusters::new();
    converge(&mut world);
    world.control_plane.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    let swept = sweep(&world, LIMIT).unwrap();
    assert!(swept.trace.len() > 20, "{:?}", swept.trace);
    converge(&mut world);
    assert_eq!(world.violations, Vec::<String>::new());
    assert_eq!((world.secrets.len(), world.claims.len()), (0, 0));
    assert_eq!(world.control_plane.metadata.finalizers, Some(Vec::new()));
    for kind in ["Deployment", "StatefulSet"] {
        assert!(!world.objects.keys().any(|object| object.kind == kind));
    }
}

/// Whoever gives addresses, or has the Gateway, comes when everything else is there.
#[test]
fn every_way_in_survives_every_crash() {
    let name = json!({"host": "api.team.clusters.example.com", "port": 443});
    for (more, is_named, endpoint) in [
        (json!({}), false, "192.0.2.10:6443"),
        (json!({}), true, "api-demo.example.net:6443"),
        (json!({"exposure": {"type": "ClusterIP"}}), false, "10.0.0.7:6443"),
        (json!({"exposure": {"type": "NodePort"}}), false, "10.0.0.5:31000"),
        (through_gateway(), true, "demo.team.clusters.example.com:443"),
        (
            json!({"gateway": through_gateway()["gateway"], "controlPlaneEndpoint": name}),
            false,
            "api.team.clusters.example.com:443",
        ),
    ] {
        let mut world = Clusters { is_named, ..Clusters::reached_by(&more) };
        converge(&mut world);
        assert!(!world.end_state().1.contains(&"EndpointReady=True".to_owned()), "{more}");
        world.is_exposed = true;
        sweep(&world, LIMIT).unwrap();
        converge(&mut world);
        let (_, lines, _, violations, _) = world.end_state();
        assert_eq!(violations, Vec::<String>::new());
        assert!(lines.contains(&"EndpointReady=True".to_owned()), "{more}: {lines:?}");
        assert!(!lines.contains(&"RoutesReady=False".to_owned()), "{more}: {lines:?}");
        let published = world.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
        assert_eq!((published.to_string().as_str(), &published), (endpoint, &world.infrastructure));
    }
}

/// Under a name that people gave, from each way to each other one.
#[test]
fn every_change_of_the_way_in_survives_every_crash() {
    let ways = [
        json!({"gateway": through_gateway()["gateway"]}),
        json!({"exposure": {"type": "LoadBalancer"}}),
        json!({"exposure": {"type": "NodePort"}}),
        json!({"exposure": {"type": "ClusterIP"}}),
    ];
    let pairs = ways.iter().flat_map(|before| ways.iter().map(move |after| (before, after)));
    let pairs = pairs.filter(|(before, after)| before != after).map(|(before, after)| (before, after, false));
    // And from and to a load balancer that has a name.
    let named = [(&ways[0], &ways[1], true), (&ways[1], &ways[2], true)];
    // The states before a change are the same for several.
    let plans = Rc::default();
    for (before, after, is_named) in pairs.chain(named) {
        let mut spec = before.clone();
        spec["controlPlaneEndpoint"] = json!({"host": "api.team.clusters.example.com", "port": 443});
        let mut world = Clusters { plans: Rc::clone(&plans), is_named, ..Clusters::reached_by(&spec) };
        world.is_exposed = true;
        converge(&mut world);
        let wanted = control_plane(after).spec.settings;
        let settings = &mut world.control_plane.spec.settings;
        (settings.gateway, settings.exposure) = (wanted.gateway, wanted.exposure);
        sweep(&world, LIMIT).unwrap();
        converge(&mut world);
        assert_eq!(world.violations, Vec::<String>::new());
        let has_routes = world.objects.keys().any(|object| object.kind == "TLSRoute");
        assert_eq!(has_routes, after.get("gateway").is_some(), "{before} {after}");
        let published = world.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
        assert_eq!(published.to_string(), "api.team.clusters.example.com:443");
    }
    // And not where nodes use an address.
    let mut world = Clusters::reached_by(&json!({}));
    world.is_exposed = true;
    converge(&mut world);
    world.control_plane.spec.settings.gateway = control_plane(&through_gateway()).spec.settings.gateway;
    let swept = sweep(&world, LIMIT).unwrap();
    assert_eq!(swept.trace.len(), 0, "{:?}", swept.trace);
}

/// Somebody deletes keys that cannot be replaced: they come back as they were.
#[test]
fn a_deleted_key_survives_every_crash() {
    for materials in [
        &[Material::ClusterAuthority][..],
        &[Material::ServiceAccountKeys, Material::EncryptionConfiguration],
    ] {
        let mut world = Clusters::new();
        converge(&mut world);
        let fingerprints = |world: &Clusters| -> Vec<String> {
            world.secrets.values().map(|facts| facts.fingerprint.clone()).collect()
        };
        let (before, minted) = (fingerprints(&world), world.minted.clone());
        for material in materials {
            world.secrets.get_mut(material).unwrap().is_deleting = true;
        }
        let swept = sweep(&world, LIMIT).unwrap();
        // A copy, its release, the Secret, and the end of the copy in two steps.
        assert_eq!(swept.trace.len(), 5 * materials.len(), "{:?}", swept.trace);
        converge(&mut world);
        assert_eq!((fingerprints(&world), &world.minted), (before, &minted));
        assert!(world.secrets.values().all(|facts| !facts.is_deleting) && world.copies.is_empty());
        assert_eq!(world.violations, Vec::<String>::new());
    }
}

/// A control plane that runs, with three members and two API servers, and whose tenant can be reached.
fn running(version: &str) -> Clusters {
    let mut world = Clusters { is_reachable: true, ..Clusters::new() };
    world.control_plane.spec.version = version.to_owned();
    converge(&mut world);
    assert!(world.end_state().1.contains(&"RollingOut=False".to_owned()), "{:?}", world.end_state().1);
    world
}

/// Sweeps what follows from a change, and returns the world after it.
fn swept(mut world: Clusters, change: impl FnOnce(&mut Clusters)) -> (Clusters, Vec<String>) {
    change(&mut world);
    let swept = sweep(&world, LIMIT).unwrap();
    for _ in 0..2 {
        converge(&mut world);
    }
    assert_eq!(world.violations, Vec::<String>::new());
    (world, swept.trace.iter().map(ToString::to_string).collect())
}

#[test]
fn scaling_survives_every_crash() {
    for replicas in [1, 3] {
        let (world, _) = swept(running("v1.34.10"), |world| world.control_plane.spec.replicas = replicas);
        assert_eq!(world.servers.len(), usize::try_from(replicas).unwrap());
        assert!(world.end_state().1.contains(&"ScalingUp=False".to_owned()));
    }
}

#[test]
fn an_upgrade_survives_every_crash() {
    let (world, trace) =
        swept(running("v1.33.0"), |world| world.control_plane.spec.version = "v1.34.10".to_owned());
    assert!(world.servers.iter().chain(world.controllers.values()).all(|version| version == "v1.34.10"));
    assert!(!trace.iter().any(|step| step.starts_with("evict")), "etcd stays: {trace:?}");
    let lines = world.end_state().1;
    assert!(lines.contains(&"RollingOut=False".to_owned()), "{lines:?}");
    assert_eq!(
        world.control_plane.metadata.annotations.unwrap()[names::SERVED_VERSION_ANNOTATION],
        "v1.34.10"
    );
}

/// Each member once, the leader last, and API servers after them.
#[test]
fn an_upgrade_that_takes_etcd_along_survives_every_crash() {
    let (world, trace) =
        swept(running("v1.36.4"), |world| world.control_plane.spec.version = "v1.37.1".to_owned());
    let position = |step: &str| trace.iter().position(|found| found.contains(step)).unwrap();
    let evictions: Vec<&String> = trace.iter().filter(|step| step.starts_with("evict")).collect();
    assert_eq!(evictions.len(), 3, "{trace:?}");
    assert!(evictions[2].contains("demo-etcd-0"), "{evictions:?}");
    let order =
        ["etcd-version", "StatefulSet", "evict", "Deployment team/demo-apiserver", "controller-manager"];
    let positions: Vec<usize> = order.iter().map(|step| position(step)).collect();
    assert!(positions.is_sorted(), "{order:?} {positions:?} {trace:?}");
    assert!(world.members.values().all(|version| version == "3.7.3-0"));
    assert!(world.servers.iter().chain(world.controllers.values()).all(|version| version == "v1.37.1"));
}

/// API servers of the new version do not start. etcd's step is not taken back, and nothing else has happened.
#[test]
fn an_upgrade_that_is_taken_back_survives_every_crash() {
    let (before, after) = ("v1.36.4", "v1.37.1");
    let mut world = running(before);
    world.broken = Some(after);
    let (stopped, _) = swept(world, |world| world.control_plane.spec.version = after.to_owned());
    let conditions = stopped.observe().observed.plan().status.conditions;
    let rolling = conditions.iter().find(|found| found.type_ == "RollingOut").unwrap();
    assert_eq!(rolling.reason, "Stopped");
    assert!(rolling.message.contains("ImagePullBackOff"), "{}", rolling.message);
    assert!(
        rolling.message.contains("v1.36.4 serves on, and spec.version can be set back"),
        "{}",
        rolling.message
    );
    assert!(stopped.servers.iter().all(|version| version == before));
    let members = stopped.members.clone();
    assert!(members.values().all(|version| version == "3.7.3-0"));
    let (back, _) = swept(stopped, |world| world.control_plane.spec.version = before.to_owned());
    assert!(back.servers.iter().chain(back.controllers.values()).all(|version| version == before));
    assert_eq!((back.stuck, back.members), (None, members));
}

/// A fault-free run, every plan of it checked.
fn converge(world: &mut Clusters) {
    for _ in 0..6 {
        let mut seen = world.observe();
        super::checker::checked(&seen.observed);
        let (mut rounds, setbacks) = (Rounds::default(), Setbacks::default());
        loop {
            let steps = world.plan(&seen);
            let Next::Run(step) = rounds.next(&steps, &setbacks, now()) else { break };
            let outcome = world.run(step);
            world.fold(&mut seen, step, &outcome);
            rounds.ran(step.id(), outcome);
        }
        world.settle();
    }
}
