//! The floor: what a person with finished manifests would do, who applies one thing after the other and waits for each.
//!
//! 1. Secrets, ConfigMaps, Services, policies and etcd; until etcd is Ready.
//! 2. The API server; until it answers at its address.
//! 3. controller-manager and scheduler, without a wait.
//! 4. Everything in the tenant: rights, join material, add-ons, flannel, a token.
//! 5. In the cloud: network, subnet, router, security groups with their rules, a port, a server with the worker's data;
//!    until its node is Ready.
//!
//! Manifests are applied by kubectl, with one call for each of the steps. A wait ends with an event of a watch, so it
//! costs no polling.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};

use super::cloud::Cloud;
use super::recording::{Recording, rules_of};
use super::timeline::{API_SERVER_READY, APPLIED, ETCD_READY, NODE_READY, SERVING, Timeline};
use super::{CLAIMS, CLUSTER, NAMESPACE, PATIENCE, SELECTOR};
use crate::place::Place;
use crate::recorded;
use crate::watch::Watches;

const NAME: &str = "by-hand";
const NEUTRON: &str = "/network/v2.0";
const NOVA: &str = "/compute/v2.1";

pub(super) struct Floor<'a> {
    place: &'a Place,
    cloud: &'a Cloud,
    recording: &'a Recording,
}

impl<'a> Floor<'a> {
    pub(super) fn new(place: &'a Place, cloud: &'a Cloud, recording: &'a Recording) -> Self {
        Self { place, cloud, recording }
    }

    /// From apply to a Ready worker.
    pub(super) fn run(&self) -> anyhow::Result<Timeline> {
        let management = self.place.management();
        let path = self.place.tenant_kubeconfig(CLUSTER);
        fs::write(&path, &self.recording.control_plane.kubeconfig).context("the tenant's kubeconfig")?;
        let tenant = management.with(&path);
        let mut watches = Watches::new();
        watches.add("pods", management, &["--namespace", NAMESPACE, "--selector", SELECTOR])?;
        watches.add("statefulsets", management, &["--namespace", NAMESPACE, "--selector", SELECTOR])?;
        Watches::wait_until_there();

        let mut timeline = Timeline::begin();
        management.apply(&self.recording.control_plane.ground)?;
        timeline.mark(APPLIED, Instant::now());
        timeline.follow(&watches, ETCD_READY)?;
        management.apply(&self.recording.control_plane.api_server)?;
        timeline.follow(&watches, API_SERVER_READY)?;
        timeline.mark(SERVING, tenant.wait_until_serving(PATIENCE)?);
        management.apply(&self.recording.control_plane.controllers)?;
        timeline.mark("controllers applied", Instant::now());
        tenant.apply_patiently(&self.recording.tenant)?;
        watches.add("nodes", &tenant, &[])?;
        timeline.mark("tenant applied", Instant::now());
        let wires = self.wires()?;
        timeline.mark("network and security groups there", Instant::now());
        self.server(&wires)?;
        timeline.mark("server asked for", Instant::now());
        timeline.follow(&watches, NODE_READY)?;
        Ok(timeline)
    }

    /// Network, subnet, router and security groups.
    fn wires(&self) -> anyhow::Result<Wires> {
        let worker = &self.recording.worker;
        let network = self.make("network", &json!({"name": NAME}))?;
        let subnet = json!({
            "name": NAME, "network_id": network, "ip_version": 4, "cidr": worker.subnet["cidr"],
            "dns_nameservers": worker.subnet["dns_nameservers"],
        });
        let subnet = self.make("subnet", &subnet)?;
        let gateway = json!({"network_id": worker.external_network});
        let router = self.make("router", &json!({"name": NAME, "external_gateway_info": gateway}))?;
        let path = format!("{NEUTRON}/routers/{router}/add_router_interface");
        self.cloud.put(&path, &json!({"subnet_id": subnet}))?;
        let mut groups = BTreeMap::new();
        for group in &worker.groups {
            let made = self.make("security_group", &json!({"name": group["name"]}))?;
            groups.insert(text(&group["id"])?.to_owned(), made);
        }
        for rule in worker.groups.iter().flat_map(rules_of) {
            self.rule(rule, &groups)?;
        }
        Ok(Wires { network, subnet, groups })
    }

