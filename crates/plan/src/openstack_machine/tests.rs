//! Scenarios over a small cloud in memory: goldens of what is done and said, and the crash sweep of make and delete.

use std::collections::{BTreeMap, BTreeSet};

use hangar_api::infrastructure::v1beta1::OpenStackMachine;
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use serde_json::json;

use super::*;
use crate::flow::crash::{World, sweep};
use crate::flow::{Outcome, Read, Step as _};
use crate::openstack::{
    Address, CloudTrouble, Flavor, Group, Image, Network, OWNER_ID_ANNOTATION, Port, Server, Subnet,
};

const WORKER: &str = "
flavor: small
image: {filter: {name: ubuntu-1.35}}
sshKeyName: admin
configDrive: true
tags: [team-a]
serverMetadata: [{key: role, value: worker}]
serverGroup: {filter: {name: apart}}
schedulerHintAdditionalProperties: [{name: query, value: {type: Number, number: 3}}]
";

const TWO_PORTS: &str = "
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
struct Cloud {
    object: OpenStackMachine,
    is_provisioned: bool,
    has_data: bool,
    data_length: usize,
    /// Names that do not exist, and what is ambiguous.
    missing: BTreeSet<&'static str>,
    ambiguous: BTreeSet<&'static str>,
    ports: Vec<Port>,
    servers: Vec<Server>,
    /// What a server that is being built becomes.
    becomes: &'static str,
    next: u32,
    is_released: bool,
}

impl Cloud {
    fn new(spec: &str) -> Self {
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

    fn find<T: Clone>(&self, what: &'static str, item: T) -> Read<T> {
        match (self.missing.contains(what), self.ambiguous.contains(what)) {
            (true, _) => Read::Absent,
            (_, true) => Read::Many(vec![item.clone(), item]),
            _ => Read::One(item),
        }
    }

    fn deleted(mut self) -> Self {
        self.object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-03-01T12:00:00Z".parse().unwrap(),
        ));
        self
    }

    /// Runs passes until nothing moves; the steps in order.
    fn settle_all(&mut self) -> Vec<String> {
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

    fn status(&self) -> &OpenStackMachineStatus {
        self.object.status.as_ref().unwrap()
    }

    fn golden(&mut self) -> String {
        let trace = self.settle_all();
        format!("{}\n---\n{}", trace.join("\n"), serde_saphyr::to_string(self.status()).unwrap())
    }

    fn condition(&self) -> (String, String, String) {
        let condition =
            self.status().conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (condition.status.clone(), text(&condition.reason), text(&condition.message))
    }
}

/// Rules that hold for every plan.
fn checked(observed: &Observed) -> Plan<Step, OpenStackMachineStatus, ()> {
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

#[test]
fn a_worker() {
    insta::assert_snapshot!(Cloud::new(WORKER).golden());
}

#[test]
fn a_machine_with_two_ports() {
    insta::assert_snapshot!(Cloud::new(TWO_PORTS).golden());
}

#[test]
fn the_server_that_is_asked_for() {
    let mut cloud = Cloud::new(WORKER);
    let mut observed = cloud.observe();
    let mut asked = Vec::new();
    let mut tried = BTreeSet::new();
    while let Some(step) = checked(&observed).steps.next_untried(&tried).cloned() {
        tried.insert(step.id());
        asked.push(format!("{step:#?}"));
        let outcome = cloud.run(&step);
        fold(&mut observed, &step, &outcome);
    }
    insta::assert_snapshot!(asked.join("\n"));
}

#[test]
fn deletion_takes_the_server_then_the_ports() {
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.settle_all();
    let mut cloud = cloud.deleted();
    assert_eq!(
        cloud.settle_all(),
        [
            "delete server worker-a: done",
            "delete port worker-a-1: done",
            "delete port worker-a-main: done",
            "release object self: done"
        ]
    );
    assert!(cloud.ports.is_empty() && cloud.servers.is_empty());
}

#[test]
fn making_survives_a_crash_anywhere() {
    for spec in [WORKER, TWO_PORTS] {
        let swept = sweep(&Cloud::new(spec), 100).unwrap();
        assert!(swept.points >= 20, "{swept:?}");
    }
}

#[test]
fn deleting_survives_a_crash_anywhere() {
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.settle_all();
    assert_eq!(sweep(&cloud.deleted(), 100).unwrap().points, 16);
}

#[test]
fn deleting_before_anything_was_made_only_lets_go() {
    let mut cloud = Cloud::new(WORKER);
    cloud.object.metadata.finalizers = Some(vec![OPENSTACK_MACHINE_FINALIZER.to_owned()]);
    let mut cloud = cloud.deleted();
    assert_eq!(cloud.settle_all(), ["release object self: done"]);
}

#[test]
fn everything_that_is_missing_is_told_together_and_nothing_is_made() {
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.missing = ["image", "network", "group"].into();
    cloud.ambiguous = ["flavor", "subnet"].into();
    cloud.data_length = 49_153;
    assert_eq!(cloud.settle_all(), ["claim object self: done"]);
    insta::assert_snapshot!(cloud.condition().2);
    cloud.missing.clear();
    cloud.ambiguous.clear();
    cloud.data_length = 100;
    cloud.settle_all();
    assert_eq!(cloud.condition().0, "True", "cleared when fixed");
}

#[test]
fn a_read_that_failed_is_not_a_missing_image() {
    let cloud = Cloud::new(WORKER);
    let mut observed = cloud.observe();
    fold(&mut observed, &Step::Claim { owner_id: "owner-1".to_owned() }, &Outcome::Done);
    observed.cloud.facts_mut().unwrap().image = Read::unknown("503 from glance");
    let plan = checked(&observed);
    assert!(plan.steps.is_empty());
    let ready = plan.status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    assert_eq!(ready.status, "Unknown");
    observed.cloud.facts_mut().unwrap().servers = Read::unknown("503 from nova");
    assert!(checked(&observed).steps.is_empty());
}

#[test]
fn a_failed_server_says_why_and_is_left_to_others() {
    let mut cloud = Cloud { becomes: "ERROR", ..Cloud::new(WORKER) };
    cloud.settle_all();
    let (status, reason, message) = cloud.condition();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "InstanceStateError"));
    assert!(message.contains("No valid host was found"), "{message}");
    assert_eq!((cloud.servers.len(), &cloud.object.spec.provider_id), (1, &None));
    assert_eq!(cloud.status().failure_reason, None, "nothing is terminal");
    let mut cloud = cloud.deleted();
    cloud.settle_all();
    assert!(cloud.is_released && cloud.ports.is_empty(), "it can still be deleted");
}

