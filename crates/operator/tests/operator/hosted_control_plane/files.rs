//! Files of the API server: whose tokens it accepts, where its audit records go, and what users mount. A real API server
//! runs with the rendered files, beside the real audit proxy and a real tunnel.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hangar_parts::{Parts, Set};
use hangar_testbed::{Port, strangers};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::tenant::{Tenant, process};
use super::world::{Manager, World, eventually, spec, texts, turn};

/// Where the rendered files are in a pod.
const DIRECTORIES: [&str; 4] =
    ["/etc/kubernetes/configuration", "/run/konnectivity", "/etc/hangar/audit", "/var/log/kubernetes/audit"];

/// Head and body of each request.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// A server over TLS that answers each request with what `answer` makes of its body; whom to trust for it.
async fn serve(answer: fn(&Value) -> Value) -> (SocketAddr, String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (acceptor, authority) = strangers::serving(address);
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut bytes = Vec::new();
                loop {
                    while let Some((head, body, rest)) = request(&bytes) {
                        bytes = rest;
                        let text = answer(&body).to_string();
                        seen.lock().unwrap().push((head, body));
                        let length = text.len();
                        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
                        let text = format!("{head}\r\nContent-Length: {length}\r\n\r\n{text}");
                        if stream.write_all(text.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                    if !matches!(stream.read_buf(&mut bytes).await, Ok(length) if length > 0) {
                        return;
                    }
                }
            });
        }
    });
    (address, authority, requests)
}

/// The first request of these bytes, once it is whole, and what follows it.
fn request(bytes: &[u8]) -> Option<(String, Value, Vec<u8>)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |text| text.parse().unwrap());
    let body = bytes.get(end..end + length)?;
    Some((head, serde_json::from_slice(body).unwrap_or_default(), bytes[end + length..].to_vec()))
}

