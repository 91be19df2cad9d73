//! An API server with a controller-manager and a scheduler, with the add-ons' objects, and functions that wait.

use std::net::Ipv4Addr;
use std::sync::OnceLock;
use std::time::Duration;

use hangar_host::addons::{
    AddonOptions, ApiServer, GatewayOptions, Images, LoadBalancerOptions, gateway, gateway_api, objects,
};
use hangar_parts::{Parts, Set};
use hangar_testbed::{Options, Testbed};
use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use serde_json::Value;

/// The testbed of these tests: volumes bind and pods are given nodes, but no kubelet runs them.
pub(crate) fn testbed() -> &'static Testbed {
    static BED: OnceLock<Testbed> = OnceLock::new();
    BED.get_or_init(|| Testbed::start(Options { controller_manager: true, scheduler: true }).unwrap())
}

/// Options as on a real host.
pub(crate) fn options() -> AddonOptions {
    AddonOptions {
        api_server: ApiServer { host: Ipv4Addr::new(100, 72, 0, 10), port: 6443 },
        pod_range: "10.244.0.0/16".parse().unwrap(),
        dns_address: Ipv4Addr::new(10, 96, 0, 10),
        resolver: Ipv4Addr::new(100, 72, 0, 10),
        load_balancer: LoadBalancerOptions {
            link: "eth0".to_owned(),
            first: Ipv4Addr::new(100, 72, 0, 201),
            last: Ipv4Addr::new(100, 72, 0, 250),
        },
        images: Images::default(),
        nodes: 1,
        gateway: Some(GatewayOptions {
            address: Ipv4Addr::new(100, 72, 0, 200),
            domain: gateway::DOMAIN.to_owned(),
        }),
    }
}

/// Everything that is applied, in order, with the Gateway API's own definitions first.
pub(crate) fn everything() -> Vec<Value> {
    let parts = Parts::from_env().unwrap();
    parts.ensure(&[Set::GatewayApi]).unwrap();
    let mut all = gateway_api(&parts.files(Set::GatewayApi).unwrap()).unwrap();
    all.extend(objects(&options()));
    all
}

/// Applies an object; the API server refuses fields it does not know. Waits for a kind that is just being added.
pub(crate) async fn apply(client: &Client, object: &Value) {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let types = object.types.clone().unwrap();
    let kind = kube::core::GroupVersionKind::try_from(&types).unwrap();
    let mut found = pinned_kind(client, &kind).await;
    for _ in 0..3000 {
        if found.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        found = pinned_kind(client, &kind).await;
    }
    let (resource, capabilities) = found.unwrap();
    let api: Api<DynamicObject> = match (&capabilities.scope, &object.metadata.namespace) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
        _ => Api::all_with(client.clone(), &resource),
    };
    let parameters = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("hangar-test").force()
    };
    let name = object.metadata.name.clone().unwrap();
    let applied = api.patch(&name, &parameters, &Patch::Apply(&object)).await;
    applied.unwrap_or_else(|error| panic!("{} {name}: {error}", types.kind));
}

/// Waits until a claim holds. The limit is only for a test that fails.
pub(crate) async fn eventually(what: &str, mut claim: impl AsyncFnMut() -> bool) {
    for _ in 0..15000 {
        if claim().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}