#[test]
fn a_server_that_was_deleted_is_not_made_again() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    cloud.servers.clear();
    cloud.ports[0].device_id.clear();
    assert!(cloud.settle_all().is_empty());
    assert_eq!(cloud.condition().1, "InstanceDeleted");
    cloud.object.status = None;
    assert!(cloud.settle_all().is_empty(), "the provider id remembers it after a move");
}

#[test]
fn other_states_are_no_failure() {
    for state in ["SHUTOFF", "MIGRATING", "VERIFY_RESIZE"] {
        let mut cloud = Cloud { becomes: state, ..Cloud::new(WORKER) };
        cloud.settle_all();
        let (status, _, message) = cloud.condition();
        assert!(status == "Unknown" && message.contains(state), "{status} {message}");
    }
    let mut cloud = Cloud { becomes: "SOFT_DELETED", ..Cloud::new(WORKER) };
    cloud.settle_all();
    assert_eq!(cloud.condition().1, "InstanceDeleted");
    cloud.ports[0].device_id.clear();
    let mut cloud = cloud.deleted();
    cloud.settle_all();
    assert!(cloud.is_released, "a cloud that keeps deleted servers for a while does not stop us");
}

#[test]
fn a_port_whose_server_is_not_listed_yet_stops_a_second_server() {
    let mut cloud = Cloud::new(WORKER);
    let mut observed = cloud.observe();
    let mut tried = BTreeSet::new();
    while let Some(step) = checked(&observed).steps.next_untried(&tried).cloned() {
        tried.insert(step.id());
        let outcome = cloud.run(&step);
        fold(&mut observed, &step, &outcome);
    }
    let hidden = std::mem::take(&mut cloud.servers);
    let observed = cloud.observe();
    assert!(checked(&observed).steps.is_empty(), "the list lags behind");
    cloud.servers = hidden;
    cloud.settle_all();
    assert_eq!((cloud.servers.len(), cloud.ports.len()), (1, 1));
}

#[test]
fn duplicates_are_swept_and_the_bound_ones_kept() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    let bound = cloud.servers[0].id.clone();
    cloud.servers.insert(
        0,
        Server {
            id: "id-0".to_owned(),
            name: "worker-a".to_owned(),
            status: "ACTIVE".to_owned(),
            ..Server::default()
        },
    );
    cloud.settle_all();
    assert_eq!(cloud.servers.iter().map(|server| server.id.clone()).collect::<Vec<_>>(), [bound]);

    let mut cloud = Cloud::new(WORKER);
    for id in ["id-91", "id-90"] {
        cloud.ports.push(Port { id: id.to_owned(), name: "worker-a-0".to_owned(), ..Port::default() });
    }
    cloud.settle_all();
    assert_eq!((cloud.ports.len(), cloud.servers.len()), (1, 1));
}

