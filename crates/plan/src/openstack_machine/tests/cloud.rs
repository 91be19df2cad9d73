//! A cloud of servers and ports in memory, for plans to run against, and the checks that every plan must pass.

use std::collections::{BTreeMap, BTreeSet};

use hangar_api::infrastructure::v1beta1::OpenStackMachine;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::super::*;
use crate::flow::crash::World;
use crate::flow::{Action, Frontier, Identified as _, Next, Read, Rounds, Setbacks, StepId, Write};
use crate::openstack::server::{NewServer, PortFacts, Preflight, UserData};
use crate::openstack::{
    Address, Flavor, Group, Image, Network, Port, PortId, Request, SERVER_REQUESTED_ANNOTATION, SETTLING,
    Server, Subnet,
};

pub(super) const WORKER: &str = "
flavor: small
image: {filter: {name: ubuntu-1.35}}
sshKeyName: admin
configDrive: true
tags: [team-a]
serverMetadata: [{key: role, value: worker}]
serverGroup: {filter: {name: apart}}
schedulerHintAdditionalProperties: [{name: query, value: {type: Number, number: 3}}]
";

pub(super) const TWO_PORTS: &str = "
flavorID: '7'
image: {id: 11111111-1111-4111-8111-111111111111}
identityRef: {name: cloud, cloudName: openstack, region: RegionOne}
securityGroups: [{filter: {name: extra}}]
ports:
- nameSuffix: main
- network: {filter: {name: storage}}
  description: storage net
  fixedIPs: [{subnet: {filter: {name: storage}}, ipAddress: 10.7.0.9}]
  securityGroups: [{filter: {name: storage}}]
  allowedAddressPairs: [{ipAddress: 10.8.0.0/16}]
  tags: [fast]
  vnicType: direct
";

#[derive(Clone)]
pub(super) struct Cloud {
    pub(super) object: OpenStackMachine,
    pub(super) is_provisioned: bool,
    pub(super) has_data: bool,
    pub(super) data_length: usize,
    /// Names that do not exist, and what is ambiguous.
    pub(super) missing: BTreeSet<&'static str>,
    pub(super) ambiguous: BTreeSet<&'static str>,
    pub(super) ports: Vec<Port>,
    pub(super) servers: Vec<Server>,
    /// What a server that is being built becomes.
    pub(super) becomes: &'static str,
    /// The region and the project that the credentials lead to.
    pub(super) project: Option<String>,
    pub(super) next: u32,
    pub(super) is_released: bool,
    pub(super) now: Timestamp,
    /// The next server is refused in these words.
    pub(super) refuses: Option<&'static str>,
    /// The next server is made late, after so many more steps and passes; nobody gets an answer.
    pub(super) lateness: Option<usize>,
    pub(super) late: Option<(usize, NewServer)>,
}

