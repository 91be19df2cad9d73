//! Goldens of installations, without the CRDs, which have their own in `deploy/crds`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use super::*;
use crate::controllers::Controller;

fn options(controllers: &str, replicas: u16) -> Options {
    Options {
        namespace: DEFAULT_NAMESPACE.to_owned(),
        image: "registry.example/hangar:v1".to_owned(),
        replicas,
        controllers: controllers.parse().unwrap(),
        namespaces: Namespaces::All,
        target: Target::Service { namespace: DEFAULT_NAMESPACE.to_owned() },
        api_server: None,
        limits: None,
    }
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap()
}

fn golden(options: &Options) -> String {
    let objects: Vec<Value> = objects(options)
        .unwrap()
        .into_iter()
        .filter(|object| kind(object) != "CustomResourceDefinition")
        .collect();
    to_yaml(&objects).unwrap()
}

fn names_of(objects: &[Value], wanted: &str) -> Vec<String> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    objects.iter().filter(|object| kind(object) == wanted).map(name).collect()
}

#[test]
fn everything() {
    insta::assert_snapshot!(golden(&options("all", 2)));
}

#[test]
fn beside_another_core_provider() {
    insta::assert_snapshot!(golden(&options("hosted-control-plane", 1)));
}

#[test]
fn every_controller_brings_its_custom_resources_and_no_other() {
    for controller in Controller::ALL {
        let objects = objects(&options(controller.name(), 1)).unwrap();
        let mut expected: Vec<String> = controller.custom_resources().collect();
        expected.sort();
        assert_eq!(names_of(&objects, "CustomResourceDefinition"), expected);
    }
}

#[test]
fn all_controllers_bring_every_custom_resource() {
    let installed = names_of(&objects(&options("all", 1)).unwrap(), "CustomResourceDefinition");
    let generated: Vec<String> =
        hangar_api::crd::all().into_iter().filter_map(|definition| definition.metadata.name).collect();
    assert_eq!(installed, generated);
}

#[test]
fn the_manager_is_granted_no_wildcard() {
    for object in objects(&options("all", 2)).unwrap() {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let texts = |field: &str| -> Vec<String> {
                let values = rule[field].as_array().into_iter().flatten();
                values.map(|value| value.as_str().unwrap().to_owned()).collect()
            };
            // References name kinds of any provider: those groups are granted whole, and nothing else.
            let is_providers = texts("apiGroups").iter().all(|group| group.ends_with(".cluster.x-k8s.io"));
            let fields: &[&str] =
                if is_providers { &["apiGroups", "verbs"] } else { &["apiGroups", "resources", "verbs"] };
            for field in fields {
                assert!(!texts(field).contains(&"*".to_owned()), "{rule}");
            }
        }
    }
}

#[test]
fn a_manager_outside_the_cluster_is_called_by_url() {
    let options = Options { target: Target::Url("https://192.0.2.1:9443/".to_owned()), ..options("all", 1) };
    for object in objects(&options).unwrap() {
        match kind(&object) {
            "MutatingWebhookConfiguration" => {
                assert_eq!(object["webhooks"][0]["clientConfig"]["url"], "https://192.0.2.1:9443/mutate");
            }
            "CustomResourceDefinition" if object["spec"]["versions"].as_array().unwrap().len() > 1 => {
                let client = &object["spec"]["conversion"]["webhook"]["clientConfig"];
                assert_eq!(client["url"], "https://192.0.2.1:9443/convert");
                assert!(client.get("service").is_none());
            }
            _ => {}
        }
    }
}

#[test]
fn a_manager_can_be_told_where_the_api_server_is() {
    let options = Options { api_server: Some(([192, 0, 2, 1], 6443).into()), ..options("all", 1) };
    let deployment =
        objects(&options).unwrap().into_iter().find(|object| object["kind"] == "Deployment").unwrap();
    let variables = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    let value = |name: &str| {
        let found = variables.as_array().unwrap().iter().find(|variable| variable["name"] == name);
        found.unwrap()["value"].clone()
    };
    assert_eq!(value("KUBERNETES_SERVICE_HOST"), "192.0.2.1");
    assert_eq!(value("KUBERNETES_SERVICE_PORT"), "6443");
}

#[test]
fn the_limits_are_a_file_of_the_manager_and_other_limits_are_other_pods() {
    let with = |text: &str| Options { limits: Some(text.to_owned()), ..options("hosted-control-plane", 1) };
    let (first, second) = (with("priorityClasses: [tenants]\n"), with("priorityClasses: []\n"));
    let config_map = document(&workload::limits(&first).unwrap()).unwrap();
    let deployment = |options: &Options| document(&workload::deployment(options)).unwrap();
    insta::assert_snapshot!(to_yaml(&[config_map, deployment(&first)]).unwrap());
    assert_ne!(deployment(&first)["spec"]["template"], deployment(&second)["spec"]["template"]);
    assert_eq!(workload::limits(&options("all", 1)), None);
}

/// A second manager that finds no other host may share one, unless the operator says that there are enough.
#[test]
fn managers_share_no_host_where_there_are_enough() {
    let hosts = |replicas: u16, nodes: &str| {
        let options = Options { limits: Some(nodes.to_owned()), ..options("all", replicas) };
        let deployment = document(&workload::deployment(&options)).unwrap();
        let constraints = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"].clone();
        assert_eq!(constraints[1]["whenUnsatisfiable"], "ScheduleAnyway", "zones: {nodes}");
        assert_eq!(constraints[0]["topologyKey"], "kubernetes.io/hostname");
        constraints[0]["whenUnsatisfiable"].as_str().unwrap().to_owned()
    };
    assert_eq!(hosts(2, "{}"), "ScheduleAnyway");
    assert_eq!(hosts(2, "nodes: 1"), "ScheduleAnyway");
    assert_eq!(hosts(2, "nodes: 2"), "DoNotSchedule");
    assert_eq!(hosts(3, "nodes: 2"), "ScheduleAnyway");
}

