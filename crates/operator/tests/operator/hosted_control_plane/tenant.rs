//! A tenant for these tests: a real etcd and a real API server that run with the keys that the controller minted.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use hangar_parts::{Parts, Process, ProcessSpec, Set};
use hangar_testbed::Port;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;

use super::world::{World, eventually, texts};

/// What it needs to start: the ends of Secrets' names.
pub(crate) const MATERIAL: [&str; 11] = [
    "ca",
    "etcd",
    "proxy",
    "sa",
    "encryption",
    "apiserver",
    "apiserver-kubelet-client",
    "apiserver-etcd-client",
    "front-proxy-client",
    "etcd-server",
    "etcd-peer",
];

/// A tenant's API server. Dropping it ends it before its etcd.
pub(crate) struct Tenant {
    api_server: Process,
    etcd: Process,
    etcd_port: Port,
    peer_port: Port,
    port: u16,
    directory: PathBuf,
    config: Config,
}

impl Tenant {
    /// Starts it on a loopback port, and returns when it is ready.
    pub(crate) async fn start(world: &World, port: u16) -> Self {
        Self::start_both_with(world, port, (&[], &[])).await
    }

    /// The same, where etcd tells its metrics at the port of every member.
    pub(crate) async fn start_with_metrics(world: &World, port: u16, address: IpAddr) -> Self {
        let more = [format!("--listen-metrics-urls=http://{address}:2381")];
        Self::start_both_with(world, port, (&more, &[])).await
    }

    /// The same with further flags of the API server.
    pub(super) async fn start_with(world: &World, port: u16, flags: &[String]) -> Self {
        Self::start_both_with(world, port, (&[], flags)).await
    }

    /// With further flags of etcd and of the API server.
    async fn start_both_with(world: &World, port: u16, (more, flags): (&[String], &[String])) -> Self {
        // The guardian of the testbed ends what names its directory.
        let directory = world.bed.logs().parent().unwrap().join(&world.namespace);
        fs::create_dir_all(&directory).unwrap();
        for suffix in MATERIAL {
            write(world, &directory, suffix).await;
        }
        let (etcd_port, peer_port) = (Port::reserve().unwrap(), Port::reserve().unwrap());
        let etcd = etcd(world, &directory, ("data", "new"), etcd_port.number(), (peer_port.number(), more));
        let api_server = api_server(world, &directory, "kube-apiserver", etcd_port.number(), (port, flags));
        let config = access(world, port).await;
        let mut tenant = Self { api_server, etcd, etcd_port, peer_port, port, directory, config };
        tenant.wait_until_ready().await;
        tenant
    }

    pub(crate) fn client(&self) -> Client {
        Client::try_from(self.config.clone()).unwrap()
    }

    /// Somebody else's way in.
    pub(crate) fn client_with(&self, certificate: &str, key: &str) -> Client {
        use base64::Engine as _;
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let mut config = self.config.clone();
        config.auth_info.client_certificate_data = Some(encode(certificate));
        config.auth_info.client_key_data = Some(encode(key).into());
        Client::try_from(config).unwrap()
    }

    /// From now on it is the tenant of another world: it shows what was minted there, and trusts who was signed there.
    /// An API server reads both again when they change. What it stores stays.
    pub(crate) async fn serve(&self, world: &World) -> Client {
        for suffix in ["ca", "apiserver"] {
            write(world, &self.directory, suffix).await;
        }
        let config = access(world, self.port).await;
        eventually("the tenant shows its new certificate and trusts the new authority", async || {
            // A kept connection would still be the old one.
            let client = Client::try_from(config.clone()).unwrap();
            Api::<Namespace>::all(client).list(&ListParams::default()).await.is_ok()
        })
        .await;
        Client::try_from(config).unwrap()
    }

    /// A second API server over the same etcd with the same keys, with data of its own. Its service account tokens are
    /// those of an issuer that can be called.
    pub(super) async fn issuer(&self, world: &World, port: u16, flags: &[String]) -> (Process, Client) {
        let issuer = format!("https://127.0.0.1:{port}");
        let mut all = vec![
            format!("--service-account-issuer={issuer}"),
            format!("--service-account-jwks-uri={issuer}/openid/v1/jwks"),
            "--etcd-prefix=/issuer".to_owned(),
        ];
        all.extend_from_slice(flags);
        let etcd_port = self.etcd_port.number();
        let process = api_server(world, &self.directory, "issuer", etcd_port, (port, &all));
        let client = Client::try_from(access(world, port).await).unwrap();
        eventually("the issuer is ready", async || {
            let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
            client.request_text(request).await.is_ok_and(|text| text == "ok")
        })
        .await;
        (process, client)
    }