impl Cloud {
    pub(super) fn new(spec: &str) -> Self {
        let spec: serde_json::Value = serde_saphyr::from_str(spec).unwrap();
        let object = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "OpenStackMachine",
            "metadata": {"name": "worker-a", "namespace": "default", "uid": "uid-1"},
            "spec": spec,
        }));
        Self {
            object: object.unwrap(),
            is_provisioned: true,
            has_data: true,
            data_length: 100,
            missing: BTreeSet::new(),
            ambiguous: BTreeSet::new(),
            ports: Vec::new(),
            servers: Vec::new(),
            becomes: "ACTIVE",
            project: None,
            next: 0,
            is_released: false,
            now: "2026-03-01T12:00:00Z".parse().unwrap(),
            refuses: None,
            lateness: None,
            late: None,
        }
    }

    /// Nova takes a request: ports must be there and free.
    fn make_server(&mut self, id: &str, new: NewServer) -> Outcome {
        if let Some(words) = self.refuses.take() {
            return Outcome::refused(words);
        }
        let free = self.ports.iter().filter(|port| port.device_id.is_empty());
        let free: Vec<&PortId> = free.map(|port| &port.id).collect();
        if let Some(port) = new.port_ids.iter().find(|id| !free.contains(id)) {
            return Outcome::refused(format!("Port {port} is in use or could not be found."));
        }
        for port in self.ports.iter_mut().filter(|port| new.port_ids.contains(&port.id)) {
            id.clone_into(&mut port.device_id);
        }
        let address = Address { address: "10.6.0.5".parse().unwrap(), is_floating: false };
        self.servers.push(Server {
            id: id.into(),
            name: new.name,
            status: "BUILD".to_owned(),
            addresses: BTreeMap::from([("cluster".to_owned(), vec![address])]),
            ..Server::default()
        });
        Outcome::Created(id.to_owned())
    }

    /// What is late comes closer.
    fn tick(&mut self) {
        match self.late.take() {
            Some((0, new)) => {
                self.make_server("id-late", new);
            }
            late => self.late = late.map(|(left, new)| (left - 1, new)),
        }
    }

    /// What the runtime writes on the object around a call.
    fn note(&mut self, at: Option<Timestamp>) {
        let request = Request::Server;
        let fields = at.map_or_else(|| request.as_before(None), |at| request.noted(at));
        written(&mut self.object, &Write::itself(StepId::new("note", "object", "self"), fields));
    }

    /// True unless it is called ready without one of its ports.
    pub(super) fn is_ready_with_its_ports(&self) -> bool {
        let is_bound = |port: &Port| self.servers.iter().any(|server| server.id.as_str() == port.device_id);
        let wanted = self.observe().wanted_server().ports;
        let has = |name: &str| self.ports.iter().any(|port| port.name == name && is_bound(port));
        let conditions = self.observe().plan().status.conditions;
        let is_ready = conditions.iter().any(|found| found.r#type == "Ready" && found.status == "True");
        !is_ready || self.is_released || wanted.iter().all(|port| has(&port.name))
    }

    pub(super) fn find<T: Clone>(&self, what: &'static str, item: T) -> Read<T> {
        match (self.missing.contains(what), self.ambiguous.contains(what)) {
            (true, _) => Read::Absent,
            (_, true) => Read::Many(vec![item.clone(), item]),
            _ => Read::One(item),
        }
    }

    pub(super) fn deleted(mut self) -> Self {
        self.object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-03-01T12:00:00Z".parse().unwrap(),
        ));
        self
    }

    /// Runs one pass.
    pub(super) fn pass(&mut self, observed: &mut Observed, mut tell: impl FnMut(&Step, &Outcome)) {
        let (mut rounds, setbacks) = (Rounds::default(), Setbacks::default());
        loop {
            let steps = self.plan(observed);
            let Next::Run(step) = rounds.next(&steps, &setbacks, observed.now) else { return };
            let outcome = self.run(step);
            tell(step, &outcome);
            observed.fold(step, &outcome);
            rounds.ran(step.id(), outcome);
        }
    }

    /// Runs passes until nothing moves; the steps in order.
    pub(super) fn settle_all(&mut self) -> Vec<String> {
        let mut trace = Vec::new();
        for _ in 0..20 {
            let mut observed = self.observe();
            let mut moved = false;
            self.pass(&mut observed, |step, outcome| {
                let end = if outcome.is_success() { "done".to_owned() } else { outcome.to_string() };
                trace.push(format!("{}: {end}", step.id()));
                moved |= outcome.is_success();
            });
            let before = self.object.status.clone();
            self.object.status = Some(checked(&observed).status);
            let state = self.end_state();
            self.settle();
            if !moved && self.object.status == before && state == self.end_state() {
                return trace;
            }
        }
        panic!("never rests: {trace:#?}");
    }

    pub(super) fn status(&self) -> &OpenStackMachineStatus {
        self.object.status.as_ref().unwrap()
    }

    pub(super) fn golden(&mut self) -> String {
        let trace = self.settle_all();
        format!("{}\n---\n{}", trace.join("\n"), serde_saphyr::to_string(self.status()).unwrap())
    }

    pub(super) fn condition(&self) -> (String, String, String) {
        let condition =
            self.status().conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (condition.status.clone(), text(&condition.reason), text(&condition.message))
    }
}

