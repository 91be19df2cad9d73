//! Kinds of other projects, with the CRDs that these projects publish: they come and go, and what is made of them follows.

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_parts::{Parts, Set};
use hangar_plan::neighbours::Neighbour;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::world::{BED, Manager, World, eventually, spec, turn};

const NAMES: [&str; 4] = ["demo-apiserver", "demo-controller-manager", "demo-etcd", "demo-scheduler"];
const NONE: [&str; 0] = [];

fn install(path: &str) {
    tokio::task::block_in_place(|| {
        let parts = Parts::from_env().unwrap();
        parts.ensure(&[Set::NeighbourCrds]).unwrap();
        let file = parts.files(Set::NeighbourCrds).unwrap().join(path);
        let text = std::fs::read_to_string(file).unwrap();
        BED.install([serde_saphyr::from_str::<CustomResourceDefinition>(&text).unwrap()]);
    });
}

async fn uninstall(world: &World, kind: Neighbour) {
    let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    api.delete(&kind.definition(), &DeleteParams::default()).await.unwrap();
}

fn api(world: &World, kind: Neighbour) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(kind.group(), kind.version(), kind.kind()),
        kind.plural(),
    );
    Api::namespaced_with(world.client.clone(), &world.namespace, &resource)
}

/// Names of all there are; none where there is no such kind.
async fn names(world: &World, kind: Neighbour) -> Vec<String> {
    let found = api(world, kind).list(&ListParams::default()).await;
    let mut names: Vec<String> =
        found.map(|all| all.iter().map(ResourceExt::name_any).collect()).unwrap_or_default();
    names.sort();
    names
}

/// What is shipped for Prometheus Operator, by its own schemas.
async fn shipped_files_are_accepted(world: &World) {
    install("prometheus-operator/prometheusrules.yaml");
    for (file, kind) in
        [("prometheus-rule.yaml", "PrometheusRule"), ("manager-pod-monitor.yaml", "PodMonitor")]
    {
        let path = format!("{}/../../deploy/monitoring/{file}", env!("CARGO_MANIFEST_DIR"));
        let mut object: DynamicObject =
            serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        object.metadata.namespace = Some(world.namespace.clone());
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("monitoring.coreos.com", "v1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), &world.namespace, &resource);
        let parameters = PatchParams { dry_run: true, ..PatchParams::apply("test") };
        api.patch(&object.name_any(), &parameters, &Patch::Apply(&object)).await.unwrap();
    }
    let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    api.delete("prometheusrules.monitoring.coreos.com", &DeleteParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_change_their_dialect_and_monitors_come_and_go() {
    let _turn = turn().await;
    let world = World::new("neighbours").await;
    let mut wanted = spec();
    wanted["monitoring"] = json!({"podMonitors": {"labels": {"release": "main"}, "interval": "30s"}});
    let provider = json!({"audiences": ["a"], "claimMappings": {"username": "claims.sub"}});
    wanted["oidcProviders"] = json!({"https://issuer.example.org": provider, "https://192.0.2.7": provider});
    world.apply(wanted).await;
    let manager = Manager::start();
    let policies = async || world.names::<NetworkPolicy>().await;
    let cilium = async || names(&world, Neighbour::CiliumNetworkPolicies).await;
    let monitors = async || names(&world, Neighbour::PodMonitors).await;
    eventually("there are NetworkPolicies", async || policies().await == NAMES).await;
    eventually("somebody is told that there are no PodMonitors", async || {
        world.condition("SettingsEffective").await.2.contains("spec.monitoring.podMonitors")
    })
    .await;

    // Cilium comes. No component is ever without a policy: one that is not of the old kind any more is of the new.
    install("cilium/ciliumnetworkpolicies.yaml");
    eventually("the dialect changes", async || {
        let (old, new) = (policies().await, cilium().await);
        assert!(NAMES.iter().all(|name| [&old, &new].iter().any(|all| all.iter().any(|one| one == name))));
        new == NAMES && old == NONE
    })
    .await;
    // What its schema does not know would have been refused; these two are what only Cilium has.
    let policy = api(&world, Neighbour::CiliumNetworkPolicies).get("demo-apiserver").await.unwrap();
    let egress = policy.data["spec"]["egress"].as_array().unwrap();
    assert!(egress.iter().any(|rule| rule["toFQDNs"] == json!([{"matchName": "issuer.example.org"}])));
    assert!(egress.iter().any(|rule| rule["toPorts"][0]["rules"]["dns"].is_array()), "{egress:?}");

    install("prometheus-operator/podmonitors.yaml");
    eventually("there are PodMonitors", async || monitors().await == NAMES).await;
    eventually("nobody is told any more", async || {
        !world.condition("SettingsEffective").await.2.contains("podMonitors")
    })
    .await;
    let monitor = api(&world, Neighbour::PodMonitors).get("demo-apiserver").await.unwrap();
    assert_eq!(monitor.labels()["release"], "main");
    let endpoint = &monitor.data["spec"]["podMetricsEndpoints"][0];
    assert_eq!(endpoint["interval"], "30s");
    assert_eq!(endpoint["tlsConfig"]["keySecret"], json!({"name": "demo-metrics", "key": "tls.key"}));

    shipped_files_are_accepted(&world).await;

    // Drift is put back.
    let changed = json!({"spec": {"ingress": null}});
    let policies_of_cilium = api(&world, Neighbour::CiliumNetworkPolicies);
    policies_of_cilium.patch("demo-etcd", &PatchParams::default(), &Patch::Merge(&changed)).await.unwrap();
    eventually("it is as it was", async || {
        policies_of_cilium.get("demo-etcd").await.unwrap().data["spec"]["ingress"].is_array()
    })
    .await;

    // Another manager finds all of it as it should be.
    manager.rest().await;
    manager.stop().await;
    let manager = Manager::start();
    manager.rest().await;
    assert_eq!(manager.writes(), NONE);

    let off = json!({"spec": {"monitoring": Value::Null}});
    let control_planes = world.api::<HostedControlPlane>();
    control_planes.patch("demo", &PatchParams::default(), &Patch::Merge(&off)).await.unwrap();
    eventually("PodMonitors go", async || monitors().await == NONE).await;

    // Cilium goes, and its policies with it.
    uninstall(&world, Neighbour::CiliumNetworkPolicies).await;
    uninstall(&world, Neighbour::PodMonitors).await;
    eventually("there are NetworkPolicies again", async || policies().await == NAMES).await;
    manager.stop().await;
}
