//! Traps about Gateways: where routes are attached, what they lead to, and what is said when something is wrong.

use hangar_api::contract::Endpoint;

use super::*;
use crate::hosted_control_plane::conditions::{available, endpoint_ready, routes_ready, settings_effective};
use crate::hosted_control_plane::exposure::{NamespaceFacts, RouteApi, RouteVersion, SOME_NAMESPACES};

const HOST: &str = "demo.team.clusters.example.com";

/// Served through a Gateway as it should be, with more in the specification.
fn served(more: &Value) -> Observed {
    let mut spec = through_gateway();
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut observed = api_server_ready(&spec);
    see_gateway(&mut observed, &gateway());
    observed.controller_manager = Read::One(workload("controller-manager", 1, 1, "v1.34.10"));
    observed.scheduler = Read::One(workload("scheduler", 1, 1, "v1.34.10"));
    settle(&mut observed);
    accept_routes(&mut observed);
    reach_tenant(&mut observed);
    settle(&mut observed);
    reach_tenant(&mut observed);
    settle(&mut observed);
    observed
}

fn message(plan: &Plan) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == routes_ready::TYPE);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

fn routes(plan: &Plan) -> Vec<String> {
    kinds(plan, "TLSRoute")
}

#[test]
fn everybody_comes_in_through_the_gateway_and_pods_beside_it() {
    let observed = served(&json!({}));
    let plan = checked(&observed);
    for type_ in [routes_ready::TYPE, available::TYPE, endpoint_ready::TYPE, conditions::workload_ready::TYPE]
    {
        assert!(condition_status(&plan, type_).starts_with("True"), "{type_}: {:?}", plan.status.conditions);
    }
    assert_eq!(condition_status(&plan, settings_effective::TYPE), "");
    let objects = plan.objects.iter().filter(|object| {
        ["TLSRoute", "Service"].contains(&ObjectIdentity::of(object).kind.as_str())
            && ["api-demo", "konnectivity-demo"].contains(&ObjectIdentity::of(object).name.as_str())
    });
    let objects: Vec<Value> = objects.map(|object| serde_json::to_value(object).unwrap()).collect();
    insta::assert_snapshot!("through_a_gateway", golden::documents(objects));
    let endpoint = observed.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
    assert_eq!(endpoint, Endpoint { host: HOST.to_owned(), port: 443 });
    let slice = tenant_object(&observed, "EndpointSlice", "kubernetes").unwrap();
    assert_eq!(slice["endpoints"][0]["addresses"][0], ADDRESS, "pods name no host");
    assert_eq!(slice["ports"][0]["port"], 6443);
    let agent = tenant_object(&observed, "Deployment", "konnectivity-agent").unwrap().to_string();
    assert!(agent.contains(&format!("--proxy-server-host=konnectivity.{HOST}")), "{agent}");
    assert!(agent.contains("--proxy-server-port=443") && !agent.contains("hostAliases"), "{agent}");
    let info = tenant_object(&observed, "ConfigMap", "cluster-info").unwrap().to_string();
    assert!(info.contains(&format!("https://{HOST}:443")), "{info}");
}

#[test]
fn certificates_have_the_names_from_the_start_and_keep_them_without_the_gateway() {
    let mut observed = created(&through_gateway());
    see_gateway(&mut observed, &gateway());
    settle(&mut observed);
    let mut names = |material| {
        let facts = observed.secrets.insert(material, Read::Absent).unwrap();
        let found = checked(&observed).steps.iter().find_map(|step| match step {
            Step::Own(OwnStep::Mint(mint)) if mint.material == material => mint.content.intent().cloned(),
            _ => None,
        });
        observed.secrets.insert(material, facts);
        found.unwrap().dns_names
    };
    assert!(names(Material::ApiServer).contains(HOST));
    assert!(names(Material::KonnectivityServer).contains(&format!("konnectivity.{HOST}")));
    // Once it is published, neither a Gateway that is gone nor one that cannot be read takes a name away.
    let mut observed = served(&json!({}));
    for gone in [Read::Absent, Read::unknown("the watch is broken")] {
        observed.ways.gateway = gone;
        let plan = checked(&observed);
        assert_eq!(mints(&plan), []);
        assert_eq!(routes(&plan), [""; 0], "what is there stays as it is");
        assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    }
    assert_eq!(condition_status(&checked(&observed), available::TYPE), "Unknown NotReadable");
}