/// The observation after the claim.
pub(super) fn claim(observed: &mut Observed) {
    let step = checked(observed).steps.iter().next().cloned().expect("a step");
    assert_eq!(step.id().to_string(), "claim object self");
    observed.fold(&step, &Outcome::Done);
}

/// Rules that hold for every plan.
pub(super) fn checked(observed: &Observed) -> Plan<Step, OpenStackMachineStatus> {
    let plan = observed.plan();
    for step in &plan.steps {
        let needs_claim = !["claim", "release"].contains(&step.id().verb);
        assert!(!needs_claim || observed.owner_id().is_some(), "{step:?} before the claim");
        assert!(!format!("{step:?}").contains("88, 88"), "user data is shown");
        if let Step::Cloud(ServerStep::CreatePort(port)) = step {
            assert!(port.description.ends_with("for owner owner-1"), "{port:?}");
        }
        if let Step::Cloud(ServerStep::CreateServer(server)) = step {
            assert!(!server.port_ids.is_empty());
        }
    }
    for condition in &plan.status.conditions {
        let message = condition.message.as_deref().unwrap_or_default();
        assert!(condition.status == "True" || message.contains("must act"), "{condition:?}");
    }
    if plan.status.ready == Some(true) {
        assert!(observed.object.spec.provider_id.is_some(), "ready without a provider id");
    }
    plan
}

/// What the API server makes of the object. One without finalizers is gone.
fn written(object: &mut OpenStackMachine, write: &Write) -> bool {
    let Action::Itself(fields) = &write.action else { panic!("{write:?}") };
    let mut value = serde_json::to_value(&*object).unwrap();
    json_patch::merge(&mut value, fields);
    *object = serde_json::from_value(value).unwrap();
    let is_free = object.metadata.finalizers.iter().flatten().count() == 0;
    assert!(!is_free || object.metadata.deletion_timestamp.is_some(), "{write:?}");
    is_free
}

impl World for Cloud {
    type Observation = Observed;
    type Step = Step;
    type EndState = (Vec<(String, bool)>, Vec<(String, String)>, Option<bool>, bool);

    fn observe(&self) -> Observed {
        let group = |name: &str| Group { id: format!("group-{name}").into(), ..Group::default() };
        let network = Network { id: "storage-network".into(), ..Network::default() };
        let subnet = Subnet { id: "storage-subnet".into(), ..Subnet::default() };
        let mut observed = Observed {
            object: self.object.clone(),
            now: self.now,
            fresh_owner_id: "owner-1".to_owned(),
            settling: SETTLING,
            copied_from: None,
            machine: Read::One(MachineFacts {
                failure_domain: Some("nova".to_owned()),
                data_secret_name: self.has_data.then(|| "worker-a".to_owned()),
                is_control_plane: false,
            }),
            cluster: Read::One(ClusterFacts {
                name: "demo".to_owned(),
                is_paused: false,
                is_provisioned: self.is_provisioned,
            }),
            infrastructure: Read::One(InfrastructureFacts {
                network_id: Some("cluster-network".into()),
                subnet_ids: vec!["cluster-subnet".into()],
                security_group_id: Some("group-worker".into()),
                tags: vec!["cluster-tag".to_owned()],
                ..InfrastructureFacts::default()
            }),
            cloud: Access::NotAsked,
            project: self.project.clone(),
            trouble: None,
        };
        let wanted = observed.wanted_server().ports;
        let ports = wanted.iter().map(|port| {
            let read = Read::found(self.ports.iter().filter(|known| known.name == port.name).cloned());
            (port.name.clone(), read)
        });
        observed.cloud = Access::Facts(ServerFacts {
            servers: Read::found(self.servers.clone()),
            ports: ports.collect(),
            preflight: None,
        });
        // What a new server needs is read as the plan asks for it; before the claim the whole first pass is shown.
        if observed.wanted() != Some(Wanted::Preflight) && observed.owner_id().is_some() {
            return observed;
        }
        let preflight = Preflight {
            image: self.find(
                "image",
                Image { id: "image-1".into(), name: String::new(), status: "active".to_owned() },
            ),
            flavor: self.find("flavor", Flavor { id: "flavor-1".into(), name: "small".to_owned() }),
            server_group: self.find("server group", "group-apart".into()),
            key: self.find("key", !self.missing.contains("key")),
            wanted: wanted
                .iter()
                .map(|port| PortFacts {
                    network: self.find("network", network.clone()),
                    has_subnet: Read::One(!self.missing.contains("subnet of the network")),
                    subnets: port
                        .given
                        .fixed_ips
                        .iter()
                        .filter(|fixed| fixed.subnet.is_some())
                        .map(|_| self.find("subnet", subnet.clone()))
                        .collect(),
                    groups: port
                        .given
                        .security_groups
                        .iter()
                        .map(|_| self.find("group", group("storage")))
                        .collect(),
                })
                .collect(),
            groups: self
                .object
                .spec
                .security_groups
                .iter()
                .map(|_| self.find("group", group("extra")))
                .collect(),
            user_data: Read::One(UserData(vec![b'X'; self.data_length])),
        };
        observed.cloud.facts_mut().unwrap().preflight = Some(preflight);
        observed
    }

