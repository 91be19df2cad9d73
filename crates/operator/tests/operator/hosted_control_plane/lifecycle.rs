//! The life of a control plane: it is created, becomes ready, rests and is deleted.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::infrastructure::v1beta1::OpenStackCluster;
use hangar_pki::{Certificate, PrivateKeyPem};
use hangar_testbed::Port;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::access;
use super::actor::Actor;
use super::addons;
use super::losses;
use super::tenant::{Tenant, initial_state};
use super::world::{BALANCER, Manager, World, eventually, spec, texts, turn};

const API_SERVER: &str = "api-server";

/// Everything that is minted before an API server can start.
async fn all_minted(world: &World) {
    eventually("all Secrets are minted", async || world.names::<Secret>().await.len() >= 17).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_comes_to_life_in_order_rests_and_goes() {
    let _turn = turn().await;
    let world = World::new("life").await;
    let actor = Actor::start(&world);
    let port = Port::reserve().unwrap();
    let mut wanted = spec();
    // A name, since a load balancer would have another address; it leads to the tenant of this test.
    wanted["controlPlaneEndpoint"] = json!({"host": "localhost", "port": port.number()});
    world.apply(wanted).await;
    let manager = Manager::start();

    // Keys and etcd come first; nothing that needs etcd is started before etcd's pod can start.
    all_minted(&world).await;
    eventually("etcd is there", async || world.names::<StatefulSet>().await == ["demo-etcd"]).await;
    eventually("a condition says what is waited for", async || {
        let (status, _, message) = world.condition("Available").await;
        status == "False" && !message.is_empty()
    })
    .await;
    manager.rest().await;
    assert_eq!(world.names::<Deployment>().await, [] as [&str; 0]);
    let (_, _, message) = world.condition("Available").await;
    assert!(message.contains("must act"), "{message}");

    actor.run("etcd");
    eventually("the API server follows", async || world.names::<Deployment>().await == ["demo-apiserver"])
        .await;
    eventually("its pod is made", async || world.names::<Pod>().await.len() == 2).await;
    eventually("it is counted", async || {
        world.control_plane().await.status.unwrap_or_default().replicas == Some(1)
    })
    .await;
    manager.rest().await;
    assert_eq!(world.names::<Deployment>().await, ["demo-apiserver"], "the rest waits for an API server");
    let status = world.control_plane().await.status.unwrap();
    assert_eq!(status.initialization.and_then(|done| done.control_plane_initialized), Some(false));
    assert_eq!((status.replicas, status.ready_replicas), (Some(1), Some(0)));
    assert_eq!(status.external_managed_control_plane, Some(true));

    // The tenant runs with what was minted, and with nothing else.
    let mut tenant = Tenant::start(&world, port.number()).await;
    etcd_is_on_record(&world, &mut tenant).await;
    actor.run(API_SERVER);
    actor.run("controller-manager");
    actor.run("scheduler");
    access::a_kubeconfig_is_bound_before_it_exists(&world, &tenant).await;
    eventually("it is available", async || world.condition("Available").await.0 == "True").await;
    // Pods of all parts are made by the cluster's controllers, which may be late.
    eventually("all parts run", async || world.condition("Ready").await.0 == "True").await;
    assert_eq!(
        world.names::<Deployment>().await,
        ["demo-apiserver", "demo-controller-manager", "demo-scheduler"]
    );
    manager.rest().await;
    let status = world.control_plane().await.status.unwrap();
    assert_eq!(status.initialization.and_then(|done| done.control_plane_initialized), Some(true));
    assert_eq!((status.ready, status.initialized), (Some(true), Some(true)));
    assert_eq!((status.ready_replicas, status.version.as_deref()), (Some(1), Some("v1.34.11")));
    assert_eq!(status.observed_generation, world.control_plane().await.metadata.generation);
    in_the_tenant(&tenant).await;
    people_can_use_it(&world, &tenant).await;
    // Roots are independent: what the cluster's authority signed means nothing to etcd.
    assert!(tenant.etcd_answers(&world, "apiserver-etcd-client").await);
    assert!(!tenant.etcd_answers(&world, "apiserver-kubelet-client").await);
    let minted = fingerprints(&world).await;
    manager.stop().await;

    // Another manager finds everything as it should be.
    let second = Manager::start();
    second.rest().await;
    assert_eq!(second.writes(), [] as [&str; 0]);
    assert_eq!(fingerprints(&world).await, minted);
    assert!(!second.tenant_calls.calls().is_empty(), "it did look");

    addons::add_ons_that_do_not_run_are_told(&world, &tenant, &second).await;
    losses::keys_come_back(&world, &mut tenant).await;
    losses::a_stateful_set_comes_back_over_its_volumes(&world, &mut tenant).await;
    drift_is_put_back(&world, &tenant).await;
    access::a_deleted_kubeconfig_is_revoked(&world, &tenant).await;
    access::a_changed_kubeconfig_leads_nowhere(&world).await;
    a_due_certificate_is_renewed_in_place(&world).await;
    second.stop().await;

    // A tenant that is away stops nothing.
    drop(tenant);
    let third = Manager::start();
    eventually("the tenant is missed", async || world.condition("WorkloadReady").await.0 == "Unknown").await;
    assert_eq!(world.condition("CertificatesValid").await.0, "True");
    world.delete().await;
    eventually("it is gone", async || {
        world.api::<HostedControlPlane>().get_opt("demo").await.unwrap().is_none()
    })
    .await;
    nothing_is_left(&world).await;
    third.stop().await;
}

/// Once etcd had a quorum, members start with their data or not at all, and nobody takes one away.
async fn etcd_is_on_record(world: &World, tenant: &mut Tenant) {
    let record = |found: HostedControlPlane| found.annotations().get("hangar.cluster.x-k8s.io/etcd").cloned();
    eventually("the first quorum is recorded", async || record(world.control_plane().await).is_some()).await;
    let recorded: serde_json::Value =
        serde_json::from_str(&record(world.control_plane().await).unwrap()).unwrap();
    let claim = world.api::<PersistentVolumeClaim>().get("data-demo-etcd-0").await.unwrap();
    let expected =
        json!({"generation": 1, "members": 1, "identity": "demo", "claims": [claim.uid().unwrap()]});
    assert_eq!(recorded, expected);
    eventually("members exist from now on", async || initial_state(world).await == "existing").await;
    tenant.restart_etcd(world).await;
    assert!(!tenant.empty_etcd_ends(world).await.success());
    let sets = world.api::<StatefulSet>();
    let scaled = json!({"spec": {"replicas": 3}});
    sets.patch("demo-etcd", &PatchParams::default(), &Patch::Merge(&scaled)).await.unwrap();
    eventually("its number is the recorded one", async || {
        sets.get("demo-etcd").await.unwrap().spec.unwrap().replicas == Some(1)
    })
    .await;
    eventually("the others are gone", async || {
        !world.names::<Pod>().await.iter().any(|name| name == "demo-etcd-1" || name == "demo-etcd-2")
    })
    .await;
}

/// What workers need to join, and what every cluster has.
async fn in_the_tenant(tenant: &Tenant) {
    let client = tenant.client();
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let maps: Vec<String> =
        maps.list(&ListParams::default()).await.unwrap().into_iter().map(|map| map.name_any()).collect();
    for name in ["cluster-info", "kubeadm-config", "kubelet-config", "coredns"] {
        assert!(maps.iter().any(|map| map == name), "{name} is missing: {maps:?}");
    }
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for name in [
        "kubeadm:kubelet-bootstrap",
        "kubeadm:apiserver-kubelet-client",
        "hangar:administrator",
        "hangar:control-plane",
    ] {
        bindings.get(name).await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    // Nodes renew their own certificates, not each other's.
    let renewal = bindings.get("kubeadm:node-autoapprove-certificate-rotation").await.unwrap();
    assert_eq!(renewal.role_ref.name, "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let found: Vec<String> = deployments
        .list(&ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .map(|found| found.name_any())
        .collect();
    assert!(found.contains(&"coredns".to_owned()), "{found:?}");
    let proxies: Api<DaemonSet> = Api::namespaced(client.clone(), "kube-system");
    proxies.get("kube-proxy").await.unwrap();
    let slices: Api<EndpointSlice> = Api::namespaced(client, "default");
    let slice = slices.get("kubernetes").await.unwrap();
    assert_eq!(slice.endpoints[0].addresses, [BALANCER]);
}

/// The kubeconfig of the contract opens the tenant to its administrator.
async fn people_can_use_it(world: &World, tenant: &Tenant) {
    let secret = world.api::<Secret>().get("demo-kubeconfig").await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("cluster.x-k8s.io/secret"));
    let people = people(&secret).await;
    let theirs = Api::<Secret>::all(people).list(&ListParams::default()).await.unwrap().items.len();
    let ours = Api::<Secret>::all(tenant.client()).list(&ListParams::default()).await.unwrap().items.len();
    assert_eq!(theirs, ours);
}

/// A client as people make one from the Secret.
pub(super) async fn people(secret: &Secret) -> kube::Client {
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&texts(secret)["value"]).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

/// Fingerprints of all Secrets; also checks that each holds what its notes say.
pub(super) async fn fingerprints(world: &World) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let list = world.api::<Secret>().list(&ListParams::default()).await.unwrap();
    let noted = |secret: &Secret, name: &str| {
        secret.annotations().get(&format!("hangar.cluster.x-k8s.io/{name}")).cloned()
    };
    let authorities: BTreeMap<String, String> = list
        .iter()
        .filter(|secret| noted(secret, "certificate").is_some())
        .map(|secret| (noted(secret, "fingerprint").unwrap(), secret.name_any()))
        .collect();
    for secret in &list {
        let name = secret.name_any();
        let data = texts(secret);
        let fingerprint = noted(secret, "fingerprint").unwrap_or_else(|| panic!("{name} has no notes"));
        if let Some(pem) = data.get("tls.crt").filter(|pem| pem.contains("BEGIN CERTIFICATE")) {
            let certificate = Certificate::parse(pem).unwrap();
            assert_eq!(certificate.fingerprint(), fingerprint, "{name}");
            assert!(certificate.matches_key(&PrivateKeyPem::new(&data["tls.key"])), "{name}");
        }
        if let Some(issuer) = noted(secret, "issuer") {
            assert!(authorities.contains_key(&issuer), "{name} was signed by nobody that is here");
        }
        found.insert(name, fingerprint);
    }
    found
}

/// What somebody breaks comes back, here and in the tenant.
async fn drift_is_put_back(world: &World, tenant: &Tenant) {
    let services = world.api::<Service>();
    let broken = json!({"spec": {"selector": {"app.kubernetes.io/component": "nobody"}}});
    services.patch("api-demo", &PatchParams::default(), &Patch::Merge(&broken)).await.unwrap();
    eventually("the selector is back", async || {
        let selector = services.get("api-demo").await.unwrap().spec.unwrap().selector.unwrap();
        selector["app.kubernetes.io/component"] == API_SERVER
    })
    .await;
    let maps: Api<ConfigMap> = Api::namespaced(tenant.client(), "kube-system");
    let before = maps.get("coredns").await.unwrap();
    let broken = json!({"data": {"Corefile": "nonsense"}});
    maps.patch("coredns", &PatchParams::default(), &Patch::Merge(&broken)).await.unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(tenant.client());
    // Without the second one, Hangar has no right to anything.
    for name in ["hangar:administrator", "hangar:control-plane"] {
        bindings.delete(name, &DeleteParams::default()).await.unwrap();
    }
    eventually("all are as they were", async || {
        maps.get("coredns").await.unwrap().data == before.data
            && bindings.get_opt("hangar:administrator").await.unwrap().is_some()
            && bindings.get_opt("hangar:control-plane").await.unwrap().is_some()
    })
    .await;
}

/// Same Secret, new certificate, and no pod is replaced for it.
async fn a_due_certificate_is_renewed_in_place(world: &World) {
    let (secrets, deployments) = (world.api::<Secret>(), world.api::<Deployment>());
    let (before, scheduler) =
        (secrets.get("demo-scheduler").await.unwrap(), deployments.get("demo-scheduler").await.unwrap());
    let old = json!({"metadata": {"annotations": {
        "hangar.cluster.x-k8s.io/not-before": "2020-01-01T00:00:00Z",
        "hangar.cluster.x-k8s.io/not-after": "2021-01-01T00:00:00Z",
    }}});
    secrets.patch("demo-scheduler", &PatchParams::default(), &Patch::Merge(&old)).await.unwrap();
    eventually("it is renewed", async || {
        let after = secrets.get("demo-scheduler").await.unwrap();
        texts(&after)["tls.crt"] != texts(&before)["tls.crt"]
    })
    .await;
    let after = secrets.get("demo-scheduler").await.unwrap();
    assert_eq!(after.uid(), before.uid());
    let certificate = Certificate::parse(&texts(&after)["tls.crt"]).unwrap();
    assert!(certificate.is_valid_at(jiff::Timestamp::now()));
    fingerprints(world).await;
    let present = deployments.get("demo-scheduler").await.unwrap();
    assert_eq!(present.metadata.generation, scheduler.metadata.generation);
}

/// Claims of etcd's volumes.
pub(super) async fn claims(world: &World) -> Vec<PersistentVolumeClaim> {
    world.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap().items
}

pub(super) async fn nothing_is_left(world: &World) {
    eventually("nothing is left", async || {
        world.names::<Secret>().await.is_empty()
            && world.names::<ConfigMap>().await.is_empty()
            && world.names::<Service>().await.is_empty()
            && world.names::<Deployment>().await.is_empty()
            && world.names::<StatefulSet>().await.is_empty()
            && world.names::<Pod>().await.is_empty()
            && claims(world).await.is_empty()
            && world.names::<PodDisruptionBudget>().await.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_published_once_and_only_where_there_is_none() {
    let _turn = turn().await;
    let world = World::new("endpoint").await;
    let _actor = Actor::start(&world);
    world.apply(spec()).await;
    let manager = Manager::start();
    let endpoint = |object: &HostedControlPlane| object.spec.settings.control_plane_endpoint.clone();
    eventually("the control plane has an endpoint", async || {
        endpoint(&world.control_plane().await)
            .is_some_and(|found| found.host == BALANCER && found.port == 6443)
    })
    .await;
    let infrastructure = async || {
        let object = world.api::<OpenStackCluster>().get("demo").await.unwrap();
        serde_json::to_value(object.spec).unwrap()["controlPlaneEndpoint"].clone()
    };
    eventually("the infrastructure has it too", async || {
        infrastructure().await == json!({"host": BALANCER, "port": 6443})
    })
    .await;

    // The address came after the certificate: it is in it now.
    eventually("the certificate has the address", async || {
        let secret = world.api::<Secret>().get_opt("demo-apiserver").await.unwrap();
        secret.is_some_and(|secret| {
            let certificate = Certificate::parse(&texts(&secret)["tls.crt"]).unwrap();
            certificate.ip_addresses().contains(&BALANCER.parse().unwrap())
        })
    })
    .await;

    // What is there stays: infrastructure refuses another, and one that is wrong elsewhere is told.
    let other = json!({"spec": {"controlPlaneEndpoint": {"host": "elsewhere.example.com", "port": 443}}});
    let infrastructures = world.api::<OpenStackCluster>();
    let refused = infrastructures.patch("demo", &PatchParams::default(), &Patch::Merge(&other)).await;
    assert!(refused.unwrap_err().to_string().contains("spec.controlPlaneEndpoint: Forbidden"));
    world.api::<Cluster>().patch("demo", &PatchParams::default(), &Patch::Merge(&other)).await.unwrap();
    eventually("the conflict is told", async || {
        let (status, reason, message) = world.condition("EndpointReady").await;
        status == "False" && reason == "Conflict" && message.contains("elsewhere.example.com")
    })
    .await;
    manager.rest().await;
    assert_eq!(infrastructure().await["host"], BALANCER);
    let cluster = world.api::<Cluster>().get("demo").await.unwrap();
    assert_eq!(cluster.spec.control_plane_endpoint.unwrap().host.as_deref(), Some("elsewhere.example.com"));
    manager.stop().await;
}

/// Trap: everything is named after the Cluster, also what a copy of its control plane would make and delete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_control_plane_takes_nothing_along() {
    let _turn = turn().await;
    let world = World::new("copy").await;
    let actor = Actor::start(&world);
    world.apply(spec()).await;
    let manager = Manager::start();
    all_minted(&world).await;
    actor.run("etcd");
    eventually("the API server is there", async || world.names::<Deployment>().await == ["demo-apiserver"])
        .await;
    manager.rest().await;
    let (keys, sets) = (fingerprints(&world).await, world.names::<StatefulSet>().await);
    let original = world.control_plane().await;
    let mut copy = original.clone();
    // As somebody would save it, rename it and apply it, with its finalizer and its mark; or as an older Hangar claimed it.
    copy.metadata.name = Some("copy".to_owned());
    copy.metadata.uid = None;
    copy.metadata.resource_version = None;
    copy.metadata.managed_fields = None;
    copy.status = None;
    let api = world.api::<HostedControlPlane>();
    api.create(&kube::api::PostParams::default(), &copy).await.unwrap();
    eventually("it is told that nobody means it", async || {
        let status = api.get("copy").await.unwrap().status.unwrap_or_default();
        status.conditions.iter().any(|one| one.type_ == "Ready" && one.reason == "NotReferenced")
    })
    .await;
    api.delete("copy", &DeleteParams::default()).await.unwrap();
    eventually("it is gone", async || api.get_opt("copy").await.unwrap().is_none()).await;
    manager.rest().await;
    assert_eq!(fingerprints(&world).await, keys);
    assert_eq!((world.names::<StatefulSet>().await, world.names::<Deployment>().await.len()), (sets, 1));
    assert_eq!(world.control_plane().await.metadata.uid, original.metadata.uid);
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_control_plane_is_left_alone() {
    let _turn = turn().await;
    let world = World::new("paused").await;
    let _actor = Actor::start(&world);
    world.apply(spec()).await;
    let paused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
    let api = world.api::<HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(&paused)).await.unwrap();
    let manager = Manager::start();
    eventually("it says so", async || world.condition("Paused").await.0 == "True").await;
    manager.rest().await;
    assert_eq!(world.names::<Secret>().await, [] as [&str; 0]);
    assert_eq!(world.names::<StatefulSet>().await, [] as [&str; 0]);

    let resumed = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    api.patch("demo", &PatchParams::default(), &Patch::Merge(&resumed)).await.unwrap();
    all_minted(&world).await;
    eventually("it says so again", async || world.condition("Paused").await.0 == "False").await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_cannot_be_used_is_named_and_stops_no_deletion() {
    let _turn = turn().await;
    let world = World::new("unusable").await;
    let _actor = Actor::start(&world);
    let brought: Secret = serde_json::from_value(json!({
        "metadata": {"name": "demo-ca", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "stringData": {"tls.crt": "no certificate", "tls.key": ""},
    }))
    .unwrap();
    world.api::<Secret>().create(&kube::api::PostParams::default(), &brought).await.unwrap();
    world.apply(spec()).await;
    let manager = Manager::start();
    eventually("it is named", async || {
        let (status, reason, message) = world.condition("CertificatesValid").await;
        status == "False" && reason == "Unusable" && message.contains("demo-ca")
    })
    .await;
    let api = world.api::<HostedControlPlane>();
    world.delete().await;
    eventually("it is gone", async || api.get_opt("demo").await.unwrap().is_none()).await;
    world.api::<Secret>().get("demo-ca").await.unwrap();
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_cannot_be_made_is_named_and_stops_no_other() {
    let _turn = turn().await;
    let world = World::new("refused").await;
    let _actor = Actor::start(&world);
    // The name is taken by somebody who has nothing to do with clusters.
    let stranger: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "demo-etcd"}, "data": {"a": "b"}})).unwrap();
    world.api::<ConfigMap>().create(&kube::api::PostParams::default(), &stranger).await.unwrap();
    world.apply(spec()).await;
    let manager = Manager::start();
    eventually("it is named", async || {
        let (status, reason, message) = world.condition("Ready").await;
        status == "False"
            && reason == "ObjectRefused"
            && message.contains("/demo-etcd exists and is not ours")
    })
    .await;
    eventually("the others are made", async || world.names::<StatefulSet>().await == ["demo-etcd"]).await;
    let stranger = world.api::<ConfigMap>().get("demo-etcd").await.unwrap();
    assert_eq!(stranger.data.unwrap()["a"], "b");
    world.api::<ConfigMap>().delete("demo-etcd", &DeleteParams::default()).await.unwrap();
    eventually("it goes on when the name is free", async || {
        world.names::<ConfigMap>().await.contains(&"demo-etcd".to_owned())
    })
    .await;
    eventually("it is no longer told", async || world.condition("Ready").await.1 != "ObjectRefused").await;
    manager.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_there_is_never_minted_over() {
    let _turn = turn().await;
    let world = World::new("given").await;
    let _actor = Actor::start(&world);
    let now = jiff::Timestamp::now();
    let intent = hangar_pki::Intent::authority("corporate", std::time::Duration::from_hours(1000));
    let authority = hangar_pki::Authority::self_signed(&intent, now).unwrap();
    let brought: Secret = serde_json::from_value(json!({
        "metadata": {"name": "demo-ca", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "type": "cluster.x-k8s.io/secret",
        "stringData": {
            "tls.crt": authority.pair().certificate, "tls.key": authority.pair().key.expose(),
        },
    }))
    .unwrap();
    let created = world.api::<Secret>().create(&kube::api::PostParams::default(), &brought).await.unwrap();
    // The name of this one is taken by somebody who has nothing to do with clusters.
    let stranger: Secret =
        serde_json::from_value(json!({"metadata": {"name": "demo-scheduler"}, "stringData": {"a": "b"}}))
            .unwrap();
    world.api::<Secret>().create(&kube::api::PostParams::default(), &stranger).await.unwrap();
    world.apply(spec()).await;
    let manager = Manager::start();
    eventually("certificates are signed by what was brought", async || {
        let secret = world.api::<Secret>().get_opt("demo-apiserver").await.unwrap();
        secret.is_some_and(|secret| {
            let certificate = Certificate::parse(&texts(&secret)["tls.crt"]).unwrap();
            certificate.is_signed_by(authority.certificate())
        })
    })
    .await;
    manager.rest().await;
    let present = world.api::<Secret>().get("demo-ca").await.unwrap();
    assert_eq!(present.metadata.resource_version, created.metadata.resource_version);
    let stranger = world.api::<Secret>().get("demo-scheduler").await.unwrap();
    assert_eq!(texts(&stranger), BTreeMap::from([("a".to_owned(), "b".to_owned())]));
    manager.stop().await;
}

/// Who strips our annotations off a Secret does not make it somebody else's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_without_its_annotations_is_known_by_its_owner() {
    let _turn = turn().await;
    let world = World::new("stripped").await;
    let _actor = Actor::start(&world);
    world.apply(spec()).await;
    let manager = Manager::start();
    all_minted(&world).await;
    manager.rest().await;
    let (secrets, before) = (world.api::<Secret>(), fingerprints(&world).await);
    let strip = json!({"metadata": {"annotations": null, "labels": null}});
    for name in ["demo-scheduler", "demo-encryption", "demo-etcd"] {
        secrets.patch(name, &PatchParams::default(), &Patch::Merge(&strip)).await.unwrap();
    }
    eventually("what can be replaced is minted again, with its annotations", async || {
        let secret = secrets.get("demo-scheduler").await.unwrap();
        secret.annotations().contains_key("hangar.cluster.x-k8s.io/fingerprint")
    })
    .await;
    manager.rest().await;
    // What cannot be replaced is as it was, and known by its content.
    for name in ["demo-encryption", "demo-etcd"] {
        let data = texts(&secrets.get(name).await.unwrap());
        let content = data.get("tls.crt").map(|pem| Certificate::parse(pem).unwrap().fingerprint());
        let content = content.unwrap_or_else(|| hangar_pki::fingerprint(data.values().next().unwrap()));
        assert_eq!(content, before[name], "{name}");
    }
    assert_eq!(world.condition("CertificatesValid").await.1, "Valid");
    manager.stop().await;
}
