//! Tests the rules of `hangar_plan::admission` through a real API server and a real manager.

use hangar_testbed::{Options, Testbed};
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::installation::{Manager, conversion_works, install};

const NAMESPACE_CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";

struct Answer {
    code: u16,
    warning: String,
    body: Value,
}

/// One request, whose warnings a typed client would not show.
async fn ask(client: &Client, user: Option<&str>, method: Method, path: &str, body: &Value) -> Answer {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let mut request = http::Request::builder().method(method).uri(path).header("content-type", content);
    if let Some(user) = user {
        request = request.header("impersonate-user", user).header("impersonate-group", "system:masters");
    }
    let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
    let answer = client.send(request.body(kube::client::Body::from(body)).unwrap()).await.unwrap();
    let warning: Vec<String> =
        answer.headers().get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned()).collect();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.unwrap();
    Answer { code, warning: warning.join("; "), body: serde_json::from_slice(&body).unwrap() }
}

fn path(group: &str, version: &str, plural: &str) -> String {
    format!("/apis/{group}/{version}/namespaces/default/{plural}")
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_old_objects_dry_runs_and_deletions_are_judged() {
    let bed = Testbed::start(Options::default()).unwrap();
    install(&bed, &[]);
    let mut manager = Manager::start(&bed, "only", &[]);
    manager.wait_until_ready().await;
    let client = bed.client();
    conversion_works(&client).await;

    templates(&client).await;
    depths(&client).await;
    let planes = path("controlplane.cluster.x-k8s.io", "v1alpha1", "hostedcontrolplanes");
    let clusters = path("cluster.x-k8s.io", "v1beta2", "clusters");
    let reference =
        json!({ "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "HostedControlPlane", "name": "demo" });
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": "demo" }, "spec": { "controlPlaneRef": reference },
    });
    let plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane",
        "metadata": {
            "name": "demo", "labels": { "cluster.x-k8s.io/cluster-name": "demo" }, "finalizers": ["example.com/held"],
        },
        "spec": { "version": "v1.34.10" },
    });
    let created = ask(&client, None, Method::POST, &clusters, &cluster).await;
    assert_eq!((created.code, created.warning.as_str()), (201, ""), "{}", created.body);
    let created = ask(&client, None, Method::POST, &planes, &plane).await;
    assert_eq!((created.code, created.warning.as_str()), (201, ""), "{}", created.body);

    let demo = format!("{planes}/demo");
    let refused = ask(&client, None, Method::DELETE, &demo, &Value::Null).await;
    assert_eq!(refused.code, 403, "{}", refused.body);
    let message = refused.body["message"].as_str().unwrap();
    assert!(message.contains("Cluster demo lives") && message.contains("allow-deletion"), "{message}");
    let dry_run = format!("{demo}?dryRun=All");
    let allowed = ask(&client, Some(NAMESPACE_CONTROLLER), Method::DELETE, &dry_run, &Value::Null).await;
    assert_eq!(allowed.code, 200, "{}", allowed.body);
    let permit = json!({ "metadata": { "annotations": { "hangar.cluster.x-k8s.io/allow-deletion": "" } } });
    assert_eq!(ask(&client, None, Method::PATCH, &demo, &permit).await.code, 200);
    assert_eq!(ask(&client, None, Method::DELETE, &dry_run, &Value::Null).await.code, 200);

    // Nobody answers any more: people must wait for a manager, namespaces can go and finalizers too.
    manager.kill();
    assert_eq!(ask(&client, None, Method::DELETE, &demo, &Value::Null).await.code, 500);
    let gone = ask(&client, Some(NAMESPACE_CONTROLLER), Method::DELETE, &demo, &Value::Null).await;
    assert_eq!(gone.code, 200, "{}", gone.body);
    let released = json!({ "metadata": { "finalizers": null } });
    assert_eq!(ask(&client, None, Method::PATCH, &demo, &released).await.code, 200);
    assert_eq!(ask(&client, None, Method::GET, &demo, &Value::Null).await.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_limits_do_not_allow_is_refused_and_what_was_there_is_left_alone() {
    let bed = Testbed::start(Options::default()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("limits.yaml");
    std::fs::write(&file, "priorityClasses: [tenants]\n").unwrap();
    let flag = format!("--limits={}", file.display());
    install(&bed, &[&flag]);
    let mut manager = Manager::start(&bed, "generous", &[&flag]);
    manager.wait_until_ready().await;
    let client = bed.client();
    conversion_works(&client).await;

    let planes = path("controlplane.cluster.x-k8s.io", "v1alpha1", "hostedcontrolplanes");
    let plane = |name: &str, more: Value| {
        let mut plane = json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane",
            "metadata": { "name": name }, "spec": { "version": "v1.34.10" },
        });
        plane["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plane
    };
    let refused = async |more: Value, texts: &[&str]| {
        let answer = ask(&client, None, Method::POST, &planes, &plane("refused", more)).await;
        let message = answer.body["message"].as_str().unwrap();
        assert_eq!(answer.code, 422, "{}", answer.body);
        assert!(texts.iter().all(|text| message.contains(text)), "{message}");
    };
    let balancer = json!({ "annotations": { "kube-vip.io/loadbalancerIPs": "192.0.2.1" } });
    refused(
        json!({ "replicas": 9, "exposure": { "loadBalancer": balancer } }),
        &[
            "spec.exposure.loadBalancer.annotations[kube-vip.io/loadbalancerIPs]",
            "setting serviceAnnotations",
            "spec.replicas",
            "setting maximumReplicas.apiServer",
        ],
    )
    .await;
    let api_server = json!({ "args": { "disable_admission_plugins": "NodeRestriction" } });
    refused(json!({ "deployment": { "apiServer": api_server } }), &["NodeRestriction"]).await;
    let class = |name: &str| json!({ "etcd": { "priorityClassName": name } });
    refused(class("system-node-critical"), &["spec.etcd.priorityClassName", "setting priorityClasses"]).await;
    let created = ask(&client, None, Method::POST, &planes, &plane("demo", class("tenants"))).await;
    assert_eq!(created.code, 201, "{}", created.body);

    let scale = format!("{planes}/demo/scale");
    let answer = ask(&client, None, Method::PATCH, &scale, &json!({ "spec": { "replicas": 9 } })).await;
    assert_eq!(answer.code, 422, "{}", answer.body);
    let message = answer.body["message"].as_str().unwrap();
    assert!(message.contains("spec.replicas") && message.contains("maximumReplicas"), "{message}");
    let answer = ask(&client, None, Method::PATCH, &scale, &json!({ "spec": { "replicas": 2 } })).await;
    assert_eq!((answer.code, &answer.body["spec"]["replicas"]), (200, &json!(2)), "{}", answer.body);
    let template = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlaneTemplate",
        "metadata": { "name": "refused" }, "spec": { "template": { "spec": class("system-node-critical") } },
    });
    let templates = path("controlplane.cluster.x-k8s.io", "v1alpha1", "hostedcontrolplanetemplates");
    let answer = ask(&client, None, Method::POST, &templates, &template).await;
    assert_eq!(answer.code, 422, "{}", answer.body);
    let message = answer.body["message"].as_str().unwrap();
    assert!(message.contains("spec.template.spec.etcd.priorityClassName"), "{message}");

    // With the defaults, what is there can still be written to, and nothing can be added.
    manager.terminate();
    let manager = Manager::start(&bed, "strict", &[]);
    manager.wait_until_ready().await;
    conversion_works(&client).await;
    let demo = format!("{planes}/demo");
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let changed = ask(&client, None, Method::PATCH, &demo, &label).await;
    assert_eq!(changed.code, 200, "{}", changed.body);
    let more = json!({ "spec": { "deployment": { "scheduler": { "priorityClassName": "tenants" } } } });
    let answer = ask(&client, None, Method::PATCH, &demo, &more).await;
    assert_eq!(answer.code, 422, "{}", answer.body);
    let message = answer.body["message"].as_str().unwrap();
    assert!(
        message.contains("spec.deployment.scheduler.priorityClassName") && !message.contains("spec.etcd"),
        "{message}"
    );
}

