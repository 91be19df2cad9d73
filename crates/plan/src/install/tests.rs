//! Goldens of installations, without the CRDs, which have their own in `deploy/crds`.

use super::*;
use crate::controllers::Controller;

fn options(controllers: &str, replicas: u16) -> Options {
    Options {
        namespace: DEFAULT_NAMESPACE.to_owned(),
        image: "registry.example/hangar:v1".to_owned(),
        replicas,
        controllers: controllers.parse().unwrap(),
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
