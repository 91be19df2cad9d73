//! What went wrong elsewhere, one test each.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hangar_api::contract::Endpoint;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::material::Content;
use super::super::*;
use super::checker::checked;
use super::fixture::{
    ADDRESS, all_ready, api_server_ready, created, days, etcd_started, pod, reach_tenant, secret, settle,
    workload,
};
use crate::flow::{Outcome, Read, Wake};

fn kinds(plan: &Plan, kind: &str) -> Vec<String> {
    let objects = plan.objects.iter().map(ObjectIdentity::of);
    objects.filter(|object| object.kind == kind).map(|object| object.name).collect()
}

fn object<'plan>(plan: &'plan Plan, kind: &str, name: &str) -> &'plan Value {
    let wanted = |object: &&DynamicObject| {
        let identity = ObjectIdentity::of(object);
        identity.kind == kind && identity.name == name
    };
    &plan.objects.iter().find(wanted).unwrap_or_else(|| panic!("no {kind} {name}")).data
}

fn tenant_object(observed: &Observed, kind: &str, name: &str) -> Option<Value> {
    let wanted = |object: &DynamicObject| {
        let identity = ObjectIdentity::of(object);
        identity.kind == kind && identity.name == name
    };
    tenant_objects(observed).into_iter().find(wanted).map(|object| object.data)
}

fn arguments(plan: &Plan, name: &str) -> BTreeSet<String> {
    let containers = &object(plan, "Deployment", name)["spec"]["template"]["spec"]["containers"];
    containers[0]["args"].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap().to_owned()).collect()
}

fn condition_status(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| format!("{} {}", condition.status, condition.reason)).unwrap_or_default()
}

fn mints(plan: &Plan) -> Vec<Material> {
    let mint = |step: &Step| match step {
        Step::Mint(mint) => Some(mint.material),
        _ => None,
    };
    plan.steps.iter().filter_map(mint).collect()
}

// Trust and rights.

#[test]
fn three_roots_know_nothing_of_each_other() {
    let mut observed = created(&json!({}));
    let mut roots = BTreeSet::new();
    settle(&mut observed);
    for material in Material::ALL.into_iter().filter(|material| material.is_authority()) {
        assert_eq!(material.issuer(), None);
        roots.insert(secret(&mut observed, material).fingerprint.clone());
    }
    assert_eq!(roots.len(), 3);
    let mut observed = etcd_started(&json!({}));
    observed.etcd_pods = Read::One(pod("demo-etcd-0", "3.6.16-0"));
    let plan = checked(&observed);
    let etcd = object(&plan, "StatefulSet", "demo-etcd").to_string();
    // etcd trusts its own authority, and nothing of the kubernetes authority is near it.
    assert!(etcd.contains("demo-etcd\"") && !etcd.contains("demo-ca\""));
}

#[test]
fn only_api_servers_of_this_cluster_reach_etcd() {
    let plan = checked(&etcd_started(&json!({})));
    let ingress = &object(&plan, "NetworkPolicy", "demo-etcd")["spec"]["ingress"];
    let from = &ingress[0]["from"][0];
    assert_eq!(from["podSelector"]["matchLabels"]["app.kubernetes.io/component"], "api-server");
    assert_eq!(from["podSelector"]["matchLabels"]["cluster.x-k8s.io/cluster-name"], "demo");
    assert!(from.get("namespaceSelector").is_none());
}

#[test]
fn a_node_renews_its_own_certificate_only() {
    let observed = all_ready(&json!({}));
    let binding =
        |name: &str| tenant_object(&observed, "ClusterRoleBinding", name).unwrap()["roleRef"]["name"].clone();
    assert!(
        binding("kubeadm:node-autoapprove-certificate-rotation")
            .as_str()
            .unwrap()
            .ends_with(":selfnodeclient")
    );
    assert!(binding("kubeadm:node-autoapprove-bootstrap").as_str().unwrap().ends_with(":nodeclient"));
    assert!(
        arguments(&checked(&observed), "demo-apiserver")
            .contains("--enable-admission-plugins=NodeRestriction")
    );
}