/// What served is on record, the status says what serves, and the records are Hangar's alone.
#[tokio::test(flavor = "multi_thread")]
async fn versions_that_cannot_follow_are_refused_and_records_are_hangars() {
    const MANAGER: &str = "system:serviceaccount:hangar-system:hangar-manager";
    let bed = Testbed::start(Options::default()).unwrap();
    install(&bed, &[]);
    let manager = Manager::start(&bed, "versions", &[]);
    manager.wait_until_ready().await;
    let client = bed.client();
    conversion_works(&client).await;

    let planes = path("controlplane.cluster.x-k8s.io", "v1alpha1", "hostedcontrolplanes");
    let demo = format!("{planes}/demo");
    let [served, etcd] =
        ["served-version", "etcd-version"].map(|name| format!("hangar.cluster.x-k8s.io/{name}"));
    // Paused, so that its status is what the test says.
    let plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane",
        "metadata": { "name": "demo", "annotations": {
            "cluster.x-k8s.io/paused": "", &served: "v1.34.10", &etcd: "3.6.16-0",
        } },
        "spec": { "version": "v1.34.10" },
    });
    let created = ask(&client, None, Method::POST, &planes, &plane).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let serves = async |version: &str, kubelet: &str| {
        let status = json!({ "status": { "version": version, "oldestKubeletVersion": kubelet } });
        let told = ask(&client, None, Method::PATCH, &format!("{demo}/status"), &status).await;
        assert_eq!(told.code, 200, "{}", told.body);
    };
    let refused = async |user: Option<&str>, change: Value, field: &str, why: &str| {
        let answer = ask(&client, user, Method::PATCH, &demo, &change).await;
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert_eq!(answer.code, 422, "{change}: {}", answer.body);
        assert!(message.contains(&format!("{field}: ")) && message.contains(why), "{message}");
    };
    let wanted = |version: &str| json!({ "spec": { "version": version } });
    let accepted = async |user: Option<&str>, change: Value| {
        let answer = ask(&client, user, Method::PATCH, &format!("{demo}?dryRun=All"), &change).await;
        assert_eq!(answer.code, 200, "{change}: {}", answer.body);
    };

    serves("v1.34.10", "v1.32.3").await;
    let skipped = "minor versions cannot be skipped: upgrade to 1.35 first";
    refused(None, wanted("v1.36.4"), "spec.version", skipped).await;
    for older in ["v1.34.9", "v1.33.0"] {
        refused(None, wanted(older), "spec.version", "it cannot be lower than v1.34.10").await;
    }
    accepted(None, wanted("v1.35.8")).await;
    serves("v1.34.10", "v1.31.2").await;
    let kubelet = "a Node runs kubelet v1.31.2, and API servers of v1.35.8 need kubelets of 1.32 or newer";
    refused(None, wanted("v1.35.8"), "spec.version", kubelet).await;
    // A patch leaves nobody behind.
    accepted(None, wanted("v1.34.11")).await;

    // Nobody's but the manager's.
    for record in [&served, &etcd] {
        for value in [json!("v1.30.0"), Value::Null] {
            let change = json!({ "metadata": { "annotations": { record: value } } });
            let field = format!("metadata.annotations[{record}]");
            refused(None, change.clone(), &field, "it can be neither changed nor removed").await;
            accepted(Some(MANAGER), change).await;
        }
    }

    // An upgrade goes on: its oldest API server is what the next step would skip from.
    let record = json!({ "metadata": { "annotations": { &served: "v1.35.8" } } });
    let written = ask(&client, Some(MANAGER), Method::PATCH, &demo, &record).await;
    assert_eq!(written.code, 200, "{}", written.body);
    serves("v1.34.10", "v1.34.10").await;
    refused(None, wanted("v1.36.4"), "spec.version", "v1.34.10 serves, and minor versions cannot be").await;
    serves("v1.35.8", "v1.34.10").await;
    accepted(None, wanted("v1.36.4")).await;
}

