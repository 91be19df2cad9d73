//! Deletes API servers of a tenant, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::kubectl::Kubectl;

/// From one to the next. It is longer where one is not ready yet: to lose two at once is another promise.
const INTERVAL: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(500);

pub(super) struct Disturbance {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Disturbance {
    /// The first goes at once.
    pub(super) fn start(management: Kubectl, cluster: &'static str, members: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut losses = 0;
            let mut next = Instant::now();
            while !is_stopped.load(Ordering::Relaxed) {
                thread::sleep(LOOK);
                if Instant::now() < next {
                    continue;
                }
                match delete_oldest(&management, cluster, members) {
                    Ok(true) => {
                        losses += 1;
                        next = Instant::now() + INTERVAL;
                    }
                    Ok(false) => {}
                    Err(error) => println!("    no API server is deleted now: {error}"),
                }
            }
            losses
        });
        Self { stop, thread }
    }

    /// How many it deleted.
    pub(super) fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// So that each has its turn. Whether it did: not while one is on its way.
fn delete_oldest(management: &Kubectl, cluster: &str, members: usize) -> Result<bool, String> {
    let selector = format!("cluster.x-k8s.io/cluster-name={cluster},app.kubernetes.io/component=api-server");
    let path = r#"jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}"#;
    let order = "--sort-by=.metadata.creationTimestamp";
    let said = management.attempt(&["get", "pods", "-l", &selector, order, "-o", path])?;
    let pods: Vec<&str> = said.lines().filter_map(|line| line.strip_suffix(" True")).collect();
    if pods.len() != members || said.lines().count() != members {
        return Ok(false);
    }
    management.attempt(&["delete", "pod", pods[0], "--wait=false"]).map(|_| true)
}