/// Of several managers one may go at a time; a drain never waits for a single one, nor for those that are not ready.
#[test]
fn a_drain_leaves_one_manager_and_is_never_held_by_one() {
    let budget = |replicas| {
        let objects = objects(&options("all", replicas)).unwrap();
        objects.into_iter().find(|object| kind(object) == "PodDisruptionBudget")
    };
    assert_eq!(budget(1), None);
    let two = budget(2).unwrap();
    assert_eq!(two["spec"]["minAvailable"], 1);
    assert_eq!(two["spec"]["unhealthyPodEvictionPolicy"], "AlwaysAllow");
}

fn narrow() -> Options {
    Options { namespaces: "a,b".parse().unwrap(), ..options("all", 2) }
}

#[test]
fn some_namespaces_only() {
    insta::assert_snapshot!(golden(&narrow()));
}

/// What is granted in the whole cluster then concerns objects without a namespace, by their names.
#[test]
fn a_manager_of_some_namespaces_is_granted_nothing_in_others() {
    let mut bound = BTreeSet::new();
    for object in objects(&narrow()).unwrap() {
        let rules = object["rules"].as_array().cloned().unwrap_or_default();
        match kind(&object) {
            "ClusterRole" => {
                assert!(
                    !rules.is_empty() && rules.iter().all(|rule| rule["resourceNames"].is_array()),
                    "{rules:?}"
                );
                let groups = rules.iter().flat_map(|rule| rule["apiGroups"].as_array().unwrap());
                let groups: BTreeSet<&str> = groups.map(|group| group.as_str().unwrap()).collect();
                assert_eq!(groups, ["admissionregistration.k8s.io", "apiextensions.k8s.io"].into());
            }
            "RoleBinding" => {
                bound.insert(object["metadata"]["namespace"].as_str().unwrap().to_owned());
                assert_eq!(object["subjects"][0]["namespace"], DEFAULT_NAMESPACE);
            }
            "Deployment" => {
                assert!(object.to_string().contains("\"--namespaces=a,b\""), "{object}");
            }
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                for webhook in object["webhooks"].as_array().unwrap() {
                    let wanted = &webhook["namespaceSelector"]["matchExpressions"][0];
                    assert_eq!(wanted["values"], serde_json::json!(["a", "b"]), "{webhook}");
                }
            }
            _ => {}
        }
    }
    assert_eq!(bound, ["a", "b", DEFAULT_NAMESPACE].map(str::to_owned).into());
}

/// They have no namespace, so who may write in some namespaces only cannot make them.
#[test]
fn priority_classes_are_made_for_control_planes_and_never_preempt() {
    let made = |options: &Options| -> (Vec<String>, bool) {
        let objects = objects(options).unwrap();
        for class in objects.iter().filter(|object| kind(object) == "PriorityClass") {
            assert_eq!(
                (&class["preemptionPolicy"], &class["globalDefault"]),
                (&"Never".into(), &false.into())
            );
        }
        let manager = objects.iter().find(|object| kind(object) == "Deployment").unwrap();
        let arguments = &manager["spec"]["template"]["spec"]["containers"][0]["args"];
        let is_told = arguments.as_array().unwrap().contains(&"--priority-classes".into());
        (names_of(&objects, "PriorityClass"), is_told)
    };
    let both = ["hangar-etcd", "hangar-control-plane"].map(str::to_owned).to_vec();
    assert_eq!(made(&options("all", 1)), (both, true));
    assert_eq!(made(&options("machine", 1)), (Vec::new(), false));
    assert_eq!(made(&narrow()), (Vec::new(), false));
}

/// The manager's own namespace may be one of those that it looks after.
#[test]
fn no_object_is_there_twice() {
    let own =
        Options { namespaces: Namespaces::Only([DEFAULT_NAMESPACE.to_owned()].into()), ..options("all", 2) };
    let mut seen = BTreeSet::new();
    for object in objects(&own).unwrap() {
        let part = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        assert!(seen.insert((kind(&object).to_owned(), part("namespace"), part("name"))), "{object}");
    }
}

#[test]
fn what_an_earlier_choice_of_namespaces_left_is_found() {
    let left = |options: &Options| -> Vec<String> {
        let bindings = rights::role_bindings(&narrow()).into_iter();
        let left = bindings.filter(|binding| is_left_over(options, binding));
        left.filter_map(|binding| binding.metadata.namespace).collect()
    };
    assert_eq!(left(&narrow()), [] as [&str; 0]);
    assert_eq!(left(&Options { namespaces: "b,c".parse().unwrap(), ..narrow() }), ["a"]);
    assert_eq!(left(&Options { namespaces: Namespaces::All, ..narrow() }), ["a", "b"]);
    // Another installation's.
    assert_eq!(left(&Options { namespace: "other".to_owned(), ..options("all", 1) }), [] as [&str; 0]);
}

/// `HANGAR_BLESS=1` writes it.
#[test]
fn the_reference_of_rights_is_what_is_declared() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rights.md");
    let page = reference::page();
    if std::env::var_os("HANGAR_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "{} differs (HANGAR_BLESS=1 regenerates it)", path.display());
}
