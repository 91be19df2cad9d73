//! Every way to a tenant's API server, with real traffic: a Gateway, a load balancer that is known by a name, node ports,
//! and an address of the management cluster's own network.

#[path = "../hangar/documents/fixture.rs"]
#[allow(dead_code, reason = "the other test binary uses the rest")]
mod fixture;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hangar_host::addons::gateway;
use hangar_host::addresses::{POD_RANGE, SERVICE_RANGE};
use hangar_host::resolver::SPELLED;
use hangar_host::sample::flannel::{self, ApiServer};
use hangar_host::sample::manifests;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::kubectl::{Kubectl, Seat};
use crate::tenant::{Tenant, manifest};
use crate::turn;
use crate::waiting::{eventually, is};

/// What the document has.
const VERSION: &str = "v1.33.0";
const DOCUMENT: &str = "documents/4-hosted-control-plane";
/// The document's Cluster, and its name below the Gateway's wildcard.
const DOCUMENTED: &str = "my-cluster";
const DOCUMENTED_HOST: &str = "my-cluster.default.clusters.hangar.test";
/// Load balancers that nobody but this test makes; the limits allow them.
const BY_NAME: &str = "hangar.test/by-name";
/// The tenant's Services where those of the management cluster are routed to its nodes: one address, one meaning.
const OTHER_SERVICES: &str = "172.30.0.0/16";

/// A cluster with a worker that is reached in one way.
struct Way {
    name: &'static str,
    /// Goes over the HostedControlPlane of the sample.
    settings: Value,
    /// What the host in its kubeconfig begins with.
    host: String,
    /// From where people use it.
    seat: Seat,
}

struct Ground {
    environment: Environment,
    management: Kubectl,
    /// A `resolv.conf` with the environment's resolver.
    resolver: PathBuf,
}

#[test]
fn a_tenant_works_whatever_the_way_in() {
    let _turn = turn();
    let ground = Ground::new();
    let resolving = || Seat::Resolving(ground.resolver.clone());
    let inside = || Seat::Inside(ground.environment.network("machine.management"));
    let ways = [
        Way {
            name: "routed",
            settings: json!({"gateway": {"namespace": "capi-system", "name": "capi"}}),
            host: "routed.default.clusters.hangar.test".to_owned(),
            seat: resolving(),
        },
        Way {
            name: "named",
            settings: json!({"exposure": {"loadBalancer": {"class": BY_NAME}}}),
            host: ground.balancer_name(),
            seat: resolving(),
        },
        Way {
            name: "ported",
            settings: json!({"exposure": {"type": "NodePort"}}),
            host: ground.environment.address().to_string(),
            seat: inside(),
        },
        Way {
            name: "inner",
            settings: json!({"exposure": {"type": "ClusterIP"}}),
            host: "10.96.".to_owned(),
            seat: inside(),
        },
    ];
    ground.prepare();
    let ground = &ground;
    std::thread::scope(|scope| {
        scope.spawn(|| ground.documented());
        scope.spawn(|| ground.balance_by_name("named"));
        for way in &ways {
            scope.spawn(|| ground.follow(way));
        }
    });
    ground.environment.succeed("down");
    ground.environment.assert_gone();
}

/// The Gateway of the document, as operators make it before their users come.
pub(crate) fn make_gateway(management: &Kubectl) {
    management.succeed(&["create", "namespace", "capi-system"]);
    apply_document(management, "gateway.yaml");
}

fn apply_document(management: &Kubectl, file: &str) {
    let fixtures = fixture::load(DOCUMENT);
    let found = fixtures.iter().find(|fixture| fixture.file.ends_with(&format!("/{file}"))).unwrap();
    management.apply(&found.text);
}

