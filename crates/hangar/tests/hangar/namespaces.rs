//! Tests a manager for some namespaces only: what it looks after, and what it may not even read.

use hangar_testbed::{Options, Testbed};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, Config, ResourceExt as _};
use serde_json::{Value, json};

use crate::installation::{Manager, conversion_works, eventually, install, try_install};

const CONTROL_PLANES: (&str, &str, &str) =
    ("controlplane.cluster.x-k8s.io", "v1alpha1", "HostedControlPlane");
const CLUSTERS: (&str, &str, &str) = ("cluster.x-k8s.io", "v1beta2", "Cluster");

fn api(client: &Client, namespace: &str, (group, version, kind): (&str, &str, &str)) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), namespace, &kind)
}

/// What a person applies; again if the API server does not trust the webhooks' certificate yet.
async fn apply(client: &Client, namespace: &str, kind: (&str, &str, &str), spec: Value) {
    let object = json!({
        "apiVersion": format!("{}/{}", kind.0, kind.1), "kind": kind.2,
        "metadata": { "name": "demo", "labels": { "cluster.x-k8s.io/cluster-name": "demo" } }, "spec": spec,
    });
    let parameters = PatchParams::apply("test").force();
    eventually("it is applied", async || {
        api(client, namespace, kind).patch("demo", &parameters, &Patch::Apply(&object)).await.is_ok()
    })
    .await;
}

async fn cluster(client: &Client, namespace: &str) {
    let reference = json!({ "apiGroup": CONTROL_PLANES.0, "kind": CONTROL_PLANES.2, "name": "demo" });
    let ranges = |range: &str| json!({ "cidrBlocks": [range] });
    let network = json!({ "services": ranges("10.96.0.0/16"), "pods": ranges("10.244.0.0/16") });
    apply(client, namespace, CLUSTERS, json!({ "controlPlaneRef": reference, "clusterNetwork": network }))
        .await;
    apply(client, namespace, CONTROL_PLANES, json!({ "version": "v1.34.10" })).await;
}