#[test]
fn the_tunnel_is_nobodys_master() {
    let mut observed = created(&json!({}));
    let mut groups = Vec::new();
    loop {
        let plan = checked(&observed);
        let Some(step) = plan.steps.iter().next().cloned() else { break };
        if let Step::Mint(mint) = &step
            && let Some(intent) = mint.content.intent()
        {
            groups.push((mint.material, intent.organizations.clone()));
        }
        observed.fold(&step, &super::fixture::outcome(&step));
    }
    let masters: Vec<_> =
        groups.iter().filter(|(_, groups)| groups.iter().any(|group| group == "system:masters")).collect();
    assert_eq!(masters.len(), 1, "{masters:?}");
    assert_eq!(masters[0].0, Material::OperatorAccess);
    let delegator =
        tenant_object(&all_ready(&json!({})), "ClusterRoleBinding", "system:konnectivity-server").unwrap();
    assert_eq!(delegator["subjects"][0]["kind"], "User");
}

// Certificates.

#[test]
fn default_lifetimes_outlive_a_holiday() {
    let mut observed = created(&json!({}));
    settle(&mut observed);
    let left =
        |facts: &SecretFacts| super::fixture::now().duration_until(facts.not_after.unwrap()).as_hours() / 24;
    assert_eq!(left(secret(&mut observed, Material::ClusterAuthority)), 3650);
    assert_eq!(left(secret(&mut observed, Material::ApiServer)), 365);
    // And are given back as written, however long: ten years are no overflow.
    let spec = json!({"certificates": {"rootCaCertificateDuration": "175200h", "leafCertificateDuration": "87600h"}});
    let mut observed = created(&spec);
    settle(&mut observed);
    assert_eq!(left(secret(&mut observed, Material::ClusterAuthority)), 7300);
    assert_eq!(left(secret(&mut observed, Material::Scheduler)), 3650);
}

#[test]
fn a_renewal_restarts_nobody() {
    let mut observed = all_ready(&json!({}));
    let before = checked(&observed).objects;
    for material in Material::ALL.into_iter().filter(|material| material.issuer().is_some()) {
        if material == Material::KonnectivityServer {
            // The one that is read only at the start.
            continue;
        }
        let facts = secret(&mut observed, material);
        facts.fingerprint = format!("renewed {material}");
    }
    let plan = checked(&observed);
    assert_eq!(plan.objects, before);
    // The running pod is told, by an annotation of its own.
    assert_eq!(plan.steps.len(), 1);
    assert!(matches!(plan.steps.iter().next(), Some(Step::RefreshPod { .. })));
    secret(&mut observed, Material::KonnectivityServer).fingerprint = "renewed".to_owned();
    assert_ne!(checked(&observed).objects, before);
}

#[test]
fn token_and_encryption_keys_are_for_life() {
    let mut observed = all_ready(&json!({}));
    for material in
        [Material::ServiceAccountKeys, Material::EncryptionConfiguration, Material::ClusterAuthority]
    {
        let facts = secret(&mut observed, material);
        facts.intent = Some("of another Hangar".to_owned());
    }
    observed.now = observed.now.checked_add(days(30)).unwrap();
    assert_eq!(mints(&checked(&observed)), []);
}

#[test]
fn a_leaf_that_ends_with_its_authority_is_not_renewed_for_ever() {
    let mut observed = all_ready(&json!({}));
    let end = observed.now.checked_add(days(1)).unwrap();
    let start = observed.now.checked_sub(days(300)).unwrap();
    for material in [Material::ClusterAuthority, Material::Scheduler] {
        let facts = secret(&mut observed, material);
        (facts.not_before, facts.not_after) = (Some(start), Some(end));
    }
    let plan = checked(&observed);
    assert_eq!(mints(&plan), []);
    assert!(plan.report.waits.iter().any(|wait| wait.what.contains("demo-ca")), "{:?}", plan.report);
    observed.now = end;
    assert_eq!(condition_status(&checked(&observed), condition::CERTIFICATES_VALID), "False Expired");
}

#[test]
fn people_may_bring_their_own_authority() {
    let mut observed = created(&json!({}));
    let given = SecretFacts { fingerprint: "theirs".to_owned(), ..SecretFacts::default() };
    observed.secrets.insert(Material::ClusterAuthority, Read::One(given));
    settle(&mut observed);
    assert_eq!(secret(&mut observed, Material::ApiServer).issuer.as_deref(), Some("theirs"));
    // And it stays theirs in the end.
    observed.control_plane.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now));
    let deletes = checked(&observed).steps.iter().filter(|step| matches!(step, Step::Delete { .. })).count();
    assert_eq!(deletes, Material::ALL.len() - 2, "all but theirs and the one that is not published yet");
}

