//! A cloud of networks and groups in memory, for plans to run against, and the checks that every plan must pass.

use hangar_api::infrastructure::v1beta1::OpenStackCluster;
use serde_json::json;

use super::super::*;
use crate::flow::crash::World;
use crate::flow::{Action, Frontier, Identified as _, Next, Read, Rounds, Setbacks, Write};
use crate::openstack::{Group, KnownRule, Network, Port, Router, SETTLING, Subnet, Zone};

pub(super) const MANAGED: &str = "
identityRef: {name: cloud, cloudName: openstack}
managedSubnets: [{cidr: 10.6.0.0/24, dnsNameservers: [192.0.2.53]}]
disableAPIServerFloatingIP: true
tags: [team-a]
managedSecurityGroups:
  allNodesSecurityGroupRules:
  - {name: vxlan, direction: ingress, etherType: IPv4, protocol: udp, portRangeMin: 8472, portRangeMax: 8472, remoteManagedGroups: [worker]}
  - {name: ipip, description: IP in IP, direction: ingress, protocol: '4', remoteManagedGroups: [controlplane, worker]}
";

pub(super) const EXISTING: &str = "
identityRef: {name: cloud, cloudName: openstack}
network: {filter: {name: shared}}
subnets: [{filter: {name: shared}}]
router: {filter: {name: shared}}
externalNetwork: {filter: {name: public}}
";

pub(super) fn object(spec: &str) -> OpenStackCluster {
    let spec: serde_json::Value = serde_saphyr::from_str(spec).unwrap();
    serde_json::from_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "OpenStackCluster",
        "metadata": {"name": "demo", "namespace": "default", "uid": "uid-1"},
        "spec": spec,
    }))
    .unwrap()
}

/// A cloud with one external network, and what others have there.
#[derive(Clone, Default)]
pub(super) struct Cloud {
    pub(super) object: Option<OpenStackCluster>,
    pub(super) control_plane: ControlPlane,
    pub(super) machines: Vec<String>,
    pub(super) externals: Vec<Network>,
    pub(super) networks: Vec<Network>,
    pub(super) subnets: Vec<Subnet>,
    pub(super) routers: Vec<Router>,
    pub(super) interfaces: Vec<Port>,
    pub(super) groups: Vec<Group>,
    /// Others' ports on our network.
    pub(super) strangers: Vec<Port>,
    /// The region and the project that the credentials lead to.
    pub(super) project: Option<String>,
    pub(super) next: u32,
    pub(super) is_released: bool,
}

impl Cloud {
    pub(super) fn new(spec: &str) -> Self {
        Self {
            object: Some(object(spec)),
            control_plane: ControlPlane::External,
            externals: vec![network("external", "public")],
            ..Self::default()
        }
    }

    pub(super) fn with_shared(mut self) -> Self {
        self.networks.push(network("shared-network", "shared"));
        self.subnets.push(Subnet {
            id: "shared-subnet".into(),
            name: "shared".to_owned(),
            network_id: "shared-network".into(),
            cidr: "10.9.0.0/24".parse().unwrap(),
            ..Subnet::default()
        });
        self.routers.push(Router {
            id: "shared-router".into(),
            name: "shared".to_owned(),
            ..Router::default()
        });
        self
    }

    pub(super) fn id(&mut self) -> String {
        self.next += 1;
        format!("id-{}", self.next)
    }