    /// A group is born with the rules that let everything out.
    fn rule(&self, rule: &Value, groups: &BTreeMap<String, String>) -> anyhow::Result<()> {
        if rule["direction"] == "egress" {
            return Ok(());
        }
        let mut body = json!({});
        for kept in
            ["direction", "ethertype", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix"]
        {
            if !rule[kept].is_null() {
                body[kept] = rule[kept].clone();
            }
        }
        for group in ["security_group_id", "remote_group_id"] {
            if let Some(id) = rule[group].as_str() {
                body[group] = json!(groups.get(id).context("a rule names an unknown group")?);
            }
        }
        self.make("security_group_rule", &body).map(drop)
    }

    fn server(&self, wires: &Wires) -> anyhow::Result<()> {
        let worker = &self.recording.worker;
        let mut groups = Vec::new();
        for group in &worker.port_groups {
            groups.push(wires.groups.get(text(group)?).context("the port has an unknown group")?);
        }
        let port = json!({
            "name": NAME, "network_id": wires.network, "fixed_ips": [{"subnet_id": wires.subnet}],
            "security_groups": groups,
        });
        let port = self.make("port", &port)?;
        let server = json!({"server": {
            "name": worker.server["name"], "imageRef": worker.server["image"]["id"],
            "flavorRef": worker.server["flavor"]["id"], "networks": [{"port": port}],
            "user_data": worker.user_data, "config_drive": true,
        }});
        self.cloud.post(&format!("{NOVA}/servers"), &server).map(drop)
    }

    /// Makes something of Neutron's. Its id.
    fn make(&self, kind: &str, body: &Value) -> anyhow::Result<String> {
        let path = format!("{NEUTRON}/{}s", kind.replace('_', "-"));
        let made = self.cloud.post(&path, &json!({kind: body}))?;
        text(&made[kind]["id"]).map(str::to_owned)
    }

    /// Removes everything that was made.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        for server in self.of_cloud(&format!("{NOVA}/servers"), "servers")? {
            self.cloud.delete(&format!("{NOVA}/servers/{}", text(&server["id"])?))?;
        }
        self.cloud.wait_until_without_servers()?;
        self.remove_wires()?;
        recorded::remove(self.place.management(), NAMESPACE, SELECTOR, CLAIMS)
    }

    fn remove_wires(&self) -> anyhow::Result<()> {
        for port in self.of_cloud(&format!("{NEUTRON}/ports"), "ports")? {
            if port["name"] == NAME {
                self.cloud.delete(&format!("{NEUTRON}/ports/{}", text(&port["id"])?))?;
            }
        }
        let subnets = self.of_cloud(&format!("{NEUTRON}/subnets"), "subnets")?;
        for router in self.of_cloud(&format!("{NEUTRON}/routers"), "routers")? {
            let path = format!("{NEUTRON}/routers/{}", text(&router["id"])?);
            for subnet in subnets.iter().filter(|it| it["name"] == NAME) {
                let body = json!({"subnet_id": subnet["id"]});
                self.cloud.put(&format!("{path}/remove_router_interface"), &body)?;
            }
            self.cloud.delete(&path)?;
        }
        for network in self.of_cloud(&format!("{NEUTRON}/networks"), "networks")? {
            if network["name"] == NAME {
                self.cloud.delete(&format!("{NEUTRON}/networks/{}", text(&network["id"])?))?;
            }
        }
        // First the rules: they name the groups of each other.
        let names: Vec<&Value> = self.recording.worker.groups.iter().map(|group| &group["name"]).collect();
        let mut groups = self.of_cloud(&format!("{NEUTRON}/security-groups"), "security_groups")?;
        groups.retain(|group| names.contains(&&group["name"]));
        for rule in groups.iter().flat_map(rules_of) {
            self.cloud.delete(&format!("{NEUTRON}/security-group-rules/{}", text(&rule["id"])?))?;
        }
        for group in &groups {
            self.cloud.delete(&format!("{NEUTRON}/security-groups/{}", text(&group["id"])?))?;
        }
        Ok(())
    }

    fn of_cloud(&self, path: &str, list: &str) -> anyhow::Result<Vec<Value>> {
        let found = self.cloud.get(path)?;
        found[list].as_array().cloned().with_context(|| format!("the cloud gave no list of {list}"))
    }
}

/// Ids of what a server needs; groups by their recorded ids.
struct Wires {
    network: String,
    subnet: String,
    groups: BTreeMap<String, String>,
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().context("a text is missing in the cloud's answer")
}