#[test]
fn somebody_elses_secret_is_left_alone() {
    let mut observed = created(&json!({}));
    observed.secrets.insert(Material::Scheduler, Read::One(SecretFacts::default()));
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, condition::CERTIFICATES_VALID), "False NameTaken");
    assert!(!mints(&plan).contains(&Material::Scheduler));
}

#[test]
fn another_authority_means_other_leaves() {
    let mut observed = all_ready(&json!({}));
    secret(&mut observed, Material::EtcdAuthority).fingerprint = "another".to_owned();
    let expected = [Material::ApiServerEtcdClient, Material::EtcdServer, Material::EtcdPeer];
    assert_eq!(mints(&checked(&observed)), expected);
}

// Order and gates.

#[test]
fn nothing_starts_before_what_it_needs() {
    let mut observed = created(&json!({}));
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "StatefulSet"), ["demo-etcd"]);
    assert_eq!(kinds(&plan, "Deployment"), Vec::<String>::new());
    assert_eq!(kinds(&checked(&etcd_started(&json!({}))), "Deployment"), ["demo-apiserver"]);
    let all = ["demo-apiserver", "demo-controller-manager", "demo-scheduler"];
    assert_eq!(kinds(&checked(&api_server_ready(&json!({}))), "Deployment"), all);
}

#[test]
fn what_exists_stays_whatever_its_gate_says() {
    let mut observed = all_ready(&json!({}));
    observed.etcd_pods = Read::Absent;
    observed.api_server = Read::One(workload("api-server", 1, 0, "v1.34.10"));
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "Deployment").len(), 3);
    assert_eq!(condition_status(&plan, condition::AVAILABLE), "False NoAPIServer");
    // Once served is served for ever; serving now is another matter.
    assert_eq!(plan.status.initialized, Some(true));
    assert_eq!(plan.status.ready, Some(false));
}

#[test]
fn nodes_may_join_before_the_tenant_is_furnished() {
    let mut observed = api_server_ready(&json!({}));
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(plan.status.initialized, Some(true));
    assert_eq!(plan.status.initialization.clone().unwrap().control_plane_initialized, Some(true));
    assert!(condition_status(&plan, condition::WORKLOAD_READY).starts_with("Unknown"));
}

#[test]
fn one_member_is_no_quorum_of_three() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    observed.etcd = Read::One(workload("etcd", 3, 1, "3.6.16-0"));
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, condition::ETCD_CLUSTER_HEALTHY), "False NoQuorum");
    assert_eq!(condition_status(&plan, condition::AVAILABLE), "False NoQuorum");
    observed.etcd = Read::One(workload("etcd", 3, 2, "3.6.16-0"));
    assert_eq!(condition_status(&checked(&observed), condition::ETCD_CLUSTER_HEALTHY), "True Quorum");
}

#[test]
fn the_number_of_members_is_that_of_the_first_start() {
    let mut observed = all_ready(&json!({}));
    let before = checked(&observed).objects;
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().replicas = Some(3);
    let plan = checked(&observed);
    assert_eq!(plan.objects, before);
    assert!(plan.report.decisions.iter().any(|decision| decision.what.contains("keep 1 etcd members")));
}

#[test]
fn controllers_and_addons_never_lead_the_oldest_api_server() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.spec.version = "v1.35.8".to_owned();
    if let Read::One(facts) = &mut observed.api_server {
        facts.version = Some("v1.35.8".to_owned());
        (facts.existing, facts.updated) = (2, 1);
    }
    let old = PodFacts { is_ready: true, ..pod("demo-apiserver-1", "v1.34.10") };
    let new = PodFacts { is_ready: true, ..pod("demo-apiserver-2", "v1.35.8") };
    observed.api_server_pods = Read::Many(vec![old, new.clone()]);
    let image = |plan: &Plan, name: &str| {
        object(plan, "Deployment", name)["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    let plan = checked(&observed);
    assert_eq!(image(&plan, "demo-apiserver"), "registry.k8s.io/kube-apiserver:v1.35.8");
    assert_eq!(image(&plan, "demo-controller-manager"), "registry.k8s.io/kube-controller-manager:v1.34.10");
    assert_eq!(image(&plan, "demo-scheduler"), "registry.k8s.io/kube-scheduler:v1.34.10");
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::ApplyTenant { .. })), "{:?}", plan.steps);
    assert_eq!(plan.status.version.as_deref(), Some("v1.34.10"));
    assert!(condition_status(&plan, condition::ROLLING_OUT).starts_with("True"));
    observed.api_server_pods = Read::One(new);
    let plan = checked(&observed);
    assert_eq!(image(&plan, "demo-scheduler"), "registry.k8s.io/kube-scheduler:v1.35.8");
    assert_eq!(plan.status.version.as_deref(), Some("v1.35.8"));
    assert!(plan.steps.iter().any(|step| matches!(step, Step::ApplyTenant { .. })));
}

