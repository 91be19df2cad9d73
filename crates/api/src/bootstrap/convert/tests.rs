//! Conversions of real manifests, and of the cases where the versions disagree. The property tests check that nothing
//! is ever lost; these check what the values become.

use serde_json::{Value, json};

use crate::bootstrap::{v1beta1, v1beta2};
use crate::conversion::{NoVersions, convert};
use crate::names::STASH_ANNOTATION;

const OLDER: &str = "bootstrap.cluster.x-k8s.io/v1beta1";
const NEWER: &str = "bootstrap.cluster.x-k8s.io/v1beta2";

fn manifest(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap()
}

fn up(object: &Value) -> Value {
    convert(object.clone(), NEWER, &NoVersions).unwrap()
}

fn down(object: &Value) -> Value {
    convert(object.clone(), OLDER, &NoVersions).unwrap()
}

fn older(spec: &Value) -> Value {
    json!({"apiVersion": OLDER, "kind": "KubeadmConfig", "metadata": {"name": "a"}, "spec": spec})
}

fn newer(spec: &Value) -> Value {
    json!({"apiVersion": NEWER, "kind": "KubeadmConfig", "metadata": {"name": "a"}, "spec": spec})
}

fn has_stash(object: &Value) -> bool {
    object["metadata"]["annotations"].get(STASH_ANNOTATION).is_some()
}

#[test]
fn a_worker_template_converts_without_a_trace() {
    let template = manifest(
        "
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: capi-quickstart-md-0, namespace: default}
spec:
  template:
    spec:
      joinConfiguration:
        nodeRegistration:
          kubeletExtraArgs:
            cloud-provider: external
          name: '{{ local_hostname }}'
",
    );
    let stored = up(&template);
    assert_eq!(
        stored,
        json!({
            "apiVersion": NEWER,
            "kind": "KubeadmConfigTemplate",
            "metadata": {"name": "capi-quickstart-md-0", "namespace": "default"},
            "spec": {"template": {"spec": {"joinConfiguration": {"nodeRegistration": {
                "kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}],
                "name": "{{ local_hostname }}",
            }}}}},
        })
    );
    assert_eq!(down(&stored), template);
}

#[test]
fn files_and_sorted_arguments_of_a_template() {
    let template = manifest(
        "
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: basic-1-md-0, namespace: default}
spec:
  template:
    spec:
      files:
      - {content: W0dsb2JhbF0=, encoding: base64, owner: root, path: /etc/kubernetes/cloud.conf, permissions: '0600'}
      joinConfiguration:
        nodeRegistration:
          kubeletExtraArgs:
            cloud-provider: openstack
            cloud-config: /etc/kubernetes/cloud.conf
          name: '{{ local_hostname }}'
",
    );
    let stored = up(&template);
    let spec = &stored["spec"]["template"]["spec"];
    assert_eq!(spec["files"], template["spec"]["template"]["spec"]["files"]);
    assert_eq!(
        spec["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"],
        json!([
            {"name": "cloud-config", "value": "/etc/kubernetes/cloud.conf"},
            {"name": "cloud-provider", "value": "openstack"},
        ])
    );
    assert!(!has_stash(&stored));
    assert_eq!(down(&stored), template);
}

/// What a control plane machine carries, with everything that moves, is renamed or goes away.
fn control_plane_spec() -> Value {
    json!({
        "clusterConfiguration": {
            "apiServer": {"extraArgs": {"v": "2"}, "timeoutForControlPlane": "4m0s"},
            "clusterName": "tenant",
            "controllerManager": {},
            "dns": {},
            "etcd": {"local": {"extraArgs": {"quota-backend-bytes": "8589934592"}}},
            "kubernetesVersion": "v1.33.0",
            "networking": {"podSubnet": "10.0.0.0/16"},
        },
        "initConfiguration": {
            "apiVersion": "kubeadm.k8s.io/v1beta3",
            "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttl": "24h0m0s"}],
            "localAPIEndpoint": {"bindPort": 0},
        },
        "joinConfiguration": {"controlPlane": {}, "discovery": {"timeout": "1m30s"}},
        "useExperimentalRetryJoin": true,
        "verbosity": 5,
    })
}

#[test]
fn timeouts_move_and_what_is_obsolete_goes() {
    let stored = up(&older(&control_plane_spec()));
    assert_eq!(
        stored["spec"],
        json!({
            "clusterConfiguration": {
                "apiServer": {"extraArgs": [{"name": "v", "value": "2"}]},
                "etcd": {"local": {"extraArgs": [{"name": "quota-backend-bytes", "value": "8589934592"}]}},
            },
            "initConfiguration": {
                "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttlSeconds": 86400}],
                "timeouts": {"controlPlaneComponentHealthCheckSeconds": 240},
            },
            "joinConfiguration": {
                "controlPlane": {},
                "timeouts": {"controlPlaneComponentHealthCheckSeconds": 240, "tlsBootstrapSeconds": 90},
            },
            "verbosity": 5,
        })
    );
    assert_eq!(down(&stored), older(&control_plane_spec()));
}

#[test]
fn an_edit_of_the_stored_version_reaches_readers_of_the_older_one() {
    let mut stored = up(&older(&control_plane_spec()));
    for section in ["initConfiguration", "joinConfiguration"] {
        stored["spec"][section]["timeouts"]["controlPlaneComponentHealthCheckSeconds"] = json!(600);
    }
    stored["spec"]["initConfiguration"]["bootstrapTokens"][0]["ttlSeconds"] = json!(60);
    let mut expected = control_plane_spec();
    expected["clusterConfiguration"]["apiServer"]["timeoutForControlPlane"] = json!("10m0s");
    expected["initConfiguration"]["bootstrapTokens"][0]["ttl"] = json!("1m0s");
    assert_eq!(down(&stored)["spec"], expected);
}