/// Each with the reason and with a part of the message.
#[test]
fn what_is_wrong_with_a_gateway_is_said() {
    fn listener(field: &str, value: Value) -> Value {
        let mut gateway = gateway();
        gateway["spec"]["listeners"][1][field] = value;
        gateway
    }
    let from = |namespaces: Value| listener("allowedRoutes", json!({"namespaces": namespaces}));
    let selector = json!({"from": "Selector", "selector": {"matchLabels": {"tier": "gold"}}});
    let mut unanswered = gateway();
    unanswered["status"]["conditions"] = json!([{"type": "Accepted", "status": "Unknown", "reason": "Pending", "message": "Waiting for controller"}]);
    let mut refused = gateway();
    refused["status"]["conditions"][0] = json!({"type": "Accepted", "status": "False", "reason": "Invalid", "message": "no\nsuch \u{1b}[31mthing"});
    let mut without_address = gateway();
    without_address["status"]["addresses"] = json!([]);
    without_address["status"]["conditions"][1]["status"] = json!("False");
    let mut empty = gateway();
    empty["spec"]["listeners"] = json!([]);
    let rows: Vec<(Value, &str, &str)> = vec![
        (empty, "NoListener", "a listener of Gateway gateways/shared"),
        (
            listener("protocol", json!("HTTPS")),
            "NotTLS",
            "listener web of Gateway gateways/shared has protocol HTTP",
        ),
        (
            listener("tls", json!({"mode": "Terminate"})),
            "NotPassthrough",
            "tls.mode Passthrough of listener tls",
        ),
        (listener("tls", Value::Null), "NotPassthrough", "listener tls"),
        (listener("hostname", json!("api.example.com")), "NoWildcard", "listener tls"),
        (listener("hostname", Value::Null), "NoWildcard", "*.clusters.example.com"),
        (listener("hostname", json!("*.Not A Name")), "NoWildcard", "listener tls"),
        (listener("allowedRoutes", Value::Null), "NotAllowed", "the Gateway's own namespace only"),
        (from(json!({"from": "Same"})), "NotAllowed", "to admit namespace team"),
        (from(json!({"from": "None"})), "NotAllowed", "they admit no namespace"),
        (from(selector.clone()), "NotAllowed", "their selector does not select its labels"),
        (
            listener(
                "allowedRoutes",
                json!({"namespaces": {"from": "All"}, "kinds": [{"kind": "HTTPRoute"}]}),
            ),
            "NotAllowed",
            "to admit TLSRoute",
        ),
        (unanswered, "NotAnswered", "Pending: Waiting for controller"),
        (refused, "GatewayNotAccepted", "Invalid: no such [31mthing"),
        (without_address, "NoGatewayAddress", "an address of Gateway gateways/shared"),
    ];
    for (gateway, reason, words) in rows {
        let mut observed = api_server_ready(&through_gateway());
        see_gateway(&mut observed, &gateway);
        observed.ways.namespace = Read::One(NamespaceFacts::default());
        settle(&mut observed);
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, routes_ready::TYPE), format!("False {reason}"), "{words}");
        assert!(message(&plan).contains(words), "{reason}: {}", message(&plan));
        assert_eq!(condition_status(&plan, available::TYPE), "False NoEndpoint", "{reason}");
        assert_eq!(kinds(&plan, "StatefulSet"), ["demo-etcd"], "it stops nothing else");
    }
    // A selector that selects, by both of its ways.
    let expressions = json!({"from": "Selector", "selector": {"matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["gold", "silver"]}, {"key": "closed", "operator": "DoesNotExist"},
    ]}});
    for selector in [selector, expressions] {
        let mut observed = api_server_ready(&through_gateway());
        see_gateway(&mut observed, &from(selector));
        let labels = [("tier".to_owned(), "gold".to_owned())].into();
        observed.ways.namespace = Read::One(NamespaceFacts { labels });
        assert_eq!(routes(&checked(&observed)), ["api-demo", "konnectivity-demo"]);
        observed.ways.namespace = Read::unknown("the watch is broken");
        assert_eq!(condition_status(&checked(&observed), routes_ready::TYPE), "Unknown NotReadable");
    }
}

#[test]
fn what_is_missing_around_a_gateway_is_said() {
    type Change = fn(&mut Observed);
    let rows: [(Change, &str, &str); 7] = [
        (|observed| observed.ways.route_api = Read::Absent, "False NoGatewayAPI", "TLSRoute"),
        (
            |observed| observed.ways.route_api = Read::One(RouteApi { version: None }),
            "False NoGatewayAPI",
            "none of the versions v1, v1alpha3 and v1alpha2",
        ),
        (
            |observed| observed.ways.route_api = Read::unknown(SOME_NAMESPACES),
            "False OutOfReach",
            "some namespaces",
        ),
        (|observed| observed.ways.route_api = Read::unknown("no rights"), "Unknown NotReadable", "no rights"),
        (|observed| observed.ways.gateway = Read::Absent, "False NoGateway", "Gateway gateways/shared"),
        (|observed| observed.ways.class = Read::Absent, "False ClassNotAccepted", "GatewayClass example"),
        (
            |observed| observed.ways.class.iter_mut().for_each(|class| class.accepted = None),
            "False ClassNotAccepted",
            "no controller says",
        ),
    ];
    for (change, expected, words) in rows {
        let mut observed = api_server_ready(&through_gateway());
        see_gateway(&mut observed, &gateway());
        change(&mut observed);
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, routes_ready::TYPE), expected, "{words}");
        assert!(message(&plan).contains(words), "{expected}: {}", message(&plan));
    }
}

