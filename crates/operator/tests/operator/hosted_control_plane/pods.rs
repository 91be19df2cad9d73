//! Pods of a control plane with everything that can be said of where they run, and their number by the scale subresource,
//! which is what an autoscaler reads and writes.

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::actor::Actor;
use super::world::{Manager, World, eventually, spec, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_are_placed_as_asked_for_and_their_number_follows_the_scale() {
    let _turn = turn().await;
    let world = World::new("pods").await;
    let actor = Actor::start(&world);
    let mut wanted = spec();
    wanted["replicas"] = json!(2);
    wanted["imagePullSecrets"] = json!([{"name": "mirror"}]);
    wanted["placement"] = json!({
        "nodeSelector": {"topology.kubernetes.io/zone": "a"},
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]},
            ]}},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}},
            ]},
        },
        "topologySpread": [{"topologyKey": "example.org/rack", "whenUnsatisfiable": "DoNotSchedule"}],
    });
    world.apply(wanted).await;
    let manager = Manager::start();
    actor.run("etcd");
    let deployments = world.api::<Deployment>();
    eventually("the API server is there", async || {
        deployments.get_opt("demo-apiserver").await.unwrap().is_some()
    })
    .await;

    // The API server took all of it, for both kinds of workloads, and pods were made.
    let set = world.api::<StatefulSet>().get("demo-etcd").await.unwrap().spec.unwrap().template.spec.unwrap();
    let pod = deployments.get("demo-apiserver").await.unwrap().spec.unwrap().template.spec.unwrap();
    for pod in [set, pod] {
        assert_eq!(pod.image_pull_secrets.unwrap()[0].name, "mirror");
        assert_eq!(pod.node_selector.unwrap()["topology.kubernetes.io/zone"], "a");
        let affinity = pod.affinity.unwrap();
        assert!(affinity.node_affinity.is_some() && affinity.pod_anti_affinity.is_some());
        let keys: Vec<String> =
            pod.topology_spread_constraints.unwrap().into_iter().map(|one| one.topology_key).collect();
        assert_eq!(keys, ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.org/rack"]);
    }

    let api = world.api::<HostedControlPlane>();
    let scaled = |replicas: i32| Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let parameters = PatchParams::default();
    eventually("an autoscaler finds the pods", async || {
        let scale = api.get_scale("demo").await.unwrap();
        let status = scale.status.unwrap_or_default();
        let Some(selector) = status.selector.filter(|_| status.replicas == 2) else { return false };
        let found = world.api::<Pod>().list(&ListParams::default().labels(&selector)).await.unwrap();
        found.items.len() == 2 && scale.spec.unwrap_or_default().replicas == Some(2)
    })
    .await;
    api.patch_scale("demo", &parameters, &scaled(3)).await.unwrap();
    eventually("the Deployment follows", async || {
        deployments.get("demo-apiserver").await.unwrap().spec.unwrap().replicas == Some(3)
    })
    .await;
    eventually("all are counted", async || {
        api.get_scale("demo").await.unwrap().status.unwrap_or_default().replicas == 3
    })
    .await;
    // A control plane without an API server would be none.
    let refused = api.patch_scale("demo", &parameters, &scaled(0)).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 422), "{refused}");
    manager.stop().await;
}