#[test]
fn an_edit_of_the_older_version_reaches_the_stored_one() {
    let stored = newer(&json!({
        "clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"},
        "initConfiguration": {"timeouts": {"etcdAPICallSeconds": 7, "controlPlaneComponentHealthCheckSeconds": 60}},
    }));
    let mut read = down(&stored);
    assert_eq!(
        read["spec"]["clusterConfiguration"],
        json!({"apiServer": {"timeoutForControlPlane": "1m0s"}})
    );
    read["spec"]["clusterConfiguration"]["apiServer"]["timeoutForControlPlane"] = json!("2m0s");
    let written = up(&read);
    assert_eq!(
        written["spec"]["initConfiguration"]["timeouts"],
        json!({"etcdAPICallSeconds": 7, "controlPlaneComponentHealthCheckSeconds": 120})
    );
    assert_eq!(written["spec"]["clusterConfiguration"]["encryptionAlgorithm"], "ECDSA-P256");
}

#[test]
fn timeouts_of_init_and_join_may_differ() {
    let stored = newer(&json!({
        "initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 60}},
        "joinConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 90}},
    }));
    let read = down(&stored);
    assert_eq!(
        read["spec"],
        json!({"clusterConfiguration": {"apiServer": {"timeoutForControlPlane": "1m0s"}}})
    );
    assert_eq!(up(&read), stored);
}

#[test]
fn of_repeated_arguments_the_last_counts_and_none_is_lost() {
    let arguments =
        json!([{"name": "v", "value": "2"}, {"name": "a", "value": ""}, {"name": "v", "value": "4"}]);
    let stored = newer(&json!({"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": arguments}}}));
    let read = down(&stored);
    assert_eq!(
        read["spec"]["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"],
        json!({"a": "", "v": "4"})
    );
    assert_eq!(up(&read), stored);
}

#[test]
fn what_is_empty_is_left_out_of_the_stored_version() {
    let spec = json!({
        "bootCommands": [], "files": [], "users": [], "mounts": [[]], "ntp": {}, "diskSetup": {},
        "ignition": {"containerLinuxConfig": {}},
        "clusterConfiguration": {
            "apiServer": {"certSANs": [], "extraArgs": {}, "extraEnvs": [], "extraVolumes": []},
            "etcd": {"local": {"peerCertSANs": []}}, "scheduler": {}, "networking": {},
        },
        "initConfiguration": {"bootstrapTokens": [], "localAPIEndpoint": {}, "nodeRegistration": {}, "patches": {}},
        "joinConfiguration": {"discovery": {"bootstrapToken": {"caCertHashes": []}}, "skipPhases": []},
    });
    let stored = up(&older(&spec));
    assert_eq!(stored["spec"], json!({}));
    assert_eq!(down(&stored), older(&spec));
}

#[test]
fn emptiness_that_means_something_stays() {
    let spec = json!({"joinConfiguration": {"controlPlane": {}, "nodeRegistration": {"taints": []}}});
    assert_eq!(up(&older(&spec)), newer(&spec));
    assert_eq!(down(&newer(&spec)), older(&spec));
}

#[test]
fn text_that_is_no_duration_counts_as_absent_and_comes_back() {
    for timeout in ["soon", "-5s", "", "1d"] {
        let object = older(&json!({"joinConfiguration": {"discovery": {"timeout": timeout}}}));
        let stored = up(&object);
        assert_eq!(stored["spec"], json!({}), "{timeout}");
        assert_eq!(down(&stored), object, "{timeout}");
    }
}

#[test]
fn status_keeps_both_kinds_of_conditions() {
    let legacy = json!([{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}]);
    let current = json!([{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]);
    let mut object = older(&json!({"verbosity": 1}));
    object["status"] = json!({
        "conditions": legacy, "dataSecretName": "a", "failureMessage": "no", "failureReason": "No",
        "observedGeneration": 0, "ready": true, "v1beta2": {"conditions": current},
    });
    let stored = up(&object);
    assert_eq!(
        stored["status"],
        json!({
            "conditions": current,
            "dataSecretName": "a",
            "deprecated": {"v1beta1": {"conditions": legacy, "failureMessage": "no", "failureReason": "No"}},
            "initialization": {"dataSecretCreated": true},
        })
    );
    assert_eq!(down(&stored), object);
}

#[test]
fn objects_without_a_spec_read_as_defaults() {
    for api_version in [OLDER, NEWER] {
        for spec in [json!({}), json!({"spec": null})] {
            let mut object =
                json!({"apiVersion": api_version, "kind": "KubeadmConfig", "metadata": {"name": "a"}});
            object.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
            if api_version == OLDER {
                let config: v1beta1::KubeadmConfig = serde_json::from_value(object).unwrap();
                assert_eq!(config.spec, v1beta1::KubeadmConfigSpec::default());
            } else {
                let config: v1beta2::KubeadmConfig = serde_json::from_value(object).unwrap();
                assert_eq!(config.spec, v1beta2::KubeadmConfigSpec::default());
            }
        }
    }
}

#[test]
fn a_wrong_value_in_a_spec_is_an_error() {
    let error =
        serde_json::from_value::<v1beta2::KubeadmConfig>(newer(&json!({"format": "banana"}))).unwrap_err();
    assert!(error.to_string().contains("banana"), "{error}");
    assert!(serde_json::from_value::<v1beta2::KubeadmConfig>(newer(&json!([]))).is_err());
}