#[test]
fn what_a_controller_says_of_a_route_is_repeated_and_bounded() {
    let verdict = |type_: &str, status: &str, generation: i64| {
        json!({"type": type_, "status": status, "reason": "Why", "message": "x".repeat(100_000),
            "observedGeneration": generation})
    };
    for (conditions, reason) in [
        (json!([]), "NotAnswered"),
        (json!([verdict("Accepted", "Unknown", 1)]), "NotAnswered"),
        (json!([verdict("Accepted", "False", 1)]), "NotAccepted"),
        (json!([verdict("Accepted", "True", 1), verdict("ResolvedRefs", "False", 1)]), "NotResolved"),
    ] {
        let mut observed = served(&json!({}));
        answer_routes(&mut observed, &conditions);
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, routes_ready::TYPE), format!("False {reason}"));
        assert!(message(&plan).len() < 700, "{}", message(&plan).len());
        assert_eq!(condition_status(&plan, available::TYPE), "False NoEndpoint");
        assert_eq!(routes(&plan), ["api-demo", "konnectivity-demo"]);
    }
    let mut observed = served(&json!({}));
    observed.ways.tunnel_route = Read::Absent;
    assert_eq!(condition_status(&checked(&observed), routes_ready::TYPE), "False NotMade");
}

/// Trap: every edit of an object is for a moment one that its controller has not answered, and a Gateway is shared.
#[test]
fn an_edit_of_a_gateway_takes_nobody_s_way_in_until_its_controller_has_answered() {
    let mut edited = gateway();
    edited["metadata"]["generation"] = json!(3);
    let mut observed = served(&json!({}));
    see_gateway(&mut observed, &edited);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, routes_ready::TYPE), "True Accepted");
    assert_eq!(condition_status(&plan, available::TYPE), "True Available");
    // What the edit takes away needs no answer.
    let mut closed = edited.clone();
    closed["spec"]["listeners"][1]["allowedRoutes"]["namespaces"]["from"] = json!("None");
    see_gateway(&mut observed, &closed);
    assert_eq!(condition_status(&checked(&observed), available::TYPE), "False NoEndpoint");
    // Nothing but what was good is kept, and no longer than the answer takes.
    let said = |status: &str, about: i64| {
        let mut gateway = edited.clone();
        gateway["status"]["conditions"][0] =
            json!({"type": "Accepted", "status": status, "observedGeneration": about});
        let mut observed = served(&json!({}));
        see_gateway(&mut observed, &gateway);
        condition_status(&checked(&observed), routes_ready::TYPE)
    };
    assert_eq!(said("False", 2), "False NotAnswered");
    assert_eq!(said("Unknown", 2), "False NotAnswered");
    assert_eq!(said("False", 3), "False GatewayNotAccepted");
}

#[test]
fn the_named_listener_is_used_or_the_first_that_fits() {
    let mut two = gateway();
    let mut second = two["spec"]["listeners"][1].clone();
    second["name"] = json!("other");
    second["port"] = json!(8443);
    second["hostname"] = json!("*.other.example.com");
    two["spec"]["listeners"].as_array_mut().unwrap().push(second);
    let host = |more: Value| {
        let mut reference = json!({"namespace": "gateways", "name": "shared"});
        reference.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut observed = api_server_ready(&json!({"gateway": reference}));
        see_gateway(&mut observed, &two);
        settle(&mut observed);
        let plan = checked(&observed);
        let endpoint = observed.control_plane.spec.settings.control_plane_endpoint.clone();
        let said = condition_status(&plan, routes_ready::TYPE);
        endpoint.map_or(said, |endpoint| endpoint.to_string())
    };
    assert_eq!(host(json!({})), format!("{HOST}:443"));
    assert_eq!(host(json!({"sectionName": "other"})), "demo.team.other.example.com:8443");
    assert_eq!(host(json!({"sectionName": "other", "port": 6443})), "demo.team.other.example.com:6443");
    assert_eq!(host(json!({"sectionName": "web"})), "False NotTLS");
    assert_eq!(host(json!({"sectionName": "none"})), "False NoListener");
}

