//! Workloads on the management cluster as users run them: manifests through the pinned kubectl, and requests from the
//! host. Every check works in a namespace of its own, removes it again, and may run beside the others.
//!
//! Two images are needed: a busybox ([`image`]) for everything with a shell, and the etcd that the cluster has anyway,
//! as a server with TLS of its own behind the Gateway.

mod objects;
mod requests;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hangar_host::addons::gateway;
use hangar_parts::images::{Entry, Image};
use hangar_parts::{Parts, Set, packages};
use hangar_pki::{Authority, Intent, Usage, issue};
use jiff::Timestamp;
use serde_json::{Value, json};

use objects::{route, server, server_service, stateful_set, web, web_service};
use requests::{get, get_tls};

/// The busybox of the checks.
pub(crate) const IMAGE: &str = "hangar.test/busybox:v1";

/// Only for a check that fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// A cluster to try things on.
pub(crate) struct Workloads {
    kubectl: PathBuf,
    kubeconfig: PathBuf,
    /// The Gateway's address.
    gateway: Ipv4Addr,
}

type Check = fn(&Workloads);

/// The image with a shell: Debian's static busybox and nothing else. Import it into the machine first.
pub(crate) fn image(parts: &Parts) -> Image {
    let unpacked = packages::ensure(parts.cache(), &["busybox-static"], &mut |_| {}).unwrap();
    let program = unpacked.program("busybox").unwrap();
    let shell = Entry::Link("busybox".to_owned());
    Image::new(IMAGE, ["/bin/busybox"])
        .with_program("/bin/busybox", program)
        .with("/bin/sh", shell)
        .with("/www", Entry::Directory(0o777))
}

impl Workloads {
    pub(crate) fn new(parts: &Parts, kubeconfig: &Path, gateway: Ipv4Addr) -> Self {
        let kubectl = parts.program(Set::Kubernetes134, "kubectl").unwrap();
        Self { kubectl, kubeconfig: kubeconfig.to_owned(), gateway }
    }

    /// Everything, one after the other.
    pub(crate) fn all(&self) {
        let checks: [(&str, Check); 5] = [
            ("deployment and load balancer", Self::a_deployment_is_reached_through_a_load_balancer),
            ("stateful set and volume", Self::a_stateful_set_keeps_its_data),
            ("route through the gateway", Self::a_route_passes_tls_on),
            ("names", Self::names_are_resolved),
            ("logs and exec", Self::logs_and_exec),
        ];
        for (name, check) in checks {
            let start = Instant::now();
            check(self);
            println!("{:>7.2} s  {name}", start.elapsed().as_secs_f64());
        }
    }

    /// A Deployment behind a Service of type LoadBalancer, asked from the host; its address is free afterwards.
    pub(crate) fn a_deployment_is_reached_through_a_load_balancer(&self) {
        let space = Space::new(self, "e2e-deployment");
        space.apply(&[web(2), web_service("LoadBalancer")]);
        space.kubectl(&["rollout", "status", "deployment/web", "--timeout=2m"]);
        let address = space.load_balancer_address("web");
        let mut answered = BTreeSet::new();
        eventually("both pods answer", || {
            answered.extend(get(address, 80));
            answered.len() == 2
        });
        space.kubectl(&["delete", "service", "web"]);
        eventually("nobody answers at the address any more", || get(address, 80).is_none());
    }

    /// A StatefulSet whose pod, running as nobody in particular, finds what an earlier one wrote.
    pub(crate) fn a_stateful_set_keeps_its_data(&self) {
        let space = Space::new(self, "e2e-stateful");
        space.apply(&[stateful_set()]);
        space.kubectl(&["rollout", "status", "statefulset/keeper", "--timeout=2m"]);
        let read = || space.kubectl(&["exec", "keeper-0", "--", "busybox", "cat", "/data/starts"]);
        let uid = || space.kubectl(&["get", "pod", "keeper-0", "-o", "jsonpath={.metadata.uid}"]);
        assert_eq!(read().lines().count(), 1);
        let first = uid();
        space.kubectl(&["delete", "pod", "keeper-0", "--grace-period=1"]);
        space.kubectl(&["rollout", "status", "statefulset/keeper", "--timeout=2m"]);
        assert_ne!(uid(), first);
        assert_eq!(read().lines().count(), 2, "the second pod adds to what the first one wrote");
        let volume = space.kubectl(&["get", "pvc", "data-keeper-0", "-o", "jsonpath={.spec.volumeName}"]);
        space.kubectl(&["delete", "statefulset", "keeper"]);
        space.kubectl(&["delete", "pvc", "data-keeper-0"]);
        eventually("the volume is given back", || !space.try_kubectl(&["get", "pv", &volume]).0);
    }

