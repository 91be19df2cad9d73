//! flannel in the tenant: it connects the pods of one worker with those of another.
//!
//! It is upstream's manifest with two differences. Its CNI plugin is not used: the standard `bridge` and `host-local`
//! plugins get the node's range from the file that flanneld writes, through a second container that renders their
//! configuration. And it is told the API server's outside address, because it starts before kube-proxy and DNS.

use hangar_parts::images::Upstream;
use serde_json::{Value, json};

const NAME: &str = "kube-flannel";

/// Where a program in the tenant finds the API server.
pub struct ApiServer<'a> {
    pub host: &'a str,
    pub port: u16,
}

/// Rendered once flanneld knows its range, moved into place in one step, and again should the range change.
const RENDER: &str = r#"set -eu
previous=
while :; do
  if [ -f /run/flannel/subnet.env ]; then
    . /run/flannel/subnet.env
    if [ "$FLANNEL_SUBNET $FLANNEL_MTU" != "$previous" ]; then
      cat > /etc/cni/net.d/.10-flannel.conflist <<END
{"cniVersion": "1.0.0", "name": "cbr0", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "hairpinMode": true, "mtu": $FLANNEL_MTU,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "${FLANNEL_SUBNET%.*}.0/${FLANNEL_SUBNET#*/}"}]],
            "routes": [{"dst": "$FLANNEL_NETWORK"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
END
      mv /etc/cni/net.d/.10-flannel.conflist /etc/cni/net.d/10-flannel.conflist
      previous="$FLANNEL_SUBNET $FLANNEL_MTU"
    fi
  fi
  sleep 1
done
"#;

/// Everything flannel needs, in the order of applying.
pub fn objects(api_server: &ApiServer<'_>, pod_range: &str) -> Vec<Value> {
    let labels = json!({"app": "flannel", "tier": "node"});
    let network = json!({"Network": pod_range, "EnableNFTables": true, "Backend": {"Type": "vxlan"}});
    vec![
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAME, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
        }),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "flannel", "namespace": NAME},
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "flannel"},
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "flannel"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "flannel"},
            "subjects": [{"kind": "ServiceAccount", "name": "flannel", "namespace": NAME}],
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "kube-flannel-cfg", "namespace": NAME, "labels": labels},
            "data": {"net-conf.json": format!("{network:#}\n"), "render.sh": RENDER},
        }),
        daemon_set(api_server, &labels),
    ]
}

fn daemon_set(api_server: &ApiServer<'_>, labels: &Value) -> Value {
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let host_path =
        |name: &str, path: &str, kind: &str| json!({"name": name, "hostPath": {"path": path, "type": kind}});
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let image = Upstream::Flannel.reference();
    let flanneld = json!({
        "name": "kube-flannel",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/opt/bin/flanneld"],
        "args": ["--ip-masq", "--kube-subnet-mgr"],
        "env": [
            {"name": "KUBERNETES_SERVICE_HOST", "value": api_server.host},
            {"name": "KUBERNETES_SERVICE_PORT", "value": api_server.port.to_string()},
            {"name": "POD_NAME", "valueFrom": field("metadata.name")},
            {"name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace")},
            {"name": "EVENT_QUEUE_DEPTH", "value": "5000"},
        ],
        "resources": {"requests": {"cpu": "50m", "memory": "50Mi"}},
        "securityContext": {"privileged": false, "capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}},
        "volumeMounts": [mount("run", "/run/flannel"), mount("flannel-cfg", "/etc/kube-flannel/")],
    });
    let render = json!({
        "name": "render-cni",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "/etc/kube-flannel/render.sh"],
        "volumeMounts": [
            mount("run", "/run/flannel"), mount("cni", "/etc/cni/net.d"), mount("flannel-cfg", "/etc/kube-flannel/"),
        ],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kube-flannel-ds", "namespace": NAME, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": true,
                    "priorityClassName": "system-node-critical",
                    // Also on nodes that are not ready, not initialised or being drained: without it they never are.
                    "tolerations": [{"operator": "Exists"}],
                    "serviceAccountName": "flannel",
                    "terminationGracePeriodSeconds": 5,
                    "containers": [flanneld, render],
                    "volumes": [
                        host_path("run", "/run/flannel", "DirectoryOrCreate"),
                        host_path("cni", "/etc/cni/net.d", "DirectoryOrCreate"),
                        {"name": "flannel-cfg", "configMap": {"name": "kube-flannel-cfg"}},
                    ],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_objects_are_as_reviewed() {
        let objects = objects(&ApiServer { host: "100.72.0.20", port: 6443 }, "10.244.0.0/16");
        let text: Vec<String> = objects.iter().map(|object| format!("{object:#}")).collect();
        insta::assert_snapshot!(text.join("\n---\n"));
    }
}
