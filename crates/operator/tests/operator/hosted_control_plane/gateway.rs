//! Control planes behind a Gateway, with the Gateway API's real CRDs. The test acts for the Gateway's controller.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::world::{BED, Manager, World, eventually, spec, turn};

const DEFINITIONS: &str = include_str!("fixtures/gateway-api.yaml");
const ROUTES: &str = "tlsroutes.gateway.networking.k8s.io";
const CLASS: &str = "example";

fn resource(kind: &str, version: &str) -> ApiResource {
    let group = "gateway.networking.k8s.io".to_owned();
    let plural = if kind == "GatewayClass" {
        "gatewayclasses".to_owned()
    } else {
        format!("{}s", kind.to_lowercase())
    };
    ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural,
    }
}

fn definitions() -> Vec<CustomResourceDefinition> {
    serde_saphyr::from_multiple(DEFINITIONS).unwrap()
}

/// Installs the CRDs, unless they are there, with these versions of routes served.
pub(crate) async fn install(world: &World, served: &[&str]) {
    let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    for mut definition in definitions() {
        if definition.name_any() == ROUTES {
            // The release after this one has v1 with the same fields.
            let mut newest = definition.spec.versions.last().unwrap().clone();
            "v1".clone_into(&mut newest.name);
            newest.storage = false;
            definition.spec.versions.push(newest);
            for version in &mut definition.spec.versions {
                version.served = served.contains(&version.name.as_str());
            }
        }
        let mut body = serde_json::to_value(&definition).unwrap();
        body["apiVersion"] = json!("apiextensions.k8s.io/v1");
        body["kind"] = json!("CustomResourceDefinition");
        let parameters = PatchParams::apply("test").force();
        api.patch(&definition.name_any(), &parameters, &Patch::Apply(body)).await.unwrap();
    }
    for (kind, version) in [("GatewayClass", "v1"), ("Gateway", "v1"), ("TLSRoute", served[0])] {
        let all: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource(kind, version));
        eventually("it is served", async || all.list(&ListParams::default()).await.is_ok()).await;
    }
}

async fn uninstall(world: &World) {
    let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    for definition in definitions() {
        let name = definition.name_any();
        let _ = api.delete(&name, &DeleteParams::default()).await;
        eventually("the CRD is gone", async || api.get_opt(&name).await.unwrap().is_none()).await;
    }
}