#[test]
fn leaders_are_elected_even_when_there_is_one() {
    let plan = checked(&all_ready(&json!({})));
    for name in ["demo-controller-manager", "demo-scheduler"] {
        assert!(arguments(&plan, name).contains("--leader-elect=true"));
    }
    let manager = arguments(&plan, "demo-controller-manager");
    // Without both it exits instead of waiting for the API server.
    assert!(manager.iter().any(|flag| flag.starts_with("--client-ca-file=")));
    assert!(manager.iter().any(|flag| flag.starts_with("--requestheader-client-ca-file=")));
    assert!(manager.contains("--allocate-node-cidrs=true"));
}

// Values.

#[test]
fn a_file_has_durations_in_nanoseconds() {
    let spec = json!({"etcd": {"replicas": 1, "args": {"heartbeat-interval": "200", "corrupt-check-time": "1m", "pre-vote": "false"}}});
    let plan = checked(&etcd_started(&spec));
    let text =
        object(&plan, "ConfigMap", "demo-etcd")["data"]["demo-etcd-0.yaml"].as_str().unwrap().to_owned();
    let file: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(file["watch-progress-notify-interval"], 5_000_000_000_u64);
    assert_eq!(file["corrupt-check-time"], 60_000_000_000_u64);
    assert_eq!(file["heartbeat-interval"], 200);
    assert_eq!(file["pre-vote"], false);
    assert_eq!(file["quota-backend-bytes"], 6_442_450_944_u64);
    assert_eq!(file["client-transport-security"]["client-cert-auth"], true);
}

#[test]
fn what_the_control_plane_needs_wins_over_given_flags() {
    let spec =
        json!({"deployment": {"apiServer": {"args": {"etcd-servers": "https://elsewhere", "v": "4"}}}});
    let plan = checked(&etcd_started(&spec));
    let flags = arguments(&plan, "demo-apiserver");
    assert!(flags.contains("--v=4"));
    assert!(flags.contains("--etcd-servers=https://etcd0-demo.team.svc:2379"));
    assert!(plan.report.decisions.iter().any(|decision| decision.what.contains("--etcd-servers")));
}

#[test]
fn one_api_server_sends_nobody_away() {
    let goaway = |replicas: i32| {
        let plan = checked(&etcd_started(&json!({"replicas": replicas})));
        arguments(&plan, "demo-apiserver").contains("--goaway-chance=0.001")
    };
    assert!(!goaway(1) && goaway(2));
}

#[test]
fn workers_read_their_own_paths_and_only_fields_they_know() {
    let observed = all_ready(&json!({}));
    let text = |name: &str, key: &str| {
        let object = tenant_object(&observed, "ConfigMap", name).unwrap();
        serde_saphyr::from_str::<Value>(object["data"][key].as_str().unwrap()).unwrap()
    };
    assert_eq!(text("kubeadm-config", "ClusterConfiguration")["certificatesDir"], "/etc/kubernetes/pki");
    let kubelet = text("kubelet-config", "kubelet");
    assert_eq!(kubelet["failCgroupV1"], false);
    assert_eq!(kubelet["authentication"]["x509"]["clientCAFile"], "/etc/kubernetes/pki/ca.crt");
    assert_eq!(kubelet.as_object().unwrap().len(), 10);
    assert_eq!(
        text("kube-proxy", "config.conf")["conntrack"],
        json!({
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
        })
    );
    assert_eq!(
        text("cluster-info", "kubeconfig")["clusters"][0]["cluster"]["server"],
        "https://192.0.2.10:6443"
    );
}

