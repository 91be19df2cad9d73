//! A real Prometheus collects the metrics of a manager and of a tenant's real programs, as the book says, and evaluates the
//! alert rules and the dashboard that are shipped: every expression is understood and finds series.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_kit::serve::PlainServer;
use hangar_parts::{Parts, Process, Set};
use hangar_plan::hosted_control_plane::names::{FINGERPRINT_ANNOTATION, NOT_AFTER_ANNOTATION};
use hangar_testbed::Port;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::tenant::{Tenant, process, write};
use super::world::{Manager, World, eventually, spec, turn};

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/monitoring").join(file)
}

/// What alerts are about: their expressions without the comparison at the end.
fn rules() -> BTreeSet<String> {
    let text = fs::read_to_string(shipped("rules.yaml")).unwrap();
    let rules: Value = serde_saphyr::from_str(&text).unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules = groups.flat_map(|group| group["rules"].as_array().unwrap());
    let compared = |rule: &Value| {
        let whole = rule["expr"].as_str().unwrap();
        let (measured, limit) = whole.rsplit_once(' ').unwrap();
        let (measured, comparison) = measured.rsplit_once(' ').unwrap();
        assert!(limit.parse::<f64>().is_ok() && ["<", ">"].contains(&comparison), "{whole}");
        measured.to_owned()
    };
    rules.map(compared).collect()
}

fn dashboard() -> BTreeSet<String> {
    let text = fs::read_to_string(shipped("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    expressions.map(|text| text.replace("$namespace", ".*").replace("$name", ".*")).collect()
}

struct Prometheus {
    _process: Process,
    _port: Port,
    client: Client,
}

impl Prometheus {
    fn start(world: &World, directory: &Path, jobs: &[Value]) -> Self {
        let (port, file) = (Port::reserve().unwrap(), directory.join("prometheus.json"));
        let configuration = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [shipped("rules.yaml")],
            "scrape_configs": jobs,
        });
        fs::write(&file, configuration.to_string()).unwrap();
        let address = format!("127.0.0.1:{}", port.number());
        let arguments = vec![
            format!("--config.file={}", file.display()),
            format!("--storage.tsdb.path={}", directory.join("prometheus").display()),
            format!("--web.listen-address={address}"),
        ];
        let program = Parts::from_env().unwrap().program(Set::Prometheus, "prometheus").unwrap();
        let process = process(world, directory, "prometheus", program, arguments);
        let client = Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
        Self { _process: process, _port: port, client }
    }

    async fn get(&self, path: &str) -> Option<Value> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        serde_json::from_str(&self.client.request_text(request).await.ok()?).ok()
    }

    /// The series of an expression.
    async fn query(&self, expression: &str) -> Vec<Value> {
        let mut path = "/api/v1/query?query=".to_owned();
        for byte in expression.bytes() {
            write!(path, "%{byte:02x}").unwrap();
        }
        let answer = self.get(&path).await.unwrap_or_else(|| panic!("not understood: {expression}"));
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// Takes away what finds series.
    async fn evaluate(&self, expressions: &mut BTreeSet<String>) {
        for expression in expressions.clone() {
            if !self.query(&expression).await.is_empty() {
                expressions.remove(&expression);
            }
        }
    }
}

/// Where each job is found, with the labels that PodMonitors give.
fn job(name: &str, address: &str, tls: Option<Value>) -> Value {
    let labels =
        json!({"namespace": "team", "pod": format!("demo-{name}"), "cluster_x_k8s_io_cluster_name": "demo"});
    let mut job = json!({
        "job_name": name,
        "scheme": if tls.is_some() { "https" } else { "http" },
        "static_configs": [{"targets": [address], "labels": labels}],
    });
    if let Some(tls) = tls {
        job["tls_config"] = tls;
    }
    job
}

/// The controller manager or the scheduler, as their pods run them, with what was minted for them.
async fn controller(world: &World, directory: &Path, name: &str, tenant: u16, port: u16) -> Process {
    write(world, directory, name).await;
    let file = |name: &str| directory.join(name).display().to_string();
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {
            "server": format!("https://127.0.0.1:{tenant}"), "certificate-authority": file("ca.crt"),
        }}],
        "users": [{"name": "u", "user": {
            "client-certificate": file(&format!("{name}.crt")), "client-key": file(&format!("{name}.key")),
        }}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    });
    let path = file(&format!("{name}.kubeconfig"));
    fs::write(&path, kubeconfig.to_string()).unwrap();
    let mut arguments = vec![
        format!("--kubeconfig={path}"),
        format!("--authentication-kubeconfig={path}"),
        format!("--authorization-kubeconfig={path}"),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--leader-elect=false".to_owned(),
    ];
    if name == "controller-manager" {
        arguments.push(format!("--client-ca-file={}", file("ca.crt")));
        arguments.push(format!("--requestheader-client-ca-file={}", file("proxy.crt")));
        arguments.push("--controllers=namespace-controller".to_owned());
    }
    let program = format!("kube-{name}");
    let path = Parts::from_env().unwrap().program(Set::Kubernetes134, &program).unwrap();
    process(world, directory, &program, path, arguments)
}

