//! Checks what every plan must satisfy. It runs on each plan of each test.

use std::collections::BTreeSet;

use hangar_api::names::CLUSTER_NAME_LABEL;
use kube::core::DynamicObject;
use serde_json::Value;

use super::super::names::{
    COMPONENT_LABEL, DESIRED_ANNOTATION, INSTANCE_LABEL, MANAGED_BY_LABEL, VERSION_LABEL,
};
use super::super::*;
use super::reachability::check_isolation;

/// The plan, if nothing is wrong with it.
pub(super) fn checked(observed: &Observed) -> Plan {
    let plan = observed.plan();
    check(observed, &plan);
    let again = observed.plan();
    assert_eq!(format!("{plan:?}"), format!("{again:?}"), "the same observation gave two plans");
    plan
}

fn check(observed: &Observed, plan: &Plan) {
    let mut seen = BTreeSet::new();
    for object in &plan.objects {
        let identity = ObjectIdentity::of(object);
        assert!(seen.insert(identity.clone()), "{identity} is there twice");
        owned(observed, object);
        no_keys(&identity, object);
    }
    for object in plan.objects.iter().filter(|object| is_kind(object, &["Deployment", "StatefulSet"])) {
        template(plan, observed, object);
    }
    selectors(observed, plan);
    check_isolation(observed, plan);
    for step in &plan.steps {
        match step {
            Step::Own(OwnStep::Mint(mint)) => {
                let secret = crate::flow::dynamic(&mint.secret);
                owned(observed, &secret);
                no_keys(&ObjectIdentity::of(&secret), &secret);
                assert_eq!(mint.intent, mint.content.hash());
                assert_eq!(mint.content.issuer().map(|issuer| issuer.material), mint.material.issuer());
            }
            Step::Tenant(TenantStep::Apply { object, .. }) => in_tenant(object),
            _ => {}
        }
    }
    for count in [plan.status.replicas, plan.status.ready_replicas, plan.status.available_replicas] {
        assert!(count.is_some(), "a counter is absent");
    }
    assert_eq!(plan.status.external_managed_control_plane, Some(true));
    for condition in &plan.status.conditions {
        let is_good = matches!(
            (condition.type_.as_str(), condition.status.as_str()),
            ("Paused" | "Deleting" | "RollingOut" | "ScalingUp" | "ScalingDown", "False") | (_, "True")
        );
        assert!(
            is_good || condition.message.contains("must act") || condition.type_ == "Ready",
            "{} does not say who must act: {}",
            condition.type_,
            condition.message
        );
    }
}

fn is_kind(object: &DynamicObject, kinds: &[&str]) -> bool {
    object.types.as_ref().is_some_and(|types| kinds.contains(&types.kind.as_str()))
}

fn owned(observed: &Observed, object: &DynamicObject) {
    let identity = ObjectIdentity::of(object);
    let owners = object.metadata.owner_references.as_deref().unwrap_or_default();
    assert_eq!(owners.len(), 1, "{identity}");
    assert_eq!(Some(&owners[0].uid), observed.control_plane.metadata.uid.as_ref(), "{identity}");
    assert_eq!(owners[0].controller, Some(true), "{identity}");
    let labels = object.metadata.labels.as_ref().unwrap();
    for label in [CLUSTER_NAME_LABEL, COMPONENT_LABEL, INSTANCE_LABEL, MANAGED_BY_LABEL] {
        assert!(labels.contains_key(label), "{identity} lacks {label}");
    }
    assert_eq!(object.metadata.namespace, observed.control_plane.metadata.namespace, "{identity}");
    assert!(identity.name.len() <= 63, "{identity} is too long");
}

fn in_tenant(object: &DynamicObject) {
    let identity = ObjectIdentity::of(object);
    assert!(object.metadata.owner_references.is_none(), "{identity}");
    assert!(object.metadata.annotations.as_ref().unwrap().contains_key(DESIRED_ANNOTATION), "{identity}");
    assert!(object.metadata.labels.as_ref().unwrap().contains_key(MANAGED_BY_LABEL), "{identity}");
    no_keys(&identity, object);
    if is_kind(object, &["Deployment", "DaemonSet"]) {
        let selector = &object.data["spec"]["selector"]["matchLabels"];
        let labels = &object.data["spec"]["template"]["metadata"]["labels"];
        for (name, value) in selector.as_object().unwrap() {
            assert_eq!(labels.get(name), Some(value), "{identity} does not select its own pods");
        }
    }
}

fn no_keys(identity: &ObjectIdentity, object: &DynamicObject) {
    let text = serde_json::to_string(object).unwrap();
    assert!(!text.contains("PRIVATE KEY"), "{identity} holds a key");
    assert!(
        object.data.get("stringData").is_none()
            && (identity.kind != "Secret" || object.data.get("data").is_none())
    );
}

