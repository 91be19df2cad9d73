//! A tenant with several API servers and two workers gets the next minor while it is used: no request fails, everything
//! comes in its order, and what cannot start is taken back.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_host::addons::gateway;
use hangar_host::addresses::POD_RANGE;
use hangar_host::sample::flannel::{self, ApiServer};
use hangar_host::sample::manifests;
use hangar_parts::Set;
use serde_json::json;

use crate::door::Door;
use crate::environment::Environment;
use crate::extension;
use crate::kubectl::{Kubectl, Seat};
use crate::order::{Observer, Subject};
use crate::requests::Requests;
use crate::tenant::manifest;
use crate::turn;
use crate::waiting::{eventually, is};
use crate::ways_in::make_gateway;

const CLUSTER: &str = "risen";
/// API servers, members of etcd.
const MEMBERS: usize = 3;
const WORKERS: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    LoadBalancer,
    Gateway,
}

/// To v1.34.10, or to the version in `HANGAR_UPGRADE_TO`.
#[test]
fn an_upgrade_under_use_fails_no_request() {
    let _turn = turn();
    upgrade(Way::LoadBalancer);
}

/// The same where all traffic goes through the Gateway.
#[test]
#[ignore = "minutes for another way in: `cargo xtask e2e --kubernetes v1.34.10` runs both"]
fn an_upgrade_behind_a_gateway_fails_no_request() {
    let _turn = turn();
    upgrade(Way::Gateway);
}

struct Trial {
    environment: Environment,
    management: Kubectl,
    way: Way,
    from: &'static str,
    to: &'static str,
    start: Instant,
}

/// A version and the one of the minor before.
fn versions() -> (Set, Set) {
    let is_kubernetes = |set: &Set| set.name().starts_with("kubernetes-");
    let mut known: Vec<Set> = Set::ALL.iter().copied().filter(is_kubernetes).collect();
    known.sort();
    let to = match std::env::var("HANGAR_UPGRADE_TO") {
        Ok(version) => {
            known.iter().position(|set| set.version() == version).expect("a version that is pinned")
        }
        Err(_) => known.iter().position(|set| *set == Set::Kubernetes134).unwrap(),
    };
    (known[to - 1], known[to])
}

fn upgrade(way: Way) {
    let trial = Trial::new(way);
    trial.apply(trial.from);
    let tenant = trial.tenant();
    trial.tell("the control plane serves");
    trial.a_version_that_does_not_exist_stops_and_is_taken_back(&tenant);
    trial.tell("taken back");
    trial.wait_for_nodes(&tenant, trial.from);
    let extension = extension::keep(&tenant, trial.environment.processes());
    trial.tell("used");

    let door = trial.door(&tenant);
    let requests = Requests::start(door.clone());
    let observer = Observer::start(Subject {
        management: Door::new(&trial.environment.kubeconfig(), None),
        tenant: door,
        cluster: CLUSTER,
        to: trial.to,
    });
    trial.apply(trial.to);
    eventually("the control plane has the version", || {
        let version = trial.control_plane("{.status.version}")?;
        is(version == trial.to, || trial.environment.describe(CLUSTER))
    });
    trial.tell("the control plane is upgraded");
    trial.wait_for_nodes(&tenant, trial.to);
    trial.tell("the workers are upgraded");
    eventually("nothing rolls any more", || {
        let rolling = trial.rolling_out()?;
        is(rolling.starts_with("NotRollingOut"), || rolling)
    });
    eventually("there were enough requests", || requests.is_enough());
    let story = observer.stop();
    let report = requests.stop();
    drop(extension);
    trial.tell(&report.to_string());
    assert_eq!(report.failures, Vec::<String>::new(), "{story}");
    assert_eq!(story.violations, Vec::<String>::new(), "{story}");
    let to = trial.to;
    for words in [
        &format!("API servers to be replaced, 1 of 3 are on {to}"),
        "controller managers and schedulers to be replaced",
    ] {
        assert!(story.told(words), "nobody said {words}: {story}");
    }
    assert!(story.workers_told(&format!("the control plane to serve {to}")), "{story}");
    trial.environment.succeed("down");
    trial.environment.assert_gone();
    trial.tell("down");
}

impl Trial {
    fn new(way: Way) -> Self {
        let (from, to) = versions();
        let offered = |set: Set| -> &'static str { format!("--kubernetes-version={}", set.version()).leak() };
        let mut arguments = vec![offered(from), offered(to)];
        if way == Way::Gateway {
            arguments.push("--gateway");
        }
        let start = Instant::now();
        let environment = Environment::new("risen").with_arguments(&arguments);
        environment.succeed("up");
        let management = Kubectl::new(environment.kubeconfig());
        let trial = Self { environment, management, way, from: from.version(), to: to.version(), start };
        trial.tell("up");
        if way == Way::Gateway {
            make_gateway(&trial.management);
        }
        trial
    }

    fn tell(&self, what: &str) {
        println!("{:>7.2} s  {what}", self.start.elapsed().as_secs_f64());
    }