/// The tunnel's server.
fn konnectivity(world: &World, directory: &Path, port: u16) -> (Process, [Port; 2]) {
    let file = |name: &str| directory.join(name).display().to_string();
    let [agents, health] = [Port::reserve().unwrap(), Port::reserve().unwrap()];
    let arguments = vec![
        "--mode=grpc".to_owned(),
        format!("--uds-name={}", file("tunnel.sock")),
        "--server-port=0".to_owned(),
        "--agent-bind-address=127.0.0.1".to_owned(),
        format!("--agent-port={}", agents.number()),
        "--health-bind-address=127.0.0.1".to_owned(),
        format!("--health-port={}", health.number()),
        "--admin-bind-address=127.0.0.1".to_owned(),
        format!("--admin-port={port}"),
        format!("--cluster-cert={}", file("apiserver.crt")),
        format!("--cluster-key={}", file("apiserver.key")),
        format!("--cluster-ca-cert={}", file("ca.crt")),
    ];
    let program = Parts::from_env().unwrap().program(Set::Konnectivity, "proxy-server").unwrap();
    (process(world, directory, "proxy-server", program, arguments), [agents, health])
}

/// The identity for metrics reads nothing else.
async fn reads_nothing_else(world: &World, tenant: &Tenant) {
    let secret = super::world::texts(&world.api::<Secret>().get("demo-metrics").await.unwrap());
    let client = tenant.client_with(&secret["tls.crt"], &secret["tls.key"]);
    let text = |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let client = client.clone();
        async move { client.request_text(request).await }
    };
    assert!(text("/metrics/slis").await.is_ok());
    assert!(text("/debug/pprof/").await.is_err());
    let refused = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
}

async fn minted(world: &World) {
    eventually("all is minted", async || {
        let names = world.names::<Secret>().await;
        let is_there = |name: &&str| names.iter().any(|known| known == name);
        ["demo-ca", "demo-proxy", "demo-metrics", "demo-apiserver"].iter().all(is_there)
    })
    .await;
}

async fn are_collected(prometheus: &Prometheus) {
    for name in ["etcd", "api-server", "controller-manager", "scheduler", "konnectivity-server"] {
        let collected = format!("max_over_time(up{{job=\"{name}\"}}[5m]) == 1");
        eventually(name, async || prometheus.query(&collected).await.len() == 1).await;
    }
}

