//! The objects that the checks apply.

use hangar_host::addons::gateway;
use hangar_parts::Set;
use hangar_parts::images::Upstream;
use serde_json::{Value, json};

use super::IMAGE;

pub(super) fn web(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "web",
                        "image": IMAGE,
                        "args": ["sh", "-c", "hostname > /www/index.html; exec httpd -f -p 8080 -h /www"],
                        "ports": [{"containerPort": 8080}],
                        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
                    }],
                },
            },
        },
    })
}

pub(super) fn web_service(kind: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"type": kind, "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    })
}

pub(super) fn stateful_set() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "keeper"},
        "spec": {
            "serviceName": "keeper",
            "replicas": 1,
            "selector": {"matchLabels": {"app": "keeper"}},
            "template": {
                "metadata": {"labels": {"app": "keeper"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "securityContext": {"runAsUser": 1234, "runAsGroup": 1234, "fsGroup": 1234},
                    "containers": [{
                        "name": "keeper",
                        "image": IMAGE,
                        "args": ["sh", "-c", "hostname >> /data/starts; exec sleep 3600"],
                        "readinessProbe": {
                            "exec": {"command": ["/bin/busybox", "test", "-s", "/data/starts"]},
                            "periodSeconds": 1,
                        },
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}},
            }],
        },
    })
}

pub(super) fn server() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "server"},
        "spec": {
            "selector": {"matchLabels": {"app": "server"}},
            "template": {
                "metadata": {"labels": {"app": "server"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "server",
                        "image": Upstream::Etcd(Set::Etcd36).reference(),
                        "args": [
                            "--data-dir=/tmp/etcd",
                            "--listen-client-urls=https://0.0.0.0:2379",
                            "--advertise-client-urls=https://localhost:2379",
                            "--cert-file=/tls/tls.crt",
                            "--key-file=/tls/tls.key",
                        ],
                        "readinessProbe": {
                            "httpGet": {"path": "/health", "port": 2379, "scheme": "HTTPS"},
                            "periodSeconds": 1,
                        },
                        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
                    }],
                    "volumes": [{"name": "tls", "secret": {"secretName": "tls"}}],
                },
            },
        },
    })
}

pub(super) fn server_service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": 2379}]},
    })
}

pub(super) fn route(names: &[String]) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1alpha2",
        "kind": "TLSRoute",
        "metadata": {"name": "route"},
        "spec": {
            "parentRefs": [{
                "name": gateway::NAME,
                "namespace": gateway::NAMESPACE,
                "sectionName": gateway::LISTENER,
            }],
            "hostnames": names,
            "rules": [{"backendRefs": [{"name": "server", "port": 2379}]}],
        },
    })
}
