//! Managers of these tests have the rights that `hangar install` gives them, and no others: a right that is missing fails
//! the test that needs it, and a right that a whole life does not need has a reason here.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use hangar_kit::call::{Answer, Call, CallGate, CallLog, Delivery};
use hangar_plan::install::{self, CONTROLLERS_ROLE, NAME, Options, Target};
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::Testbed;
use http::StatusCode;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

/// What a whole life does not show, with the reason why it is granted.
const BEYOND_A_LIFE: [(&str, &str); 22] = [
    ("create ciliumnetworkpolicies.cilium.io", NEIGHBOURS),
    ("create podmonitors.monitoring.coreos.com", NEIGHBOURS),
    ("delete networkpolicies.networking.k8s.io", NEIGHBOURS),
    ("delete podmonitors.monitoring.coreos.com", NEIGHBOURS),
    ("get ciliumnetworkpolicies.cilium.io", NEIGHBOURS),
    ("get podmonitors.monitoring.coreos.com", NEIGHBOURS),
    ("list ciliumnetworkpolicies.cilium.io", NEIGHBOURS),
    ("list podmonitors.monitoring.coreos.com", NEIGHBOURS),
    ("patch ciliumnetworkpolicies.cilium.io", NEIGHBOURS),
    ("patch podmonitors.monitoring.coreos.com", NEIGHBOURS),
    ("watch ciliumnetworkpolicies.cilium.io", NEIGHBOURS),
    ("watch podmonitors.monitoring.coreos.com", NEIGHBOURS),
    ("create pods/eviction", "no upgrade in that life"),
    ("get *.bootstrap.cluster.x-k8s.io", "a MachineSet reads what it made before an answer was lost"),
    ("get *.controlplane.cluster.x-k8s.io", "admission: a Cluster refers to what does not exist"),
    ("get *.infrastructure.cluster.x-k8s.io", "both"),
    (
        "get clusters.cluster.x-k8s.io",
        "admission: a Machine without a Cluster, a control plane whose Cluster lives",
    ),
    ("update hostedcontrolplanes.controlplane.cluster.x-k8s.io/finalizers", OWNERS),
    ("update kubeadmconfigs.bootstrap.cluster.x-k8s.io/finalizers", OWNERS),
    ("update machinedeployments.cluster.x-k8s.io/finalizers", OWNERS),
    ("update machines.cluster.x-k8s.io/finalizers", OWNERS),
    ("update machinesets.cluster.x-k8s.io/finalizers", OWNERS),
];
/// `hosted_control_plane::neighbours` has them.
const NEIGHBOURS: &str = "no Cilium and no Prometheus Operator in that life";
/// Is asked for by the admission plugin OwnerReferencesPermissionEnforcement, which the testbed has.
const OWNERS: &str = "no call of its own";

/// The configuration of a manager's ServiceAccount, once it may do what `hangar install` lets it do.
pub(crate) fn config(bed: &Testbed, controllers: &str, namespaces: &Namespaces) -> Config {
    let granted = granted(bed, controllers, namespaces);
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(granted))
}

fn options(controllers: &str, namespaces: &Namespaces) -> Options {
    // Managers with different controllers share an API server, so each choice has a manager of its own.
    let namespace = format!("manager-{}", controllers.replace(',', "-"));
    Options {
        target: Target::Service { namespace: namespace.clone() },
        namespace,
        image: "none".to_owned(),
        replicas: 1,
        controllers: controllers.parse().unwrap(),
        namespaces: namespaces.clone(),
        api_server: None,
        limits: None,
    }
}

