//! Kubernetes' own conformance tests against a tenant with three of everything behind a Gateway: first left alone, then
//! while it loses an API server every two minutes. `cargo xtask conformance` builds what they need and runs them.

mod disturbance;
mod ginkgo;
mod report;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_host::addresses::POD_RANGE;
use hangar_host::images::import;
use hangar_host::sample::flannel::{self, ApiServer};
use hangar_host::sample::manifests;
use hangar_machine::{Name, SupervisorCommand};
use hangar_parts::images::{PACKAGES_FOR_CONFORMANCE, conformance};
use hangar_parts::{Parts, Set, packages};
use serde::Deserialize;
use serde_json::json;

use self::disturbance::Disturbance;
use self::ginkgo::{Ginkgo, Part};
use self::report::Report;
use crate::environment::Environment;
use crate::kubectl::{Kubectl, Seat};
use crate::tenant::manifest;
use crate::turn;
use crate::waiting::{eventually, is};
use crate::ways_in::make_gateway;

const CLUSTER: &str = "conformance";
/// API servers, members of etcd.
const MEMBERS: usize = 3;
/// As many as the tests ask for.
const WORKERS: usize = 2;

/// What `cargo xtask conformance` was asked for, from `HANGAR_CONFORMANCE`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Asked {
    /// Only tests whose names this regular expression of Go matches.
    focus: Option<String>,
    skip_disruptive: bool,
    only: Option<Only>,
    processes: u32,
    /// Leaves the environment.
    keep: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Only {
    Undisturbed,
    Disturbed,
}

impl Default for Asked {
    fn default() -> Self {
        Self { focus: None, skip_disruptive: false, only: None, processes: 5, keep: false }
    }
}

struct Ground {
    environment: Environment,
    management: Kubectl,
    start: Instant,
}

#[test]
#[ignore = "hours: `cargo xtask conformance` runs it"]
fn the_tests_of_kubernetes_itself_pass() {
    let _turn = turn();
    let asked: Asked = match std::env::var("HANGAR_CONFORMANCE") {
        Ok(text) => serde_json::from_str(&text).unwrap(),
        Err(_) => Asked::default(),
    };
    let ground = Ground::new();
    let ginkgo = ground.prepare(&asked);
    let mut failures = Vec::new();
    if asked.only != Some(Only::Disturbed) {
        failures.extend(ground.undisturbed(&ginkgo, &asked));
    }
    if asked.only != Some(Only::Undisturbed) {
        failures.extend(ground.disturbed(&ginkgo, &asked));
    }
    let Ground { environment, .. } = ground;
    if asked.keep {
        environment.keep();
    } else {
        environment.succeed("down");
        environment.assert_gone();
    }
    assert_eq!(failures, Vec::<String>::new());
}