    /// All of it at once, as somebody does who keeps it in files.
    fn apply(&self, version: &str) {
        let mut objects = manifests(&self.environment.sample(CLUSTER, version)).unwrap();
        for object in &mut objects {
            match object["kind"].as_str() {
                Some("HostedControlPlane") => {
                    object["spec"]["replicas"] = json!(MEMBERS);
                    object["spec"]["etcd"]["replicas"] = json!(MEMBERS);
                    if self.way == Way::Gateway {
                        object["spec"]["gateway"] = json!({"namespace": "capi-system", "name": "capi"});
                    }
                }
                Some("MachineDeployment") => object["spec"]["replicas"] = json!(WORKERS),
                _ => {}
            }
        }
        // An API server that has just begun takes in the certificate of webhooks a moment later.
        eventually("the objects are taken", || self.management.try_apply(&manifest(&objects)));
    }

    fn control_plane(&self, path: &str) -> Result<String, String> {
        self.management.attempt(&["get", "hostedcontrolplane", CLUSTER, "-o", &format!("jsonpath={path}")])
    }

    /// Reason and message of the condition.
    fn rolling_out(&self) -> Result<String, String> {
        let condition = r#"{.status.conditions[?(@.type=="RollingOut")]"#;
        self.control_plane(&format!("{condition}.reason}}: {condition}.message}}"))
    }

    /// Once all API servers are ready; with its network, as owners have it.
    fn tenant(&self) -> Kubectl {
        eventually("all API servers are ready", || {
            let ready = self.control_plane("{.status.readyReplicas}")?;
            is(ready == MEMBERS.to_string(), || self.environment.describe(CLUSTER))
        });
        let path = self.environment.cluster_kubeconfig(CLUSTER);
        let secret = format!("{CLUSTER}-kubeconfig");
        eventually("there is a kubeconfig", || {
            let read = ["get", "secret", &secret, "-o", "jsonpath={.data.value}"];
            let text = self.management.attempt(&read)?;
            fs::write(&path, STANDARD.decode(text).unwrap()).map_err(|error| error.to_string())
        });
        let tenant = Kubectl::new(path).from(self.seat());
        let (host, port) = tenant.server();
        let network = flannel::objects(&ApiServer { host: &host, port }, &POD_RANGE.to_string());
        eventually("the tenant takes its network", || tenant.try_apply(&manifest(&network)));
        tenant
    }

    fn seat(&self) -> Seat {
        match self.way {
            Way::LoadBalancer => Seat::Host,
            Way::Gateway => Seat::Resolving(self.resolver()),
        }
    }

    /// A `resolv.conf` with the environment's resolver.
    fn resolver(&self) -> PathBuf {
        let path = self.environment.state.join(&self.environment.name).join("resolv.conf");
        fs::write(&path, format!("nameserver {}\n", self.environment.address())).unwrap();
        path
    }

    /// The way of the requests.
    fn door(&self, tenant: &Kubectl) -> Door {
        let elsewhere = (self.way == Way::Gateway).then(|| {
            let path = "jsonpath={.status.addresses[0].value}";
            let read = ["-n", "capi-system", "get", "gateway", "capi", "-o", path];
            SocketAddr::new(self.management.succeed(&read).parse().unwrap(), gateway::PORT)
        });
        Door::new(tenant.kubeconfig(), elsewhere)
    }

    /// The workers are still on their way meanwhile.
    fn a_version_that_does_not_exist_stops_and_is_taken_back(&self, tenant: &Kubectl) {
        let (minor, _) = self.to.rsplit_once('.').unwrap();
        let missing = format!("{minor}.99");
        let set = |version: &str| {
            let patch = json!({"spec": {"version": version}}).to_string();
            let patch = ["patch", "hostedcontrolplane", CLUSTER, "--type=merge", "-p", &patch];
            self.management.succeed(&patch);
        };
        set(&missing);
        eventually("the upgrade stops and says why", || {
            let rolling = self.rolling_out()?;
            let is_told = rolling.contains("ImagePull") && rolling.contains("can be set back");
            is(rolling.starts_with("Stopped") && is_told, || rolling)
        });
        assert_eq!(
            self.control_plane("{.status.version} {.status.readyReplicas}").unwrap(),
            format!("{} 3", self.from)
        );
        tenant.succeed(&["get", "--raw", "/readyz"]);
        set(self.from);
        eventually("it is as before", || {
            let rolling = self.rolling_out()?;
            is(rolling.starts_with("NotRollingOut"), || rolling)
        });
        let path = r"jsonpath={.items[*].metadata.labels.app\.kubernetes\.io/version}";
        let selector =
            format!("cluster.x-k8s.io/cluster-name={CLUSTER},app.kubernetes.io/component=api-server");
        eventually("the pod of that version is gone", || {
            let versions = self.management.attempt(&["get", "pods", "-l", &selector, "-o", path])?;
            is(!versions.contains(&missing), || versions)
        });
    }

    /// Until these and no others are there.
    fn wait_for_nodes(&self, tenant: &Kubectl, version: &str) {
        let path = r#"{range .items[*]}{.status.nodeInfo.kubeletVersion} {.status.conditions[?(@.type=="Ready")].status},{end}"#;
        let wanted = format!("{version} True,").repeat(WORKERS);
        eventually("all Nodes have the version", || {
            let nodes = tenant.attempt(&["get", "nodes", "-o", &format!("jsonpath={path}")])?;
            is(nodes == wanted, || format!("{nodes}\n{}", self.environment.describe(CLUSTER)))
        });
    }
}
