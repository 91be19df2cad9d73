//! A webhook and an aggregated API that pods of a tenant serve. This process answers, in the network of each pod.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_machine::net::Netns;
use hangar_parts::images::Upstream;
use hangar_pki::{Authority, Intent, KeyPairPem, Usage, issue};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::environment::Processes;
use crate::kubectl::Kubectl;
use crate::server::{Request, serve, verdict, webhook};
use crate::tenant::manifest;
use crate::waiting::eventually;

const LIFETIME: Duration = Duration::from_hours(1);
/// Where the pods listen.
pub(crate) const PORT: u16 = 8443;
const GROUP: &str = "extension.hangar.test";
const REFUSAL: &str = "the pod says no";
/// A ConfigMap that the webhook lets pass, as all but one.
pub(crate) const ALLOWED: &str = "allowed";
pub(crate) const GREETINGS: &str = "/apis/extension.hangar.test/v1/greetings";
pub(crate) const GREETING: &str = "hello";
/// Of the pods that are kept, and where they have their pages.
const NAME: &str = "extension";
const DIRECTORY: &str = "/www/extension";

/// Registers what the pods behind a Service of the namespace `default` serve.
pub(crate) fn register(kubectl: &Kubectl, service: &str) -> KeyPairPem {
    let authority =
        Authority::self_signed(&Intent::authority("extension", LIFETIME), Timestamp::now()).unwrap();
    let intent = Intent::new(service, Usage::Server, LIFETIME).dns_names([format!("{service}.default.svc")]);
    let pair = issue(&authority, &intent, Timestamp::now()).unwrap();
    let bundle = STANDARD.encode(&authority.pair().certificate);
    let service = json!({"name": service, "namespace": "default"});
    let registered = webhook("pod.hangar.test", &json!({"service": service, "caBundle": bundle}));
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{GROUP}")},
        "spec": {
            "group": GROUP, "version": "v1", "service": service, "caBundle": bundle,
            "groupPriorityMinimum": 1000, "versionPriority": 10,
        },
    });
    kubectl.apply(&manifest(&[registered, api_service]));
    pair
}

/// Serves it in the network of a pod.
pub(crate) fn serve_in(pod: &Netns, pair: &KeyPairPem) {
    serve(pod, SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)), pair, answer);
}

/// Waits until the API server asks the webhook: without an answer of the pod everything would be refused, and with another
/// reason.
pub(crate) fn is_asked(kubectl: &Kubectl) {
    eventually("the pod refuses", || {
        let said = kubectl.attempt(&["create", "configmap", "refused", "--dry-run=server"]);
        let error = said.err().unwrap_or_else(|| "nobody was asked".to_owned());
        crate::waiting::is(error.contains(REFUSAL), || error)
    });
    eventually("the pod allows", || {
        kubectl.attempt(&["create", "configmap", ALLOWED, "--dry-run=server"]).map(drop)
    });
}

/// Waits until the API server serves what the pod serves.
pub(crate) fn is_served(kubectl: &Kubectl) {
    let (service, greetings) = (format!("apiservice/v1.{GROUP}"), format!("greetings.{GROUP}"));
    kubectl.succeed(&["wait", "--for=condition=Available", &service, "--timeout=10m"]);
    let expected = format!("greeting.{GROUP}/{GREETING}");
    eventually("the pod's API is read", || {
        let said = kubectl.attempt(&["get", &greetings, "-o", "name"])?;
        crate::waiting::is(said.trim() == expected, || said)
    });
}

/// What the pods answer.
fn answer(request: &Request) -> Option<Value> {
    let version = format!("{GROUP}/v1");
    match request.path.as_str() {
        "/apis/extension.hangar.test/v1" => Some(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
            "resources": [{
                "name": "greetings", "singularName": "greeting", "kind": "Greeting", "namespaced": false,
                "verbs": ["list"],
            }],
        })),
        GREETINGS => Some(json!({
            "kind": "GreetingList", "apiVersion": version, "metadata": {},
            "items": [{"kind": "Greeting", "apiVersion": version, "metadata": {"name": GREETING}}],
        })),
        "/" => {
            let is_allowed = request.body["request"]["name"] != "refused";
            Some(verdict(request, is_allowed, REFUSAL))
        }
        _ => None,
    }
}

/// Pods of a Deployment that serve it wherever they run, as an owner has them who wants to be served during upgrades: two,
/// of which one stays, and each goes on for a while when it is to end.
pub(crate) struct Kept(#[allow(dead_code, reason = "the thread ends with it")] Arc<()>);

/// Returns when all of it works.
pub(crate) fn keep(kubectl: &Kubectl, processes: Processes) -> Kept {
    kubectl.apply(&manifest(&pods()));
    let pair = register(kubectl, NAME);
    let life = Arc::new(());
    let held = Arc::downgrade(&life);
    std::thread::spawn(move || {
        let mut served = BTreeSet::new();
        while held.strong_count() > 0 {
            for process in processes.find(&["httpd", "-f", "-p", "8080", "-h", DIRECTORY]) {
                if served.insert(process.clone()) {
                    serve_in(&process.network(), &pair);
                }
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    kubectl.succeed(&["rollout", "status", "deployment/extension", "--timeout=10m"]);
    is_asked(kubectl);
    is_served(kubectl);
    Kept(life)
}

fn pods() -> [Value; 3] {
    let labels = json!({"app": NAME});
    let script = format!("mkdir -p {DIRECTORY}; exec httpd -f -p 8080 -h {DIRECTORY}");
    let spread = json!({
        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 12,
                    "topologySpreadConstraints": [spread],
                    "containers": [{
                        "name": NAME,
                        "image": Upstream::Flannel.reference(),
                        "command": ["/bin/sh", "-c", script],
                        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
                        "lifecycle": {"preStop": {"sleep": {"seconds": 10}}},
                    }],
                },
            },
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"selector": labels, "ports": [{"port": 443, "targetPort": PORT}]},
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    });
    [deployment, service, budget]
}