    pub(super) fn deleted(mut self) -> Self {
        let object = self.object.as_mut().unwrap();
        object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-03-01T12:00:00Z".parse().unwrap(),
        ));
        self
    }

    pub(super) fn run_tag(&mut self, id: &ObjectId, tags: &[String]) -> Outcome {
        let tagged: Vec<&mut Vec<String>> = match id {
            ObjectId::Network(id) => {
                self.networks.iter_mut().filter(|item| item.id == *id).map(|item| &mut item.tags).collect()
            }
            ObjectId::Subnet(id) => {
                self.subnets.iter_mut().filter(|item| item.id == *id).map(|item| &mut item.tags).collect()
            }
            ObjectId::Router(id) => {
                self.routers.iter_mut().filter(|item| item.id == *id).map(|item| &mut item.tags).collect()
            }
            ObjectId::Group(id) => {
                self.groups.iter_mut().filter(|item| item.id == *id).map(|item| &mut item.tags).collect()
            }
        };
        for present in tagged {
            *present = tags.to_vec();
        }
        Outcome::Done
    }

    pub(super) fn run_delete(&mut self, id: &ObjectId) -> Outcome {
        let is_used = match id {
            ObjectId::Network(id) => {
                self.subnets.iter().any(|subnet| subnet.network_id == *id)
                    || self.strangers.iter().any(|port| port.network_id == *id)
            }
            ObjectId::Subnet(id) => self.interfaces.iter().any(|port| port.subnet_ids.contains(id)),
            ObjectId::Router(id) => self.interfaces.iter().any(|port| port.device_id == id.as_str()),
            ObjectId::Group(_) => false,
        };
        if is_used {
            return Outcome::refused(format!("{id:?} is in use"));
        }
        match id {
            ObjectId::Network(id) => self.networks.retain(|item| item.id != *id),
            ObjectId::Subnet(id) => self.subnets.retain(|item| item.id != *id),
            ObjectId::Router(id) => self.routers.retain(|item| item.id != *id),
            ObjectId::Group(id) => self.groups.retain(|item| item.id != *id),
        }
        Outcome::Done
    }

    /// Runs passes until nothing moves; the steps in order.
    pub(super) fn settle_all(&mut self) -> Vec<String> {
        let mut trace = Vec::new();
        for _ in 0..10 {
            let mut observed = self.observe();
            let (mut rounds, setbacks) = (Rounds::default(), Setbacks::default());
            let mut moved = false;
            loop {
                let steps = checked(&observed).steps;
                let Next::Run(step) = rounds.next(&steps, &setbacks, observed.now) else { break };
                let outcome = self.run(step);
                trace.push(format!(
                    "{}: {}",
                    step.id(),
                    if outcome.is_success() { "done".to_owned() } else { outcome.to_string() }
                ));
                moved |= outcome.is_success();
                observed.fold(step, &outcome);
                rounds.ran(step.id(), outcome);
            }
            let status = checked(&observed).status;
            if let Some(object) = &mut self.object {
                object.status = Some(status);
            }
            if !moved {
                return trace;
            }
        }
        panic!("never rests: {trace:#?}");
    }

    pub(super) fn status(&self) -> &OpenStackClusterStatus {
        self.object.as_ref().unwrap().status.as_ref().unwrap()
    }

    pub(super) fn golden(&mut self) -> String {
        let trace = self.settle_all();
        let status = serde_saphyr::to_string(self.status()).unwrap();
        format!("{}\n---\n{status}", trace.join("\n"))
    }

    pub(super) fn condition(&self, type_: &str) -> (String, String) {
        let condition = self.status().conditions.iter().find(|condition| condition.r#type == type_);
        let condition = condition.unwrap_or_else(|| panic!("no {type_}"));
        (condition.reason.clone().unwrap_or_default(), condition.message.clone().unwrap_or_default())
    }
}

pub(super) fn network(id: &str, name: &str) -> Network {
    Network { id: id.into(), name: name.to_owned(), tags: Vec::new() }
}

/// The observation after the claim.
pub(super) fn claim(observed: &mut Observed) {
    let step = checked(observed).steps.iter().next().cloned().expect("a step");
    assert_eq!(step.id().to_string(), "claim object self");
    observed.fold(&step, &Outcome::Done);
}

/// Rules that hold for every plan.
pub(super) fn checked(observed: &Observed) -> Plan<Step, OpenStackClusterStatus> {
    let plan = observed.plan();
    let is_claimed = observed.owner_id().is_some();
    for step in &plan.steps {
        assert!(is_claimed || ["claim", "release"].contains(&step.id().verb), "{step:?} before the claim");
        if let Step::Cloud(NetworkStep::Delete { id, .. }) = step {
            assert!(!format!("{id:?}").contains("shared-"), "{step:?} deletes what is not ours");
        }
    }
    for condition in &plan.status.conditions {
        let message = condition.message.as_deref().unwrap_or_default();
        assert!(condition.status == "True" || message.contains("must act"), "{condition:?}");
    }
    plan
}

