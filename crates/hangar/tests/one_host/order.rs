//! Looks at an upgrade again and again, and checks in every look that nothing comes before what it depends on.
//!
//! What comes later is read before what it depends on: versions only grow, so what was there when the first was read is
//! still there when the second is.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use serde_json::Value;

use crate::door::{Connection, Door, Fault, Protocol};

const PAUSE: Duration = Duration::from_millis(250);
const CONDITION: &str = "RollingOut";

/// One look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Look {
    /// Machines, and those of the new version.
    machines: (usize, usize),
    /// What the MachineDeployment says of its rollout.
    workers: String,
    /// The version of kube-proxy's template.
    proxy: String,
    /// `status.version`.
    version: String,
    /// What the control plane says of its rollout.
    rolling: String,
    servers: Pods,
    controllers: Pods,
}

/// Pods that stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Pods {
    new: usize,
    ready_new: usize,
    all: usize,
}

impl Pods {
    fn of(pods: &Value, components: &[&str], version: &str) -> Self {
        let mut found = Self::default();
        for pod in pods["items"].as_array().into_iter().flatten() {
            let label = |name: &str| pod["metadata"]["labels"][name].as_str().unwrap_or_default();
            let is_one = components.contains(&label("app.kubernetes.io/component"));
            if is_one && pod["metadata"]["deletionTimestamp"].is_null() {
                let is_new = label("app.kubernetes.io/version") == version;
                found.all += 1;
                found.new += usize::from(is_new);
                found.ready_new += usize::from(is_new && condition(pod, "Ready").0 == "True");
            }
        }
        found
    }

    fn are_all_new(&self) -> bool {
        self.new == self.all
    }
}

/// Status and words of a condition.
fn condition<'object>(object: &'object Value, type_: &str) -> (&'object str, String) {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    let text = |field: &str| found.and_then(|found| found[field].as_str()).unwrap_or_default();
    (text("status"), format!("{}: {}", text("reason"), text("message")))
}

impl fmt::Display for Look {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of {} API servers, {} of {} controllers, kube-proxy {}, {} of {} Machines; status.version {}; {}; \
             MachineDeployment {}",
            self.servers.ready_new,
            self.servers.all,
            self.controllers.ready_new,
            self.controllers.all,
            self.proxy,
            self.machines.1,
            self.machines.0,
            self.version,
            self.rolling,
            self.workers
        )
    }
}

impl Look {
    /// What came too early.
    fn violations(&self, to: &str) -> Vec<String> {
        let serves = self.version == to;
        let claims = [
            (self.controllers.new == 0 || self.servers.are_all_new(), "a controller before all API servers"),
            (self.proxy != to || self.controllers.are_all_new(), "kube-proxy before all controllers"),
            (self.proxy != to || self.servers.are_all_new(), "kube-proxy before all API servers"),
            (!serves || self.servers.are_all_new(), "status.version is not the lowest that serves"),
            (self.machines.1 == 0 || serves, "a worker before the control plane"),
        ];
        let broken = claims.iter().filter(|(holds, _)| !holds);
        broken.map(|(_, claim)| format!("{claim}: {self}")).collect()
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) violations: Vec<String>,
    looks: Vec<(Duration, Look)>,
}

impl fmt::Display for Story {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.looks
            .iter()
            .try_for_each(|(at, look)| writeln!(formatter, "{:>7.2} s  {look}", at.as_secs_f64()))
    }
}

impl Story {
    /// Whether the control plane's condition ever said this.
    pub(crate) fn told(&self, words: &str) -> bool {
        self.looks.iter().any(|(_, look)| look.rolling.contains(words))
    }

    /// Whether the MachineDeployment's condition ever said this.
    pub(crate) fn workers_told(&self, words: &str) -> bool {
        self.looks.iter().any(|(_, look)| look.workers.contains(words))
    }
}

/// Who is looked at.
pub(crate) struct Subject {
    pub(crate) management: Door,
    pub(crate) tenant: Door,
    pub(crate) cluster: &'static str,
    pub(crate) to: &'static str,
}

/// Somebody who looks until told not to.
pub(crate) struct Observer {
    is_over: Arc<AtomicBool>,
    story: Arc<Mutex<Story>>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    pub(crate) fn start(subject: Subject) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let story = Arc::new(Mutex::new(Story::default()));
        let (over, told) = (is_over.clone(), story.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(subject.follow(&over, &told));
        });
        Self { is_over, story, thread: Some(thread) }
    }

    pub(crate) fn stop(mut self) -> Story {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().expect("the observer saw everything");
        std::mem::take(&mut *self.story.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

impl Subject {
    async fn follow(&self, is_over: &AtomicBool, story: &Mutex<Story>) {
        let start = Instant::now();
        let (mut management, mut tenant) = (None, None);
        while !is_over.load(Ordering::SeqCst) {
            let look = self.look(&mut management, &mut tenant).await;
            self.note(story, start.elapsed(), look);
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn note(&self, story: &Mutex<Story>, at: Duration, look: Look) {
        let mut story = story.lock().unwrap_or_else(PoisonError::into_inner);
        if story.looks.last().is_none_or(|(_, last)| *last != look) {
            println!("{:>7.2} s  {look}", at.as_secs_f64());
            story.violations.extend(look.violations(self.to));
            story.looks.push((at, look));
        }
    }

    async fn look(&self, management: &mut Option<Connection>, tenant: &mut Option<Connection>) -> Look {
        let cluster = self.cluster;
        let selector = format!("labelSelector=cluster.x-k8s.io/cluster-name={cluster}");
        let core = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default";
        let machines = read(&self.management, management, &format!("{core}/machines?{selector}")).await;
        let workers = format!("{core}/machinedeployments/{cluster}-workers");
        let workers = read(&self.management, management, &workers).await;
        let proxy = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy";
        let proxy = read(&self.tenant, tenant, proxy).await;
        let control_plane = format!(
            "/apis/controlplane.cluster.x-k8s.io/v1alpha1/namespaces/default/hostedcontrolplanes/{cluster}"
        );
        let control_plane = read(&self.management, management, &control_plane).await;
        let pods = format!("/api/v1/namespaces/default/pods?{selector}");
        let pods = read(&self.management, management, &pods).await;
        let machines = machines["items"].as_array().cloned().unwrap_or_default();
        let is_new = |machine: &&Value| machine["spec"]["version"] == self.to;
        let image = proxy["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
        Look {
            machines: (machines.len(), machines.iter().filter(is_new).count()),
            workers: condition(&workers, CONDITION).1,
            proxy: image.rsplit(':').next().unwrap_or_default().to_owned(),
            version: control_plane["status"]["version"].as_str().unwrap_or_default().to_owned(),
            rolling: condition(&control_plane, CONDITION).1,
            servers: Pods::of(&pods, &["api-server"], self.to),
            controllers: Pods::of(&pods, &["controller-manager", "scheduler"], self.to),
        }
    }
}

/// The object or the list at a path.
async fn read(door: &Door, kept: &mut Option<Connection>, path: &str) -> Value {
    loop {
        let mut connection = door.kept_or_new(kept.take(), Protocol::Two).await.unwrap();
        match connection.exchange(door.request(Method::GET, path, "")).await {
            Ok((StatusCode::OK, body)) => {
                *kept = Some(connection);
                return serde_json::from_slice(&body).unwrap();
            }
            Ok((status, body)) => panic!("{path}: {status}: {}", String::from_utf8_lossy(&body)),
            Err(Fault::NotBegun(_)) => {}
            Err(Fault::Failed(why)) => panic!("{path}: {why}"),
        }
    }
}
