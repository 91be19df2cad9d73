//! Tests the documents that users follow: every manifest in them is applied with `kubectl`, as they tell their readers.
//!
//! The fixtures are the manifests, word for word; `substitutions.txt` fills in what their authors left open, and
//! nothing else is changed. What is accepted must read back as it was written, in every version, also after somebody
//! wrote the other version back. What is not accepted is listed in `absent.txt` and refused because its kind is not
//! served.
//!
//! The documents do not contain every kind; `other-kinds` has an object for each of the rest, in the newest version.

mod broken;
mod comparison;
mod fixture;
mod world;

use std::time::Instant;

use serde_json::{Value, json};

use comparison::lost;
use fixture::Fixture;
use world::{Kind, PATIENCE, WORLD, World};

/// What only conversions read. People see it in a version they did not write, and only if that version lacks something.
const STASH: &str = "hangar.cluster.x-k8s.io/conversion-stash";
/// What `kubectl apply` leaves.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Applies a document and checks each of its objects.
fn check(directory: &str) {
    let absent = fixture::absent();
    let fixtures = fixture::load(directory);
    assert!(!fixtures.is_empty(), "{directory}");
    for fixture in fixtures {
        let applied = WORLD.apply(None, &fixture.text);
        if absent.iter().any(|entry| entry.is(&fixture)) {
            refused_as_unknown(&fixture, applied);
        } else {
            applied.unwrap_or_else(|error| panic!("{}, {}: {error}", fixture.file, fixture.kind()));
            reads_back(&WORLD, &fixture);
        }
    }
}

fn refused_as_unknown(fixture: &Fixture, applied: Result<(), String>) {
    let (file, kind, version) = (&fixture.file, fixture.kind(), fixture.api_version());
    let error = applied.expect_err(&format!("{kind} of {file} is accepted now: remove it from absent.txt"));
    let unknown = format!("no matches for kind {kind:?} in version {version:?}");
    assert!(error.contains(&unknown), "{file}: refused for another reason: {error}");
}

/// As written in the version it was written in, and still so after every other version was written back as read.
fn reads_back(world: &World, fixture: &Fixture) {
    let context = format!("{}, {} {}", fixture.file, fixture.kind(), fixture.name());
    let (kind, version) = Kind::of(fixture.api_version(), fixture.kind());
    let read = |version: &str| world.get(&kind, version, fixture.namespace(), fixture.name());
    let first = read(&version);
    assert_eq!(lost(&fixture.object, &first), [""; 0], "{context}: lost");
    assert_eq!(added_annotations(&fixture.object, &first), [LAST_APPLIED], "{context}");

    for other in world.versions(&kind).iter().filter(|other| **other != version) {
        let converted = read(other);
        let mut more = added_annotations(&fixture.object, &converted);
        more.retain(|key| *key != STASH);
        assert_eq!(more, [LAST_APPLIED], "{context} in {other}");
        world.replace(&kind, &converted);
        let again = read(&version);
        assert_eq!(again["spec"], first["spec"], "{context} after {other} was written back");
        assert_eq!(again["metadata"]["annotations"], first["metadata"]["annotations"], "{context}");
        // The API server counts changes of the spec itself.
        assert_eq!(again["metadata"]["generation"], first["metadata"]["generation"], "{context}");
    }
    // People apply their files again and again, whatever was done in between.
    world
        .apply(Some(fixture.namespace()), &fixture.text)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let again = read(&version);
    assert_eq!(again["spec"], first["spec"], "{context}, applied again");
    assert_eq!(again["metadata"]["generation"], first["metadata"]["generation"], "{context}, applied again");
}

fn added_annotations<'read>(written: &Value, read: &'read Value) -> Vec<&'read str> {
    let before = &written["metadata"]["annotations"];
    let all = read["metadata"]["annotations"].as_object().unwrap();
    all.keys().map(String::as_str).filter(|key| before.get(key).is_none()).collect()
}

#[test]
fn the_hosted_control_plane_and_its_cluster() {
    check("documents/4-hosted-control-plane");
}

#[test]
fn workers_beside_a_kamaji_control_plane() {
    check("documents/3-kamaji");
}

#[test]
fn old_versions_are_refused_until_they_are_served() {
    check("documents/2-kubeadm-v1alpha3");
}

#[test]
fn workers_beside_a_k0smotron_control_plane() {
    check("documents/1-k0smotron");
}

#[test]
fn a_cluster_of_a_cluster_stack() {
    check("documents/0-cluster-stack");
}

#[test]
fn the_kinds_that_no_document_has() {
    check("other-kinds");
}

#[test]
fn the_tables_hold_nothing_dead_and_leave_nothing_open() {
    let documents = fixture::documents();
    assert_eq!(documents.len(), 5);
    let raw: String = documents.iter().flat_map(|name| fixture::raw(name)).map(|(_, text)| text).collect();
    for substitution in fixture::substitutions() {
        assert!(raw.contains(&substitution.written), "never used: {substitution:?}");
    }
    let fixtures: Vec<Fixture> = documents.iter().flat_map(|name| fixture::load(name)).collect();
    for fixture in &fixtures {
        for open in ["$", "REDACTED", "<", "your-", "YOUR-"] {
            assert!(!fixture.text.contains(open), "{}: {open} is still open", fixture.file);
        }
    }
    for entry in fixture::absent() {
        assert!(fixtures.iter().any(|fixture| entry.is(fixture)), "in no document: {entry:?}");
    }
}

