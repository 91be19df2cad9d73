//! A cluster with three machines in an OpenStack that nobody here wrote, under a manager that dies again and again.
//!
//! `HANGAR_OPENSTACK` names a `clouds.yaml`; `OS_CLOUD`, `HANGAR_OPENSTACK_FLAVOR` and
//! `HANGAR_OPENSTACK_IMAGE` say what to use of it. The project must be one where nothing else changes meanwhile: what
//! it holds before and after is compared. `HANGAR_OPENSTACK_DEATHS` is the number of deaths, 20 unless told.

use std::collections::BTreeSet;
use std::time::Duration;

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_openstack::{
    CloudConfig, NetworkQuery, PortQuery, RouterQuery, SecurityGroupQuery, ServerQuery, Session,
    SessionOptions, SubnetQuery,
};
use hangar_plan::openstack::SETTLING;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::cloud::{infrastructure, managed, status_of};
use super::servers::{BOTH, machine_status, server};
use super::world::{Running, Seen, World, eventually};

const MACHINES: [&str; 3] = ["worker-a", "worker-b", "worker-c"];

/// What is needed of the cloud.
struct Real {
    clouds_yaml: String,
    cloud_name: String,
    flavor: String,
    image: String,
    deaths: usize,
    session: Session,
}

impl Real {
    fn given() -> Self {
        let file = std::env::var("HANGAR_OPENSTACK").expect("HANGAR_OPENSTACK names a clouds.yaml");
        let text = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
        let clouds_yaml = std::fs::read_to_string(file).unwrap();
        let cloud_name = text("OS_CLOUD", "openstack");
        let config = CloudConfig::from_yaml(clouds_yaml.as_bytes(), &cloud_name).unwrap();
        Self {
            clouds_yaml,
            cloud_name,
            flavor: text("HANGAR_OPENSTACK_FLAVOR", "m1.small"),
            image: text("HANGAR_OPENSTACK_IMAGE", "debian"),
            deaths: text("HANGAR_OPENSTACK_DEATHS", "20").parse().unwrap(),
            session: Session::new(config, SessionOptions::default()).unwrap(),
        }
    }

    fn network(&self) -> Value {
        let mut spec = managed();
        spec["identityRef"]["cloudName"] = json!(self.cloud_name);
        spec
    }

    fn worker(&self) -> Value {
        json!({"flavor": self.flavor, "image": {"filter": {"name": self.image}}, "tags": ["worker"]})
    }

    /// Everything the project shows, by kind and id.
    async fn held(&self) -> BTreeSet<String> {
        let network = self.session.network();
        let mut held = BTreeSet::new();
        let mut add = |kind: &str, id: &str, name: &str| held.insert(format!("{kind} {id} {name}"));
        for item in network.list(&NetworkQuery::default()).await.unwrap() {
            add("network", item.id.as_ref(), &item.name);
        }
        for item in network.list(&SubnetQuery::default()).await.unwrap() {
            add("subnet", item.id.as_ref(), &item.name);
        }
        for item in network.list(&RouterQuery::default()).await.unwrap() {
            add("router", item.id.as_ref(), &item.name);
        }
        for item in network.list(&PortQuery::default()).await.unwrap() {
            add("port", item.id.as_ref(), &format!("{} {}", item.name, item.device_owner));
        }
        for item in network.list(&SecurityGroupQuery::default()).await.unwrap() {
            add("group", item.id.as_ref(), &item.name);
        }
        for item in self.session.compute().servers(&ServerQuery::default()).await.unwrap() {
            add("server", item.id.as_ref(), &item.name);
        }
        held
    }

    /// Every Ready machine has exactly its server, and the server has its ports.
    async fn holds_each_machine_once(&self, world: &World) {
        let servers = self.session.compute().servers(&ServerQuery::default()).await.unwrap();
        let ports = self.session.network().list(&PortQuery::default()).await.unwrap();
        for name in MACHINES {
            let status = machine_status(world, name).await;
            let id = status.instance_id.unwrap();
            let named: Vec<_> = servers.iter().filter(|server| server.name == name).collect();
            assert_eq!(named.iter().map(|server| server.id.as_ref()).collect::<Vec<&str>>(), [id.as_str()]);
            assert_eq!(named[0].status, "ACTIVE");
            let bound: Vec<_> = ports.iter().filter(|port| port.name == format!("{name}-0")).collect();
            let users: Vec<_> = bound.iter().map(|port| port.device_id.as_str()).collect();
            assert_eq!(users, [id.as_str()], "{name} has its port");
        }
    }
}

async fn made(world: &World, real: &Real) {
    let cluster = world.cluster().await;
    infrastructure(world, &cluster, real.network()).await;
    eventually("the network is there", async || status_of(world).await.ready).await;
    world.provisioned().await;
    for name in MACHINES {
        server(world, name, real.worker()).await;
    }
    for name in MACHINES {
        eventually(name, async || machine_status(world, name).await.ready == Some(true)).await;
    }
}

async fn deleted(world: &World) {
    let machines = world.api::<OpenStackMachine>();
    for name in MACHINES {
        machines.delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in MACHINES {
        eventually(name, async || machines.get_opt(name).await.unwrap().is_none()).await;
        world.delete::<hangar_api::cluster::v1beta2::Machine>(name).await;
    }
    world.delete::<OpenStackCluster>("demo").await;
    world.delete::<hangar_api::cluster::v1beta2::Cluster>("demo").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs an OpenStack of which nobody else changes the project: docs/contributing.md"]
async fn a_real_cloud_keeps_nothing_twice_and_nothing_behind_though_the_manager_dies() {
    let real = Real::given();
    let world = World::new("real").await;
    world.secret("cloud", json!({"clouds.yaml": real.clouds_yaml})).await;
    let data = json!({"value": "#cloud-config\nruncmd: [hello]\n", "format": "cloud-config"});
    world.secret("worker-data", data).await;
    let before = real.held().await;
    let mut deaths = 0;
    let mut round = 0;
    while deaths < real.deaths || round == 0 {
        round += 1;
        let story = async {
            made(&world, &real).await;
            real.holds_each_machine_once(&world).await;
            println!("round {round}: three machines run");
            deleted(&world).await;
        };
        tokio::pin!(story);
        loop {
            let running = Running::settling(BOTH, Vec::new(), &Seen::new(), SETTLING);
            let life = Duration::from_millis(rand::random_range(300..9000));
            tokio::select! {
                () = &mut story => break,
                () = tokio::time::sleep(life), if deaths < real.deaths => {
                    deaths += 1;
                    println!("round {round}: death {deaths} after {life:?}");
                }
            }
            drop(running);
        }
        let after = real.held().await;
        assert_eq!(after, before, "round {round}");
        println!("round {round}: the project is as it was");
    }
}
