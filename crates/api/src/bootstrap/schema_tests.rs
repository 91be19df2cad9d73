//! What the schemas in the CRDs accept and refuse, judged by a validator that does not know our types.
//!
//! Every refusal is checked by the field it names, so that an object that is broken by accident proves nothing. The
//! validator cannot evaluate CEL rules: only their presence is checked here, and the tests with an API server check
//! their effect.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::conversion::{NoVersions, convert};

const GROUP: &str = "bootstrap.cluster.x-k8s.io";

/// Schemas as they are installed, by kind and version.
struct Schemas(BTreeMap<(String, String), Value>);

impl Schemas {
    fn new() -> Self {
        let mut schemas = BTreeMap::new();
        for definition in super::kinds().into_iter().filter_map(crate::crd::definition) {
            for version in definition.spec.versions {
                let schema = version.schema.and_then(|schema| schema.open_api_v3_schema).unwrap();
                let key = (definition.spec.names.kind.clone(), version.name);
                schemas.insert(key, serde_json::to_value(schema).unwrap());
            }
        }
        Self(schemas)
    }

    fn of(&self, kind: &str, version: &str) -> &Value {
        &self.0[&(kind.to_owned(), version.to_owned())]
    }

    /// Where an object breaks the schema of its own kind and version.
    fn broken(&self, object: &Value) -> Vec<String> {
        let version = object["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
        let schema = self.of(object["kind"].as_str().unwrap(), version);
        let validator: Validator = jsonschema::draft4::new(schema).unwrap();
        validator.iter_errors(object).map(|error| error.instance_path().to_string()).collect()
    }
}

fn config(version: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "KubeadmConfig", "metadata": {"name": "a"}, "spec": spec})
}

#[test]
fn broken_in_both_versions() {
    let schemas = Schemas::new();
    for (spec, place) in [
        (json!({"format": "banana"}), "/spec/format"),
        (json!({"format": ""}), "/spec/format"),
        (json!({"verbosity": "high"}), "/spec/verbosity"),
        (json!({"preKubeadmCommands": "true"}), "/spec/preKubeadmCommands"),
        (json!({"preKubeadmCommands": [1]}), "/spec/preKubeadmCommands/0"),
        (json!({"postKubeadmCommands": [""]}), "/spec/postKubeadmCommands/0"),
        (json!({"bootCommands": ["x".repeat(10_241)]}), "/spec/bootCommands/0"),
        (json!({"files": [{"content": "a"}]}), "/spec/files/0"),
        (json!({"files": [{"path": "/a", "encoding": "rot13"}]}), "/spec/files/0/encoding"),
        (json!({"files": [{"path": "/a", "contentFrom": {}}]}), "/spec/files/0/contentFrom"),
        (
            json!({"files": [{"path": "/a", "contentFrom": {"secret": {"name": "a"}}}]}),
            "/spec/files/0/contentFrom/secret",
        ),
        (json!({"files": [{"path": "/a", "permissions": 640}]}), "/spec/files/0/permissions"),
        (json!({"users": [{"sudo": "ALL"}]}), "/spec/users/0"),
        (json!({"users": [{"name": "a", "lockPassword": "yes"}]}), "/spec/users/0/lockPassword"),
        (json!({"mounts": [["a", ""]]}), "/spec/mounts/0/1"),
        (json!({"mounts": ["a"]}), "/spec/mounts/0"),
        (json!({"ntp": {"servers": [""]}}), "/spec/ntp/servers/0"),
        (
            json!({"diskSetup": {"partitions": [{"device": "/dev/vdb", "layout": true, "tableType": "apm"}]}}),
            "/spec/diskSetup/partitions/0/tableType",
        ),
        (json!({"diskSetup": {"filesystems": [{"device": "/dev/vdb"}]}}), "/spec/diskSetup/filesystems/0"),
        (
            json!({"joinConfiguration": {"nodeRegistration": {"imagePullPolicy": "Sometimes"}}}),
            "/spec/joinConfiguration/nodeRegistration/imagePullPolicy",
        ),
        (
            json!({"joinConfiguration": {"nodeRegistration": {"taints": [{"key": "a"}]}}}),
            "/spec/joinConfiguration/nodeRegistration/taints/0",
        ),
        (json!({"joinConfiguration": {"discovery": {"file": {}}}}), "/spec/joinConfiguration/discovery/file"),
        (
            json!({"initConfiguration": {"bootstrapTokens": [{"description": "a"}]}}),
            "/spec/initConfiguration/bootstrapTokens/0",
        ),
        (
            json!({"initConfiguration": {"localAPIEndpoint": {"advertiseAddress": "1".repeat(40)}}}),
            "/spec/initConfiguration/localAPIEndpoint/advertiseAddress",
        ),
        (
            json!({"clusterConfiguration": {"featureGates": {"A": "true"}}}),
            "/spec/clusterConfiguration/featureGates/A",
        ),
        (
            json!({"clusterConfiguration": {"apiServer": {"extraEnvs": [{"value": "a"}]}}}),
            "/spec/clusterConfiguration/apiServer/extraEnvs/0",
        ),
        (
            json!({"clusterConfiguration": {"scheduler": {"extraVolumes": [{"name": "a", "hostPath": "/a"}]}}}),
            "/spec/clusterConfiguration/scheduler/extraVolumes/0",
        ),
    ] {
        for version in ["v1beta1", "v1beta2"] {
            assert_eq!(schemas.broken(&config(version, &spec)), [place], "{version}: {spec}");
        }
    }
}