#[test]
fn images_are_those_that_exist() {
    let observed = all_ready(&json!({}));
    let mut images = BTreeSet::new();
    let objects = checked(&observed).objects.into_iter().chain(tenant_objects(&observed));
    for object in objects {
        let containers =
            object.data["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten();
        images.extend(containers.map(|container| container["image"].as_str().unwrap().to_owned()));
    }
    let expected = [
        "registry.k8s.io/coredns/coredns:v1.14.7",
        "registry.k8s.io/etcd:3.6.16-0",
        "registry.k8s.io/kas-network-proxy/proxy-agent:v0.34.0",
        "registry.k8s.io/kas-network-proxy/proxy-server:v0.34.0",
        "registry.k8s.io/kube-apiserver:v1.34.10",
        "registry.k8s.io/kube-controller-manager:v1.34.10",
        "registry.k8s.io/kube-proxy:v1.34.10",
        "registry.k8s.io/kube-scheduler:v1.34.10",
    ];
    assert_eq!(images.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn two_families_are_two_ranges() {
    let mut observed = etcd_started(&json!({}));
    if let Read::One(cluster) = &mut observed.cluster {
        cluster.service_ranges = vec!["10.96.0.0/16".to_owned(), "fd00:96::/112".to_owned()];
        cluster.pod_ranges = vec!["10.244.0.0/16".to_owned(), "fd00:244::/56".to_owned()];
    }
    settle(&mut observed);
    let flags = arguments(&checked(&observed), "demo-apiserver");
    assert!(flags.contains("--service-cluster-ip-range=10.96.0.0/16,fd00:96::/112"), "{flags:?}");
}

#[test]
fn wrong_input_is_refused_with_its_field() {
    let refused = |spec: Value, change: fn(&mut ClusterFacts)| {
        let mut observed = created(&spec);
        if let Read::One(cluster) = &mut observed.cluster {
            change(cluster);
        }
        let plan = checked(&observed);
        assert!(plan.objects.is_empty() && plan.steps.is_empty());
        let found =
            plan.status.conditions.into_iter().find(|one| one.type_ == condition::SPECIFICATION_VALID);
        found.unwrap().message
    };
    let same = |_: &mut ClusterFacts| {};
    assert!(refused(json!({"version": "v1.34"}), same).contains("spec.version"));
    assert!(refused(json!({"version": "v1.30.1"}), same).contains("1.31 to 1.37"));
    assert!(refused(json!({"etcd": {"replicas": 2}}), same).contains("spec.etcd.replicas"));
    assert!(refused(json!({"etcd": {"volumeSize": "much"}}), same).contains("spec.etcd.volumeSize"));
    let message = refused(json!({}), |cluster| cluster.service_ranges = vec!["10.96.0.0/29".to_owned()]);
    assert!(message.contains("services.cidrBlocks") && message.contains("too small"), "{message}");
    let message = refused(json!({}), |cluster| cluster.pod_ranges = vec!["nowhere".to_owned()]);
    assert!(message.contains("pods.cidrBlocks[0]"), "{message}");
    let message = refused(json!({}), |cluster| cluster.pod_ranges = vec!["10.96.128.0/17".to_owned()]);
    assert!(message.contains("overlaps"), "{message}");
    assert!(refused(json!({}), |cluster| cluster.api_server_port = Some(8132)).contains("apiServerPort"));
}

#[test]
fn settings_without_effect_are_said_to_be() {
    let spec =
        json!({"etcd": {"replicas": 1, "backup": {"schedule": "@daily", "secret": {"name": "bucket"}}}});
    let mut observed = etcd_started(&spec);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, condition::SETTINGS_EFFECTIVE), "False NotBuilt");
    observed.control_plane.status = Some(plan.status.clone());
    // The same again is the same: no status is written for nothing.
    observed.now = observed.now.checked_add(days(1)).unwrap();
    assert_eq!(checked(&observed).status.conditions, plan.status.conditions);
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().backup = None;
    assert_eq!(condition_status(&checked(&observed), condition::SETTINGS_EFFECTIVE), "");
}

// Reads that failed.

#[test]
fn nothing_follows_from_a_failed_read() {
    let unknown = || "the watch is not synced";
    let mut observed = all_ready(&json!({}));
    observed.cluster = Read::unknown(unknown());
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());

    let mut observed = all_ready(&json!({}));
    for read in observed.secrets.values_mut() {
        *read = Read::unknown(unknown());
    }
    let plan = checked(&observed);
    assert_eq!(mints(&plan), []);
    // Its template names what was not read: left as it is, it rolls nobody.
    assert_eq!(kinds(&plan, "Deployment"), ["demo-controller-manager", "demo-scheduler"]);

    // A certificate does not lose its names because the Service could not be read.
    let mut observed = all_ready(&json!({}));
    observed.service = Read::unknown(unknown());
    assert_eq!(mints(&checked(&observed)), []);

    let mut observed = all_ready(&json!({}));
    observed.etcd = Read::unknown(unknown());
    observed.api_server = Read::unknown(unknown());
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "StatefulSet"), Vec::<String>::new());
    assert_eq!(condition_status(&plan, condition::AVAILABLE), "Unknown NotRead");
    assert_eq!(plan.status.ready_replicas, Some(1), "what was not read stays");

    let mut observed = all_ready(&json!({}));
    observed.control_plane.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now));
    for read in [&mut observed.api_server, &mut observed.controller_manager, &mut observed.scheduler] {
        *read = Read::unknown(unknown());
    }
    assert!(checked(&observed).steps.is_empty(), "etcd must not go before API servers are seen to be gone");
}

