//! A control plane beside Cluster API's own core, which has the Cluster: Hangar runs its HostedControlPlane controller
//! alone, and core finds in it what its contract with control plane providers asks for.
//!
//! The Go build of core takes minutes, so these tests run where somebody asks for them: `cargo xtask beside`.

mod upstream;

use std::sync::Arc;
use std::time::Duration;

use hangar_operator::install;
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::{Options, Port, Testbed};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use self::upstream::{Core, NEWER, OLDER, Release};
use crate::hosted_control_plane::actor::Actor;
use crate::hosted_control_plane::tenant::{MATERIAL, Tenant};
use crate::hosted_control_plane::world::{CONTROLLER, Manager, World, eventually};

/// The manifests of a page that users follow, as they are there.
const DOCUMENTED: &str = include_str!("documented.yaml");
/// What is replaced in them: no Gateway runs here, and the endpoint has to lead to the tenant of this test.
const GATEWAY: &str = r#"  gateway:
    # Reference to the Gateway with a TLS wildcard listener
    # See "Gateway and DNS Configuration" section above
    name: capi
    namespace: capi-system
"#;

const CLUSTER: &str = "my-cluster";
const CONTROL_PLANE: &str = "my-hosted-control-plane";
const INFRASTRUCTURE: &str = "my-aws-cluster";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "builds Cluster API's core with Go: cargo xtask beside"]
async fn a_control_plane_lives_beside_cluster_api_1_12() {
    lives_beside(NEWER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "builds Cluster API's core with Go: cargo xtask beside"]
async fn a_control_plane_lives_beside_cluster_api_1_11() {
    lives_beside(OLDER).await;
}

async fn lives_beside(release: Release) {
    let stage = Stage::set(release).await;
    let manager = Manager::start_in(&stage.world.bed);
    let port = Port::reserve().unwrap();
    stage.apply(port.number()).await;

    core_claims_the_control_plane(&stage).await;
    infrastructure_is_provisioned(&stage, port.number()).await;
    let actor = Actor::start(&stage.world);
    let _tenant = the_control_plane_is_initialized(&stage, &actor, port.number()).await;
    nobody_fights(&stage, &manager).await;
    availability_is_passed_on(&stage).await;
    a_paused_cluster_pauses_its_control_plane(&stage, &manager).await;
    the_cluster_takes_its_control_plane_along(&stage).await;
    let own = |write: &String| !write.contains("clusters.cluster.x-k8s.io");
    assert!(manager.writes().iter().all(own), "Clusters are core's: {:#?}", manager.writes());
    manager.stop().await;
}

/// A management cluster with core of one release, and Hangar installed beside it.
struct Stage {
    core: std::sync::Mutex<Core>,
    world: World,
}

impl Stage {
    async fn set(release: Release) -> Self {
        let options = Options { controller_manager: true, scheduler: false };
        let bed = Arc::new(tokio::task::block_in_place(|| Testbed::start(options)).unwrap());
        let core = Core::start(&bed, release).await;
        tokio::task::block_in_place(|| bed.install([infrastructure_definition()]));
        install_beside(&bed).await;
        let client = bed.client();
        let world = World { bed, namespace: "default".to_owned(), cluster: CLUSTER, client };
        Self { core: std::sync::Mutex::new(core), world }
    }

    fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(&format!("{group}cluster.x-k8s.io"), version, kind);
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.world.client.clone(), &self.world.namespace, &resource)
    }

    fn clusters(&self) -> Api<DynamicObject> {
        self.api("", "v1beta2", "Cluster")
    }

    fn control_planes(&self) -> Api<DynamicObject> {
        self.api("controlplane.", "v1alpha1", "HostedControlPlane")
    }

    fn infrastructures(&self) -> Api<DynamicObject> {
        self.api("infrastructure.", "v1beta1", "AWSCluster")
    }

    /// What users apply, and the object of the other provider.
    async fn apply(&self, port: u16) {
        let parameters = PostParams::default();
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster",
            "metadata": {"name": INFRASTRUCTURE}, "spec": {},
        }))
        .unwrap();
        self.infrastructures().create(&parameters, &object).await.unwrap();
        assert!(DOCUMENTED.contains(GATEWAY));
        let endpoint = format!("  controlPlaneEndpoint: {{host: localhost, port: {port}}}\n");
        let text = DOCUMENTED.replace(GATEWAY, &endpoint);
        for object in serde_saphyr::from_multiple::<DynamicObject>(&text).unwrap() {
            let types = object.types.clone().unwrap();
            let kind = GroupVersionKind::try_from(&types).unwrap();
            let resource = ApiResource::from_gvk(&kind);
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.world.client.clone(), &self.world.namespace, &resource);
            // Core's webhooks answer when it has started.
            eventually(&format!("{} is accepted", types.kind), async || {
                self.core.lock().unwrap().check_running();
                api.create(&parameters, &object).await.is_ok()
            })
            .await;
        }
    }

    async fn cluster(&self) -> Value {
        serde_json::to_value(self.clusters().get(CLUSTER).await.unwrap()).unwrap()
    }

    async fn control_plane(&self) -> Value {
        serde_json::to_value(self.control_planes().get(CONTROL_PLANE).await.unwrap()).unwrap()
    }

    async fn patch(&self, api: &Api<DynamicObject>, name: &str, patch: Value) {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits until the Cluster has conditions of these statuses.
    async fn conditions(&self, expected: &[(&str, &str)]) {
        let mut last = Value::Null;
        for _ in 0..3000 {
            last = self.cluster().await["status"]["conditions"].take();
            if expected.iter().all(|(type_, status)| condition(&last, type_)["status"] == **status) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never {expected:?}: {last:#}");
    }
}

fn condition<'a>(conditions: &'a Value, type_: &str) -> &'a Value {
    let found = conditions.as_array().into_iter().flatten().find(|one| one["type"] == type_);
    found.unwrap_or(&Value::Null)
}