#[test]
fn broken_in_one_version_only() {
    let schemas = Schemas::new();
    let arguments = "/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs";
    for (version, other, spec, place) in [
        (
            "v1beta1",
            "v1beta2",
            json!({"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": [{"name": "v", "value": "2"}]}}}),
            arguments,
        ),
        (
            "v1beta2",
            "v1beta1",
            json!({"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {"v": "2"}}}}),
            arguments,
        ),
        ("v1beta2", "v1beta1", json!({"files": []}), "/spec/files"),
        ("v1beta2", "v1beta1", json!({"joinConfiguration": {}}), "/spec/joinConfiguration"),
        (
            "v1beta2",
            "v1beta1",
            json!({"initConfiguration": {"localAPIEndpoint": {"bindPort": 0}}}),
            "/spec/initConfiguration/localAPIEndpoint/bindPort",
        ),
    ] {
        assert_eq!(schemas.broken(&config(version, &spec)), [place], "{version}: {spec}");
        assert!(schemas.broken(&config(other, &spec)).is_empty(), "{other}: {spec}");
    }
}

#[test]
fn the_newer_version_bounds_what_it_adds() {
    let schemas = Schemas::new();
    for (spec, place) in [
        (
            json!({"clusterConfiguration": {"encryptionAlgorithm": "DSA"}}),
            "/spec/clusterConfiguration/encryptionAlgorithm",
        ),
        (
            json!({"clusterConfiguration": {"certificateValidityPeriodDays": 1096}}),
            "/spec/clusterConfiguration/certificateValidityPeriodDays",
        ),
        (
            json!({"joinConfiguration": {"timeouts": {"tlsBootstrapSeconds": -1}}}),
            "/spec/joinConfiguration/timeouts/tlsBootstrapSeconds",
        ),
        (
            json!({"initConfiguration": {"bootstrapTokens": [{"token": "a", "ttlSeconds": "1h"}]}}),
            "/spec/initConfiguration/bootstrapTokens/0/ttlSeconds",
        ),
    ] {
        assert_eq!(schemas.broken(&config("v1beta2", &spec)), [place], "{spec}");
    }
}

#[test]
fn a_worker_without_any_settings_is_valid_in_both_versions() {
    let schemas = Schemas::new();
    for version in ["v1beta1", "v1beta2"] {
        let api_version = format!("{GROUP}/{version}");
        for object in [
            json!({"apiVersion": api_version, "kind": "KubeadmConfig", "metadata": {"name": "a"}}),
            config(version, &json!({})),
            json!({"apiVersion": api_version, "kind": "KubeadmConfigTemplate", "metadata": {"name": "a"}}),
            json!({
                "apiVersion": api_version, "kind": "KubeadmConfigTemplate", "metadata": {"name": "a"},
                "spec": {"template": {}},
            }),
        ] {
            assert!(schemas.broken(&object).is_empty(), "{object}");
        }
    }
}

#[test]
fn what_the_older_version_leaves_empty_is_valid_once_converted() {
    let schemas = Schemas::new();
    // As older clients write it: every section that is no pointer in their types is there, empty.
    let object = config(
        "v1beta1",
        &json!({
            "clusterConfiguration": {
                "apiServer": {}, "controllerManager": {}, "dns": {}, "etcd": {}, "networking": {}, "scheduler": {},
            },
            "initConfiguration": {"localAPIEndpoint": {"bindPort": 0}, "nodeRegistration": {}},
            "joinConfiguration": {
                "discovery": {}, "nodeRegistration": {"kubeletExtraArgs": {"cloud-provider": "external"}},
            },
            "files": [], "mounts": [[]],
        }),
    );
    assert!(schemas.broken(&object).is_empty());
    let stored = convert(object, &format!("{GROUP}/v1beta2"), &NoVersions).unwrap();
    assert!(schemas.broken(&stored).is_empty(), "{:?}", schemas.broken(&stored));
}

#[test]
fn lists_of_flags_are_keyed_and_their_names_unique() {
    let schemas = Schemas::new();
    let spec = "/properties/spec/properties";
    let template = "/properties/spec/properties/template/properties/spec/properties";
    for (kind, root) in [("KubeadmConfig", spec), ("KubeadmConfigTemplate", template)] {
        for list in [
            "/clusterConfiguration/properties/apiServer/properties/extraArgs",
            "/clusterConfiguration/properties/controllerManager/properties/extraArgs",
            "/clusterConfiguration/properties/scheduler/properties/extraArgs",
            "/clusterConfiguration/properties/etcd/properties/local/properties/extraArgs",
            "/initConfiguration/properties/nodeRegistration/properties/kubeletExtraArgs",
            "/joinConfiguration/properties/nodeRegistration/properties/kubeletExtraArgs",
        ] {
            let schema = schemas.of(kind, "v1beta2").pointer(&format!("{root}{list}")).unwrap();
            assert_eq!(schema["x-kubernetes-list-type"], "map", "{list}");
            assert_eq!(schema["x-kubernetes-list-map-keys"], json!(["name", "value"]), "{list}");
            let rules = schema["x-kubernetes-validations"].as_array().unwrap();
            assert_eq!(rules.len(), 1, "{list}");
            assert_eq!(rules[0]["rule"], "self.all(x, self.exists_one(y, x.name == y.name))", "{list}");
        }
    }
}