#[test]
fn a_strange_epoch_is_not_rendered() {
    let mut observed = all_ready(&json!({}));
    let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
    annotations.insert(super::super::names::EPOCH_ANNOTATION.to_owned(), "2".to_owned());
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());
    assert_eq!(condition_status(&plan, condition::SPECIFICATION_VALID), "False NewerEpoch");
    assert_eq!(condition_status(&plan, condition::AVAILABLE), "True Available");
}

// Endpoint and tenant.

#[test]
fn a_published_endpoint_is_never_changed() {
    let mut observed = all_ready(&json!({}));
    if let Read::One(service) = &mut observed.service {
        service.ingress_ips = vec!["192.0.2.99".to_owned()];
    }
    let plan = checked(&observed);
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::PublishEndpoint(_))));
    assert_eq!(condition_status(&plan, condition::ENDPOINT_READY), "False AddressChanged");
    // The certificate has both.
    let mint = plan.steps.iter().find_map(|step| match step {
        Step::Mint(mint) if mint.material == Material::ApiServer => Some(mint),
        _ => None,
    });
    let addresses = &mint.unwrap().content.intent().unwrap().ip_addresses;
    for address in [ADDRESS, "192.0.2.99"] {
        assert!(addresses.contains(&address.parse::<IpAddr>().unwrap()));
    }
}

#[test]
fn an_endpoint_of_the_infrastructures_own_is_a_conflict() {
    let mut observed = all_ready(&json!({}));
    if let Read::One(infrastructure) = &mut observed.infrastructure {
        infrastructure.endpoint = Endpoint { host: "198.51.100.1".to_owned(), port: 6443 };
    }
    let plan = checked(&observed);
    assert!(!plan.steps.iter().any(|step| matches!(step, Step::PublishInfrastructureEndpoint { .. })));
    assert_eq!(condition_status(&plan, condition::ENDPOINT_READY), "False Conflict");
}

#[test]
fn a_load_balancer_with_a_name_only_works_but_for_pods() {
    let mut observed = api_server_ready(&json!({}));
    if let Read::One(service) = &mut observed.service {
        service.ingress_ips.clear();
        service.ingress_hostnames = vec!["lb.example.org".to_owned()];
    }
    settle(&mut observed);
    reach_tenant(&mut observed);
    settle(&mut observed);
    let plan = checked(&observed);
    let endpoint = observed.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
    assert_eq!(endpoint.to_string(), "lb.example.org:6443");
    assert!(tenant_object(&observed, "EndpointSlice", "kubernetes").is_none());
    assert!(plan.report.waits.iter().any(|wait| wait.what.contains("besides its name")));
    let agent = tenant_object(&observed, "Deployment", "konnectivity-agent").unwrap();
    assert!(agent["spec"]["template"]["spec"].get("hostAliases").is_none());
    assert!(agent.to_string().contains("--proxy-server-host=lb.example.org"));
}

#[test]
fn exposures_that_are_not_built_say_so_and_stop_nothing_else() {
    let mut observed = created(&json!({"gateway": {"namespace": "infra", "name": "shared"}}));
    settle(&mut observed);
    observed.service =
        Read::One(ServiceFacts { ingress_ips: vec![ADDRESS.to_owned()], ..ServiceFacts::default() });
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, condition::ENDPOINT_READY), "False ExposureNotBuilt");
    assert_eq!(kinds(&plan, "StatefulSet"), ["demo-etcd"]);
}

