//! The last phases of `up`: a first cluster, followed until its worker is Ready.

use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;

use crate::cloud::Access;
use crate::error::{Error, Result};
use crate::one_host::{OneHost, UpOptions};
use crate::phases::{Done, Runner};
use crate::progress::{Phase, Progress};
use crate::sample::{Follower, Sample, kubeconfig_path};

/// Where the sample goes.
const NAMESPACE: &str = "default";

impl OneHost {
    /// Applies the sample and follows it. Its kubeconfig.
    pub(super) async fn tenant(
        &self,
        options: &UpOptions,
        name: &str,
        client: &Client,
        cloud: &Access,
        runner: &Runner,
        progress: &Arc<dyn Progress>,
    ) -> Result<PathBuf> {
        let sample = sample(options, name, cloud)?;
        let kubeconfig = kubeconfig_path(self.layout.directory(), name);
        let tell = |phase: Phase| {
            let progress = Arc::clone(progress);
            move |text: &str| progress.detail(phase, text)
        };
        let heard = tell(Phase::Cluster);
        let follower = Follower::new(client, &sample, &heard);
        let apply = async {
            let changed = follower.apply().await?;
            let text =
                if changed == 0 { "unchanged".to_owned() } else { format!("{changed} objects applied") };
            Ok(Done::new((), text, changed > 0))
        };
        runner.run(Phase::Cluster, apply).await?;
        let heard = tell(Phase::ClusterControlPlane);
        let follower = Follower::new(client, &sample, &heard);
        let serving = async {
            follower.control_plane(&kubeconfig).await?;
            Ok(Done::new((), "available", false))
        };
        runner.run(Phase::ClusterControlPlane, serving).await?;
        let heard = tell(Phase::ClusterNetwork);
        let follower = Follower::new(client, &sample, &heard);
        let network = async {
            let changed = follower.network(&kubeconfig).await?;
            let text = if changed == 0 { "unchanged" } else { "flannel applied" };
            Ok(Done::new((), text, changed > 0))
        };
        runner.run(Phase::ClusterNetwork, network).await?;
        let heard = tell(Phase::ClusterWorkers);
        let follower = Follower::new(client, &sample, &heard);
        let workers = async {
            let count = follower.workers(&kubeconfig, || self.last_start()).await?;
            Ok(Done::new((), format!("{count} Ready"), false))
        };
        runner.run(Phase::ClusterWorkers, workers).await?;
        Ok(kubeconfig)
    }
}

fn sample(options: &UpOptions, name: &str, cloud: &Access) -> Result<Sample> {
    let version = options.first_kubernetes().version();
    let image = cloud.images.get(version).ok_or_else(|| Error::Rendering {
        what: "the sample",
        message: format!("the cloud has no image with Kubernetes {version}"),
    })?;
    Ok(Sample {
        name: name.to_owned(),
        namespace: NAMESPACE.to_owned(),
        version: version.to_owned(),
        auth_url: cloud.auth_url.clone(),
        username: cloud.username.clone(),
        password: cloud.password.clone(),
        project: cloud.project.clone(),
        region: cloud.region.clone(),
        external_network: cloud.external_network.clone(),
        flavor: cloud.flavor.clone(),
        image: image.clone(),
    })
}