/// A template stays as it is, but for the topology controller's questions.
async fn templates(client: &Client) {
    let templates = path("infrastructure.cluster.x-k8s.io", "v1beta1", "openstackmachinetemplates");
    let template = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "OpenStackMachineTemplate",
        "metadata": { "name": "workers" },
        "spec": { "template": { "spec": { "flavor": "small", "image": { "filter": { "name": "debian" } } } } },
    });
    let created = ask(client, None, Method::POST, &templates, &template).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let mut change = json!({ "spec": { "template": { "spec": { "flavor": "large" } } } });
    let workers = format!("{templates}/workers");
    let refused = ask(client, None, Method::PATCH, &workers, &change).await;
    assert_eq!(refused.code, 422, "{}", refused.body);
    assert!(refused.body["message"].as_str().unwrap().contains("spec.template.spec.flavor: Forbidden"));
    change["metadata"] = json!({ "annotations": { "topology.cluster.x-k8s.io/dry-run": "" } });
    assert_eq!(ask(client, None, Method::PATCH, &workers, &change).await.code, 422);
    let dry_run = format!("{workers}?dryRun=All");
    let shown = ask(client, None, Method::PATCH, &dry_run, &change).await;
    assert_eq!(shown.code, 200, "{}", shown.body);
    assert_eq!(shown.body["spec"]["template"]["spec"]["flavor"], "large");
}