#[test]
fn node_ports_and_cluster_addresses_are_endpoints_too() {
    let endpoint = |spec: Value| {
        let mut observed = created(&spec);
        settle(&mut observed);
        observed.service = Read::One(ServiceFacts {
            cluster_ip: Some("10.0.0.7".to_owned()),
            node_ports: [("https".to_owned(), 31443), ("konnectivity".to_owned(), 31132)].into(),
            ..ServiceFacts::default()
        });
        settle(&mut observed);
        let before = checked(&observed).objects;
        let published = observed.control_plane.spec.settings.control_plane_endpoint.clone().unwrap();
        assert_eq!(checked(&observed).objects, before);
        published.to_string()
    };
    assert_eq!(endpoint(json!({"exposure": {"type": "ClusterIP"}})), "10.0.0.7:6443");
    let node_port = json!({"exposure": {"type": "NodePort", "nodePort": {"addresses": ["203.0.113.5"]}}});
    assert_eq!(endpoint(node_port), "203.0.113.5:31443");
}

#[test]
fn the_kubernetes_service_never_loses_its_endpoints() {
    let mut observed = all_ready(&json!({}));
    assert!(arguments(&checked(&observed), "demo-apiserver").contains("--endpoint-reconciler-type=none"));
    // Even while no API server is ready.
    observed.api_server = Read::One(workload("api-server", 1, 0, "v1.34.10"));
    let slice = tenant_object(&observed, "EndpointSlice", "kubernetes").unwrap();
    assert_eq!(slice["endpoints"][0]["addresses"][0], ADDRESS);
    assert_eq!(slice["ports"][0]["port"], 6443);
    assert!(tenant_object(&observed, "Endpoints", "kubernetes").is_some());
}

#[test]
fn addons_are_never_scaled_to_none() {
    let mut observed = all_ready(&json!({}));
    let replicas = |observed: &Observed, nodes: u32| {
        let mut observed = observed.clone();
        if let Read::One(tenant) = &mut observed.tenant {
            tenant.nodes = nodes;
        }
        tenant_object(&observed, "Deployment", "coredns").unwrap()["spec"]["replicas"].as_i64().unwrap()
    };
    assert_eq!((replicas(&observed, 0), replicas(&observed, 1), replicas(&observed, 9)), (1, 1, 2));
    observed.control_plane.spec.settings.coredns = serde_json::from_value(json!({"replicas": 0})).unwrap();
    assert_eq!(replicas(&observed, 9), 1);
}

#[test]
fn drift_is_repaired_and_foreign_objects_are_not_touched() {
    let mut observed = all_ready(&json!({}));
    let Read::One(tenant) = &mut observed.tenant else { panic!() };
    let find = |tenant: &TenantFacts, kind: &str, name: &str| {
        tenant.objects.keys().find(|object| object.kind == kind && object.name == name).cloned().unwrap()
    };
    let drifted = find(tenant, "ConfigMap", "coredns");
    let foreign = find(tenant, "DaemonSet", "kube-proxy");
    if let Some(TenantObject::Ours { is_drifted, .. }) = tenant.objects.get_mut(&drifted) {
        *is_drifted = true;
    }
    tenant.objects.insert(foreign, TenantObject::Foreign);
    let plan = checked(&observed);
    let steps: Vec<String> = plan.steps.iter().map(|step| flow::Step::id(step).to_string()).collect();
    assert_eq!(steps, ["apply tenant ConfigMap kube-system/coredns"]);
    assert_eq!(condition_status(&plan, condition::WORKLOAD_READY), "False NameTaken");
    assert_eq!(condition_status(&plan, condition::AVAILABLE), "True Available");
}

#[test]
fn kube_proxy_goes_when_it_is_left_out() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.spec.settings.kube_proxy =
        serde_json::from_value(json!({"disabled": true})).unwrap();
    let plan = checked(&observed);
    let deleted: Vec<String> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::DeleteTenant { object, .. } => Some(object.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(deleted, ["DaemonSet kube-system/kube-proxy", "ConfigMap kube-system/kube-proxy"]);
}

#[test]
fn agents_restart_for_another_authority() {
    let mut observed = all_ready(&json!({}));
    let template = |observed: &Observed| {
        tenant_object(observed, "Deployment", "konnectivity-agent").unwrap()["spec"]["template"].clone()
    };
    let before = template(&observed);
    secret(&mut observed, Material::ClusterAuthority).certificate = Some("another\n".to_owned());
    assert_ne!(template(&observed), before);
}

