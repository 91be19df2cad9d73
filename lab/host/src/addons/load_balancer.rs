//! Services of type LoadBalancer: kube-vip answers for their addresses on the private network, and its cloud provider
//! assigns the addresses. The host and every machine on that network reach them.

use hangar_plan::hosted_control_plane::addons::config_map;
use hangar_plan::pieces::{
    daemon_set, deployment, field_variable, pairs, restricted, rule, texts, toleration,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, DeploymentStrategy};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

use super::{AddonOptions, NAMESPACE, pod};

const NAME: &str = "kube-vip";
const ALLOCATOR: &str = "kube-vip-cloud-provider";

/// The settings' name, which the cloud provider expects.
const SETTINGS: &str = "kubevip";

/// A chosen address: both programs honour it.
pub(super) const ADDRESS_ANNOTATION: &str = "kube-vip.io/loadbalancerIPs";

pub(super) fn objects(options: &AddonOptions) -> Vec<Value> {
    let range = format!("{}-{}", options.load_balancer.first, options.load_balancer.last);
    let mut objects = pod::identity(NAMESPACE, NAME, "hangar:kube-vip", speaker_rules());
    objects.push(pod::value(&speaker(options)));
    let role = "hangar:kube-vip-cloud-provider";
    objects.extend(pod::identity(NAMESPACE, ALLOCATOR, role, allocator_rules()));
    objects.push(pod::value(&config_map(NAMESPACE, SETTINGS, [("range-global", range)])));
    objects.push(pod::value(&allocator(options)));
    objects
}

const READ: [&str; 3] = ["get", "list", "watch"];

fn speaker_rules() -> Vec<PolicyRule> {
    vec![
        rule(&[""], &["services", "endpoints", "nodes"], &READ),
        rule(&[""], &["services/status"], &["update"]),
        // It notes on the Service which node answers for it.
        rule(&[""], &["services"], &["update"]),
        rule(&["discovery.k8s.io"], &["endpointslices"], &READ),
        rule(&["coordination.k8s.io"], &["leases"], &["get", "list", "watch", "create", "update"]),
    ]
}

fn allocator_rules() -> Vec<PolicyRule> {
    vec![
        rule(&[""], &["services"], &["get", "list", "watch", "update", "patch"]),
        rule(&[""], &["services/status"], &["update", "patch"]),
        rule(&[""], &["nodes", "namespaces", "configmaps"], &READ),
        rule(&[""], &["events"], &["create", "patch", "update"]),
    ]
}

/// Answers for the addresses (ARP) and writes them into the Services' status. Its address goes on the link as a
/// single one, so no route of the machine changes.
fn speaker(options: &AddonOptions) -> DaemonSet {
    let link = &options.load_balancer.link;
    let mut container = Container {
        args: Some(vec![
            "manager".to_owned(),
            "--arp".to_owned(),
            "--services".to_owned(),
            format!("--interface={link}"),
            format!("--serviceInterface={link}"),
            "--prometheusHTTPServer=127.0.0.1:2112".to_owned(),
        ]),
        security_context: Some(restricted(&["NET_ADMIN", "NET_RAW"])),
        ..pod::container(options, NAME, &options.images.kube_vip, "32Mi")
    };
    container.env.get_or_insert_default().push(field_variable("vip_nodename", "spec.nodeName"));
    let spec = PodSpec {
        host_network: Some(true),
        dns_policy: Some("Default".to_owned()),
        priority_class_name: Some("system-node-critical".to_owned()),
        containers: vec![container],
        ..PodSpec::default()
    };
    let selector = pairs([(pod::NAME_LABEL, NAME)]);
    let everywhere = vec![toleration(None, None)];
    daemon_set(pod::metadata(NAMESPACE, NAME), selector, pod::template(NAME, spec, everywhere))
}

/// Chooses the addresses. One at a time and without an election: after a crash the next one works at once.
fn allocator(options: &AddonOptions) -> Deployment {
    let container = Container {
        args: Some(texts(&["--leader-elect=false", "--secure-port=0", "--webhook-secure-port=0"])),
        ..pod::container(options, ALLOCATOR, &options.images.kube_vip_cloud_provider, "32Mi")
    };
    let spec = PodSpec {
        dns_policy: Some("Default".to_owned()),
        priority_class_name: Some("system-cluster-critical".to_owned()),
        containers: vec![container],
        ..PodSpec::default()
    };
    let strategy = DeploymentStrategy { type_: Some("Recreate".to_owned()), rolling_update: None };
    let selector = pairs([(pod::NAME_LABEL, ALLOCATOR)]);
    let template = pod::template(ALLOCATOR, spec, pod::tolerations(options));
    deployment(pod::metadata(NAMESPACE, ALLOCATOR), 1, strategy, selector, template)
}
