//! Everything that one namespace can do to a manager, all at once and for as long as it is left to it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use hangar_testbed::Testbed;
use hangar_testbed::strangers::Tarpit;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, RootCertStore};

use super::servers::{Manner, Tenant};
use super::site::{CORE, INFRASTRUCTURE, Site, clouds_yaml, openstack_cluster};
use crate::installation::eventually;

/// Bytes of a body.
const BODY: usize = 128 << 20;
const PLANE: &str = "controlplane.cluster.x-k8s.io/v1alpha1";

/// What was done so far, and how often.
pub(crate) type Acts = Arc<Mutex<BTreeMap<String, usize>>>;

/// A namespace that does all of it. Dropping it ends it.
pub(crate) struct Evil {
    pub(crate) acts: Acts,
    tenants: Vec<(Manner, Tenant)>,
    clouds: Tarpit,
    /// Kubeconfigs that must not be used lead here.
    forbidden: Tarpit,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Evil {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Evil {
    /// Begins. A file at this path would show that a program of ours was run.
    pub(crate) async fn start(bed: &Testbed, victim: &str, machines: usize, marker: &Path) -> Self {
        let site = Site::new(bed, "evil");
        let (clouds, forbidden) = (Tarpit::start().await.unwrap(), Tarpit::start().await.unwrap());
        let mut tenants = Vec::new();
        let each = [Manner::Endless, Manner::Fields, Manner::Pages, Manner::Line, Manner::Drip];
        let each = each.map(|manner| (manner, 1));
        for (manner, nodes) in
            each.into_iter().chain(each).chain([(Manner::Restless, 3), (Manner::Hanging, 10)])
        {
            let tenant = Tenant::start(manner, nodes).await;
            site.tenant(&format!("t{}", tenants.len()), &tenant.kubeconfig(), nodes).await;
            tenants.push((manner, tenant));
        }
        for (name, kubeconfig) in edited(forbidden.address(), marker) {
            site.tenant(name, &kubeconfig, 1).await;
        }
        tarpits(&site, clouds.address(), machines).await;
        let (acts, hooks) = (Acts::default(), Hooks::of(&site).await);
        let tasks = vec![
            tokio::spawn(objects(site.clone(), Arc::clone(&acts), victim.to_owned())),
            tokio::spawn(bodies(hooks, Arc::clone(&acts))),
        ];
        Self { acts, tenants, clouds, forbidden, tasks }
    }

    /// Calls of each hostile server so far.
    pub(crate) fn served(&self) -> Vec<(String, usize)> {
        let tenants = self.tenants.iter().map(|(manner, tenant)| (format!("{manner:?}"), tenant.calls()));
        tenants.chain([("clouds".to_owned(), self.clouds.connections())]).collect()
    }

    pub(crate) fn forbidden_connections(&self) -> usize {
        self.forbidden.connections()
    }
}

/// Kubeconfigs that ask for more than a connection.
fn edited(server: SocketAddr, marker: &Path) -> [(&'static str, String); 3] {
    let kubeconfig = |scheme: &str, user: Value| {
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": format!("{scheme}://{server}")}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": user}]})
        .to_string()
    };
    let program = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [marker],
        "interactiveMode": "Never"});
    [
        ("token-file", kubeconfig("https", json!({"tokenFile": "/proc/self/environ"}))),
        ("program", kubeconfig("https", json!({ "exec": program }))),
        ("plain", kubeconfig("http", json!({"token": "t"}))),
    ]
}

/// Twenty clusters in clouds that never answer, one of them with many Machines.
async fn tarpits(site: &Site, cloud: SocketAddr, machines: usize) {
    let secret = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
    site.create(secret("data", json!({"value": "x"}))).await.unwrap();
    for number in 0..20 {
        let name = format!("tarpit-{number}");
        // Credentials of its own: a project of its own.
        let clouds = clouds_yaml(&format!("http://{cloud}/v3"), &name);
        site.create(secret(&name, json!({ "clouds.yaml": clouds }))).await.unwrap();
        site.create(openstack_cluster(&name, &name)).await.unwrap();
        site.cluster(&name, "OpenStackCluster").await;
    }
    site.create(
        json!({"apiVersion": INFRASTRUCTURE, "kind": "OpenStackMachineTemplate", "metadata": {"name": "many"},
        "spec": {"template": {"spec": {"flavor": "small", "image": {"filter": {"name": "node"}}}}}}),
    )
    .await
    .unwrap();
    let labels = json!({"pool": "many", "cluster.x-k8s.io/cluster-name": "tarpit-0"});
    site.create(json!({"apiVersion": CORE, "kind": "MachineDeployment", "metadata": {"name": "many"},
        "spec": {"clusterName": "tarpit-0", "replicas": machines, "selector": {"matchLabels": {"pool": "many"}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "clusterName": "tarpit-0", "version": "v1.34.10", "bootstrap": {"dataSecretName": "data"},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "OpenStackMachineTemplate", "name": "many"}}}}}))
        .await
        .unwrap();
}

fn count(acts: &Acts, act: &str) {
    *acts.lock().unwrap().entry(act.to_owned()).or_default() += 1;
}

/// A control plane that nests deeper than a parser goes.
fn odd(name: &str) -> Value {
    let deep = (0..400).fold(json!({}), |inner, _| json!({ "a": inner }));
    let audit = json!({"policy": {"metadata": deep, "rules": [{"level": "None"}]}});
    json!({"apiVersion": PLANE, "kind": "HostedControlPlane", "metadata": {"name": name},
        "spec": {"version": "v1.34.10", "deployment": {"apiServer": {"audit": audit}}}})
}

