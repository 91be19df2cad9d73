//! kube-proxy: Services become rules of the machine's own nftables.
//!
//! Mode nftables: the image needs `nft` and nothing else, and there is no lock shared with iptables. Connection
//! tracking limits are those of the whole kernel and belong to the host: kube-proxy is told to leave them alone, and
//! would fail on them inside a machine.

use serde_json::{Value, json};

use super::{AddonOptions, NAMESPACE, pod};

const NAME: &str = "kube-proxy";

pub(super) fn objects(options: &AddonOptions) -> Vec<Value> {
    let settings = json!({
        "config.conf": format!("{:#}\n", configuration(options)),
        "kubeconfig.conf": format!("{:#}\n", kubeconfig(options)),
    });
    vec![
        pod::service_account(NAMESPACE, NAME),
        // The role is the API server's own.
        pod::account_binding("hangar:kube-proxy", "system:node-proxier", NAMESPACE, NAME),
        pod::config_map(NAME, &settings),
        daemon_set(options, &settings),
    ]
}

/// Its configuration, as JSON, which is YAML.
fn configuration(options: &AddonOptions) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": options.pod_range.to_string(),
        "clientConnection": {"kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf"},
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        // The first Services are programmed as they come instead of a second later.
        "nftables": {"minSyncPeriod": "100ms", "syncPeriod": "30s"},
        "healthzBindAddress": "0.0.0.0:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    })
}

fn kubeconfig(options: &AddonOptions) -> Value {
    let server = format!("https://{}:{}", options.api_server.host, options.api_server.port);
    let mounted = "/var/run/secrets/kubernetes.io/serviceaccount";
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "default",
            "cluster": {"server": server, "certificate-authority": format!("{mounted}/ca.crt")},
        }],
        "users": [{"name": "default", "user": {"tokenFile": format!("{mounted}/token")}}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    })
}

fn daemon_set(options: &AddonOptions, settings: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"k8s-app": NAME}},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": NAME}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"k8s-app": NAME}, "annotations": pod::settings_annotation(settings)},
                "spec": {
                    "hostNetwork": true,
                    "dnsPolicy": "Default",
                    "priorityClassName": "system-node-critical",
                    "serviceAccountName": NAME,
                    "tolerations": pod::tolerations(),
                    "containers": [{
                        "name": NAME,
                        "image": options.images.kube_proxy,
                        "imagePullPolicy": "IfNotPresent",
                        "args": [
                            "--config=/var/lib/kube-proxy/config.conf",
                            "--hostname-override=$(NODE_NAME)",
                        ],
                        "env": [pod::node_name_environment("NODE_NAME")],
                        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
                        "readinessProbe": pod::probe("/healthz", 10256),
                        "securityContext": {"privileged": true},
                        "volumeMounts": [{"name": "settings", "mountPath": "/var/lib/kube-proxy"}],
                    }],
                    "volumes": [{"name": "settings", "configMap": {"name": NAME}}],
                },
            },
        },
    })
}
