//! Tenants for these tests: the management cluster's own API server, where a webhook may hold every change of a Node, or a
//! proxy to it whose Nodes never rest. Also the kubelets of a cloud's servers.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::AsyncReadExt as _;
use hangar_cloud::Handle;
use hangar_cloud::model::Status;
use hangar_pki::{Credentials, Kubeconfig, SecretText, Trust};
use hangar_testbed::strangers::{Tarpit, serving};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::Accept;

use super::world::{BED, World};

/// A tenant whose watches of Nodes tell all the time that each of them has changed, and that answers no write.
pub(super) struct Restless {
    address: SocketAddr,
    /// Whom to trust, in PEM.
    authority: String,
    changed: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Restless {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, changed) = (listener.local_addr().unwrap(), Arc::default());
        let (client, count) = (BED.client(), Arc::clone(&changed));
        let (acceptor, authority) = serving(address);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(pass(acceptor.accept(stream), client.clone(), Arc::clone(&count)));
            }
        });
        Self { address, authority, changed, task }
    }

    pub(super) fn kubeconfig(&self) -> String {
        let kubeconfig = Kubeconfig {
            cluster: "tenant".to_owned(),
            user: "tenant".to_owned(),
            server: format!("https://{}", self.address),
            trust: Trust::Embedded(self.authority.clone()),
            tls_server_name: None,
            credentials: Credentials::Token(SecretText::new("token")),
            namespace: None,
        };
        kubeconfig.to_yaml().unwrap()
    }

    /// Changes that watches told of.
    pub(super) fn changed(&self) -> usize {
        self.changed.load(Ordering::SeqCst)
    }
}

impl Drop for Restless {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A webhook of the tenant that accepts every changed Node of a world and never answers.
pub(super) struct BlackHole {
    webhook: Tarpit,
    api: Api<ValidatingWebhookConfiguration>,
    name: String,
}

impl BlackHole {
    pub(super) async fn start(world: &World) -> Self {
        let (webhook, name) = (Tarpit::start().await.unwrap(), world.namespace.clone());
        let api: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
        let configuration = serde_json::from_value(json!({
            "metadata": {"name": name},
            "webhooks": [{
                "name": "black-hole.hangar.test",
                "clientConfig": {"url": format!("https://{}/", webhook.address())},
                "rules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["UPDATE"],
                }],
                "matchConditions": [{
                    "name": "of-this-world",
                    "expression": format!("object.metadata.name.startsWith('{name}-')"),
                }],
                "failurePolicy": "Fail",
                "timeoutSeconds": 30,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        }))
        .unwrap();
        api.create(&PostParams::default(), &configuration).await.unwrap();
        Self { webhook, api, name }
    }

    /// Reviews that nobody answered.
    pub(super) fn reviews(&self) -> usize {
        self.webhook.connections()
    }

    pub(super) async fn end(&self) {
        self.api.delete(&self.name, &DeleteParams::default()).await.unwrap();
    }
}

/// One call per connection. Whoever hangs up ends it.
async fn pass(accepted: Accept<TcpStream>, client: Client, changed: Arc<AtomicUsize>) -> Option<()> {
    let mut stream = accepted.await.ok()?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    if method != "GET" {
        return std::future::pending().await;
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
    if path.starts_with("/api/v1/nodes?") && path.contains("watch=true") {
        stream.write_all(head.as_bytes()).await.ok()?;
        return change(&mut stream, &client, &changed).await;
    }
    let request = http::Request::get(path).body(Vec::new()).ok()?;
    let mut answer = std::pin::pin!(client.request_stream(request).await.ok()?);
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut piece = vec![0; 64 << 10];
    while let Some(length) = answer.read(&mut piece).await.ok().filter(|length| *length > 0) {
        stream.write_all(&piece[..length]).await.ok()?;
        stream.flush().await.ok()?;
    }
    // TLS tells an end from a cut.
    stream.shutdown().await.ok()
}

/// Tells without end that all Nodes have changed: their texts of a MiB together, and whether they are ready.
async fn change(
    stream: &mut (impl AsyncWrite + Unpin),
    client: &Client,
    changed: &AtomicUsize,
) -> Option<()> {
    let mut nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.ok()?.items;
    for number in 1_usize.. {
        let text = char::from(b'a' + u8::try_from(number % 26).ok()?).to_string().repeat(256 << 10);
        let ready = if number.is_multiple_of(2) { "True" } else { "False" };
        for node in &mut nodes {
            let version: u64 = node.metadata.resource_version.as_ref()?.parse().ok()?;
            node.metadata.resource_version = Some((version + 1).to_string());
            let status = node.status.get_or_insert_default();
            let info = status.node_info.get_or_insert_default();
            for field in [&mut info.os_image, &mut info.kernel_version, &mut info.machine_id] {
                field.clone_from(&text);
            }
            let condition = status.conditions.get_or_insert_default().first_mut()?;
            ready.clone_into(&mut condition.status);
            condition.message = Some(format!("{number}{text}"));
            let line =
                format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", serde_json::to_string(node).ok()?);
            stream.write_all(line.as_bytes()).await.ok()?;
            stream.flush().await.ok()?;
            changed.fetch_add(1, Ordering::SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    None
}

/// Every server that runs in a cloud registers a Node, once. Dropping them ends them.
pub(super) struct Kubelets(JoinHandle<()>);

impl Kubelets {
    pub(super) fn start(world: &World, cloud: &Arc<Handle>) -> Self {
        let (client, namespace, cloud) = (world.client.clone(), world.namespace.clone(), Arc::clone(cloud));
        Self(tokio::spawn(async move {
            let mut joined = BTreeSet::new();
            loop {
                let running: Vec<(String, String)> = {
                    let model = cloud.model();
                    let active = model.servers.values().filter(|server| server.status == Status::Active);
                    active
                        .map(|server| (format!("{namespace}-{}", server.name), server.id.to_string()))
                        .collect()
                };
                for (name, id) in running {
                    if joined.insert(id.clone()) {
                        join(&client, &name, &id).await;
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn join(client: &Client, name: &str, id: &str) {
    let api: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"providerID": format!("openstack:///{id}"),
            "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]},
    }))
    .unwrap();
    api.create(&PostParams::default(), &node).await.unwrap();
    let status = json!({ "status": node.status });
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}