/// Labels that select match, volumes have sources that exist, mounts have volumes, and nothing runs as root.
fn template(plan: &Plan, observed: &Observed, object: &DynamicObject) {
    let identity = ObjectIdentity::of(object);
    let spec = &object.data["spec"];
    let labels = spec["template"]["metadata"]["labels"].as_object().unwrap();
    for (name, value) in spec["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(labels.get(name), Some(value), "{identity} does not select its own pods");
    }
    assert!(labels.contains_key(VERSION_LABEL), "{identity}");
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{identity}");
    assert_eq!(pod["automountServiceAccountToken"], false, "{identity}");
    let mut volumes: BTreeSet<String> = BTreeSet::new();
    for volume in pod["volumes"].as_array().unwrap() {
        volumes.insert(volume["name"].as_str().unwrap().to_owned());
        for source in sources(volume) {
            exists(plan, observed, &identity, &source);
        }
    }
    let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
    volumes.extend(claims.map(|claim| claim["metadata"]["name"].as_str().unwrap().to_owned()));
    let first = pod["initContainers"].as_array().into_iter().flatten();
    for container in first.chain(pod["containers"].as_array().unwrap()) {
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false, "{identity}");
        assert_eq!(security["readOnlyRootFilesystem"], true, "{identity}");
        assert_eq!(security["capabilities"]["drop"][0], "ALL", "{identity}");
        let mut paths = BTreeSet::new();
        for mount in container["volumeMounts"].as_array().unwrap() {
            assert!(volumes.contains(mount["name"].as_str().unwrap()), "{identity}: {mount} has no volume");
            assert!(paths.insert(mount["mountPath"].to_string()), "{identity}: {mount} is there twice");
        }
        let flags = container["args"].as_array().unwrap().iter().map(|flag| flag.as_str().unwrap());
        let names: Vec<&str> = flags.map(|flag| flag.split('=').next().unwrap()).collect();
        assert_eq!(
            names.iter().collect::<BTreeSet<_>>().len(),
            names.len(),
            "{identity}: a flag is there twice"
        );
    }
}

enum Source {
    Secret(String, Vec<String>),
    ConfigMap(String, Vec<String>),
}

fn sources(volume: &Value) -> Vec<Source> {
    let keys = |source: &Value| {
        let items = source["items"].as_array().into_iter().flatten();
        items.map(|item| item["key"].as_str().unwrap().to_owned()).collect()
    };
    let name = |source: &Value, key: &str| source[key].as_str().unwrap().to_owned();
    let projected = volume["projected"]["sources"].as_array().into_iter().flatten();
    let mut sources: Vec<Source> = projected
        // Without one that is optional pods start.
        .filter(|source| source["secret"]["optional"] != true)
        .map(|source| match source.get("secret") {
            Some(secret) => Source::Secret(name(secret, "name"), keys(secret)),
            None => Source::ConfigMap(name(&source["configMap"], "name"), keys(&source["configMap"])),
        })
        .collect();
    if volume["name"].as_str().is_some_and(|name| !name.starts_with("given-"))
        && let Some(source) = volume.get("configMap")
    {
        sources.push(Source::ConfigMap(name(source, "name"), keys(source)));
    }
    sources
}

/// Whether it is there already: what it mounts was seen when it was made.
fn runs(observed: &Observed, name: &str) -> bool {
    let names = names(observed);
    let read = match name {
        name if name == names.etcd() => &observed.etcd,
        name if name == names.api_server() => &observed.api_server,
        name if name == names.controller_manager() => &observed.controller_manager,
        _ => &observed.scheduler,
    };
    matches!(read, flow::Read::One(_))
}

fn names(observed: &Observed) -> Names {
    Names::of(&observed.control_plane, "demo").unwrap()
}

/// A pod that mounts what nobody makes never starts.
fn exists(plan: &Plan, observed: &Observed, pod: &ObjectIdentity, source: &Source) {
    match source {
        Source::Secret(name, keys) => {
            let names = names(observed);
            let material = Material::ALL.into_iter().find(|material| *name == names.secret(*material));
            let material = material.unwrap_or_else(|| panic!("{pod} mounts {name}, which nobody makes"));
            assert!(
                matches!(observed.secret(material), flow::Read::One(_)) || runs(observed, &pod.name),
                "{pod} mounts {name}, which was not seen"
            );
            let has: &[&str] = match material {
                Material::EncryptionConfiguration => &[material::keys::ENCRYPTION],
                Material::OperatorAccess | Material::Kubeconfig => &[material::keys::KUBECONFIG],
                _ => &[material::keys::CERTIFICATE, material::keys::PRIVATE_KEY],
            };
            assert!(keys.iter().all(|key| has.contains(&key.as_str())), "{pod} mounts {keys:?} of {name}");
        }
        Source::ConfigMap(name, keys) => {
            let found = plan.objects.iter().find(|object| {
                is_kind(object, &["ConfigMap"]) && object.metadata.name.as_ref() == Some(name)
            });
            if found.is_none() && name.ends_with("-trust") && runs(observed, &pod.name) {
                // The authority was not seen, so its bundle stays as it is.
                return;
            }
            let data =
                &found.unwrap_or_else(|| panic!("{pod} mounts {name}, which is not planned")).data["data"];
            assert!(keys.iter().all(|key| data.get(key).is_some()), "{pod} mounts {keys:?} of {name}");
        }
    }
}

/// Services, budgets and policies select pods that some template has.
fn selectors(observed: &Observed, plan: &Plan) {
    let components: BTreeSet<&str> = ["etcd", "api-server", "controller-manager", "scheduler"].into();
    for object in plan
        .objects
        .iter()
        .filter(|object| is_kind(object, &["Service", "PodDisruptionBudget", "NetworkPolicy"]))
    {
        let spec = &object.data["spec"];
        let selector = spec["selector"].get("matchLabels").unwrap_or(&spec["selector"]);
        let selector =
            selector.as_object().or_else(|| spec["podSelector"]["matchLabels"].as_object()).unwrap();
        let component = selector[COMPONENT_LABEL].as_str().unwrap();
        assert!(components.contains(component), "{component}");
        assert_eq!(selector[INSTANCE_LABEL], names(observed).identity());
    }
}
