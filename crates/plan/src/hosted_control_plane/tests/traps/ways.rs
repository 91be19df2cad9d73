//! Traps about node ports, and about changing the way in of a control plane that lives.

use hangar_api::controlplane::v1alpha1::ExposureType;

use super::*;
use crate::hosted_control_plane::conditions::{
    endpoint_ready, routes_ready, settings_effective, workload_ready,
};
use crate::hosted_control_plane::exposure::{NodeFacts, SOME_NAMESPACES};
use crate::hosted_control_plane::names::WAY_ANNOTATION;

fn node(internal: &str, external: Option<&str>) -> NodeFacts {
    NodeFacts {
        is_ready: true,
        internal: vec![internal.parse().unwrap()],
        external: external.into_iter().map(|address| address.parse().unwrap()).collect(),
    }
}

fn by_node_port(nodes: Read<NodeFacts>) -> Observed {
    let mut observed = api_server_ready(&json!({"exposure": {"type": "NodePort"}}));
    for (read, name, port) in
        [(&mut observed.service, "https", 31000), (&mut observed.tunnel, "konnectivity", 31001)]
    {
        if let Read::One(service) = read {
            service.node_ports.insert(name.to_owned(), port);
        }
    }
    observed.ways.nodes = nodes;
    reach_tenant(&mut observed);
    settle(&mut observed);
    observed
}

fn endpoint(observed: &Observed) -> String {
    let endpoint = observed.control_plane.spec.settings.control_plane_endpoint.as_ref();
    endpoint.map(ToString::to_string).unwrap_or_default()
}

fn targets(observed: &Observed) -> Vec<String> {
    let slice = tenant_object(observed, "EndpointSlice", "kubernetes").unwrap();
    let endpoints = slice["endpoints"].as_array().unwrap().iter();
    endpoints.map(|endpoint| endpoint["addresses"][0].as_str().unwrap().to_owned()).collect()
}

#[test]
fn node_ports_take_the_addresses_of_nodes_that_are_ready() {
    let broken = NodeFacts { is_ready: false, ..node("10.0.0.1", None) };
    let mut observed = by_node_port(Read::found([node("10.0.0.9", None), node("10.0.0.5", None), broken]));
    assert_eq!(endpoint(&observed), "10.0.0.5:31000");
    assert_eq!(targets(&observed), ["10.0.0.5", "10.0.0.9"]);
    assert_eq!(condition_status(&checked(&observed), endpoint_ready::TYPE), "True Published");
    // A Node that comes is a target; who was published stays.
    observed.ways.nodes =
        Read::found([node("10.0.0.9", None), node("10.0.0.5", None), node("10.0.0.2", None)]);
    assert_eq!(targets(&observed), ["10.0.0.2", "10.0.0.5", "10.0.0.9"]);
    assert_eq!((endpoint(&observed).as_str(), mints(&checked(&observed))), ("10.0.0.5:31000", Vec::new()));
    observed.ways.nodes = Read::found([node("10.0.0.9", None)]);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, endpoint_ready::TYPE), "False AddressChanged");
    assert_eq!(targets(&observed), ["10.0.0.9"]);
    // Which of its addresses is preferred does not matter to one that was published.
    observed.ways.nodes = Read::One(node("10.0.0.5", Some("203.0.113.5")));
    assert_eq!(condition_status(&checked(&observed), endpoint_ready::TYPE), "True Published");
    let nodes = [node("10.0.0.9", Some("203.0.113.9")), node("10.0.0.5", Some("203.0.113.5"))];
    assert_eq!(endpoint(&by_node_port(Read::found(nodes.clone()))), "203.0.113.5:31000");
    // A Node that has no external address yet changes nothing for those who use the others'.
    let mut external = by_node_port(Read::found(nodes.clone()));
    external.ways.nodes = Read::found(nodes.iter().cloned().chain([node("10.0.0.2", None)]));
    assert_eq!(targets(&external), ["203.0.113.5", "203.0.113.9"]);
    let mixed = [nodes[0].clone(), node("10.0.0.5", None)];
    assert_eq!(endpoint(&by_node_port(Read::found(mixed))), "10.0.0.5:31000", "unless each has one");
}

#[test]
fn node_ports_without_nodes_say_what_is_missing() {
    let said = |nodes: Read<NodeFacts>| {
        let plan = checked(&by_node_port(nodes));
        let found = plan.status.conditions.iter().find(|found| found.type_ == endpoint_ready::TYPE).unwrap();
        assert_eq!((found.status.as_str(), found.reason.as_str()), ("False", "NoAddress"));
        (found.message.clone(), plan.wake)
    };
    assert!(said(Read::unknown(SOME_NAMESPACES)).0.contains("spec.exposure.nodePort.addresses"));
    assert!(said(Read::Absent).0.contains("a Node that is ready"));
    let (message, wake) = said(Read::unknown("the watch is broken"));
    assert!(message.contains("the watch is broken") && wake != Wake::OnChange, "{message}");
}