fn conditions(types: &[&str], generation: i64) -> Value {
    let of = |type_: &&str| {
        json!({"type": type_, "status": "True", "reason": type_, "message": "", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-02T03:04:05Z"})
    };
    types.iter().map(of).collect()
}

/// A Gateway in a namespace of its own, without a word of its controller.
pub(crate) struct Shared {
    pub(crate) namespace: String,
    world: World,
}

impl Shared {
    pub(crate) async fn create(world: &World, allowed: Value) -> Self {
        let namespace = tokio::task::block_in_place(|| world.bed.namespace("gateways"));
        let shared = Self { namespace, world: world.clone() };
        let class: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": CLASS},
            "spec": {"controllerName": "example.org/test"},
        }))
        .unwrap();
        // An earlier test may have left it.
        let _ = shared.classes().create(&PostParams::default(), &class).await;
        let gateway: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "shared"},
            "spec": {"gatewayClassName": CLASS, "listeners": [{
                "name": "tls", "protocol": "TLS", "port": 443, "hostname": "*.clusters.example.com",
                "tls": {"mode": "Passthrough"}, "allowedRoutes": {"namespaces": allowed},
            }]},
        }))
        .unwrap();
        shared.gateways().create(&PostParams::default(), &gateway).await.unwrap();
        shared
    }

    fn classes(&self) -> Api<DynamicObject> {
        Api::all_with(self.world.client.clone(), &resource("GatewayClass", "v1"))
    }

    fn gateways(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.world.client.clone(), &self.namespace, &resource("Gateway", "v1"))
    }

    async fn accept_class(&self) {
        let status = json!({"status": {"conditions": conditions(&["Accepted"], 1)}});
        self.classes().patch_status(CLASS, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    async fn accept(&self) {
        let generation = self.gateways().get("shared").await.unwrap().metadata.generation.unwrap();
        let status = json!({"status": {
            "addresses": [{"type": "IPAddress", "value": "192.0.2.80"}],
            "conditions": conditions(&["Accepted", "Programmed"], generation),
        }});
        self.gateways().patch_status("shared", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    async fn allow(&self, namespaces: Value) {
        let mut gateway = self.gateways().get("shared").await.unwrap();
        gateway.data["spec"]["listeners"][0]["allowedRoutes"]["namespaces"] = namespaces;
        self.gateways().replace("shared", &PostParams::default(), &gateway).await.unwrap();
        self.accept().await;
    }

    /// What spec.gateway says.
    pub(crate) fn reference(&self) -> Value {
        json!({"namespace": self.namespace, "name": "shared"})
    }

    /// Acts for the controller: accepts everything.
    pub(crate) async fn serve(&self, version: &'static str) -> Serving {
        self.accept_class().await;
        self.accept().await;
        let (world, namespace) = (self.world.clone(), self.namespace.clone());
        Serving(tokio::spawn(async move {
            loop {
                // Routes come and go between a list and a patch.
                let _ = answer(&world, &namespace, version).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))
    }
}

/// Ends when it is dropped.
pub(crate) struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn answer(world: &World, namespace: &str, version: &str) -> kube::Result<()> {
    let routes = routes(world, version);
    for route in routes.list(&ListParams::default()).await? {
        if route.data.pointer("/status/parents/0").is_some() {
            continue;
        }
        let status = json!({"status": {"parents": [{
            "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": namespace,
                "name": "shared", "sectionName": "tls"},
            "controllerName": "example.org/test",
            "conditions": conditions(&["Accepted", "ResolvedRefs"], route.metadata.generation.unwrap_or_default()),
        }]}});
        routes.patch_status(&route.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    Ok(())
}

fn routes(world: &World, version: &str) -> Api<DynamicObject> {
    Api::namespaced_with(world.client.clone(), &world.namespace, &resource("TLSRoute", version))
}

/// Names of the routes there are; none without the Gateway API.
pub(crate) async fn route_names(world: &World) -> Vec<String> {
    match routes(world, "v1alpha3").list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        found => found.unwrap().iter().map(kube::ResourceExt::name_any).collect(),
    }
}

async fn says(world: &World, expected: &str) {
    let mut last = String::new();
    for _ in 0..6000 {
        let (status, reason, message) = world.condition("RoutesReady").await;
        last = format!("{status} {reason}: {message}");
        if format!("{status} {reason}") == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never {expected}, but {last}");
}

/// The Gateway API comes, changes its versions and goes while the manager runs; each time the condition says how it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn routes_follow_the_gateway_and_the_versions_that_are_served() {
    let _turn = turn().await;
    let world = World::new("gateway").await;
    uninstall(&world).await;
    let namespace = tokio::task::block_in_place(|| BED.namespace("none"));
    let mut wanted = spec();
    wanted["gateway"] = json!({"namespace": namespace, "name": "shared"});
    world.apply(wanted).await;
    let manager = Manager::start();
    says(&world, "False NoGatewayAPI").await;

    install(&world, &["v1alpha2"]).await;
    says(&world, "False NoGateway").await;
    let shared = Shared::create(&world, json!({"from": "Same"})).await;
    let gateway = json!({"spec": {"gateway": shared.reference()}});
    let api = world.api::<hangar_api::controlplane::v1alpha1::HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(&gateway)).await.unwrap();
    says(&world, "False NotAllowed").await;
    shared
        .allow(json!({"from": "Selector", "selector": {"matchLabels": {"hangar.test/tier": "gold"}}}))
        .await;
    eventually("the selector is seen", async || {
        world.condition("RoutesReady").await.2.contains("selector does not select")
    })
    .await;
    let labels = json!({"metadata": {"labels": {"hangar.test/tier": "gold"}}});
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.patch(&world.namespace, &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    says(&world, "False ClassNotAccepted").await;
    shared.accept_class().await;
    says(&world, "False NotAnswered").await;
    let serving = shared.serve("v1alpha2").await;
    says(&world, "True Accepted").await;
    let host = format!("demo.{}.clusters.example.com", world.namespace);
    eventually("the endpoint is published", async || {
        let endpoint = world.control_plane().await.spec.settings.control_plane_endpoint;
        endpoint.is_some_and(|endpoint| endpoint.to_string() == format!("{host}:443"))
    })
    .await;
    let route = routes(&world, "v1alpha2").get("konnectivity-demo").await.unwrap();
    assert_eq!(route.data["spec"]["hostnames"], json!([format!("konnectivity.{host}")]));
    manager.rest().await;
    drop(serving);

    // Another version is served, and the former no longer: routes are read and mended through it.
    install(&world, &["v1"]).await;
    let serving = shared.serve("v1").await;
    let uid = routes(&world, "v1").get("api-demo").await.unwrap().uid();
    eventually("a deleted route comes back", async || {
        let found = routes(&world, "v1").get_opt("api-demo").await.unwrap();
        if found.as_ref().is_some_and(|found| found.uid() == uid) {
            let _ = routes(&world, "v1").delete("api-demo", &DeleteParams::default()).await;
        }
        found.is_some_and(|found| found.uid() != uid)
    })
    .await;
    says(&world, "True Accepted").await;

    // The way in stays: there is no webhook here that could refuse.
    let other = json!({"spec": {"gateway": null}});
    api.patch("demo", &PatchParams::default(), &Patch::Merge(&other)).await.unwrap();
    eventually("it is said that the way in stays", async || {
        world.condition("SettingsEffective").await.2.contains("it stays Gateway")
    })
    .await;
    manager.rest().await;
    assert_eq!(routes(&world, "v1").list(&ListParams::default()).await.unwrap().items.len(), 2);
    api.patch("demo", &PatchParams::default(), &Patch::Merge(&gateway)).await.unwrap();
    says(&world, "True Accepted").await;
    drop(serving);
    uninstall(&world).await;
    says(&world, "False NoGatewayAPI").await;
    manager.stop().await;
}

/// Nodes of the management cluster give their addresses to control planes that name none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_ports_use_the_addresses_of_nodes() {
    use k8s_openapi::api::core::v1::Node;
    let _turn = turn().await;
    let world = World::new("nodes").await;
    let nodes: Api<Node> = Api::all(world.client.clone());
    let ready = async |name: &str, address: &str| {
        let node: Node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }});
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    };
    let mut wanted = spec();
    wanted["exposure"] = json!({"type": "NodePort"});
    world.apply(wanted).await;
    let manager = Manager::start();
    eventually("a Node is waited for", async || {
        world.condition("EndpointReady").await.2.contains("a Node that is ready")
    })
    .await;
    ready("way-in-a", "10.9.0.1").await;
    eventually("its address is published", async || {
        let endpoint = world.control_plane().await.spec.settings.control_plane_endpoint;
        endpoint.is_some_and(|endpoint| endpoint.host == "10.9.0.1" && endpoint.port >= 30000)
    })
    .await;
    ready("way-in-b", "10.9.0.2").await;
    nodes.delete("way-in-a", &DeleteParams::default()).await.unwrap();
    eventually("the lost address is said", async || {
        world.condition("EndpointReady").await.1 == "AddressChanged"
    })
    .await;
    nodes.delete("way-in-b", &DeleteParams::default()).await.unwrap();
    manager.stop().await;
}