fn allow(review: &Value) -> Value {
    let response = json!({"uid": review["request"]["uid"], "allowed": true});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// A path or a text with paths of the pod, as it is in this test.
fn placed(text: &str, directory: &Path) -> String {
    DIRECTORIES
        .iter()
        .fold(text.to_owned(), |text, from| text.replace(from, &directory.display().to_string()))
}

/// Writes the rendered files, and gives the rendered flags that name them.
async fn files(world: &World, directory: &Path) -> Vec<String> {
    for map in ["demo-apiserver", "demo-authentication"] {
        let map = world.api::<ConfigMap>().get(map).await.unwrap();
        for (name, text) in map.data.unwrap() {
            // As kubelet does it: nobody reads half a file.
            fs::write(directory.join("next"), placed(&text, directory)).unwrap();
            fs::rename(directory.join("next"), directory.join(name)).unwrap();
        }
    }
    let deployment = world.api::<Deployment>().get("demo-apiserver").await.unwrap();
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    let container = pod.containers.iter().find(|container| container.name == "kube-apiserver").unwrap();
    let flags = container.args.clone().unwrap();
    let is_of_files = |flag: &&String| {
        ["--audit-", "--authentication-", "--egress-"].iter().any(|beginning| flag.starts_with(beginning))
    };
    flags.iter().filter(is_of_files).map(|flag| placed(flag, directory)).collect()
}

async fn change(world: &World, spec: Value) {
    let api = world.api::<hangar_api::controlplane::v1alpha1::HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await.unwrap();
}

fn labelled(kind: &str, name: &str, data: &Value) -> Value {
    let metadata = json!({"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "demo"}});
    let content = if kind == "Secret" { "stringData" } else { "data" };
    json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, content: data})
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Who the holder of a token is.
async fn user(tenant: &Tenant, token: &str) -> Result<String, u16> {
    let api: Api<SelfSubjectReview> = Api::all(tenant.client_with_token(token));
    match api.create(&PostParams::default(), &SelfSubjectReview::default()).await {
        Ok(review) => Ok(review.status.unwrap().user_info.unwrap().username.unwrap()),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

async fn token(issuer: &Client, audience: &str) -> String {
    let api: Api<ServiceAccount> = Api::namespaced(issuer.clone(), "default");
    let request = json!({"spec": {"audiences": [audience], "expirationSeconds": 3600}});
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    let made = api.create_token_request("robot", &PostParams::default(), &request).await.unwrap();
    made.status.unwrap().token
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_runs_with_the_rendered_files() {
    let _turn = turn().await;
    let world = World::new("files").await;
    let actor = Actor::start(&world);
    let (receiver, authority, records) = serve(|_| json!({})).await;
    let (nobody, port, issuer_port) =
        (Port::reserve().unwrap(), Port::reserve().unwrap(), Port::reserve().unwrap());
    let mut wanted = spec();
    wanted["deployment"] = json!({"apiServer": {
        "args": {"audit-webhook-batch-max-wait": "1s", "oidc-issuer-url": "https://elsewhere.example"},
        "mounts": {"more": {"path": "/etc/more", "configMap": {"name": "more"}}},
        "audit": {
            "policy": {"rules": [
                {"level": "Metadata", "resources": [{"group": "", "resources": ["configmaps"]}]},
                {"level": "None"},
            ]},
            "log": {"maxSize": 1},
            "webhook": {"targets": [
                {"server": format!("https://127.0.0.1:{}/down", nobody.number())},
                {
                    "server": format!("https://{receiver}/in"), "certificateAuthority": authority,
                    "authentication": {"secretName": "audit-token"},
                },
            ]},
        },
    }});
    world.apply(wanted).await;
    let manager = Manager::start();
    actor.run("etcd");
    what_is_missing_is_told_and_waited_for(&world).await;
    let authority = async || texts(&world.api::<Secret>().get("demo-ca").await.unwrap())["tls.crt"].clone();
    let issuer = format!("https://127.0.0.1:{}", issuer_port.number());
    let provider = |authority: &str, audiences: Value| {
        json!({"oidcProviders": {&issuer: {
            "certificateAuthority": authority, "audiences": audiences,
            "claimMappings": {"username": "'robot:' + claims.sub"},
        }}})
    };
    change(&world, provider(&authority().await, json!(["first"]))).await;
    let is_written = async |text: &str| {
        let map = world.api::<ConfigMap>().get_opt("demo-authentication").await.unwrap();
        let data = map.and_then(|map| map.data).unwrap_or_default();
        data.get("authentication.yaml").is_some_and(|file| file.contains(text))
    };
    eventually("the issuer is rendered", async || is_written(&issuer).await).await;
    eventually("the flag is rendered", async || {
        let deployment = world.api::<Deployment>().get("demo-apiserver").await.unwrap();
        json!(deployment.spec).to_string().contains("--authentication-config=")
    })
    .await;

    let directory = world.bed.logs().parent().unwrap().join(&world.namespace);
    fs::create_dir_all(&directory).unwrap();
    let flags = files(&world, &directory).await;
    fs::write(directory.join("token-1"), "secret").unwrap();
    let stop = CancellationToken::new();
    let settings = hangar_audit::Settings::read(&directory.join("audit-proxy.yaml")).unwrap();
    let proxy = tokio::spawn({
        let stop = stop.clone();
        async move { hangar_audit::run(&settings, stop).await.unwrap() }
    });
    let tenant = Tenant::start_with(&world, port.number(), &flags).await;
    // The other server reads the same file as older API servers want it.
    let text = fs::read_to_string(directory.join("authentication.yaml")).unwrap();
    let older = text.replace("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1");
    let older = older.replace(&issuer, "https://other.example");
    fs::write(directory.join("older.yaml"), older).unwrap();
    let older = format!("--authentication-config={}", directory.join("older.yaml").display());
    let (_running, issuing) = tenant.issuer(&world, issuer_port.number(), &[older]).await;
    tokens_are_accepted(&world, &tenant, &issuing, &directory, async |audiences| {
        change(&world, provider(&authority().await, audiences)).await;
        eventually("both are rendered", async || is_written("second").await).await;
    })
    .await;
    records_arrive(&tenant, &records, &directory).await;
    a_webhook_by_url_goes_through_the_tunnel(&world, &tenant, &directory).await;
    stop.cancel();
    proxy.await.unwrap();
    drop(tenant);
    manager.stop().await;
}

/// Objects that settings name, and flags that are not users' to set: a condition and an event.
async fn what_is_missing_is_told_and_waited_for(world: &World) {
    eventually("the condition names both, and the flag", async || {
        let (_, reason, message) = world.condition("SettingsEffective").await;
        reason == "SourceMissing"
            && message.contains("mounts[more]: ConfigMap more does not exist")
            && message.contains("targets[1].authentication: Secret audit-token does not exist")
            && message.contains("args[oidc-issuer-url]")
    })
    .await;
    eventually("there is an event", async || {
        let events = world.api::<Event>().list(&ListParams::default()).await.unwrap();
        events.iter().any(|event| event.reason.as_deref() == Some("SettingsNotEffective"))
    })
    .await;
    assert_eq!(world.names::<Deployment>().await, [] as [&str; 0]);
    create(&world.api::<ConfigMap>(), labelled("ConfigMap", "more", &json!({"file": "one"}))).await;
    eventually("the API server follows", async || world.names::<Deployment>().await == ["demo-apiserver"])
        .await;
    let settings = async || {
        let deployment = world.api::<Deployment>().get("demo-apiserver").await.unwrap();
        let template = deployment.spec.unwrap().template.metadata.unwrap();
        template.annotations.unwrap()["hangar.cluster.x-k8s.io/settings"].clone()
    };
    let before = settings().await;
    let other = json!({"data": {"file": "two"}});
    world.api::<ConfigMap>().patch("more", &PatchParams::default(), &Patch::Merge(other)).await.unwrap();
    eventually("other content replaces pods", async || settings().await != before).await;
    create(&world.api::<Secret>(), labelled("Secret", "audit-token", &json!({"token": "secret"}))).await;
    eventually("only the flag is told", async || world.condition("SettingsEffective").await.1 == "Ignored")
        .await;
}

async fn tokens_are_accepted(
    world: &World,
    tenant: &Tenant,
    issuer: &Client,
    directory: &Path,
    add_second: impl AsyncFnOnce(Value),
) {
    let discovery = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "discovery"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "system:service-account-issuer-discovery",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:unauthenticated"}],
    });
    create(&Api::<ClusterRoleBinding>::all(issuer.clone()), discovery).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    eventually("the account is made", async || {
        let api: Api<ServiceAccount> = Api::namespaced(issuer.clone(), "default");
        let account = serde_json::from_value(account.clone()).unwrap();
        api.create(&PostParams::default(), &account).await.is_ok()
    })
    .await;
    let (first, second) = (token(issuer, "first").await, token(issuer, "second").await);
    let name = "robot:system:serviceaccount:default:robot";
    eventually("a token of the issuer is accepted", async || {
        user(tenant, &first).await == Ok(name.to_owned())
    })
    .await;
    assert_eq!(user(tenant, &second).await, Err(401), "for another audience");
    // A file that cannot be used changes nothing.
    let file = directory.join("authentication.yaml");
    let bad = fs::read_to_string(&file).unwrap().replace("claims.sub", "claims.sub + 1");
    fs::write(directory.join("next"), bad).unwrap();
    fs::rename(directory.join("next"), &file).unwrap();
    let reloads = async |status: &str| {
        let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
        let metrics = tenant.client().request_text(request).await.unwrap();
        let counter = "apiserver_authentication_config_controller_automatic_reloads_total{";
        metrics
            .lines()
            .any(|line| line.starts_with(counter) && line.contains(&format!("status=\"{status}\"")))
    };
    eventually("it is read and refused", async || reloads("failure").await).await;
    assert_eq!(user(tenant, &first).await, Ok(name.to_owned()));
    // Another provider needs no restart.
    add_second(json!(["first", "second"])).await;
    files(world, directory).await;
    eventually("a second audience is accepted", async || user(tenant, &second).await == Ok(name.to_owned()))
        .await;
    assert_eq!(user(tenant, &first).await, Ok(name.to_owned()));
}

async fn records_arrive(tenant: &Tenant, records: &Requests, directory: &Path) {
    let api: Api<ConfigMap> = Api::namespaced(tenant.client(), "default");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "recorded"}});
    create(&api, map).await;
    let log = directory.join("audit.log");
    eventually("the record is in the file", async || {
        fs::read_to_string(&log).is_ok_and(|text| text.lines().any(|line| line.contains("\"recorded\"")))
    })
    .await;
    eventually("the receiver has it, with the token, though the first receiver is down", async || {
        let records = records.lock().unwrap();
        records.iter().any(|(head, body)| {
            head.starts_with("post /in ")
                && head.contains("authorization: bearer secret\r\n")
                && body["kind"] == "EventList"
                && body["apiVersion"] == "audit.k8s.io/v1"
                && body["items"].to_string().contains("\"recorded\"")
        })
    })
    .await;
}