#[test]
fn at_rest_nothing_is_done_until_the_first_renewal() {
    let mut observed = all_ready(&json!({}));
    let plan = checked(&observed);
    assert!(plan.steps.is_empty());
    let renewal = secret(&mut observed, Material::ApiServer).renew_at().unwrap();
    assert_eq!(plan.wake, Wake::At(renewal));
    observed.control_plane.status = Some(plan.status.clone());
    observed.now = observed.now.checked_add(days(10)).unwrap();
    assert_eq!(checked(&observed).status, plan.status, "time alone writes nothing");
    observed.now = renewal;
    assert!(!checked(&observed).steps.is_empty());
}

#[test]
fn a_deleted_control_plane_that_nobody_owned_is_let_go() {
    let mut observed = created(&json!({}));
    observed.cluster = Read::Absent;
    observed.control_plane.metadata.owner_references = None;
    observed.control_plane.metadata.finalizers =
        Some(vec![hangar_api::names::HOSTED_CONTROL_PLANE_FINALIZER.to_owned()]);
    assert_eq!(condition_status(&checked(&observed), condition::AVAILABLE), "False NoOwner");
    observed.control_plane.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now));
    let plan = checked(&observed);
    assert!(matches!(plan.steps.iter().next(), Some(Step::Release { .. })));
}

#[test]
fn facts_of_a_secret_survive_its_annotations() {
    let mut observed = all_ready(&json!({}));
    let facts = secret(&mut observed, Material::ClusterAuthority).clone();
    let metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        uid: facts.uid.clone(),
        annotations: Some(facts.annotations()),
        ..Default::default()
    };
    assert_eq!(SecretFacts::of(&metadata), Some(facts));
    assert_eq!(SecretFacts::of(&k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta::default()), None);
}

/// Everything ready, by API servers and members.
static READY: std::sync::LazyLock<Vec<Observed>> = std::sync::LazyLock::new(|| {
    let sizes = [(1, 1), (2, 3), (3, 5)];
    sizes
        .map(|(replicas, members)| all_ready(&json!({"replicas": replicas, "etcd": {"replicas": members}})))
        .into()
});

fn change<T>(read: &mut Read<T>, state: u8) {
    match state {
        0 => *read = Read::Absent,
        1 => *read = Read::unknown("not read"),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever is absent, unknown or there: plans are made, and pass every check.
    #[test]
    fn every_observation_has_a_plan(
        states in proptest::collection::vec(0_u8..3, 30),
        size in 0_usize..3,
        is_deleting: bool,
    ) {
        let mut observed = READY[size].clone();
        let mut states = states.into_iter();
        let mut next = || states.next().unwrap_or_default();
        for read in observed.secrets.values_mut() {
            change(read, next());
        }
        for read in [&mut observed.etcd, &mut observed.api_server, &mut observed.controller_manager, &mut observed.scheduler] {
            let state = next();
            // A workload that exists mounts Secrets that may be gone: that is no plan's fault.
            change(read, state.min(1));
        }
        change(&mut observed.etcd_pods, next());
        change(&mut observed.api_server_pods, next());
        change(&mut observed.service, next());
        change(&mut observed.infrastructure, next());
        if next() == 0 {
            observed.tenant = Read::unknown("not reached");
        }
        if is_deleting {
            observed.control_plane.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now));
        }
        checked(&observed);
    }
}

#[test]
fn a_lost_answer_changes_nothing_that_is_known() {
    let mut observed = created(&json!({}));
    let plan = checked(&observed);
    let step = plan.steps.iter().next().unwrap();
    let before = format!("{observed:?}");
    for outcome in [Outcome::Lost, Outcome::Refused("no".to_owned())] {
        observed.fold(step, &outcome);
        assert_eq!(format!("{observed:?}"), before);
    }
    assert!(matches!(step, Step::Claim(_)));
    assert!(Content::ServiceAccountKeys.is_irreplaceable());
}

/// A name server that tolerates everything lands on nodes that are broken, and stays there.
#[test]
fn only_what_makes_a_node_ready_tolerates_one_that_is_not() {
    let observed = all_ready(&json!({}));
    let tolerates = |name: &str| {
        let object = tenant_object(&observed, "Deployment", name).unwrap();
        let tolerations = object["spec"]["template"]["spec"]["tolerations"].clone();
        let tolerations = tolerations.as_array().unwrap().clone();
        assert!(tolerations.iter().all(|toleration| toleration.get("key").is_some()), "{name}");
        tolerations.iter().any(|toleration| toleration["key"] == "node.kubernetes.io/not-ready")
    };
    assert!(tolerates("konnectivity-agent"));
    assert!(!tolerates("coredns"));
}
