//! Hangar's own upgrade: a manager follows another, and webhooks are answered by each of them, whoever leads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hangar_testbed::{Options, Testbed};
use http::Uri;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};

use crate::installation::{Manager, conversion_works, eventually, install};

/// How API servers were told to call webhooks: whom to trust, and the path of the conversion. Managers share both.
struct Told {
    authority: Value,
    conversion: String,
}

impl Told {
    async fn read(client: &Client) -> Self {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = definitions.get("machinedeployments.cluster.x-k8s.io").await.unwrap();
        let config = definition.spec.conversion.unwrap().webhook.unwrap().client_config.unwrap();
        let url: Uri = config.url.unwrap().parse().unwrap();
        Self { authority: json!(config.ca_bundle.unwrap()), conversion: url.path().to_owned() }
    }

    /// An API server, as far as webhooks can tell.
    async fn caller(&self, manager: &Manager) -> Caller {
        let kubeconfig: Kubeconfig = serde_json::from_value(json!({
            "clusters": [{"name": "c", "cluster": {
                "server": manager.webhook_url(), "certificate-authority-data": self.authority,
            }}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }))
        .unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Caller { client: Client::try_from(config).unwrap(), conversion: self.conversion.clone() }
    }
}

struct Caller {
    client: Client,
    conversion: String,
}

impl Caller {
    async fn post(&self, path: &str, review: &Value) -> Result<Value, kube::Error> {
        let request = http::Request::post(path).header("content-type", "application/json");
        self.client.request(request.body(serde_json::to_vec(review).unwrap()).unwrap()).await
    }

    /// Asks for one conversion, and whether somebody may change a record; what is wrong with the answers, if anything.
    async fn ask(&self) -> Result<(), String> {
        let template = json!({
            "clusterName": "demo", "infrastructureRef": {"apiVersion": "example.com/v1", "kind": "Thing", "name": "x"},
            "bootstrap": {"dataSecretName": "data"},
        });
        let object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
            "metadata": {"name": "workers", "namespace": "default"},
            "spec": {"clusterName": "demo", "selector": {}, "template": {"spec": template}},
        });
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": "cluster.x-k8s.io/v1beta2", "objects": [object]},
        });
        let answer = self.post(&self.conversion, &review).await.map_err(|error| error.to_string())?;
        let converted = &answer["response"]["convertedObjects"][0]["apiVersion"];
        if converted != "cluster.x-k8s.io/v1beta2" {
            return Err(answer.to_string());
        }
        let plane = |served: &str| {
            json!({
                "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane",
                "metadata": {"name": "demo", "namespace": "default", "annotations": {
                    "hangar.cluster.x-k8s.io/served-version": served,
                }},
                "spec": {"version": "v1.34.10"},
            })
        };
        let group = "controlplane.cluster.x-k8s.io";
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": "UPDATE", "name": "demo", "namespace": "default", "dryRun": false,
                "kind": {"group": group, "version": "v1alpha1", "kind": "HostedControlPlane"},
                "resource": {"group": group, "version": "v1alpha1", "resource": "hostedcontrolplanes"},
                "userInfo": {"username": "somebody"}, "object": plane("v1.30.0"), "oldObject": plane("v1.34.10"),
            },
        });
        let path = self.conversion.replace("/convert", "/validate");
        let answer = self.post(&path, &review).await.map_err(|error| error.to_string())?;
        let is_refused = answer["response"]["allowed"] == false
            && answer["response"]["status"]["message"].to_string().contains("served-version");
        if is_refused { Ok(()) } else { Err(answer.to_string()) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_manager_answers_webhooks_while_the_lease_goes_from_one_to_the_other_and_back() {
    let bed = Testbed::start(Options::default()).unwrap();
    install(&bed, &[]);
    let client = bed.client();
    let leads = |manager: &Manager| manager.metrics().contains("\nhangar_leader 1\n");
    let mut old = Manager::start(&bed, "old", &[]);
    eventually("the old one leads", async || leads(&old)).await;
    conversion_works(&client).await;
    let new = Manager::start(&bed, "new", &[]);
    new.wait_until_ready().await;
    let told = Told::read(&client).await;
    for manager in [&old, &new] {
        told.caller(manager).await.ask().await.unwrap();
    }
    assert!(leads(&old) && !leads(&new), "a follower answers");

    // Whom an API server calls that goes on with the new one.
    let (caller, stop, asked) =
        (told.caller(&new).await, Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let asking = tokio::spawn({
        let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
        async move {
            while !stop.load(Ordering::SeqCst) {
                caller.ask().await.unwrap();
                asked.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
    let status = old.terminate();
    assert!(status.success(), "{status}; {}", old.log());
    eventually("the new one leads", async || leads(&new)).await;
    conversion_works(&client).await;

    // And back: what the new one wrote is enough for the old one, and nothing is announced anew.
    let back = Manager::start(&bed, "back", &[]);
    back.wait_until_ready().await;
    told.caller(&back).await.ask().await.unwrap();
    let before = asked.load(Ordering::SeqCst);
    eventually("the new one still answers", async || asked.load(Ordering::SeqCst) > before).await;
    stop.store(true, Ordering::SeqCst);
    asking.await.unwrap();
    let mut new = new;
    assert!(new.terminate().success(), "{}", new.log());
    eventually("the old one leads again", async || leads(&back)).await;
    conversion_works(&client).await;
    let again = Told::read(&client).await;
    assert_eq!((again.authority, again.conversion), (told.authority, told.conversion));
}