/// The proxy takes nothing but records: what the tenant names goes to the tunnel's server, and from an agent on.
async fn a_webhook_by_url_goes_through_the_tunnel(world: &World, tenant: &Tenant, directory: &Path) {
    let (address, authority, reviews) = serve(allow).await;
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "asked"},
        "webhooks": [{
            "name": "asked.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "timeoutSeconds": 5,
            "clientConfig": {
                "url": format!("https://{address}/validate"),
                "caBundle": k8s_openapi::ByteString(authority.into_bytes()),
            },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }],
        }],
    });
    create(&Api::<ValidatingWebhookConfiguration>::all(tenant.client()), configuration).await;
    let api: Api<ConfigMap> = Api::namespaced(tenant.client(), "default");
    let map = |number: usize| -> ConfigMap {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("asked-{number}")}});
        serde_json::from_value(map).unwrap()
    };
    let mut number = 0;
    eventually("without a tunnel the webhook cannot be called", async || {
        number += 1;
        api.create(&PostParams::default(), &map(number)).await.is_err()
    })
    .await;
    assert!(reviews.lock().unwrap().is_empty(), "the proxy calls nobody by itself");
    let _tunnel = tunnel(world, directory);
    eventually("with one it is", async || {
        number += 1;
        api.create(&PostParams::default(), &map(number)).await.is_ok()
    })
    .await;
    assert!(!reviews.lock().unwrap().is_empty());
}

