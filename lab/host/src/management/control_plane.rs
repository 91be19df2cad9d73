//! The control plane as static pods on the host network of the machine, the way kubeadm would make them.
//!
//! Values that differ from kubeadm's have a reason: probes every second and no leader election, because one control
//! plane needs no election and a user is waiting; `GOGC=50`, which saves a third of the API server's memory and costs
//! nothing measurable.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hangar_parts::Set;
use hangar_parts::images::Upstream;
use serde_json::{Value, json};

use super::startup::SEAL;
use super::{API_SERVER_PORT, NAME};
use crate::addresses::SERVICE_RANGE;

/// Where certificates lie in the machine.
pub const PKI: &str = "/etc/kubernetes/pki";
/// Where etcd's data lies in the machine.
pub const ETCD_DATA: &str = "/var/lib/etcd";

/// What the manifests depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The machine's address.
    pub address: Ipv4Addr,
    pub kubernetes: Set,
    pub etcd: Set,
    /// What each was started with; another value starts it again.
    pub seals: BTreeMap<Component, String>,
}

/// What runs as a static pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Component {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
}

impl Component {
    /// Those that come first.
    pub const FIRST: [Self; 2] = [Self::Etcd, Self::ApiServer];
    /// Those to start once the API server is ready. Started beside it they slow it down, and kubelet would fail to record
    /// their pods in the API and try again much later.
    pub const SECOND: [Self; 2] = [Self::ControllerManager, Self::Scheduler];

    /// The name of its manifest and of its container.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
        }
    }

    /// Its pod, as kubelet names it.
    pub fn pod(self) -> String {
        format!("{}-{NAME}", self.name())
    }

    /// The file that kubelet reads.
    pub fn file(self) -> String {
        format!("{}.yaml", self.name())
    }

    pub fn image(self, kubernetes: Set, etcd: Set) -> Upstream {
        match self {
            Self::Etcd => Upstream::Etcd(etcd),
            Self::ApiServer => Upstream::KubeApiserver(kubernetes),
            Self::ControllerManager => Upstream::KubeControllerManager(kubernetes),
            Self::Scheduler => Upstream::KubeScheduler(kubernetes),
        }
    }

    pub fn manifest(self, options: &Options) -> Value {
        let mut pod = match self {
            Self::Etcd => etcd(options),
            Self::ApiServer => api_server(options),
            Self::ControllerManager => controller_manager(options),
            Self::Scheduler => scheduler(options),
        };
        if let Some(seal) = options.seals.get(&self) {
            pod["metadata"]["annotations"] = json!({SEAL: seal});
        }
        pod
    }
}

fn etcd(options: &Options) -> Value {
    let own = |file: &str| format!("{PKI}/etcd/{file}");
    let command = vec![
        "etcd".to_owned(),
        "--name=management".to_owned(),
        format!("--data-dir={ETCD_DATA}/member-data"),
        "--listen-client-urls=https://127.0.0.1:2379".to_owned(),
        "--advertise-client-urls=https://127.0.0.1:2379".to_owned(),
        "--listen-peer-urls=https://127.0.0.1:2380".to_owned(),
        "--initial-advertise-peer-urls=https://127.0.0.1:2380".to_owned(),
        "--initial-cluster=management=https://127.0.0.1:2380".to_owned(),
        "--listen-metrics-urls=http://127.0.0.1:2381".to_owned(),
        format!("--cert-file={}", own("server.crt")),
        format!("--key-file={}", own("server.key")),
        "--client-cert-auth=true".to_owned(),
        format!("--trusted-ca-file={}", own("ca.crt")),
        format!("--peer-cert-file={}", own("peer.crt")),
        format!("--peer-key-file={}", own("peer.key")),
        "--peer-client-cert-auth=true".to_owned(),
        format!("--peer-trusted-ca-file={}", own("ca.crt")),
        "--watch-progress-notify-interval=5s".to_owned(),
        "--snapshot-count=10000".to_owned(),
    ];
    let check =
        |path: &str| json!({"httpGet": {"host": "127.0.0.1", "path": path, "port": 2381, "scheme": "HTTP"}});
    pod(Pod {
        name: Component::Etcd.name(),
        image: Component::Etcd.image(options.kubernetes, options.etcd).reference(),
        command,
        memory: "100Mi",
        cpu: "100m",
        startup: check("/readyz"),
        liveness: check("/livez"),
        readiness: check("/readyz"),
        mounts: vec![
            ("data", ETCD_DATA, "DirectoryOrCreate", false),
            ("pki", "/etc/kubernetes/pki/etcd", "Directory", true),
        ],
    })
}