/// Stores objects that cannot be read while no webhook refuses them. The webhooks have to be installed again.
pub(crate) async fn store_odd_objects(bed: &Testbed) -> Site {
    let site = Site::new(bed, "odd");
    for kind in ["validating", "mutating"] {
        let all = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
        let request = http::Request::delete(all).body(Vec::new()).unwrap();
        site.client.request::<Value>(request).await.unwrap();
    }
    for number in 0..5 {
        eventually("it is stored", async || {
            // The answer nests too deeply for a client as well.
            let answer = site.create(odd(&format!("odd-{number}"))).await;
            !matches!(&answer, Err(kube::Error::Api(status)) if status.code != 409)
        })
        .await;
    }
    site
}

/// Whether they are told that they cannot be read.
pub(crate) async fn are_told(site: &Site) -> bool {
    #[derive(Deserialize)]
    struct Outline {
        #[serde(default)]
        status: Value,
    }
    #[derive(Deserialize)]
    struct List {
        items: Vec<Outline>,
    }
    let path = format!("/apis/{PLANE}/namespaces/{}/hostedcontrolplanes", site.namespace);
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let list: List = site.client.request(request).await.unwrap();
    let is_told = |one: &Outline| {
        let conditions = one.status["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|found| found["type"] == "Readable" && found["status"] == "False")
    };
    list.items.len() == 5 && list.items.iter().all(is_told)
}

/// Objects that cannot be read, that ask for too much, that refer elsewhere, and very many of them.
async fn objects(site: Site, acts: Acts, victim: String) {
    let plane = |name: &str, spec: Value| json!({"apiVersion": PLANE, "kind": "HostedControlPlane", "metadata": {"name": name}, "spec": spec});
    for round in 0.. {
        if site.create(odd(&format!("odd-{round}"))).await.is_err() {
            count(&acts, "objects that cannot be read: refused");
        }
        let greedy = json!({"version": "v1.34.10", "replicas": 9, "etcd": {"priorityClassName": "system-node-critical"},
            "exposure": {"loadBalancer": {"annotations": {"kube-vip.io/loadbalancerIPs": "192.0.2.1"}}}});
        if site.create(plane("greedy", greedy)).await.is_err() {
            count(&acts, "limits: refused");
        }
        let elsewhere = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "OpenStackCluster",
            "name": "demo", "namespace": victim});
        let elsewhere = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
            "metadata": {"name": "elsewhere"}, "spec": {"infrastructureRef": elsewhere}});
        if site.create(elsewhere).await.is_err() {
            count(&acts, "references elsewhere: refused");
        }
        for number in 0..20 {
            let name = format!("flood-{round}-{number}");
            let spec = json!({"clusterName": "nobody", "bootstrap": {"dataSecretName": "data"},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "StubMachine", "name": "none"}});
            let metadata = json!({"name": name, "annotations": {"noise": "x".repeat(100 << 10)}});
            let machine = json!({"apiVersion": CORE, "kind": "Machine", "metadata": metadata, "spec": spec});
            if site.create(machine).await.is_ok() {
                count(&acts, "flood of Machines");
            }
            let _ = site.delete(CORE, "Machine", &name).await;
        }
    }
}

/// Where the manager's webhooks are.
struct Hooks {
    address: SocketAddr,
    trust: Arc<rustls::ClientConfig>,
}

impl Hooks {
    async fn of(site: &Site) -> Self {
        let all = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let request = http::Request::get(all).body(Vec::new()).unwrap();
        let all: Value = site.client.request(request).await.unwrap();
        let to = &all["items"][0]["webhooks"][0]["clientConfig"];
        let (host, _) =
            to["url"].as_str().unwrap().strip_prefix("https://").unwrap().split_once('/').unwrap();
        let bundle =
            base64::engine::general_purpose::STANDARD.decode(to["caBundle"].as_str().unwrap()).unwrap();
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(&bundle) {
            roots.add(authority.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let trust =
            rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let trust = trust.unwrap().with_root_certificates(roots).with_no_client_auth();
        Self { address: host.parse().unwrap(), trust: Arc::new(trust) }
    }

    /// Sends a large body, as much of it as is taken.
    fn send(&self, path: &str) -> std::io::Result<()> {
        let name = self.address.ip().into();
        let connection = rustls::ClientConnection::new(Arc::clone(&self.trust), name);
        let mut stream = rustls::StreamOwned::new(
            connection.map_err(std::io::Error::other)?,
            TcpStream::connect(self.address)?,
        );
        let head = format!("POST {path} HTTP/1.1\r\nhost: hooks\r\ncontent-length: {BODY}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let (piece, mut sent) = ([b'['; 16 << 10], 0);
        while sent < BODY && stream.write_all(&piece).is_ok() {
            sent += piece.len();
        }
        let _ = stream.read(&mut [0; 64]);
        Ok(())
    }
}

/// Bodies of 128 MiB at the webhooks' port, eight at a time, by strangers: they have to guess the path.
async fn bodies(hooks: Hooks, acts: Acts) {
    let hooks = Arc::new(hooks);
    loop {
        let mut callers = JoinSet::new();
        for path in ["/convert", "/validate", "/mutate", "/"].repeat(2) {
            let (hooks, acts) = (Arc::clone(&hooks), Arc::clone(&acts));
            callers.spawn_blocking(move || {
                if hooks.send(path).is_ok() {
                    count(&acts, "bodies at the webhooks");
                }
            });
        }
        while callers.join_next().await.is_some() {}
    }
}