#[test]
fn routes_are_written_in_the_best_version() {
    let served = |versions: &[&str]| {
        let versions: Vec<String> = versions.iter().map(|&version| version.to_owned()).collect();
        RouteVersion::best(&versions).map(RouteVersion::as_str)
    };
    assert_eq!(served(&["v1alpha2", "v1alpha3", "v1"]), Some("v1"));
    assert_eq!(served(&["v1alpha2", "v1alpha3"]), Some("v1alpha3"));
    assert_eq!(served(&["v1beta1", "v1alpha2"]), Some("v1alpha2"));
    assert_eq!(served(&["v2", ""]), None);
    for version in [RouteVersion::V1, RouteVersion::V1Alpha3, RouteVersion::V1Alpha2] {
        let mut observed = api_server_ready(&through_gateway());
        see_gateway(&mut observed, &gateway());
        observed.ways.route_api = Read::One(RouteApi { version: Some(version) });
        let plan = checked(&observed);
        let route = plan.objects.iter().find(|object| ObjectIdentity::of(object).kind == "TLSRoute").unwrap();
        let expected = format!("gateway.networking.k8s.io/{}", version.as_str());
        assert_eq!(route.types.as_ref().unwrap().api_version, expected);
    }
}

/// Any other name under a shared wildcard could be another tenant's.
#[test]
fn names_that_people_give_have_routes_only_below_their_namespace() {
    let hostnames = |more: Value| {
        let observed = served(&more);
        let plan = checked(&observed);
        let said = condition_status(&plan, routes_ready::TYPE);
        let routes = plan.objects.iter().filter(|object| ObjectIdentity::of(object).name == "api-demo");
        let route = routes.into_iter().find(|object| ObjectIdentity::of(object).kind == "TLSRoute");
        (said, route.map(|route| route.data["spec"]["hostnames"].clone()))
    };
    let given = |host: &str| json!({"controlPlaneEndpoint": {"host": host, "port": 443}});
    let own = "api.team.clusters.example.com";
    assert_eq!(hostnames(given(own)), ("True Accepted".to_owned(), Some(json!([HOST, own]))));
    assert_eq!(
        hostnames(given("API.team.clusters.example.com")).1,
        Some(json!([HOST, own])),
        "names know no case"
    );
    let nodes = json!({"exposure": {"nodeHost": "nodes.team.clusters.example.com"}});
    assert_eq!(hostnames(nodes).1, Some(json!([HOST, "nodes.team.clusters.example.com"])));
    for host in [
        "prod.other.clusters.example.com",
        "clusters.example.com",
        "api.example.org",
        "xteam.clusters.example.com",
    ] {
        assert_eq!(hostnames(given(host)), ("False HostOutside".to_owned(), None), "{host}");
    }
    let message = message(&checked(&served(&given("api.example.org"))));
    assert!(
        message.contains("spec.controlPlaneEndpoint.host") && message.contains("team.clusters.example.com"),
        "{message}"
    );
    // No route leads an address, and none has to.
    assert_eq!(hostnames(given("192.0.2.7")).1, Some(json!([HOST])));
}

#[test]
fn a_name_that_is_too_long_is_said() {
    let mut observed = api_server_ready(&through_gateway());
    let mut long = gateway();
    let domain = vec!["x".repeat(60); 4].join(".");
    long["spec"]["listeners"][1]["hostname"] = json!(format!("*.{domain}"));
    see_gateway(&mut observed, &long);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, routes_ready::TYPE), "False NameTooLong");
    assert!(
        message(&plan).contains("253") && message(&plan).contains("a shorter name of the Cluster"),
        "{}",
        message(&plan)
    );
    assert_eq!(routes(&plan), [""; 0]);
}

#[test]
fn a_route_moves_to_a_gateway_that_takes_the_same_names_and_to_no_other() {
    let mut observed = served(&json!({}));
    observed.control_plane.spec.settings.gateway.as_mut().unwrap().name = "next".to_owned();
    let mut other = gateway();
    other["spec"]["listeners"][1]["hostname"] = json!("*.next.example.com");
    see_gateway(&mut observed, &other);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, routes_ready::TYPE), "False HostOutside");
    assert!(message(&plan).contains("*.clusters.example.com"), "{}", message(&plan));
    assert_eq!((routes(&plan), mints(&plan)), (Vec::new(), Vec::new()), "they stay where they are");
    see_gateway(&mut observed, &gateway());
    let plan = checked(&observed);
    assert_eq!(object(&plan, "TLSRoute", "api-demo")["spec"]["parentRefs"][0]["name"], "next");
    assert_eq!(
        condition_status(&plan, routes_ready::TYPE),
        "False NotAnswered",
        "the next one has said nothing yet"
    );
}