/// Another provider's kind, of the older contract.
fn infrastructure_definition() -> CustomResourceDefinition {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}});
    serde_json::from_value(json!({
        "metadata": {"name": "awsclusters.infrastructure.cluster.x-k8s.io",
            "labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"}},
        "spec": {
            "group": "infrastructure.cluster.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "AWSCluster", "plural": "awsclusters", "singular": "awscluster",
                "listKind": "AWSClusterList"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": schema,
                "subresources": {"status": {}}}],
        },
    }))
    .unwrap()
}

/// What belongs to core is refused, and the control plane provider alone is installed.
async fn install_beside(bed: &Testbed) {
    let options = |controllers: &str| install::Options {
        namespace: "hangar-system".to_owned(),
        image: "none".to_owned(),
        replicas: 1,
        controllers: controllers.parse().unwrap(),
        namespaces: Namespaces::All,
        target: install::Target::Url("https://127.0.0.1:1".to_owned()),
        api_server: None,
        limits: None,
    };
    let refused = install::apply(bed.config(), &options("all"), |_| {}).await.unwrap_err().to_string();
    assert!(refused.contains("clusters.cluster.x-k8s.io (cluster-api)"), "{refused}");
    install::apply(bed.config(), &options(CONTROLLER), |_| {}).await.unwrap();
    // The managers of these tests serve no webhooks.
    let (name, parameters) = (hangar_operator::MANAGER_NAME, DeleteParams::default());
    Api::<ValidatingWebhookConfiguration>::all(bed.client()).delete(name, &parameters).await.unwrap();
}