#[test]
fn a_machine_deployment_without_selector_selects_its_own_machines() {
    let namespace = WORLD.namespace("selector");
    let mut fixture = fixture::one("3-kamaji/capi-quickstart.yaml", "MachineDeployment");
    assert!(fixture.object["spec"].get("selector").is_none());
    fixture.object["metadata"]["namespace"] = json!(namespace);
    let labels = json!({
        "cluster.x-k8s.io/cluster-name": "capi-quickstart",
        "cluster.x-k8s.io/deployment-name": "capi-quickstart-md-0",
    });
    let (kind, _) = Kind::of(fixture.api_version(), fixture.kind());
    // Absent, null, empty, and as older documents have it.
    for selector in [None, Some(json!(null)), Some(json!({})), Some(json!({ "matchLabels": null }))] {
        let mut object = fixture.object.clone();
        if let Some(selector) = &selector {
            object["spec"]["selector"] = selector.clone();
        }
        WORLD.kubectl(&["create", "--filename=-"], &object.to_string()).unwrap();
        for version in ["v1beta1", "v1beta2"] {
            let read = WORLD.get(&kind, version, &namespace, fixture.name());
            assert_eq!(
                read["spec"]["selector"],
                json!({ "matchLabels": labels }),
                "{selector:?} in {version}"
            );
            assert_eq!(read["spec"]["template"]["metadata"]["labels"], labels, "{selector:?} in {version}");
        }
        WORLD.kubectl(&["delete", "--filename=-"], &object.to_string()).unwrap();
    }
}

/// The Cluster names a provider that Hangar does not have; another program brings its kind.
#[test]
fn a_cluster_on_the_infrastructure_of_another_provider() {
    let namespace = WORLD.namespace("aws");
    let fixture = fixture::one("4-hosted-control-plane/cluster.yaml", "Cluster");
    WORLD.apply(None, &fixture::stub_definition("AWSCluster", &["v1beta1"]).to_string()).unwrap();
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster",
        "metadata": { "name": "my-aws-cluster", "namespace": namespace }, "spec": {},
    });
    let start = Instant::now();
    // Serving starts a moment after the CRD is there.
    while let Err(error) = WORLD.apply(None, &object.to_string()) {
        assert!(start.elapsed() < PATIENCE, "{error}");
    }
    WORLD.apply(Some(&namespace), &fixture.text).unwrap();
    reads_back(&WORLD, &Fixture { object: with_namespace(&fixture.object, &namespace), ..fixture });
}

/// The Cluster of a document, on the infrastructure of a kind that does not exist yet, in a namespace of its own.
fn cluster_of_an_absent_kind(kind: &str, namespace: &str) {
    let mut object = fixture::one("4-hosted-control-plane/cluster.yaml", "Cluster").object;
    object["spec"]["infrastructureRef"]["kind"] = json!(kind);
    object = with_namespace(&object, namespace);
    WORLD.apply(None, &object.to_string()).unwrap();
    assert_eq!(infrastructure_version(namespace, "my-cluster"), "infrastructure.cluster.x-k8s.io/v1beta1");
}

/// Installs the kind, newer than the reference says, and a Cluster whose reference says nothing about versions; waits
/// until the latter shows that the manager knows the kind.
fn install_later(kind: &str, namespace: &str) {
    WORLD.apply(None, &fixture::stub_definition(kind, &["v1beta1", "v1beta2"]).to_string()).unwrap();
    let (clusters, _) = Kind::of("cluster.x-k8s.io/v1beta2", "Cluster");
    let mut newer = WORLD.get(&clusters, "v1beta2", namespace, "my-cluster");
    newer["metadata"] = json!({ "name": "newer", "namespace": namespace });
    WORLD.kubectl(&["create", "--filename=-"], &newer.to_string()).unwrap();
    let start = Instant::now();
    while infrastructure_version(namespace, "newer") != "infrastructure.cluster.x-k8s.io/v1beta2" {
        assert!(start.elapsed() < PATIENCE, "the manager does not see the new CRD");
    }
}

fn infrastructure_version(namespace: &str, name: &str) -> String {
    let (clusters, _) = Kind::of("cluster.x-k8s.io/v1beta1", "Cluster");
    let read = WORLD.get(&clusters, "v1beta1", namespace, name);
    read["spec"]["infrastructureRef"]["apiVersion"].as_str().unwrap().to_owned()
}

#[test]
fn a_reference_without_version_gets_the_one_that_its_crd_names() {
    let namespace = WORLD.namespace("follows");
    cluster_of_an_absent_kind("FollowedCluster", &namespace);
    install_later("FollowedCluster", &namespace);
}

/// Once a provider is installed, its CRD says which version of the reference implements the contract, also for objects
/// that were written before.
#[test]
fn a_reference_follows_its_definition_when_that_comes_later() {
    let namespace = WORLD.namespace("later");
    cluster_of_an_absent_kind("LaterCluster", &namespace);
    install_later("LaterCluster", &namespace);
    assert_eq!(infrastructure_version(&namespace, "my-cluster"), "infrastructure.cluster.x-k8s.io/v1beta2");
}

fn with_namespace(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    move_references(&mut object["spec"], namespace);
    object
}

/// References that name a namespace name the object's own.
fn move_references(value: &mut Value, namespace: &str) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("kind") && fields.contains_key("namespace") {
                fields.insert("namespace".to_owned(), json!(namespace));
            }
            fields.values_mut().for_each(|field| move_references(field, namespace));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, namespace)),
        _ => {}
    }
}
