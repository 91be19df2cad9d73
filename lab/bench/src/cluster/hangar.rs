//! Hangar's side of the bench: the sample is applied, the owner applies the network add-on as soon as the API server
//! answers, and nothing else is done.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::cloud::Cloud;
use super::recording::Recording;
use super::timeline::{
    API_SERVER_READY, APPLIED, KUBECONFIG, NETWORK_APPLIED, NODE_READY, SAID_READY, SERVING, Timeline,
    is_kubeconfig,
};
use super::{CLUSTER, NAMESPACE, PATIENCE, SELECTOR};
use crate::place::Place;
use crate::recorded::{decoded, server_host};
use crate::watch::Watches;

/// What is watched beside pods, etcd and Secrets.
const KINDS: [&str; 5] =
    ["hostedcontrolplanes", "openstackclusters", "machines", "openstackmachines", "machinedeployments"];
/// What must be gone after a deletion.
const LEFT: &str = "clusters,hostedcontrolplanes,openstackclusters,machines,openstackmachines,statefulsets,deployments,\
                    pods,persistentvolumeclaims";

pub(super) struct Hangar<'a> {
    place: &'a Place,
    cloud: &'a Cloud,
    recording: &'a Recording,
}

impl<'a> Hangar<'a> {
    pub(super) fn new(place: &'a Place, cloud: &'a Cloud, recording: &'a Recording) -> Self {
        Self { place, cloud, recording }
    }

    /// From apply to a Ready worker.
    pub(super) fn run(&self) -> anyhow::Result<Timeline> {
        let management = self.place.management();
        let sample = self.cloud.sample()?;
        let mut watches = Watches::new();
        watches.add("pods", management, &["--namespace", NAMESPACE, "--selector", SELECTOR])?;
        watches.add("statefulsets", management, &["--namespace", NAMESPACE, "--selector", SELECTOR])?;
        watches.add("secrets", management, &["--namespace", NAMESPACE])?;
        for kind in KINDS {
            watches.add(kind, management, &["--namespace", NAMESPACE])?;
        }
        Watches::wait_until_there();

        let mut timeline = Timeline::begin();
        management.apply(&sample)?;
        timeline.mark(APPLIED, Instant::now());
        let mut kubeconfig = None;
        for awaited in [API_SERVER_READY, KUBECONFIG] {
            timeline.follow_with(&watches, awaited, |event| {
                if event.watch == "secrets" && is_kubeconfig(&event.object) {
                    kubeconfig = Some(decoded(&event.object["data"]["value"]));
                }
            })?;
        }
        let kubeconfig = kubeconfig.context("there is no kubeconfig")??;
        let path = self.place.tenant_kubeconfig(CLUSTER);
        fs::write(&path, &kubeconfig).context("the tenant's kubeconfig")?;
        let tenant = management.with(&path);
        timeline.mark(SERVING, tenant.wait_until_serving(PATIENCE)?);
        tenant.apply_patiently(&self.recording.network(server_host(&kubeconfig)?))?;
        // Not before: the administrator's rights come a moment after the API server.
        watches.add("nodes", &tenant, &[])?;
        timeline.mark(NETWORK_APPLIED, Instant::now());
        timeline.follow(&watches, NODE_READY)?;
        timeline.follow(&watches, SAID_READY)?;
        Ok(timeline)
    }

    /// Removes the cluster and waits until nothing of it is left.
    pub(super) fn remove(&self) -> anyhow::Result<()> {
        let management = self.place.management();
        management.output(&["delete", "cluster", CLUSTER, "--namespace", NAMESPACE, "--timeout=5m"])?;
        // Templates and the cloud's Secret are their owner's.
        management.delete(&self.cloud.sample()?)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = management.output(&["get", LEFT, "-n", NAMESPACE, "-l", SELECTOR, "--output=name"])?;
            if left.trim().is_empty() {
                break;
            }
            if Instant::now() >= deadline {
                bail!("after the deletion there is still: {left}");
            }
            thread::sleep(Duration::from_millis(500));
        }
        self.cloud.wait_until_without_servers()
    }
}