async fn core_claims_the_control_plane(stage: &Stage) {
    eventually("core owns the control plane", async || {
        let metadata = stage.control_plane().await["metadata"].take();
        let owner = &metadata["ownerReferences"][0];
        owner["kind"] == "Cluster"
            && owner["name"] == CLUSTER
            && metadata["labels"]["cluster.x-k8s.io/cluster-name"] == CLUSTER
    })
    .await;
    stage
        .conditions(&[
            ("InfrastructureReady", "False"),
            ("ControlPlaneInitialized", "False"),
            ("ControlPlaneAvailable", "False"),
            ("RemoteConnectionProbe", "False"),
            ("Available", "False"),
        ])
        .await;
    eventually("core says what the control plane waits for, in Hangar's words", async || {
        let message = |conditions: &Value, type_: &str| {
            condition(conditions, type_)["message"].as_str().unwrap_or_default().to_owned()
        };
        let ours = message(&stage.control_plane().await["status"]["conditions"], "Available");
        let theirs = message(&stage.cluster().await["status"]["conditions"], "ControlPlaneAvailable");
        ours.contains("must act") && theirs.contains(&ours)
    })
    .await;
}

/// The endpoint goes from the control plane through the infrastructure object to the Cluster.
async fn infrastructure_is_provisioned(stage: &Stage, port: u16) {
    let endpoint = json!({"host": "localhost", "port": port});
    eventually("the infrastructure has the endpoint", async || {
        let object = stage.infrastructures().get(INFRASTRUCTURE).await.unwrap();
        object.data["spec"]["controlPlaneEndpoint"] == endpoint
    })
    .await;
    let ready = Patch::Merge(json!({"status": {"ready": true}}));
    let parameters = PatchParams::default();
    stage.infrastructures().patch_status(INFRASTRUCTURE, &parameters, &ready).await.unwrap();
    stage.conditions(&[("InfrastructureReady", "True")]).await;
    eventually("core has taken over both", async || {
        let cluster = stage.cluster().await;
        cluster["spec"]["controlPlaneEndpoint"] == endpoint
            && cluster["status"]["initialization"]["infrastructureProvisioned"] == true
    })
    .await;
}

async fn the_control_plane_is_initialized(stage: &Stage, actor: &Actor, port: u16) -> Tenant {
    let world = &stage.world;
    actor.run("etcd");
    eventually("all keys of an API server are minted", async || {
        let minted = world.names::<Secret>().await;
        MATERIAL.iter().all(|suffix| minted.contains(&format!("{CLUSTER}-{suffix}")))
    })
    .await;
    let tenant = Tenant::start(world, port).await;
    for component in ["api-server", "controller-manager", "scheduler"] {
        actor.run(component);
    }
    stage
        .conditions(&[
            ("ControlPlaneInitialized", "True"),
            ("ControlPlaneAvailable", "True"),
            ("RemoteConnectionProbe", "True"),
            ("Available", "True"),
        ])
        .await;
    counted(stage, 3).await;
    assert_eq!(stage.control_plane().await["status"]["version"], "v1.33.0");
    let cluster = stage.cluster().await;
    assert_eq!(cluster["status"]["initialization"]["controlPlaneInitialized"], true);
    assert_eq!(cluster["status"]["phase"], "Provisioned");
    // The same in the version in which users wrote it.
    let older = stage.api("", "v1beta1", "Cluster").get(CLUSTER).await.unwrap();
    assert_eq!(older.data["status"]["controlPlaneReady"], true);
    assert_eq!(older.data["status"]["infrastructureReady"], true);
    let reference = &older.data["spec"]["controlPlaneRef"];
    assert_eq!(reference["apiVersion"], "controlplane.cluster.x-k8s.io/v1alpha1");
    tenant
}

/// Core copies every counter of the control plane.
async fn counted(stage: &Stage, replicas: i32) {
    let counters = ["desiredReplicas", "replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"];
    eventually("core counts the API servers", async || {
        let counted = stage.cluster().await["status"]["controlPlane"].take();
        counters.iter().all(|counter| counted[counter] == replicas)
    })
    .await;
}