/// An owner is who has its uid: a name can be written by anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_secrets_of_a_control_plane_count_as_its_certificates() {
    let _turn = turn().await;
    let world = World::new("counted").await;
    world.apply(spec()).await;
    let manager = Manager::start();
    minted(&world).await;
    let own = world.control_plane().await.metadata.uid.unwrap();
    // The watch shows them in this order.
    for (name, uid) in [("forged", "11111111-1111-1111-1111-111111111111"), ("counted", own.as_str())] {
        let secret = json!({"metadata": {
            "name": name,
            "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
            "annotations": {FINGERPRINT_ANNOTATION: "x", NOT_AFTER_ANNOTATION: "2036-01-01T00:00:00Z"},
            "ownerReferences": [{
                "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane",
                "name": "demo", "uid": uid, "controller": true,
            }],
        }});
        let secret: Secret = serde_json::from_value(secret).unwrap();
        world.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    }
    let ends = |secret: &str| {
        let text = manager.metrics.encode();
        let mut lines = text.lines().filter(|line| {
            line.starts_with("hangar_control_plane_certificate_expiry_timestamp_seconds{")
                && line.contains(&format!(r#"namespace="{}""#, world.namespace))
        });
        lines.any(|line| line.contains(&format!(r#"secret="{secret}""#)))
    };
    eventually("its own are counted", async || ends("counted") && ends("demo-metrics")).await;
    assert!(!ends("forged"));
    manager.stop().await;
}

/// A backup was made once; those that are due fail, because their Secret does not exist.
async fn backed_up_once(world: &World) {
    let made = json!({"status": {"etcdBackup": {"lastSuccess": {
        "id": "20260101T000000Z", "time": "2026-01-01T00:00:00Z", "durationSeconds": 3, "size": 4096,
        "storedSize": 4096, "revision": 7, "encrypted": false, "hasKeys": false,
    }}}});
    let api = world.api::<HostedControlPlane>();
    api.patch_status("demo", &PatchParams::default(), &Patch::Merge(made)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_expression_of_rules_and_dashboard_finds_series() {
    let _turn = turn().await;
    tokio::task::block_in_place(|| {
        Parts::from_env().unwrap().ensure(&[Set::Prometheus, Set::Konnectivity]).unwrap();
    });
    let world = World::new("monitoring").await;
    let actor = Actor::start(&world);
    let ports: Vec<Port> = (0..4).map(|_| Port::reserve().unwrap()).collect();
    let [api_server, controller_manager, scheduler, tunnel] = [0, 1, 2, 3].map(|index| ports[index].number());
    let mut wanted = spec();
    wanted["controlPlaneEndpoint"] = json!({"host": "localhost", "port": api_server});
    wanted["etcd"]["backup"] = json!({"schedule": "@daily", "secret": {"name": "nobodys"}});
    world.apply(wanted).await;
    backed_up_once(&world).await;
    let manager = Manager::start();
    let serving = CancellationToken::new();
    let _ends_with_us = serving.clone().drop_guard();
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let served = PlainServer::start(anywhere, manager.metrics.router(), serving).await.unwrap();

    minted(&world).await;
    let directory = world.bed.logs().parent().unwrap().join(&world.namespace);
    fs::create_dir_all(&directory).unwrap();
    for suffix in ["metrics", "ca"] {
        write(&world, &directory, suffix).await;
    }
    let file = |name: &str| directory.join(name).display().to_string();
    let own = || json!({"cert_file": file("metrics.crt"), "key_file": file("metrics.key")});
    let with = |field: &str, value: Value| {
        let mut tls = own();
        tls[field] = value;
        tls
    };
    let mut verified = with("ca_file", json!(file("ca.crt")));
    verified["server_name"] = json!(format!("api-demo.{}.svc", world.namespace));
    let unverified = || Some(with("insecure_skip_verify", json!(true)));
    // As every member has it, at an address of its own.
    let [high, low] = api_server.to_be_bytes();
    let etcd = IpAddr::V4(Ipv4Addr::new(127, high, low, 1));
    let at = |port: u16| format!("127.0.0.1:{port}");
    let prometheus = Prometheus::start(
        &world,
        &directory,
        &[
            json!({
                "job_name": "manager", "honor_labels": true,
                "static_configs": [{"targets": [served.address().to_string()]}],
            }),
            job("etcd", &format!("{etcd}:2381"), None),
            job("api-server", &at(api_server), Some(verified)),
            job("controller-manager", &at(controller_manager), unverified()),
            job("scheduler", &at(scheduler), unverified()),
            job("konnectivity-server", &at(tunnel), None),
        ],
    );
    let mut left: BTreeSet<String> = rules().into_iter().chain(dashboard()).collect();
    assert!(left.len() > 30, "{left:#?}");
    eventually("it collects", async || prometheus.get("/api/v1/query?query=hangar_leader").await.is_some())
        .await;

    // What is wrong with a control plane that nobody runs.
    eventually("it is not ready", async || {
        let bad = r#"hangar_control_plane_condition{type="EtcdClusterHealthy",status="False"}"#;
        !prometheus.query(bad).await.is_empty()
    })
    .await;
    prometheus.evaluate(&mut left).await;

    let tenant = Tenant::start_with_metrics(&world, api_server, etcd).await;
    let _tunnel = konnectivity(&world, &directory, tunnel);
    actor.place("demo-etcd-0", etcd);
    for component in ["etcd", "api-server", "controller-manager", "scheduler"] {
        actor.run(component);
    }
    let _controller_manager =
        controller(&world, &directory, "controller-manager", api_server, controller_manager).await;
    let _scheduler = controller(&world, &directory, "scheduler", api_server, scheduler).await;
    eventually("it is available", async || world.condition("Available").await.0 == "True").await;
    eventually("all expressions find series", async || {
        prometheus.evaluate(&mut left).await;
        left.is_empty() || {
            fs::write(file("left"), format!("{left:#?}")).unwrap();
            false
        }
    })
    .await;
    are_collected(&prometheus).await;
    reads_nothing_else(&world, &tenant).await;
    let usage = world.control_plane().await.status.unwrap().etcd_volume_usage;
    assert!(usage.is_some_and(|usage| usage.0.ends_with("Mi")), "the size is in the status");

    let judged = prometheus.get("/api/v1/rules").await.unwrap();
    let groups = judged["data"]["groups"].as_array().unwrap();
    let alerts: Vec<&Value> = groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    for alert in &alerts {
        assert_eq!(alert["health"], "ok", "{alert:#}");
    }

    // Series go with the object.
    manager.rest().await;
    world.delete().await;
    eventually("it is gone", async || {
        let text = manager.metrics.encode();
        !text.contains("hangar_control_plane_info{")
            && !text.contains("hangar_control_plane_etcd_database_bytes{")
    })
    .await;
    manager.stop().await;
}
