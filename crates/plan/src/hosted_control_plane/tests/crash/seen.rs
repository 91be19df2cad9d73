//! What is seen of the world: facts as the edge would make them.

use serde_json::json;

use super::super::super::exposure::{NodeFacts, RouteFacts};
use super::super::super::*;
use super::super::fixture::{ADDRESS, accept_routes, created, gateway, listed, pod, see_gateway, workload};
use super::world::Clusters;
use crate::flow::Read;

impl Clusters {
    pub(super) fn workload(&self, kind: &str, name: &str) -> Read<WorkloadFacts> {
        let identity = Self::identity(kind, name);
        let Some((_, object)) = self.objects.get(&identity) else { return Read::Absent };
        let desired = i32::try_from(object.data["spec"]["replicas"].as_i64().unwrap()).unwrap();
        let ready = if self.running.contains(&identity) { desired } else { 0 };
        let version = self.template(kind, name).unwrap();
        let mut facts = WorkloadFacts {
            is_deleting: self.deleting.contains(&identity),
            ..workload(name, desired, ready, &version)
        };
        if name == "demo-apiserver" && self.stuck.is_some() {
            (facts.existing, facts.updated) = (desired + 1, 1);
        }
        Read::One(facts)
    }

    /// The version in the template of a workload.
    pub(super) fn template(&self, kind: &str, name: &str) -> Option<String> {
        let (_, object) = self.objects.get(&Self::identity(kind, name))?;
        let labels = &object.data["spec"]["template"]["metadata"]["labels"];
        Some(labels[names::VERSION_LABEL].as_str().unwrap().to_owned())
    }

    pub(super) fn replicas(&self, kind: &str, name: &str) -> usize {
        let (_, object) = &self.objects[&Self::identity(kind, name)];
        usize::try_from(object.data["spec"]["replicas"].as_u64().unwrap()).unwrap()
    }

    pub(super) fn pods(&self, observed: &mut Observed) {
        let member = |(ordinal, version): (&i32, &String)| {
            let name = format!("demo-etcd-{ordinal}");
            let uid = format!("uid of {name} on {version}");
            PodFacts { uid, is_ready: true, ..pod(&name, version) }
        };
        observed.etcd_pods = Read::found(self.members.iter().map(member));
        if !self.members.is_empty() {
            listed(observed, 3, 0);
        }
        for list in observed.etcd_list.iter_mut() {
            let runs = |ordinal: &i32| self.members.contains_key(ordinal);
            list.told.retain(|name, _| {
                name.rsplit('-').next().unwrap().parse().is_ok_and(|ordinal| runs(&ordinal))
            });
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

    pub(super) fn service(&self, name: &str, address: &str) -> Read<ServiceFacts> {
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

    pub(super) fn route(&self, name: &str) -> Read<RouteFacts> {
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

    pub(super) fn ways(&self, observed: &mut Observed) {
        observed.ways.nodes = Read::Absent;
        see_gateway(observed, &gateway());
        (observed.ways.route, observed.ways.tunnel_route) =
            (self.route("api-demo"), self.route("konnectivity-demo"));
        if self.is_exposed {
            let internal = vec!["10.0.0.5".parse().unwrap()];
            observed.ways.nodes = Read::One(NodeFacts { is_ready: true, internal, external: Vec::new() });
            if exposure::needs(observed).name.is_some() {
                observed.ways.resolved = Read::One(ADDRESS.parse().unwrap());
            }
        } else {
            observed.ways.gateway = Read::Absent;
        }
    }
}