async fn granted(bed: &Testbed, controllers: &str, namespaces: &Namespaces) -> Config {
    let (options, client) = (options(controllers, namespaces), bed.client());
    for mut object in install::objects(&options).unwrap() {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        match (kind.as_str(), &namespace) {
            ("ClusterRole" | "ClusterRoleBinding", None) => {
                object["metadata"]["name"] = json!(options.namespace);
                if object.get("roleRef").is_some() {
                    object["roleRef"]["name"] = json!(options.namespace);
                }
            }
            ("Role" | "RoleBinding", Some(namespace)) if *namespace != options.namespace => {}
            _ => continue,
        }
        apply(&client, &kind, namespace.as_deref(), &object).await;
    }
    let user = format!("system:serviceaccount:{}:{NAME}", options.namespace);
    let config = bed.config_for(&user, &[]);
    // The API server hears of its own roles a moment later.
    let own = Client::try_from(config.clone()).unwrap();
    let places: Vec<Option<String>> = match namespaces {
        Namespaces::All => vec![None],
        Namespaces::Only(names) => names.iter().cloned().map(Some).collect(),
    };
    for place in places {
        while !may(&own, place.as_deref(), "events.k8s.io", "events", "create").await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    config
}

async fn apply(client: &Client, kind: &str, namespace: Option<&str>, object: &Value) {
    let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await.unwrap();
}

/// As `kubectl auth can-i`.
pub(crate) async fn may(
    client: &Client,
    namespace: Option<&str>,
    group: &str,
    resource: &str,
    verb: &str,
) -> bool {
    let asked = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: namespace.map(str::to_owned),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                verb: Some(verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answered = Api::all(client.clone()).create(&PostParams::default(), &asked).await.unwrap();
    answered.status.unwrap().allowed
}

static FORBIDDEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static ENDING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// In a namespace that is being deleted nothing can be made, whoever asks: the answer is the same as to who has no right.
pub(crate) fn will_end(namespace: &str) {
    ENDING.lock().unwrap().insert(namespace.to_owned());
}

/// Notes every call that the API server forbids.
pub(crate) struct Refusals;

impl CallGate for Refusals {
    fn after(&self, call: &Call, answer: Answer, _: Duration) -> Delivery {
        let is_ending =
            call.namespace.as_ref().is_some_and(|namespace| ENDING.lock().unwrap().contains(namespace));
        if answer == Answer::Status(StatusCode::FORBIDDEN) && !is_ending {
            FORBIDDEN.lock().unwrap().insert(call.to_string());
        }
        Delivery::Deliver
    }
}

/// For the end of every manager: a store that is forbidden only makes reads unknown, which a test may not notice.
pub(crate) fn nothing_was_forbidden() {
    // Taken, so that the next test is not blamed too.
    let forbidden = std::mem::take(&mut *FORBIDDEN.lock().unwrap());
    assert!(forbidden.is_empty() || std::thread::panicking(), "forbidden: {forbidden:#?}");
}

/// Fails for every right of the controllers that none of these calls needed and that has no reason.
pub(crate) fn none_is_too_many(calls: &CallLog) {
    let called: BTreeSet<String> = calls.counts().into_keys().collect();
    let unused: BTreeSet<String> =
        granted_pairs().into_iter().filter(|pair| !is_used(pair, &called)).collect();
    let excused: BTreeSet<String> = BEYOND_A_LIFE.iter().map(|(pair, _)| (*pair).to_owned()).collect();
    let surplus: Vec<&String> = unused.difference(&excused).collect();
    assert!(surplus.is_empty(), "granted, and never used: {surplus:#?}");
    let stale: Vec<&String> = excused.difference(&unused).collect();
    assert!(stale.is_empty(), "excused here, and used or not granted: {stale:#?}");
}

/// Verb and resource of every right of the controllers, named as calls are.
fn granted_pairs() -> BTreeSet<String> {
    let narrow = options("all", &"a".parse().unwrap());
    let roles = install::objects(&narrow).unwrap();
    let is_controllers =
        |object: &&Value| object["kind"] == "Role" && object["metadata"]["name"] == CONTROLLERS_ROLE;
    let rules = roles.iter().find(is_controllers).unwrap()["rules"].as_array().unwrap().clone();
    let mut pairs = BTreeSet::new();
    for rule in rules {
        let texts = |field: &str| -> Vec<String> {
            rule[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        for group in texts("apiGroups") {
            for resource in texts("resources") {
                let (plural, rest) = resource
                    .split_once('/')
                    .map_or((&*resource, String::new()), |(one, rest)| (one, format!("/{rest}")));
                let dot = if group.is_empty() { "" } else { "." };
                pairs.extend(texts("verbs").iter().map(|verb| format!("{verb} {plural}{dot}{group}{rest}")));
            }
        }
    }
    pairs
}

fn is_used(pair: &str, called: &BTreeSet<String>) -> bool {
    let (verb, resource) = pair.split_once(' ').unwrap();
    // Server-side apply creates with both.
    let calls: &[&str] = match verb {
        "create" => &["create", "apply"],
        "patch" => &["patch", "apply"],
        _ => &[verb],
    };
    called.iter().any(|call| {
        let (made, of) = call.split_once(' ').unwrap();
        let is_same = match resource.strip_prefix("*") {
            Some(group) => of.ends_with(group),
            None => of == resource,
        };
        calls.contains(&made) && is_same
    })
}