/// One object that nests deeply is refused by name. Where it was stored nevertheless, it stops no LIST of the others, and
/// can be mended and released.
async fn depths(client: &Client) {
    // As text: neither the test's stack nor its reader goes so deep.
    let send = async |method: Method, path: &str, body: String| {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", content);
        let answer =
            client.send(request.body(kube::client::Body::from(body.into_bytes())).unwrap()).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.unwrap();
        (code, String::from_utf8(body.to_vec()).unwrap())
    };
    let levels = 4000;
    let deep = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let spec = |value: &str| {
        format!(
            r#"{{"topology":{{"classRef":{{"name":"c"}},"version":"v1.34.0","variables":[{{"name":"v","value":{value}}}]}}}}"#
        )
    };
    let cluster = |value: &str| {
        format!(
            r#"{{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{{"name":"deep","finalizers":["example.com/held"]}},"spec":{}}}"#,
            spec(value)
        )
    };
    let clusters = path("cluster.x-k8s.io", "v1beta2", "clusters");
    let one = format!("{clusters}/deep");
    let (code, said) = send(Method::POST, &clusters, cluster(&deep)).await;
    assert_eq!(code, 422, "{said}");
    assert!(said.contains("spec.topology.variables[0].value[0]: Forbidden: nested more than 100"), "{said}");

    // What is being deleted is not checked.
    let (code, said) = send(Method::POST, &clusters, cluster("1")).await;
    assert_eq!(code, 201, "{said}");
    assert_eq!(send(Method::DELETE, &one, String::new()).await.0, 200);
    let (code, said) = send(Method::PATCH, &one, format!(r#"{{"spec":{}}}"#, spec(&deep))).await;
    assert_eq!(code, 200, "{said}");
    let old = path("cluster.x-k8s.io", "v1beta1", "clusters");
    let (code, listed) = send(Method::GET, &old, String::new()).await;
    assert_eq!(code, 200, "{listed}");
    assert!(listed.contains(&"[".repeat(levels)) && listed.contains(r#""class":"c""#));
    let release = r#"{"metadata":{"finalizers":null}}"#;
    assert_eq!(send(Method::PATCH, &one, release.to_owned()).await.0, 200);
    assert_eq!(send(Method::GET, &one, String::new()).await.0, 404);
}