impl Ground {
    fn new() -> Self {
        let start = Instant::now();
        let limits = concat!("--limits=", env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/three-nodes.yaml");
        let arguments = ["--management-nodes=3", "--gateway", limits];
        let environment = Environment::new("conformance").with_arguments(&arguments);
        environment.succeed("up");
        let management = Kubectl::new(environment.kubeconfig());
        let ground = Self { environment, management, start };
        ground.tell("up");
        ground
    }

    fn tell(&self, what: &str) {
        println!("{:>7.2} s  {what}", self.start.elapsed().as_secs_f64());
    }

    /// A tenant with workers that have the images, and what runs the tests against it.
    fn prepare(&self, asked: &Asked) -> Ginkgo {
        make_gateway(&self.management);
        self.make_cluster();
        let tenant = self.tenant();
        self.tell("the control plane serves");
        eventually("all Nodes are Ready", || {
            let path = r#"jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}"#;
            let ready = tenant.attempt(&["get", "nodes", "-o", path])?;
            is(ready == ["True"; WORKERS].join(" "), || self.environment.describe(CLUSTER))
        });
        self.tell("the workers are ready");
        self.import_images();
        self.tell("the workers have the images");
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("conformance");
        Ginkgo::new(directory, tenant, asked.focus.clone())
    }

    fn make_cluster(&self) {
        let sample = self.environment.sample(CLUSTER, Set::Conformance134.version());
        let mut objects = manifests(&sample).unwrap();
        for object in &mut objects {
            match object["kind"].as_str() {
                Some("HostedControlPlane") => {
                    object["spec"]["replicas"] = json!(MEMBERS);
                    object["spec"]["etcd"]["replicas"] = json!(MEMBERS);
                    object["spec"]["gateway"] = json!({"namespace": "capi-system", "name": "capi"});
                }
                Some("MachineDeployment") => object["spec"]["replicas"] = json!(WORKERS),
                _ => {}
            }
        }
        // An API server that has just begun takes in the certificate of webhooks a moment later.
        eventually("the objects are taken", || self.management.try_apply(&manifest(&objects)));
    }

    /// Once all API servers are ready; with its network, and with the environment's resolver, which knows the Gateway.
    fn tenant(&self) -> Kubectl {
        self.wait_for_api_servers();
        let path = self.environment.cluster_kubeconfig(CLUSTER);
        let secret = format!("{CLUSTER}-kubeconfig");
        eventually("there is a kubeconfig", || {
            let read = ["get", "secret", &secret, "-o", "jsonpath={.data.value}"];
            let text = self.management.attempt(&read)?;
            fs::write(&path, STANDARD.decode(text).unwrap()).map_err(|error| error.to_string())
        });
        let resolver = self.environment.state.join(&self.environment.name).join("resolv.conf");
        fs::write(&resolver, format!("nameserver {}\n", self.environment.address())).unwrap();
        let tenant = Kubectl::new(path).from(Seat::Resolving(resolver));
        let (host, port) = tenant.server();
        let network = flannel::objects(&ApiServer { host: &host, port }, &POD_RANGE.to_string());
        eventually("the tenant takes its network", || tenant.try_apply(&manifest(&network)));
        tenant
    }

    fn wait_for_api_servers(&self) {
        eventually("all API servers are ready", || {
            let path = "jsonpath={.status.readyReplicas}";
            let ready = self.management.attempt(&["get", "hostedcontrolplane", CLUSTER, "-o", path])?;
            is(ready == MEMBERS.to_string(), || self.environment.describe(CLUSTER))
        });
    }

    /// The tests pull images that no worker has, from a registry that need not be reachable.
    fn import_images(&self) {
        let parts = Parts::from_env().unwrap();
        let mut tell = |text: &str| self.tell(text);
        let packages = packages::ensure(parts.cache(), PACKAGES_FOR_CONFORMANCE, &mut tell).unwrap();
        let images = conformance(&parts, &packages).unwrap();
        let supervisor = SupervisorCommand {
            program: PathBuf::from(env!("CARGO_BIN_EXE_hangar")),
            arguments: vec!["supervise".into()],
        };
        let name = Name::new(&self.environment.name).unwrap();
        let environment =
            hangar_machine::Environment::new(&self.environment.state, name, supervisor).unwrap();
        let machines = environment.machines().unwrap().into_iter();
        // Those of the cloud.
        let workers: Vec<_> =
            machines.filter(|machine| machine.name.as_str().starts_with("server-")).collect();
        assert_eq!(workers.len(), WORKERS, "{workers:?}");
        for worker in workers {
            import(&environment.machine(&worker.name), &images).unwrap();
        }
    }

    /// All must pass.
    fn undisturbed(&self, ginkgo: &Ginkgo, asked: &Asked) -> Vec<String> {
        let mut parts = vec![Part::parallel("parallel", asked.processes), Part::SERIAL];
        if !asked.skip_disruptive {
            parts.push(Part::DISRUPTIVE);
        }
        let mut all = Report::default();
        let mut failures = Vec::new();
        for part in parts {
            let (report, failure) = ginkgo.run(&part);
            self.tell(&format!("undisturbed, {}: {}", part.name, report.totals()));
            all.add(report);
            failures.extend(failure);
        }
        println!("\nundisturbed:\n{all}");
        failures.extend(all.failed());
        if all.passed() == 0 {
            failures.push("undisturbed: no test passed".to_owned());
        }
        failures
    }

    /// What fails must pass when it is run again, alone and undisturbed.
    fn disturbed(&self, ginkgo: &Ginkgo, asked: &Asked) -> Vec<String> {
        let disturbance = Disturbance::start(self.management.clone(), CLUSTER, MEMBERS);
        let (report, failure) = ginkgo.run(&Part::parallel("disturbed", asked.processes));
        let losses = disturbance.stop();
        self.tell(&format!("disturbed: {}, {losses} API servers were deleted", report.totals()));
        println!("\ndisturbed:\n{report}");
        let mut failures: Vec<String> = failure.into_iter().collect();
        if report.passed() == 0 || losses == 0 {
            failures.push(format!("disturbed: {} tests passed, {losses} losses", report.passed()));
        }
        let failed = report.failed();
        if failed.is_empty() {
            return failures;
        }
        self.wait_for_api_servers();
        let (again, failure) = ginkgo.run(&Part::alone(&failed));
        self.tell(&format!("disturbed, what failed, alone: {}", again.totals()));
        println!("\nalone:\n{again}");
        failures.extend(failure);
        failures.extend(failed.into_iter().filter(|name| !again.has_passed(name)));
        failures
    }
}