/// The manager's own view.
async fn as_manager(bed: &Testbed) -> Client {
    let path = bed.service_account_kubeconfig("hangar-system", "hangar-manager");
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn code<T>(answer: kube::Result<T>) -> u16 {
    match answer {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

/// Real reads, with the manager's own token.
async fn forbidden_elsewhere(manager: &Client) {
    let all = ListParams::default();
    let secrets = |namespace: &str| Api::<Secret>::namespaced(manager.clone(), namespace);
    assert_eq!(code(secrets("a").list(&all).await), 200);
    assert_eq!(code(secrets("c").list(&all).await), 403);
    assert_eq!(code(secrets("c").get("hers").await), 403);
    assert_eq!(code(secrets("kube-system").list(&all).await), 403);
    assert_eq!(code(secrets("hangar-system").list(&all).await), 403, "its own Secret is known by name");
    assert_eq!(code(Api::<Secret>::all(manager.clone()).list(&all).await), 403);
    assert_eq!(code(api(manager, "c", CONTROL_PLANES).list(&all).await), 403);
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("x".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let maps: Api<ConfigMap> = Api::namespaced(manager.clone(), "c");
    assert_eq!(code(maps.create(&PostParams::default(), &map).await), 403);
    assert_eq!(code(Api::<Namespace>::all(manager.clone()).list(&all).await), 403);
    assert_eq!(code(Api::<k8s_openapi::api::core::v1::Node>::all(manager.clone()).list(&all).await), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manager_of_two_namespaces_leaves_and_knows_no_other() {
    let bed = Testbed::start(Options::default()).unwrap();
    let client = bed.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["a", "b", "c"] {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
    let refused = try_install(&bed, &["--namespaces=a,nowhere"]);
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && errors.contains("do not exist: nowhere;"), "{errors}");

    install(&bed, &["--namespaces=b,a"]);
    let manager = Manager::start(&bed, "narrow", &["--namespaces=a,b"]);
    manager.wait_until_ready().await;
    // In a namespace that is not looked after: conversion is everybody's, admission (the selector) is not.
    eventually("conversion works", async || reads_older_version(&client).await).await;

    for namespace in ["a", "c"] {
        cluster(&client, namespace).await;
    }
    let sets = Api::<StatefulSet>::namespaced(client.clone(), "a");
    eventually("etcd is there", async || sets.get_opt("demo-etcd").await.unwrap().is_some()).await;
    let secrets = Api::<Secret>::namespaced(client.clone(), "a");
    let ours = ListParams::default().labels("cluster.x-k8s.io/cluster-name=demo");
    eventually("keys are minted", async || secrets.list(&ours).await.unwrap().items.len() >= 16).await;
    let is_held = async |namespace: &str| {
        let found = api(&client, namespace, CONTROL_PLANES).get("demo").await.unwrap();
        !found.finalizers().is_empty() && found.data.pointer("/status/conditions").is_some()
    };
    eventually("it says how it is", async || is_held("a").await).await;
    assert!(!is_held("c").await, "it is not ours");
    for kind in [CLUSTERS, CONTROL_PLANES] {
        let found = api(&client, "c", kind).get("demo").await.unwrap();
        assert!(found.finalizers().is_empty() && found.data.get("status").is_none(), "{found:?}");
    }
    // What is refused where it is looked after is nobody's concern elsewhere.
    let change = async |namespace: &str, replicas: i32| {
        let planes = api(&client, namespace, CONTROL_PLANES);
        let fields = json!({ "spec": { "replicas": replicas } });
        code(planes.patch("demo", &PatchParams::default(), &Patch::Merge(&fields)).await)
    };
    assert_eq!((change("a", 9).await, change("c", 9).await), (422, 200));
    assert_eq!(change("c", 1).await, 200, "so that nothing is wrong with it later");

    let own = as_manager(&bed).await;
    forbidden_elsewhere(&own).await;
    let log = manager.log();
    assert!(!log.contains("forbidden"), "{log}");

    // A namespace that is no longer named loses its Role.
    let address = manager.webhook_flag();
    let printed = install(&bed, &["--namespaces=a", &address]);
    assert!(printed.contains("deleted    RoleBinding b/hangar-controllers"), "{printed}");
    let left = async |namespace: &str| {
        let name = "hangar-controllers";
        let role = Api::<Role>::namespaced(client.clone(), namespace).get_opt(name).await.unwrap();
        let binding = Api::<RoleBinding>::namespaced(client.clone(), namespace).get_opt(name).await.unwrap();
        (role.is_some(), binding.is_some())
    };
    assert_eq!((left("a").await, left("b").await), ((true, true), (false, false)));
    eventually("its Secrets are closed", async || {
        let secrets: Api<Secret> = Api::namespaced(own.clone(), "b");
        code(secrets.list(&ListParams::default()).await) == 403
    })
    .await;
    // And with all namespaces there are no such Roles, and every webhook asks for every namespace.
    install(&bed, &[&address]);
    assert_eq!(left("a").await, (false, false));
    drop(manager);
    let manager = Manager::start(&bed, "wide", &[]);
    manager.wait_until_ready().await;
    eventually("the other is looked after now", async || is_held("c").await).await;
    conversion_works(&client).await;
}

/// A Cluster of the namespace c, in the version that is not stored.
async fn reads_older_version(client: &Client) -> bool {
    let older = ("cluster.x-k8s.io", "v1beta1", "Cluster");
    let object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "older" },
        "spec": { "paused": true },
    });
    let parameters = PatchParams::apply("test").force();
    let written = api(client, "c", older).patch("older", &parameters, &Patch::Apply(&object)).await;
    written.is_ok() && api(client, "c", CLUSTERS).get("older").await.is_ok()
}