fn api_server(options: &Options) -> Value {
    let pki = |file: &str| format!("{PKI}/{file}");
    let address = options.address.to_string();
    let command = vec![
        "kube-apiserver".to_owned(),
        format!("--advertise-address={address}"),
        format!("--secure-port={API_SERVER_PORT}"),
        "--etcd-servers=https://127.0.0.1:2379".to_owned(),
        format!("--etcd-cafile={}", pki("etcd/ca.crt")),
        format!("--etcd-certfile={}", pki("apiserver-etcd-client.crt")),
        format!("--etcd-keyfile={}", pki("apiserver-etcd-client.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--tls-cert-file={}", pki("apiserver.crt")),
        format!("--tls-private-key-file={}", pki("apiserver.key")),
        format!("--kubelet-client-certificate={}", pki("apiserver-kubelet-client.crt")),
        format!("--kubelet-client-key={}", pki("apiserver-kubelet-client.key")),
        "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname".to_owned(),
        format!("--service-account-key-file={}", pki("sa.pub")),
        format!("--service-account-signing-key-file={}", pki("sa.key")),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--enable-bootstrap-token-auth=true".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--requestheader-client-ca-file={}", pki("front-proxy-ca.crt")),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        format!("--proxy-client-cert-file={}", pki("front-proxy-client.crt")),
        format!("--proxy-client-key-file={}", pki("front-proxy-client.key")),
    ];
    let check = |path: &str| json!({"httpGet": {"host": address, "path": path, "port": API_SERVER_PORT, "scheme": "HTTPS"}});
    pod(Pod {
        name: Component::ApiServer.name(),
        image: Component::ApiServer.image(options.kubernetes, options.etcd).reference(),
        command,
        memory: "256Mi",
        cpu: "250m",
        startup: check("/livez"),
        liveness: check("/livez?exclude=etcd"),
        readiness: check("/readyz"),
        mounts: vec![("pki", PKI, "Directory", true)],
    })
}

fn controller_manager(options: &Options) -> Value {
    let kubeconfig = "/etc/kubernetes/controller-manager.conf";
    let pki = |file: &str| format!("{PKI}/{file}");
    let command = vec![
        "kube-controller-manager".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--requestheader-client-ca-file={}", pki("front-proxy-ca.crt")),
        format!("--root-ca-file={}", pki("ca.crt")),
        format!("--service-account-private-key-file={}", pki("sa.key")),
        format!("--cluster-signing-cert-file={}", pki("ca.crt")),
        format!("--cluster-signing-key-file={}", pki("ca.key")),
        "--use-service-account-credentials=true".to_owned(),
        "--controllers=*,bootstrapsigner,tokencleaner".to_owned(),
        // Each node knows its own: see [`super::Node::pod_range`].
        "--allocate-node-cidrs=false".to_owned(),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--cluster-name=management".to_owned(),
        // Each of its thirty controllers first asks for an account and a token; at the default rate that takes seconds.
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        "--leader-elect=false".to_owned(),
    ];
    let check =
        json!({"httpGet": {"host": "127.0.0.1", "path": "/healthz", "port": 10257, "scheme": "HTTPS"}});
    pod(Pod {
        name: Component::ControllerManager.name(),
        image: Component::ControllerManager.image(options.kubernetes, options.etcd).reference(),
        command,
        memory: "64Mi",
        cpu: "100m",
        startup: check.clone(),
        liveness: check.clone(),
        readiness: check,
        mounts: vec![("pki", PKI, "Directory", true), ("kubeconfig", kubeconfig, "File", true)],
    })
}

fn scheduler(options: &Options) -> Value {
    let kubeconfig = "/etc/kubernetes/scheduler.conf";
    let command = vec![
        "kube-scheduler".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--leader-elect=false".to_owned(),
    ];
    let check = json!({"httpGet": {"host": "127.0.0.1", "path": "/livez", "port": 10259, "scheme": "HTTPS"}});
    pod(Pod {
        name: Component::Scheduler.name(),
        image: Component::Scheduler.image(options.kubernetes, options.etcd).reference(),
        command,
        memory: "32Mi",
        cpu: "50m",
        startup: check.clone(),
        liveness: check.clone(),
        readiness: check,
        mounts: vec![("kubeconfig", kubeconfig, "File", true)],
    })
}

struct Pod {
    name: &'static str,
    image: String,
    command: Vec<String>,
    memory: &'static str,
    cpu: &'static str,
    startup: Value,
    liveness: Value,
    readiness: Value,
    /// Name, path in the machine and in the container, type, whether it is read only.
    mounts: Vec<(&'static str, &'static str, &'static str, bool)>,
}

fn pod(pod: Pod) -> Value {
    // No priority class: kubelet treats static pods as critical anyway, and the first API server does not know the
    // class yet when etcd's pod is recorded.
    let probe = |mut probe: Value, period: u32, failures: u32| {
        probe["periodSeconds"] = json!(period);
        probe["timeoutSeconds"] = json!(15);
        probe["failureThreshold"] = json!(failures);
        probe
    };
    let mounts: Vec<Value> = pod
        .mounts
        .iter()
        .map(|(name, path, _, read_only)| json!({"name": name, "mountPath": path, "readOnly": read_only}))
        .collect();
    let volumes: Vec<Value> = pod
        .mounts
        .iter()
        .map(|(name, path, kind, _)| json!({"name": name, "hostPath": {"path": path, "type": kind}}))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": "kube-system",
            "labels": {"component": pod.name, "tier": "control-plane"},
        },
        "spec": {
            "hostNetwork": true,
            "enableServiceLinks": false,
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 10,
            "containers": [{
                "name": pod.name,
                "image": pod.image,
                "imagePullPolicy": "IfNotPresent",
                "command": pod.command,
                "env": [{"name": "GOGC", "value": "50"}],
                "resources": {"requests": {"cpu": pod.cpu, "memory": pod.memory}},
                "startupProbe": probe(pod.startup, 1, 300),
                "livenessProbe": probe(pod.liveness, 10, 8),
                "readinessProbe": probe(pod.readiness, 1, 3),
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
        },
    })
}
