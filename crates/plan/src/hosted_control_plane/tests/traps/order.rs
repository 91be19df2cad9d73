//! Traps about the order in which components start.

use super::*;

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
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "False NoAPIServer");
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
    assert!(condition_status(&plan, conditions::workload_ready::TYPE).starts_with("Unknown"));
}

#[test]
fn one_member_is_no_quorum_of_three() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    observed.etcd = Read::One(workload("etcd", 3, 1, "3.6.16-0"));
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, conditions::etcd_cluster_healthy::TYPE), "False NoQuorum");
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "False NoQuorum");
    observed.etcd = Read::One(workload("etcd", 3, 2, "3.6.16-0"));
    assert_eq!(condition_status(&checked(&observed), conditions::etcd_cluster_healthy::TYPE), "True Quorum");
}

#[test]
fn another_number_of_members_changes_nothing_until_etcd_says_who_its_members_are() {
    let mut observed = all_ready(&json!({}));
    let before = checked(&observed);
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().replicas = Some(3);
    let plan = checked(&observed);
    assert_eq!((plan.objects, plan.steps), (before.objects, before.steps));
    assert_eq!(condition_status(&checked(&observed), conditions::rolling_out::TYPE), "True ResizingEtcd");
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
    let image = |plan: &Plan, name: &str| container(plan, "Deployment", name)["image"].clone();
    let plan = checked(&observed);
    assert_eq!(image(&plan, "demo-apiserver"), "registry.k8s.io/kube-apiserver:v1.35.8");
    assert_eq!(image(&plan, "demo-controller-manager"), "registry.k8s.io/kube-controller-manager:v1.34.10");
    assert_eq!(image(&plan, "demo-scheduler"), "registry.k8s.io/kube-scheduler:v1.34.10");
    assert!(!plan.steps.iter().any(|step| is(step, "apply", "tenant")), "{:?}", plan.steps);
    assert_eq!(plan.status.version.as_deref(), Some("v1.34.10"));
    assert!(condition_status(&plan, conditions::rolling_out::TYPE).starts_with("True"));
    observed.api_server_pods = Read::One(new);
    let plan = checked(&observed);
    assert_eq!(image(&plan, "demo-scheduler"), "registry.k8s.io/kube-scheduler:v1.35.8");
    assert_eq!(plan.status.version.as_deref(), Some("v1.35.8"));
    assert!(plan.steps.iter().any(|step| is(step, "apply", "tenant")));
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