#[test]
fn refusals_are_said_in_the_words_of_the_cloud() {
    let cloud = Cloud::new(WORKER);
    let mut observed = cloud.observe();
    fold(&mut observed, &Step::Claim { owner_id: "owner-1".to_owned() }, &Outcome::Done);
    let step = checked(&observed).steps.iter().next().unwrap().clone();
    fold(&mut observed, &step, &Outcome::Refused("Quota exceeded for resources: ['port'].".to_owned()));
    let status = checked(&observed).status;
    let ready = status.conditions.iter().find(|condition| condition.r#type == "Ready").unwrap();
    assert_eq!(ready.reason.as_deref(), Some("PortCreateFailed"));
    assert!(ready.message.as_deref().unwrap().contains("Quota exceeded for resources: ['port']"));
}

#[test]
fn it_waits_for_the_cluster_and_the_bootstrap_data() {
    let mut cloud = Cloud { is_provisioned: false, ..Cloud::new(WORKER) };
    assert!(cloud.settle_all().is_empty());
    assert_eq!(cloud.condition().1, "WaitingForClusterInfrastructure");
    let mut cloud = Cloud { has_data: false, ..Cloud::new(WORKER) };
    assert!(cloud.settle_all().is_empty());
    assert_eq!(cloud.condition().1, "WaitingForBootstrapData");
}

#[test]
fn what_is_not_supported_is_named_before_anything_is_made() {
    let spec = format!("{WORKER}\nrootVolume: {{sizeGiB: 10}}\nports: [{{trunk: true, hostID: x}}]");
    let mut cloud = Cloud::new(&spec);
    assert!(cloud.settle_all().is_empty());
    let (_, reason, message) = cloud.condition();
    assert_eq!(reason, "InvalidMachineSpec");
    for field in ["spec.rootVolume", "spec.ports[0].trunk", "spec.ports[0].hostID"] {
        assert!(message.contains(field), "{message}");
    }
}

/// Those that exist have the old names: looked for by new ones they would be left behind.
#[test]
fn ports_cannot_be_changed_under_a_machine() {
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.settle_all();
    let given = cloud.object.spec.ports.clone();
    for edited in [Vec::new(), given[..1].to_vec(), [&given[..], &given[1..]].concat()] {
        cloud.object.spec.ports = edited;
        for mut cloud in [cloud.clone(), cloud.clone().deleted()] {
            assert_eq!(cloud.settle_all(), [""; 0], "nothing is made and nothing is deleted");
            let (_, reason, message) = cloud.condition();
            assert_eq!(reason, "PortsChanged");
            assert!(message.contains("worker-a-1, worker-a-main"), "{message}");
        }
    }
    let mut fewer_words = given.clone();
    fewer_words[1].description = None;
    cloud.object.spec.ports = fewer_words;
    let mut cloud = cloud.deleted();
    assert_eq!(cloud.settle_all().last().unwrap(), "release object self: done");
    assert!(cloud.ports.is_empty() && cloud.servers.is_empty());
}

#[test]
fn two_ports_of_one_name_are_refused() {
    let spec = format!("{WORKER}\nports: [{{nameSuffix: '1'}}, {{}}, {{nameSuffix: x}}]");
    let mut cloud = Cloud::new(&spec);
    assert!(cloud.settle_all().is_empty());
    let (_, reason, message) = cloud.condition();
    assert_eq!(reason, "InvalidMachineSpec");
    assert!(message.contains("spec.ports[1].nameSuffix: another port is called \"1\" already"), "{message}");
}

/// A server that the cloud keeps for a while is no server, but it was listed.
#[test]
fn a_soft_deleted_server_does_not_keep_another_from_being_made() {
    let mut cloud = Cloud::new(WORKER);
    let gone = Server { id: "old".to_owned(), status: "SOFT_DELETED".to_owned(), ..Server::default() };
    let trace = cloud.settle_all();
    assert!(!trace.is_empty());
    cloud.object.status = None;
    cloud.object.spec.provider_id = None;
    let observed = cloud.observe();
    assert!(observed.needs_preflight(&Read::One(gone.clone())));
    let lives = Server { status: "ACTIVE".to_owned(), ..gone };
    assert!(!observed.needs_preflight(&Read::One(lives)));
}

#[test]
fn bad_credentials_keep_even_a_deletion_waiting() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    let mut observed = cloud.deleted().observe();
    observed.cloud = Access::Trouble(CloudTrouble {
        reason: "SecretNotFound",
        message: "there is no Secret cloud".to_owned(),
        actor: Actor::ClusterOwner,
    });
    let plan = checked(&observed);
    assert!(plan.steps.is_empty());
    assert!(
        plan.status.conditions.iter().any(|condition| condition.reason.as_deref() == Some("SecretNotFound"))
    );
}

#[test]
fn a_copied_owner_id_gives_no_right_to_what_carries_it() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    for cloud in [cloud.clone(), cloud.deleted()] {
        let mut observed = cloud.observe();
        observed.copied_from = Some("default/first".to_owned());
        let plan = checked(&observed);
        let steps: Vec<&Step> = plan.steps.iter().collect();
        let is_deleting = observed.object.metadata.deletion_timestamp.is_some();
        assert_eq!(steps, if is_deleting { vec![&Step::Release] } else { vec![] });
    }
}

#[test]
fn provider_ids_have_the_region_of_the_machine_alone() {
    let mut cloud = Cloud::new(WORKER);
    cloud.settle_all();
    assert_eq!(cloud.object.spec.provider_id.as_deref(), Some("openstack:///id-4"));
    let mut cloud = Cloud::new(TWO_PORTS);
    cloud.settle_all();
    assert!(cloud.object.spec.provider_id.as_deref().unwrap().starts_with("openstack://RegionOne/id-"));
}