/// The tunnel's server in the protocol that the proxy hands on, and an agent. Whether agents may connect is another
/// matter.
fn tunnel(world: &World, directory: &Path) -> ([hangar_parts::Process; 2], [Port; 5]) {
    let parts = Parts::from_env().unwrap();
    let program = |name: &str| -> PathBuf { parts.program(Set::Konnectivity, name).unwrap() };
    let file = |name: &str| directory.join(name).display().to_string();
    let ports: [Port; 5] = std::array::from_fn(|_| Port::reserve().unwrap());
    let [agent, admin, health, agent_admin, agent_health] = ports.each_ref().map(Port::number);
    let server = [
        "--mode=http-connect".to_owned(),
        format!("--uds-name={}", file("konnectivity.sock")),
        "--delete-existing-uds-file=true".to_owned(),
        "--server-port=0".to_owned(),
        format!("--agent-port={agent}"),
        format!("--admin-port={admin}"),
        format!("--health-port={health}"),
        format!("--cluster-cert={}", file("apiserver.crt")),
        format!("--cluster-key={}", file("apiserver.key")),
    ];
    let client = [
        "--proxy-server-host=127.0.0.1".to_owned(),
        format!("--proxy-server-port={agent}"),
        format!("--admin-server-port={agent_admin}"),
        format!("--health-server-port={agent_health}"),
        format!("--ca-cert={}", file("ca.crt")),
        "--sync-interval=500ms".to_owned(),
    ];
    let processes = [
        process(world, directory, "proxy-server", program("proxy-server"), server.into()),
        process(world, directory, "proxy-agent", program("proxy-agent"), client.into()),
    ];
    (processes, ports)
}