/// Two controllers that write the same field would never rest.
async fn nobody_fights(stage: &Stage, manager: &Manager) {
    let versions = async || {
        let objects = [
            stage.clusters().get(CLUSTER).await.unwrap(),
            stage.control_planes().get(CONTROL_PLANE).await.unwrap(),
            stage.infrastructures().get(INFRASTRUCTURE).await.unwrap(),
        ];
        objects.map(|object| object.resource_version())
    };
    manager.rest().await;
    let (before, written) = (versions().await, manager.writes().len());
    manager.rest().await;
    assert_eq!(versions().await, before);
    assert_eq!(manager.writes().len(), written, "{:#?}", manager.writes());
}

/// What the control plane says of itself is what core says of it, in both directions.
async fn availability_is_passed_on(stage: &Stage) {
    api_servers_are_ready(stage, "False").await;
    stage.conditions(&[("ControlPlaneAvailable", "False"), ("Available", "False")]).await;
    let conditions = stage.cluster().await["status"]["conditions"].take();
    let told = condition(&conditions, "ControlPlaneAvailable")["message"].to_string();
    assert!(told.contains("an API server to be ready"), "{told}");
    assert_eq!(condition(&conditions, "ControlPlaneInitialized")["status"], "True", "it was, once");
    api_servers_are_ready(stage, "True").await;
    stage.conditions(&[("ControlPlaneAvailable", "True"), ("Available", "True")]).await;
}

async fn api_servers_are_ready(stage: &Stage, status: &str) {
    let labelled = ListParams::default().labels("app.kubernetes.io/component=api-server");
    let pods = stage.world.api::<Pod>();
    for pod in pods.list(&labelled).await.unwrap() {
        let mut conditions = serde_json::to_value(&pod.status.as_ref().unwrap().conditions).unwrap();
        for one in conditions.as_array_mut().unwrap() {
            if one["type"] == "Ready" || one["type"] == "ContainersReady" {
                one["status"] = json!(status);
            }
        }
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await.unwrap();
    }
}

async fn a_paused_cluster_pauses_its_control_plane(stage: &Stage, manager: &Manager) {
    let is_paused = async |status: &str| {
        let conditions = stage.control_plane().await["status"]["conditions"].take();
        condition(&conditions, "Paused")["status"] == status
    };
    let wanted = async || {
        let deployment = stage.world.api::<Deployment>().get("my-cluster-apiserver").await.unwrap();
        deployment.spec.unwrap().replicas
    };
    stage.patch(&stage.clusters(), CLUSTER, json!({"spec": {"paused": true}})).await;
    stage.conditions(&[("Paused", "True")]).await;
    eventually("the control plane is paused", async || is_paused("True").await).await;
    stage.patch(&stage.control_planes(), CONTROL_PLANE, json!({"spec": {"replicas": 2}})).await;
    manager.rest().await;
    assert_eq!(wanted().await, Some(3));
    stage.patch(&stage.clusters(), CLUSTER, json!({"spec": {"paused": null}})).await;
    stage.conditions(&[("Paused", "False")]).await;
    eventually("the control plane goes on", async || is_paused("False").await).await;
    eventually("what was asked for is done", async || wanted().await == Some(2)).await;
    counted(stage, 2).await;
}

async fn the_cluster_takes_its_control_plane_along(stage: &Stage) {
    stage.clusters().delete(CLUSTER, &DeleteParams::default()).await.unwrap();
    eventually("the control plane is gone, and the infrastructure went no sooner", async || {
        let infrastructure = stage.infrastructures().get_opt(INFRASTRUCTURE).await.unwrap();
        let control_plane = stage.control_planes().get_opt(CONTROL_PLANE).await.unwrap();
        assert!(control_plane.is_none() || infrastructure.is_some());
        control_plane.is_none()
    })
    .await;
    for (what, api, name) in [
        ("the infrastructure", stage.infrastructures(), INFRASTRUCTURE),
        ("the Cluster", stage.clusters(), CLUSTER),
    ] {
        eventually(&format!("{what} is gone"), async || api.get_opt(name).await.unwrap().is_none()).await;
    }
    eventually("none of its Secrets is left", async || stage.world.names::<Secret>().await.is_empty()).await;
}