impl Ground {
    fn new() -> Self {
        let limits = concat!("--limits=", env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/by-name.yaml");
        let arguments = ["--gateway", "--kubernetes-version=v1.33.0", limits];
        let environment = Environment::new("ways").with_arguments(&arguments);
        let start = Instant::now();
        environment.succeed("up");
        println!("{:>7.2} s  up", start.elapsed().as_secs_f64());
        let management = Kubectl::new(environment.kubeconfig());
        let resolver = environment.state.join(&environment.name).join("resolv.conf");
        fs::write(&resolver, format!("nameserver {}\n", environment.address())).unwrap();
        Self { environment, management, resolver }
    }

    /// What operators do before their users come.
    fn prepare(&self) {
        make_gateway(&self.management);
        // Where addresses of Services are used from outside their cluster, the network knows the way to them.
        let via = self.environment.address().to_string();
        self.run("fabric.private", &["route", "replace", &SERVICE_RANGE.to_string(), "via", &via]);
        self.run(
            "machine.management",
            &["address", "add", &format!("{}/32", self.balancer()), "dev", "eth0"],
        );
    }

    /// `ip`, in one of the environment's networks.
    fn run(&self, network: &str, arguments: &[&str]) {
        let output = self.environment.network(network).output(Command::new("ip").args(arguments)).unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Applies a file of the document as people have it.
    fn document(&self, file: &str) {
        apply_document(&self.management, file);
    }

    /// The document, word for word: its Cluster is on the infrastructure of another provider, which is played here, and
    /// is reached through the Gateway, by people with a resolver that knows the wildcard and by others.
    fn documented(&self) {
        let definition = fixture::stub_definition("AWSCluster", &["v1beta1"]);
        self.management.apply(&definition.to_string());
        let object = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSCluster",
            "metadata": {"name": "my-aws-cluster", "namespace": "default"}, "spec": {},
        });
        eventually("the kind is served", || self.management.try_apply(&object.to_string()));
        let ready = json!({"status": {"ready": true}}).to_string();
        let patch = ["patch", "awscluster", "my-aws-cluster", "--subresource=status", "--type=merge", "-p"];
        self.management.succeed(&[&patch[..], &[&ready]].concat());
        self.document("basic.yaml");
        self.document("cluster.yaml");
        let start = Instant::now();
        self.wait_for(DOCUMENTED);
        println!("{:>7.2} s  {DOCUMENTED}: available", start.elapsed().as_secs_f64());
        eventually("all three replicas are ready", || {
            let path = "jsonpath={.status.readyReplicas}";
            let read = ["get", "hostedcontrolplane", "my-hosted-control-plane", "-o", path];
            let ready = self.management.attempt(&read)?;
            is(ready == "3", || format!("{ready} of them"))
        });

        let kubectl = Kubectl::new(self.kubeconfig(DOCUMENTED)).from(Seat::Resolving(self.resolver.clone()));
        assert_eq!(kubectl.server(), (DOCUMENTED_HOST.to_owned(), gateway::PORT));
        // Gateways learn of routes and of pods a moment later.
        let serves = |kubectl: &Kubectl, arguments: &[&str]| {
            eventually("the version is served", || {
                let said = kubectl.attempt(&[&["get", "--raw", "/version"], arguments].concat())?;
                is(said.contains(&format!("\"gitVersion\": \"{VERSION}\"")), || said)
            });
        };
        serves(&kubectl, &[]);
        let path = "jsonpath={.status.addresses[0].value}";
        let gateway = self.management.succeed(&["-n", "capi-system", "get", "gateway", "capi", "-o", path]);
        let address = SocketAddr::new(gateway.parse().unwrap(), gateway::PORT);
        let elsewhere = Kubectl::new(self.kubeconfig(DOCUMENTED));
        let (server, name) =
            (format!("--server=https://{address}"), format!("--tls-server-name={DOCUMENTED_HOST}"));
        serves(&elsewhere, &[&server, &name]);

        let selector = format!("cluster.x-k8s.io/cluster-name={DOCUMENTED}");
        let routes = ["get", "tlsroutes", "-l", &selector, "-o", "name"];
        assert_eq!(self.management.succeed(&routes).lines().count(), 2);
        self.management.succeed(&["delete", "cluster", DOCUMENTED, "--timeout=10m"]);
        eventually("its routes are gone", || {
            let left = self.management.attempt(&routes)?;
            is(left.is_empty(), || left)
        });
    }

    /// From apply to a tenant in which everything works.
    fn follow(&self, way: &Way) {
        let mut objects = manifests(&self.environment.sample(way.name, VERSION)).unwrap();
        for object in &mut objects {
            match object["kind"].as_str() {
                Some("HostedControlPlane") => {
                    for (field, value) in way.settings.as_object().unwrap() {
                        object["spec"][field] = value.clone();
                    }
                }
                Some("Cluster") => {
                    object["spec"]["clusterNetwork"]["services"]["cidrBlocks"] = json!([OTHER_SERVICES]);
                }
                _ => {}
            }
        }
        let start = Instant::now();
        self.management.apply(&manifest(&objects));
        let kubectl = Kubectl::new(self.kubeconfig(way.name)).from(way.seat.clone());
        let (host, port) = kubectl.server();
        assert!(host.starts_with(&way.host), "{}: {host}", way.name);
        let network = flannel::objects(&ApiServer { host: &host, port }, &POD_RANGE.to_string());
        eventually("the tenant takes its network", || kubectl.try_apply(&manifest(&network)));
        Tenant { environment: &self.environment, name: way.name, kubectl: &kubectl }.works();
        self.wait_for(way.name);
        println!("{:>7.2} s  {}: works at {host}:{port}", start.elapsed().as_secs_f64(), way.name);
    }

    #[track_caller]
    fn wait_for(&self, cluster: &str) {
        eventually("the Cluster is available", || {
            let path = "jsonpath={.status.conditions[?(@.type==\"Available\")].status}";
            let kind = "clusters.v1beta2.cluster.x-k8s.io";
            let said = self.management.attempt(&["get", kind, cluster, "-o", path])?;
            is(said == "True", || self.environment.describe(cluster))
        });
    }

    /// As its owner takes it from the Secret.
    fn kubeconfig(&self, cluster: &str) -> PathBuf {
        let secret = format!("{cluster}-kubeconfig");
        let path = self.environment.cluster_kubeconfig(cluster);
        eventually("there is a kubeconfig", || {
            let read = ["get", "secret", &secret, "-o", "jsonpath={.data.value}"];
            let said = self.management.attempt(&read).map_err(|_| self.environment.describe(cluster))?;
            fs::write(&path, STANDARD.decode(said).unwrap()).map_err(|error| error.to_string())
        });
        path
    }

    /// The address of the load balancer that is known by its name: the one after the Gateway's.
    fn balancer(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.environment.address()) + 248)
    }

    fn balancer_name(&self) -> String {
        format!("{}.{SPELLED}", self.balancer().to_string().replace('.', "-"))
    }

    /// A load balancer as some clouds have it: it reports a name. kube-proxy carries the traffic.
    fn balance_by_name(&self, cluster: &str) {
        let address = self.balancer();
        let spec = json!({"spec": {"externalIPs": [address]}}).to_string();
        let ingress = json!([{"hostname": self.balancer_name()}]);
        let status = json!({"status": {"loadBalancer": {"ingress": ingress}}}).to_string();
        for service in [format!("api-{cluster}"), format!("konnectivity-{cluster}")] {
            eventually("the Service is there", || {
                self.management.attempt(&["patch", "service", &service, "-p", &spec])?;
                self.management.attempt(&[
                    "patch",
                    "service",
                    &service,
                    "--subresource=status",
                    "-p",
                    &status,
                ])?;
                Ok(())
            });
        }
    }
}