/// With the endpoint, in one write.
#[test]
fn the_way_in_is_recorded_with_the_endpoint() {
    let record = |observed: &Observed| -> Value {
        let all = observed.control_plane.metadata.annotations.clone().unwrap();
        serde_json::from_str(&all[WAY_ANNOTATION]).unwrap()
    };
    let mut observed = api_server_ready(&json!({}));
    let publish =
        checked(&observed).steps.iter().find(|step| is(step, "publish-endpoint", "control-plane")).cloned();
    observed.fold(&publish.unwrap(), &Outcome::Done);
    assert_eq!(endpoint(&observed), "192.0.2.10:6443");
    assert_eq!(record(&observed), json!({"type": "LoadBalancer", "isNameGiven": false}));
    let given = json!({"controlPlaneEndpoint": {"host": "api.example.org", "port": 6443}});
    assert_eq!(record(&all_ready(&given)), json!({"type": "LoadBalancer", "isNameGiven": true}));
    let address = json!({"controlPlaneEndpoint": {"host": "192.0.2.99", "port": 6443}});
    assert_eq!(record(&all_ready(&address)), json!({"type": "LoadBalancer", "isNameGiven": false}));
    // A record that somebody edited is not believed.
    let mut observed = all_ready(&json!({}));
    let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
    annotations.insert(WAY_ANNOTATION.to_owned(), "{}".to_owned());
    assert_eq!(condition_status(&checked(&observed), conditions::specification_valid::TYPE), "False Invalid");
}

/// Admission was away: nodes and kubeconfigs use what was published.
#[test]
fn another_way_in_is_not_taken_once_people_know_an_endpoint() {
    let mut observed = all_ready(&json!({}));
    let before = checked(&observed);
    let settings = &mut observed.control_plane.spec.settings;
    settings.exposure.get_or_insert_default().type_ = Some(ExposureType::ClusterIP);
    let plan = checked(&observed);
    assert_eq!(plan.objects, before.objects);
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    assert_eq!(condition_status(&plan, settings_effective::TYPE), "False Ignored");
    let found = plan.status.conditions.iter().find(|found| found.type_ == settings_effective::TYPE).unwrap();
    assert!(found.message.contains("spec.exposure.type: it stays LoadBalancer"), "{}", found.message);
    assert_eq!(condition_status(&plan, endpoint_ready::TYPE), "True Published");
    // Before that it is.
    let mut observed = etcd_started(&json!({}));
    observed.control_plane.spec.settings.exposure.get_or_insert_default().type_ =
        Some(ExposureType::ClusterIP);
    assert_eq!(object(&checked(&observed), "Service", "api-demo")["spec"]["type"], "ClusterIP");
}

#[test]
fn under_a_name_that_people_gave_the_way_in_changes() {
    let host = "api.team.clusters.example.com";
    let mut spec = through_gateway();
    spec["controlPlaneEndpoint"] = json!({"host": host, "port": 443});
    let mut observed = api_server_ready(&spec);
    see_gateway(&mut observed, &gateway());
    settle(&mut observed);
    accept_routes(&mut observed);
    assert_eq!(condition_status(&checked(&observed), routes_ready::TYPE), "True Accepted");
    observed.control_plane.spec.settings.gateway = None;
    let plan = checked(&observed);
    let gone: Vec<String> = plan
        .steps
        .iter()
        .filter(|step| is(step, "delete", "management"))
        .map(|step| flow::Identified::id(step).name)
        .collect();
    assert_eq!(gone.len(), 2, "{gone:?}");
    assert!(gone.iter().all(|name| name.contains("TLSRoute")), "{gone:?}");
    assert_eq!(object(&plan, "Service", "konnectivity-demo")["spec"]["type"], "LoadBalancer");
    assert_eq!(object(&plan, "Service", "api-demo")["spec"]["ports"][0]["port"], 443, "as it was promised");
    settle(&mut observed);
    reach_tenant(&mut observed);
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, routes_ready::TYPE), "", "no routes, no condition");
    assert_eq!(endpoint(&observed), format!("{host}:443"));
    let record = &observed.control_plane.metadata.annotations.as_ref().unwrap()[WAY_ANNOTATION];
    assert_eq!(record, r#"{"isNameGiven":true,"type":"LoadBalancer"}"#);
    assert_eq!(condition_status(&plan, workload_ready::TYPE), "True Applied");
    assert_eq!(condition_status(&plan, settings_effective::TYPE), "");
}