/// What the API server makes of the object. One without finalizers is gone.
fn written(object: &mut OpenStackCluster, write: &Write) -> bool {
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
    type EndState = (usize, usize, usize, usize, Vec<(String, usize)>, bool);

    fn observe(&self) -> Observed {
        let object = self.object.clone().unwrap();
        let mut observed = Observed {
            now: "2026-03-01T12:00:00Z".parse().unwrap(),
            fresh_owner_id: "owner-1".to_owned(),
            settling: SETTLING,
            copied_from: None,
            cluster: Read::One(ClusterFacts {
                name: "demo".to_owned(),
                is_paused: false,
                control_plane: self.control_plane,
                has_endpoint: false,
            }),
            machines: Read::found(self.machines.clone()),
            cloud: Access::NotAsked,
            project: self.project.clone(),
            troubles: std::collections::BTreeMap::new(),
            object,
        };
        let is_managed = observed.is_managed();
        let ours = |id: &str| id.starts_with("id-") == is_managed;
        // The process asks the cloud in every stage here; the stages themselves decide what is done with it.
        observed.cloud = Access::Facts(CloudFacts {
            external_networks: Read::found(self.externals.clone()),
            networks: Read::found(self.networks.iter().filter(|item| ours(item.id.as_str())).cloned()),
            subnets: Read::found(self.subnets.iter().filter(|item| ours(item.id.as_str())).cloned()),
            subnet_problems: Vec::new(),
            routers: Read::found(self.routers.iter().filter(|item| ours(item.id.as_str())).cloned()),
            interfaces: Read::found(self.interfaces.clone()),
            groups: Read::found(self.groups.clone()),
            zones: Read::found([Zone { name: "nova".to_owned(), is_available: true }]),
            other_ports: Read::found(self.strangers.clone()),
        });
        observed
    }

    fn plan(&self, observed: &Observed) -> Frontier<Step> {
        if self.is_released { Frontier::default() } else { checked(observed).steps }
    }

    fn run(&mut self, step: &Step) -> Outcome {
        let id = self.id();
        let step = match step.clone() {
            Step::Write(write) => {
                self.is_released |= written(self.object.as_mut().unwrap(), &write);
                return Outcome::Done;
            }
            Step::Cloud(step) => step,
            Step::Own(never) | Step::Tenant(never) => match never {},
        };
        match step {
            NetworkStep::CreateNetwork { name, .. } => self.networks.push(network(&id, &name)),
            NetworkStep::CreateSubnet {
                name,
                network_id,
                subnet: NewSubnet { cidr, dns_nameservers, .. },
            } => {
                if self.subnets.iter().any(|subnet| subnet.network_id == network_id && subnet.cidr == cidr) {
                    return Outcome::refused("overlaps with another subnet");
                }
                self.subnets.push(Subnet {
                    id: id.as_str().into(),
                    name,
                    network_id,
                    cidr,
                    dns_nameservers,
                    tags: Vec::new(),
                });
            }
            NetworkStep::SetNameServers { id, dns_nameservers, .. } => {
                for subnet in self.subnets.iter_mut().filter(|subnet| subnet.id == id) {
                    subnet.dns_nameservers.clone_from(&dns_nameservers);
                }
                return Outcome::Done;
            }
            NetworkStep::CreateRouter { name, gateway_network_id, .. } => self.routers.push(Router {
                id: id.as_str().into(),
                name,
                gateway_network_id: Some(gateway_network_id),
                gateway_addresses: vec!["203.0.113.7".parse().unwrap()],
                tags: Vec::new(),
            }),
            NetworkStep::AddInterface { router_id, subnet_id, .. } => {
                if self.interfaces.iter().any(|port| port.subnet_ids.contains(&subnet_id)) {
                    return Outcome::refused("router already has a port on subnet");
                }
                self.interfaces.push(Port {
                    device_id: router_id.to_string(),
                    subnet_ids: vec![subnet_id],
                    ..Port::default()
                });
            }
            NetworkStep::RemoveInterface { subnet_id, .. } => {
                self.interfaces.retain(|port| !port.subnet_ids.contains(&subnet_id));
                return Outcome::Done;
            }
            NetworkStep::CreateGroup { name, .. } => {
                let rules = security_groups::born_with().into_iter();
                let rules = rules.map(|rule| KnownRule { id: self.id().into(), rule }).collect();
                self.groups.push(Group { id: id.as_str().into(), name, tags: Vec::new(), rules });
            }
            NetworkStep::CreateRule { group_id, rule, .. } => {
                let group = self.groups.iter_mut().find(|group| group.id == group_id).unwrap();
                if group.rules.iter().any(|known| known.rule.normalized() == rule.normalized()) {
                    return Outcome::Done;
                }
                group.rules.push(KnownRule { id: id.as_str().into(), rule });
            }
            NetworkStep::DeleteRule { id, .. } => {
                for group in &mut self.groups {
                    group.rules.retain(|known| known.id != id);
                }
                return Outcome::Done;
            }
            NetworkStep::Tag { id, tags, .. } => return self.run_tag(&id, &tags),
            NetworkStep::Delete { id, .. } => return self.run_delete(&id),
        }
        Outcome::Created(id)
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        observed.fold(step, outcome);
    }

    fn end_state(&self) -> Self::EndState {
        let groups = self.groups.iter().map(|group| (group.name.clone(), group.rules.len()));
        (
            self.networks.len(),
            self.subnets.len(),
            self.routers.len(),
            self.interfaces.len(),
            groups.collect(),
            self.is_released,
        )
    }
}
