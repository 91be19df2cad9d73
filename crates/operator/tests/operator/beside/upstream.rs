//! Cluster API's own core at a pinned version: its CRDs as its installation labels them, its webhooks, and its program
//! as a process on loopback with an administrator's rights.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use hangar_parts::{Parts, Process, ProcessSpec, Set};
use hangar_pki::{Authority, Intent, Usage, issue};
use hangar_testbed::{Port, Testbed};
use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

const PROGRAM: &str = "cluster-api-core";

/// A release, and where its CRDs are.
#[derive(Clone, Copy)]
pub(super) struct Release {
    pub(super) set: Set,
    pub(super) definitions: (Set, &'static str),
}

pub(super) const OLDER: Release =
    Release { set: Set::ClusterApi111, definitions: (Set::ClusterApi111, "core/crd") };
pub(super) const NEWER: Release =
    Release { set: Set::ClusterApi, definitions: (Set::UpstreamCrds, "cluster-api/core") };

/// The running program. Dropping it ends it.
pub(super) struct Core {
    process: Process,
    /// Reserved as long as it listens there.
    _ports: [Port; 3],
}

impl Core {
    /// Installs the release and starts it. Objects of its kinds can be written once its webhooks answer.
    pub(super) async fn start(bed: &Testbed, release: Release) -> Self {
        let parts = Parts::from_env().unwrap();
        tokio::task::block_in_place(|| parts.ensure(&[release.set, release.definitions.0])).unwrap();
        let ports = [(); 3].map(|()| Port::reserve().unwrap());
        let [webhooks, health, diagnostics] = ports.each_ref().map(Port::number);
        // The guardian of the testbed ends what names its directory.
        let directory = bed.logs().parent().unwrap().join("upstream");
        let address = format!("https://127.0.0.1:{webhooks}");
        let client_config = serving(&directory);
        let at = |path: &str| {
            let mut at = client_config.clone();
            at["url"] = json!(format!("{address}{path}"));
            at
        };
        let (of, folder) = release.definitions;
        let definitions = definitions(&parts.files(of).unwrap().join(folder), &at("/convert"));
        tokio::task::block_in_place(|| bed.install(definitions));
        let manifests = parts.files(release.set).unwrap().join("core/webhook/manifests.yaml");
        for mut configuration in documents(&manifests) {
            for webhook in configuration["webhooks"].as_array_mut().unwrap() {
                let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
                webhook["clientConfig"] = at(&path);
            }
            let kind = configuration["kind"].as_str().unwrap().to_owned();
            let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", &kind);
            let api: Api<DynamicObject> = Api::all_with(bed.client(), &ApiResource::from_gvk(&kind));
            let object: DynamicObject = serde_json::from_value(configuration).unwrap();
            api.create(&PostParams::default(), &object).await.unwrap();
        }
        let process = ProcessSpec::new(
            PROGRAM,
            parts.program(release.set, PROGRAM).unwrap(),
            bed.logs().join(format!("{PROGRAM}.log")),
        )
        .arguments([
            // Its webhooks listen on every address; there is no flag for that. Only loopback is told to the API server.
            format!("--kubeconfig={}", bed.kubeconfig().display()),
            format!("--webhook-cert-dir={}", directory.display()),
            format!("--webhook-port={webhooks}"),
            format!("--health-addr=127.0.0.1:{health}"),
            format!("--diagnostics-address=127.0.0.1:{diagnostics}"),
            "--insecure-diagnostics=true".to_owned(),
            "--leader-elect=false".to_owned(),
        ])
        .start()
        .unwrap();
        bed.guard(process.id());
        Self { process, _ports: ports }
    }

    pub(super) fn check_running(&mut self) {
        self.process.check_running().unwrap();
    }
}

/// Writes a certificate for loopback into the directory, and returns how its authority is told.
fn serving(directory: &Path) -> Value {
    let (now, life) = (jiff::Timestamp::now(), Duration::from_hours(24));
    let authority = Authority::self_signed(&Intent::authority("upstream", life), now).unwrap();
    let intent = Intent::new("upstream", Usage::Server, life).ip_addresses([IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    let pair = issue(&authority, &intent, now).unwrap();
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("tls.crt"), &pair.certificate).unwrap();
    fs::write(directory.join("tls.key"), pair.key.expose()).unwrap();
    json!({"caBundle": ByteString(authority.pair().certificate.clone().into_bytes())})
}

/// The CRDs of a folder with what the project's installation adds to them: labels, and where objects are converted.
fn definitions(folder: &Path, conversion: &Value) -> Vec<CustomResourceDefinition> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut definitions: Vec<Value> = files.flat_map(|file| documents(&file)).collect();
    for definition in &mut definitions {
        let versions: Vec<String> = definition["spec"]["versions"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|version| version["served"] == true)
            .map(|version| version["name"].as_str().unwrap().to_owned())
            .collect();
        let labels = &mut definition["metadata"]["labels"];
        labels["cluster.x-k8s.io/provider"] = json!("cluster-api");
        labels["clusterctl.cluster.x-k8s.io"] = json!("");
        for version in versions.iter().filter(|version| version.starts_with("v1beta")) {
            labels[format!("cluster.x-k8s.io/{version}")] = json!(version);
        }
        if versions.len() > 1 {
            definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
                "clientConfig": conversion, "conversionReviewVersions": ["v1"],
            }});
        }
    }
    definitions.into_iter().map(|one| serde_json::from_value(one).unwrap()).collect()
}

fn documents(file: &Path) -> Vec<Value> {
    serde_saphyr::from_multiple(&fs::read_to_string(file).unwrap()).unwrap()
}
