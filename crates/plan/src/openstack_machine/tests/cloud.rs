//! A cloud of servers and ports in memory, for plans to work on, and what has to hold for every plan.

use std::collections::{BTreeMap, BTreeSet};

use hangar_api::infrastructure::v1beta1::OpenStackMachine;
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use serde_json::json;

use super::super::*;
use crate::flow::crash::World;
use crate::flow::{Outcome, Read, Step as _};
use crate::openstack::{Address, Flavor, Group, Image, Network, OWNER_ID_ANNOTATION, Port, Server, Subnet};

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
    pub(super) next: u32,
    pub(super) is_released: bool,
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
            next: 0,
            is_released: false,
        }
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

    /// Runs passes until nothing moves; the steps in order.
    pub(super) fn settle_all(&mut self) -> Vec<String> {
        let mut trace = Vec::new();
        for _ in 0..20 {
            let mut observed = self.observe();
            let mut tried = BTreeSet::new();
            let mut moved = false;
            while let Some(step) = self.plan(&observed).next_untried(&tried).cloned() {
                tried.insert(step.id());
                let outcome = self.run(&step);
                let end = if outcome.is_success() { "done".to_owned() } else { outcome.to_string() };
                trace.push(format!("{}: {end}", step.id()));
                moved |= outcome.is_success();
                fold(&mut observed, &step, &outcome);
            }
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

/// Rules that hold for every plan.
pub(super) fn checked(observed: &Observed) -> Plan<Step, OpenStackMachineStatus, ()> {
    let plan = plan(observed);
    for step in &plan.steps {
        let needs_claim = !matches!(step, Step::Claim { .. } | Step::Release);
        assert!(!needs_claim || observed.owner_id().is_some(), "{step:?} before the claim");
        assert!(!format!("{step:?}").contains("88, 88"), "user data is shown");
        if let Step::CreatePort(port) = step {
            assert!(port.description.ends_with("for owner owner-1"), "{port:?}");
        }
        if let Step::CreateServer { port_ids, .. } = step {
            assert!(!port_ids.is_empty());
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

impl World for Cloud {
    type Observation = Observed;
    type Step = Step;
    type EndState = (Vec<(String, bool)>, Vec<(String, String)>, Option<bool>, bool);

    fn observe(&self) -> Observed {
        let group = |name: &str| Group { id: format!("group-{name}"), ..Group::default() };
        let network = Network { id: "storage-network".to_owned(), ..Network::default() };
        let subnet = Subnet { id: "storage-subnet".to_owned(), ..Subnet::default() };
        let mut observed = Observed {
            object: self.object.clone(),
            now: "2026-03-01T12:00:00Z".parse().unwrap(),
            fresh_owner_id: "owner-1".to_owned(),
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
                network_id: Some("cluster-network".to_owned()),
                subnet_ids: vec!["cluster-subnet".to_owned()],
                security_group_id: Some("group-worker".to_owned()),
                tags: vec!["cluster-tag".to_owned()],
                ..InfrastructureFacts::default()
            }),
            user_data: Read::One(UserData(vec![b'X'; self.data_length])),
            cloud: Access::NotAsked,
            trouble: None,
        };
        let wanted = wanted_ports("worker-a", &self.object.spec, &InfrastructureFacts::default());
        let ports = wanted.iter().map(|port| {
            let read = Read::found(self.ports.iter().filter(|known| known.name == port.name).cloned());
            (port.name.clone(), read)
        });
        observed.cloud = Access::Facts(CloudFacts {
            servers: Read::found(self.servers.clone()),
            ports: ports.collect(),
            image: self.find(
                "image",
                Image { id: "image-1".to_owned(), name: String::new(), status: "active".to_owned() },
            ),
            flavor: self.find("flavor", Flavor { id: "flavor-1".to_owned(), name: "small".to_owned() }),
            server_group: self.find("server group", "group-apart".to_owned()),
            key: self.find("key", !self.missing.contains("key")),
            wanted: wanted
                .iter()
                .map(|port| PortFacts {
                    network: self.find("network", network.clone()),
                    subnets: port
                        .fixed_ips
                        .iter()
                        .filter(|fixed| fixed.subnet.is_some())
                        .map(|_| self.find("subnet", subnet.clone()))
                        .collect(),
                    groups: port
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
        });
        observed
    }

    fn plan(&self, observed: &Observed) -> Frontier<Step> {
        if self.is_released { Frontier::default() } else { checked(observed).steps }
    }

    fn run(&mut self, step: &Step) -> Outcome {
        self.next += 1;
        let id = format!("id-{}", self.next);
        match step.clone() {
            Step::Claim { owner_id } => {
                let meta = &mut self.object.metadata;
                meta.annotations.get_or_insert_default().insert(OWNER_ID_ANNOTATION.to_owned(), owner_id);
                meta.finalizers = Some(vec![OPENSTACK_MACHINE_FINALIZER.to_owned()]);
            }
            Step::Release => {
                self.object.metadata.finalizers = None;
                self.is_released = true;
            }
            Step::Record { provider_id } => self.object.spec.provider_id = Some(provider_id),
            Step::CreatePort(port) => {
                self.ports.push(Port { id: id.clone(), name: port.name.clone(), ..Port::default() });
                return Outcome::Created(id);
            }
            Step::TagPort { id, tags, .. } => {
                self.ports
                    .iter_mut()
                    .filter(|port| port.id == id)
                    .for_each(|port| port.tags.clone_from(&tags));
            }
            Step::CreateServer { name, port_ids, .. } => {
                let chosen = self.ports.iter_mut().filter(|port| port_ids.contains(&port.id));
                for port in chosen {
                    if !port.device_id.is_empty() {
                        return Outcome::Refused(format!("Port {} is still in use.", port.id));
                    }
                    port.device_id.clone_from(&id);
                }
                let address = Address { address: "10.6.0.5".to_owned(), is_floating: false };
                self.servers.push(Server {
                    id: id.clone(),
                    name,
                    status: "BUILD".to_owned(),
                    addresses: BTreeMap::from([("cluster".to_owned(), vec![address])]),
                    ..Server::default()
                });
                return Outcome::Created(id);
            }
            Step::DeleteServer { id, .. } => {
                self.servers
                    .iter_mut()
                    .filter(|server| server.id == id)
                    .for_each(|server| server.is_going = true);
            }
            Step::DeletePort { id, .. } => {
                if self.ports.iter().any(|port| port.id == id && !port.device_id.is_empty()) {
                    return Outcome::Refused(format!("Port {id} is in use."));
                }
                self.ports.retain(|port| port.id != id);
            }
        }
        Outcome::Done
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        fold(observed, step, outcome);
    }

    /// Servers are built, and those that are going are gone.
    fn settle(&mut self) {
        for server in self.servers.iter().filter(|server| server.is_going) {
            self.ports
                .iter_mut()
                .filter(|port| port.device_id == server.id)
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