    /// A client of its API server with a token.
    pub(super) fn client_with_token(&self, token: &str) -> Client {
        let mut config = self.config.clone();
        config.auth_info =
            kube::config::AuthInfo { token: Some(token.into()), ..kube::config::AuthInfo::default() };
        Client::try_from(config).unwrap()
    }

    /// Whether etcd talks to the holder of a certificate.
    pub(crate) async fn etcd_answers(&self, world: &World, suffix: &str) -> bool {
        let encode = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
        let read = async |suffix: &str| {
            texts(&world.api::<Secret>().get(&format!("{}-{suffix}", world.cluster)).await.unwrap())
        };
        let (trusted, own) = (read("etcd").await, read(suffix).await);
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "clusters": [{"name": "etcd", "cluster": {
                "server": format!("https://127.0.0.1:{}", self.etcd_port.number()),
                "certificate-authority-data": encode(&trusted["tls.crt"]),
            }}],
            "users": [{"name": "somebody", "user": {
                "client-certificate-data": encode(&own["tls.crt"]),
                "client-key-data": encode(&own["tls.key"]),
            }}],
            "contexts": [{"name": "c", "context": {"cluster": "etcd", "user": "somebody"}}],
            "current-context": "c",
        }))
        .unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let request = http::Request::get("/health").body(Vec::new()).unwrap();
        Client::try_from(config).unwrap().request_text(request).await.is_ok()
    }

    /// Starts etcd again, with its data and the state that members are given now.
    pub(crate) async fn restart_etcd(&mut self, world: &World) {
        let state = initial_state(world).await;
        self.etcd.stop(Duration::from_mins(1)).unwrap();
        let (port, peer_port) = (self.etcd_port.number(), self.peer_port.number());
        self.etcd = etcd(world, &self.directory, ("data", &state), port, (peer_port, &[]));
        self.wait_until_ready().await;
    }

    /// Starts everything again with the keys that are in the Secrets now.
    pub(crate) async fn restart_with_secrets(&mut self, world: &World) {
        self.api_server.stop(Duration::from_mins(1)).unwrap();
        for suffix in MATERIAL {
            write(world, &self.directory, suffix).await;
        }
        let etcd_port = self.etcd_port.number();
        self.api_server = api_server(world, &self.directory, "kube-apiserver", etcd_port, (self.port, &[]));
        self.wait_until_ready().await;
    }

    /// How an etcd without data ends, with the state that members are given now.
    pub(crate) async fn empty_etcd_ends(&self, world: &World) -> ExitStatus {
        let (port, peer_port) = (Port::reserve().unwrap(), Port::reserve().unwrap());
        let state = initial_state(world).await;
        let mut etcd =
            etcd(world, &self.directory, ("empty", &state), port.number(), (peer_port.number(), &[]));
        let start = Instant::now();
        loop {
            if let Some(status) = etcd.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < Duration::from_mins(2), "it goes on as a new cluster");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn wait_until_ready(&mut self) {
        let start = Instant::now();
        loop {
            let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
            let answer = self.client().request_text(request).await;
            if answer.as_deref().is_ok_and(|text| text == "ok") {
                return;
            }
            self.api_server.check_running().unwrap();
            assert!(start.elapsed() < Duration::from_mins(5), "the tenant is not ready: {answer:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A way into the tenant that needs no rights, over loopback.
async fn access(world: &World, port: u16) -> Config {
    let secret = async |suffix: &str| {
        texts(&world.api::<Secret>().get(&format!("{}-{suffix}", world.cluster)).await.unwrap())
    };
    let (authority, own) = (secret("ca").await, secret("operator-access").await);
    let key = hangar_pki::PrivateKeyPem::new(&authority["tls.key"]);
    let authority = hangar_pki::Authority::from_pem(&authority["tls.crt"], &key).unwrap();
    let intent = hangar_pki::Intent::new("test", hangar_pki::Usage::Client, Duration::from_hours(24));
    let intent = intent.organizations(["system:masters"]);
    let pair = hangar_pki::issue(&authority, &intent, jiff::Timestamp::now()).unwrap();
    hangar_kit::client::connection(&hangar_pki::Kubeconfig {
        // The name of a Service leads nowhere here.
        tls_server_name: Some(format!("api-{}.{}.svc", world.cluster, world.namespace)),
        server: format!("https://127.0.0.1:{port}"),
        credentials: hangar_pki::Credentials::Certificate(pair),
        ..hangar_pki::Kubeconfig::read(&own["value"]).unwrap()
    })
    .unwrap()
}

/// Writes the content of a Secret to files called after it.
pub(super) async fn write(world: &World, directory: &Path, suffix: &str) {
    let secret = world.api::<Secret>().get(&format!("{}-{suffix}", world.cluster)).await.unwrap();
    for (key, text) in texts(&secret) {
        let extension = key.rsplit('.').next().unwrap();
        fs::write(directory.join(format!("{suffix}.{extension}")), text).unwrap();
    }
}

pub(super) fn process(
    world: &World,
    directory: &Path,
    name: &str,
    program: PathBuf,
    arguments: Vec<String>,
) -> Process {
    let log = world.bed.logs().join(format!("{}-{name}.log", directory.file_name().unwrap().display()));
    let process =
        ProcessSpec::new(name, program, log).variable("GOGC", "50").arguments(arguments).start().unwrap();
    world.bed.guard(process.id());
    process
}

/// The state in the first member's file.
pub(crate) async fn initial_state(world: &World) -> String {
    let map = world.api::<ConfigMap>().get("demo-etcd").await.unwrap();
    let file: serde_json::Value = serde_saphyr::from_str(&map.data.unwrap()["demo-etcd-0.yaml"]).unwrap();
    file["initial-cluster-state"].as_str().unwrap().to_owned()
}

fn etcd(
    world: &World,
    directory: &Path,
    (data, state): (&str, &str),
    port: u16,
    (peer_port, more): (u16, &[String]),
) -> Process {
    let file = |name: &str| directory.join(name).display().to_string();
    let (client, peer) = (format!("https://127.0.0.1:{port}"), format!("https://127.0.0.1:{peer_port}"));
    let mut arguments = vec![
        "--name=tenant".to_owned(),
        format!("--data-dir={}", file(data)),
        format!("--initial-cluster-state={state}"),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=tenant={peer}"),
        format!("--cert-file={}", file("etcd-server.crt")),
        format!("--key-file={}", file("etcd-server.key")),
        format!("--trusted-ca-file={}", file("etcd.crt")),
        "--client-cert-auth=true".to_owned(),
        format!("--peer-cert-file={}", file("etcd-peer.crt")),
        format!("--peer-key-file={}", file("etcd-peer.key")),
        format!("--peer-trusted-ca-file={}", file("etcd.crt")),
        "--peer-client-cert-auth=true".to_owned(),
        "--unsafe-no-fsync=true".to_owned(),
    ];
    arguments.extend_from_slice(more);
    let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcd").unwrap();
    process(world, directory, &format!("etcd-{data}"), program, arguments)
}

fn api_server(
    world: &World,
    directory: &Path,
    name: &str,
    etcd_port: u16,
    (port, flags): (u16, &[String]),
) -> Process {
    let file = |name: &str| directory.join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=https://127.0.0.1:{etcd_port}"),
        format!("--etcd-cafile={}", file("etcd.crt")),
        format!("--etcd-certfile={}", file("apiserver-etcd-client.crt")),
        format!("--etcd-keyfile={}", file("apiserver-etcd-client.key")),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--kubelet-client-certificate={}", file("apiserver-kubelet-client.crt")),
        format!("--kubelet-client-key={}", file("apiserver-kubelet-client.key")),
        format!("--proxy-client-cert-file={}", file("front-proxy-client.crt")),
        format!("--proxy-client-key-file={}", file("front-proxy-client.key")),
        format!("--requestheader-client-ca-file={}", file("proxy.crt")),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        format!("--encryption-provider-config={}", file("encryption.yaml")),
        "--authorization-mode=Node,RBAC".to_owned(),
        format!("--service-account-key-file={}", file("sa.crt")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--enable-bootstrap-token-auth=true".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--shutdown-delay-duration=0s".to_owned(),
    ];
    arguments.extend_from_slice(flags);
    if !flags.iter().any(|flag| flag.starts_with("--service-account-issuer")) {
        arguments.push("--service-account-issuer=https://kubernetes.default.svc".to_owned());
    }
    let program = Parts::from_env().unwrap().program(Set::Kubernetes134, "kube-apiserver").unwrap();
    process(world, directory, name, program, arguments)
}
