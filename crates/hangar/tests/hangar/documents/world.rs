//! One API server with Hangar installed, for all tests of this module, and `kubectl` as users run it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use hangar_parts::{Parts, Set};
use hangar_testbed::{Options, Testbed};
use serde_json::Value;

use crate::installation::{Manager, conversion_works, install};

/// Ends a test that would hang: the API server trusts a new certificate and serves a new kind a moment later.
pub(super) const PATIENCE: Duration = Duration::from_mins(5);

/// An API server, a manager, a client.
pub(super) struct World {
    bed: Testbed,
    kubectl: PathBuf,
    _manager: Manager,
}

/// Whoever needs it first starts it; the testbed's guardian ends it with the test binary.
pub(super) static WORLD: LazyLock<World> = LazyLock::new(World::start);

impl World {
    fn start() -> Self {
        let parts = Parts::from_env().unwrap();
        parts.ensure_programs(&[(Set::Kubernetes134, "kubectl")]).unwrap();
        let bed = Testbed::start(Options::default()).unwrap();
        install(&bed, &[]);
        // Webhooks are all that is needed: these tests are about what is stored, and controllers would act on it.
        let limits = concat!("--limits=", env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/limits.yaml");
        let manager = Manager::start(&bed, "documents", &["--controllers=cluster-resource-set", limits]);
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            manager.wait_until_ready().await;
            conversion_works(&bed.client()).await;
        });
        let world =
            Self { bed, kubectl: parts.program(Set::Kubernetes134, "kubectl").unwrap(), _manager: manager };
        // The namespaces that the documents tell their readers to make, and ours.
        for name in ["cluster", "hcp-system", "other-kinds"] {
            world.kubectl(&["create", "namespace", name], "").unwrap();
        }
        world
    }

    /// A namespace of its own for a test.
    pub(super) fn namespace(&self, prefix: &str) -> String {
        self.bed.namespace(prefix)
    }

    /// Runs `kubectl` and returns what it printed, or its complaint.
    pub(super) fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let start = Instant::now();
        loop {
            match self.kubectl_once(arguments, input) {
                Err(error) if is_webhook_out_of_reach(&error) && start.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                result => return result,
            }
        }
    }

    fn kubectl_once(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut child = Command::new(&self.kubectl)
            .arg(format!("--kubeconfig={}", self.bed.kubeconfig().display()))
            .arg(format!("--cache-dir={}", self.bed.kubeconfig().with_file_name("kubectl-cache").display()))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A client that complains before it has read everything is not to be mistaken for a failed test.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    /// `kubectl apply`, as the documents tell their readers.
    pub(super) fn apply(&self, namespace: Option<&str>, manifest: &str) -> Result<(), String> {
        let namespace = namespace.map(|name| format!("--namespace={name}"));
        let mut arguments = vec!["apply", "--filename=-"];
        arguments.extend(namespace.as_deref());
        self.kubectl(&arguments, manifest).map(drop)
    }

    /// An object in one version.
    pub(super) fn get(&self, kind: &Kind, version: &str, namespace: &str, name: &str) -> Value {
        let resource = kind.resource(version);
        let arguments = ["get", &resource, name, "--namespace", namespace, "--output=json"];
        let text = self.kubectl(&arguments, "").unwrap_or_else(|error| panic!("{resource} {name}: {error}"));
        serde_json::from_str(&text).unwrap()
    }

    /// The names of all objects of a kind in a namespace.
    pub(super) fn names(&self, kind: &Kind, version: &str, namespace: &str) -> Vec<String> {
        let arguments = ["get", &kind.resource(version), "--namespace", namespace, "--output=name"];
        self.kubectl(&arguments, "").unwrap().lines().map(str::to_owned).collect()
    }

    /// Writes a whole object as it is, as controllers do: `kubectl replace` alone would leave a note of its own in it.
    pub(super) fn replace(&self, kind: &Kind, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap();
        let (version, namespace) = (text("/apiVersion"), text("/metadata/namespace"));
        let name = text("/metadata/name");
        let plural = &kind.plural;
        let path = format!("/apis/{version}/namespaces/{namespace}/{plural}/{name}?fieldValidation=Strict");
        let written = self.kubectl(&["replace", "--filename=-", "--raw", &path], &object.to_string());
        written.unwrap_or_else(|error| panic!("{object}: {error}"));
    }

    /// The versions in which a kind is served.
    pub(super) fn versions(&self, kind: &Kind) -> Vec<String> {
        if kind.group.is_empty() {
            return vec!["v1".to_owned()];
        }
        let name = format!("{}.{}", kind.plural, kind.group);
        let text = self.kubectl(&["get", "customresourcedefinition", &name, "--output=json"], "").unwrap();
        let definition: Value = serde_json::from_str(&text).unwrap();
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let served = versions.iter().filter(|version| version["served"] == true);
        served.map(|version| version["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The manager's certificate is new, and the API server has not heard of it yet.
fn is_webhook_out_of_reach(error: &str) -> bool {
    error.contains("failed calling webhook")
        || error.contains("conversion webhook for") && error.contains("Post ")
}

/// A kind, as `kubectl get` names it.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    group: String,
    plural: String,
}

impl Kind {
    /// From the `apiVersion` and kind of an object; with the version it is written in.
    pub(super) fn of(api_version: &str, kind: &str) -> (Self, String) {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        (Self { group: group.to_owned(), plural: format!("{}s", kind.to_lowercase()) }, version.to_owned())
    }

    fn resource(&self, version: &str) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{version}.{}", self.plural, self.group)
        }
    }
}