    fn plan(&self, observed: &Observed) -> Frontier<Step> {
        if self.is_released { Frontier::default() } else { checked(observed).steps }
    }

    fn run(&mut self, step: &Step) -> Outcome {
        self.tick();
        self.next += 1;
        let id = format!("id-{}", self.next);
        let step = match step.clone() {
            Step::Write(write) => {
                self.is_released |= written(&mut self.object, &write);
                return Outcome::Done;
            }
            Step::Cloud(step) => step,
            Step::Own(never) | Step::Tenant(never) => match never {},
        };
        match step {
            ServerStep::CreatePort(port) => {
                self.ports.push(Port { id: id.as_str().into(), name: port.name.clone(), ..Port::default() });
                return Outcome::Created(id);
            }
            ServerStep::TagPort { id, tags, .. } => {
                self.ports
                    .iter_mut()
                    .filter(|port| port.id == id)
                    .for_each(|port| port.tags.clone_from(&tags));
            }
            ServerStep::CreateServer(new) => {
                self.note(Some(self.now));
                if let Some(left) = self.lateness.take() {
                    self.late = Some((left, *new));
                    return Outcome::Lost;
                }
                let outcome = self.make_server(&id, *new);
                if !outcome.is_success() {
                    self.note(None);
                }
                return outcome;
            }
            ServerStep::DeleteServer { id, .. } => {
                self.servers
                    .iter_mut()
                    .filter(|server| server.id == id)
                    .for_each(|server| server.is_going = true);
            }
            ServerStep::DeletePort { id, .. } => {
                // Neutron takes them away from servers too.
                self.ports.retain(|port| port.id != id);
            }
        }
        Outcome::Done
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        observed.fold(step, outcome);
    }

    /// Servers are built, those that are going are gone, and a lost request is settled.
    fn settle(&mut self) {
        self.tick();
        if self
            .object
            .metadata
            .annotations
            .iter()
            .flatten()
            .any(|(key, _)| key == SERVER_REQUESTED_ANNOTATION)
        {
            self.now += SignedDuration::from_secs(100);
        }
        for server in self.servers.iter().filter(|server| server.is_going) {
            self.ports
                .iter_mut()
                .filter(|port| port.device_id == server.id.as_str())
                .for_each(|port| port.device_id.clear());
        }
        self.servers.retain(|server| !server.is_going);
        for server in self.servers.iter_mut().filter(|server| server.status == "BUILD") {
            server.status = self.becomes.to_owned();
            if self.becomes == "ERROR" {
                server.fault = Some("No valid host was found.".to_owned());
            }
        }
    }

    fn end_state(&self) -> Self::EndState {
        assert!(self.is_ready_with_its_ports());
        let ports = self.ports.iter().map(|port| (port.name.clone(), !port.device_id.is_empty()));
        let servers = self.servers.iter().map(|server| (server.name.clone(), server.status.clone()));
        (
            ports.collect(),
            servers.collect(),
            self.object.spec.provider_id.as_ref().map(|_| true),
            self.is_released,
        )
    }
}
