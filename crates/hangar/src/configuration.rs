//! Finds the cluster to which a command connects.

use std::path::{Path, PathBuf};

use clap::Args;
use hangar_operator::Error;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Which cluster to talk to.
#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    /// The kubeconfig [default: KUBECONFIG, then ~/.kube/config, then the pod's own]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in it [default: the current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ClusterArguments {
    pub(crate) async fn load(&self) -> Result<Config, Error> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let broken = |error| Error::Kubeconfig(Box::new(error));
        match (&self.kubeconfig, &self.context) {
            (Some(path), _) => read(path, &options).await,
            (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(broken),
            (None, None) => Config::infer().await.map_err(|error| Error::NoConfiguration(Box::new(error))),
        }
    }
}

/// The configuration in a kubeconfig file.
pub(crate) async fn from_file(path: &Path) -> Result<Config, Error> {
    read(path, &KubeConfigOptions::default()).await
}

async fn read(path: &Path, options: &KubeConfigOptions) -> Result<Config, Error> {
    let broken = |error| Error::Kubeconfig(Box::new(error));
    let kubeconfig = Kubeconfig::read_from(path).map_err(broken)?;
    Config::from_custom_kubeconfig(kubeconfig, options).await.map_err(broken)
}