    /// TLS through the Gateway ends at the pod: the client sees the pod's certificate under the name it asked for.
    pub(crate) fn a_route_passes_tls_on(&self) {
        let space = Space::new(self, "e2e-route");
        let names = [format!("route.{}", gateway::DOMAIN), format!("deeper.route.{}", gateway::DOMAIN)];
        let now = Timestamp::now();
        let authority =
            Authority::self_signed(&Intent::authority("e2e", Duration::from_secs(3600)), now).unwrap();
        let intent = Intent::new("server", Usage::Server, Duration::from_secs(1800)).dns_names(names.clone());
        let pair = issue(&authority, &intent, now).unwrap();
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "tls"},
            "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": pair.certificate, "tls.key": pair.key.expose()},
        });
        space.apply(&[secret, server(), server_service(), route(&names)]);
        space.kubectl(&["rollout", "status", "deployment/server", "--timeout=2m"]);
        for name in &names {
            let mut seen = String::new();
            eventually(&format!("{name} answers through the Gateway"), || {
                seen = get_tls(self.gateway, name, &authority).unwrap_or_else(|error| error);
                seen.contains(r#""health":"true""#)
            });
        }
        let foreign = get_tls(self.gateway, &format!("nobody.{}", gateway::DOMAIN), &authority);
        assert!(foreign.is_err(), "a name without a route leads nowhere: {foreign:?}");
        let parents = "jsonpath={.status.parents[*].conditions[?(@.type==\"Accepted\")].status}";
        assert_eq!(space.kubectl(&["get", "tlsroute", "route", "-o", parents]), "True");
    }

    /// Names of Services, of the Gateway, and none.
    pub(crate) fn names_are_resolved(&self) {
        let space = Space::new(self, "e2e-names");
        space.apply(&[web(1), web_service("ClusterIP")]);
        space.kubectl(&["rollout", "status", "deployment/web", "--timeout=2m"]);
        let cluster_address = space.kubectl(&["get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"]);
        let look_up = |name: &str| {
            let (_, output) =
                space.try_kubectl(&["exec", "deployment/web", "--", "busybox", "nslookup", "-type=a", name]);
            output
        };
        let gateway = self.gateway.to_string();
        let expected = [
            (format!("web.{}.svc.cluster.local.", space.name), cluster_address.as_str()),
            ("kubernetes.default.svc.cluster.local.".to_owned(), "10.96.0.1"),
            (format!("any.{}.", gateway::DOMAIN), gateway.as_str()),
            (format!("at.any.depth.{}.", gateway::DOMAIN), gateway.as_str()),
        ];
        for (name, address) in expected {
            let mut output = String::new();
            eventually(&format!("{name} is {address}"), || {
                output = look_up(&name);
                output.contains(&format!("Address: {address}"))
            });
        }
        assert!(look_up("nothing.default.svc.cluster.local.").contains("NXDOMAIN"));
        let page = "http://web:80/";
        eventually("a pod reaches a Service by its short name", || {
            let (_, output) = space.try_kubectl(&["exec", "deployment/web", "--", "sh", "-c", &fetch(page)]);
            output.contains("web-")
        });
    }

    /// What people do first when something is wrong.
    pub(crate) fn logs_and_exec(&self) {
        let space = Space::new(self, "e2e-logs");
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "speaker"},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "speaker",
                    "image": IMAGE,
                    "args": ["sh", "-c", "echo said on standard output; echo and on the other >&2; exec sleep 3600"],
                }],
            },
        });
        space.apply(&[pod]);
        space.kubectl(&["wait", "--for=condition=Ready", "pod/speaker", "--timeout=2m"]);
        eventually("both outputs are in the log", || {
            let log = space.kubectl(&["logs", "speaker"]);
            log.contains("said on standard output") && log.contains("and on the other")
        });
        let mut child = self
            .command(&[
                "-n",
                &space.name,
                "exec",
                "-i",
                "speaker",
                "--",
                "sh",
                "-c",
                "read word; echo heard $word; exit 7",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"something\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "heard something\n");
        assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(arguments);
        command
    }
}

/// A namespace that goes with the check.
struct Space<'a> {
    workloads: &'a Workloads,
    name: String,
}

impl<'a> Space<'a> {
    fn new(workloads: &'a Workloads, name: &str) -> Self {
        let space = Self { workloads, name: name.to_owned() };
        // One that an earlier, killed run left.
        space.kubectl(&["delete", "namespace", name, "--ignore-not-found"]);
        space.kubectl(&["create", "namespace", name]);
        space
    }

    fn try_kubectl(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.workloads.command(&["-n", &self.name]).args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.workloads.command(&["-n", &self.name]).args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let (_, pods) = self.try_kubectl(&["get", "pods,pvc,events", "-o", "wide"]);
            panic!("kubectl {arguments:?}: {error}\n{pods}");
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn apply(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let mut child = self
            .workloads
            .command(&["-n", &self.name, "apply", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(list.to_string().as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "applied {list}");
    }

    fn load_balancer_address(&self, service: &str) -> Ipv4Addr {
        let mut address = None;
        eventually("the Service has an address", || {
            let path = "jsonpath={.status.loadBalancer.ingress[0].ip}";
            address = self.kubectl(&["get", "service", service, "-o", path]).parse().ok();
            address.is_some()
        });
        address.unwrap()
    }
}

impl Drop for Space<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.kubectl(&["delete", "namespace", &self.name, "--wait=false"]);
        }
    }
}

fn eventually(what: &str, mut claim: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !claim() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Fetches a page inside a pod. `nc` and not `wget`: Debian's static one crashes now and then.
fn fetch(url: &str) -> String {
    let (host, port) = url.trim_start_matches("http://").trim_end_matches('/').split_once(':').unwrap();
    format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc {host} {port}")
}
