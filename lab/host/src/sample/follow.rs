//! Waits from the applied manifests to a Ready worker: what `up` does after the manager runs.
//!
//! After a restart of the host the objects still show the state before it. So the API server itself is called, and a
//! Node counts only if its kubelet has reported since its machine was started.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hangar_kit::describe::read;
use hangar_plan::describe::{Node as Described, Verdict, tree};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::flannel::{self, ApiServer};
use super::{Sample, manifests};
use crate::cluster;
use crate::error::{Error, Result, Trying};
use crate::management::credentials::write_private;

/// Interval of reads: a read is a handful of calls, and nothing here happens within milliseconds.
const LOOK: Duration = Duration::from_millis(500);
/// Programs start, certificates are made, a machine boots: half a minute on a quiet host, minutes on a busy one.
const PATIENCE: Duration = Duration::from_mins(10);

/// A fresh API server takes in a webhook's certificate within seconds.
const APPLY_PATIENCE: Duration = Duration::from_mins(1);

/// The key in kubeconfig Secrets, by contract.
const SECRET_VALUE_KEY: &str = "value";

/// The pods' range in the sample.
const POD_RANGE: &str = "10.244.0.0/16";

/// Result of a read.
enum Answer {
    Yes,
    /// Not yet; the tree says why.
    No,
    /// Not yet, and this is why.
    Because(String),
}

/// Follows one cluster.
pub(crate) struct Follower<'a> {
    client: &'a Client,
    sample: &'a Sample,
    tell: &'a (dyn Fn(&str) + Sync),
}

impl<'a> Follower<'a> {
    pub(crate) fn new(client: &'a Client, sample: &'a Sample, tell: &'a (dyn Fn(&str) + Sync)) -> Self {
        Self { client, sample, tell }
    }

    /// Applies the manifests. How many were new or changed.
    pub(crate) async fn apply(&self) -> Result<usize> {
        self.apply_patiently(self.client, &manifests(self.sample)?).await
    }

    /// Applies objects in an API server that has just begun: it may be away for a moment, or not yet trust the webhooks
    /// that it was told of. What it understood and refused is refused.
    async fn apply_patiently(&self, client: &Client, objects: &[Value]) -> Result<usize> {
        let deadline = Instant::now() + APPLY_PATIENCE;
        let mut told = String::new();
        loop {
            let state = match cluster::apply(client, objects).await {
                Ok(changed) => return Ok(changed),
                Err(error) if Instant::now() >= deadline || error.is_refusal() => return Err(error),
                Err(error) => error.with_causes(),
            };
            if state != told {
                (self.tell)(&state);
                told = state;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the tenant's API server serves, and writes its kubeconfig.
    pub(crate) async fn control_plane(&self, kubeconfig: &Path) -> Result<()> {
        self.until("the control plane", async |tree| {
            let is_serving = tree
                .children
                .iter()
                .any(|child| child.role == Some("control plane") && child.verdict == Verdict::Ready);
            if !is_serving {
                return Ok(Answer::No);
            }
            let Some(text) = self.kubeconfig().await? else {
                return Ok(Answer::No);
            };
            write_private(kubeconfig, text.as_bytes())?;
            let tenant = cluster::connect(kubeconfig).await?;
            Ok(cluster::unready_api_server(&tenant).await?.map_or(Answer::Yes, Answer::Because))
        })
        .await
    }

    async fn kubeconfig(&self) -> Result<Option<String>> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.sample.namespace);
        let name = format!("{}-kubeconfig", self.sample.name);
        let secret = secrets.get_opt(&name).await.trying(format!("read the Secret {name}"))?;
        let value = secret.and_then(|secret| secret.data?.remove(SECRET_VALUE_KEY));
        Ok(value.map(|value| String::from_utf8_lossy(&value.0).into_owned()))
    }

    /// Applies the network add-on in the tenant, as a cluster's owner does.
    pub(crate) async fn network(&self, kubeconfig: &Path) -> Result<usize> {
        let config = cluster::config(kubeconfig).await?;
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let port = config.cluster_url.port_u16().unwrap_or(443);
        let tenant = cluster::connect(kubeconfig).await?;
        let objects = flannel::objects(&ApiServer { host: &host, port }, POD_RANGE);
        self.apply_patiently(&tenant, &objects).await
    }

    /// Waits until every worker is Ready and the whole tree is. How many there are. What Nodes said before `since` is
    /// no longer true.
    pub(crate) async fn workers(
        &self,
        kubeconfig: &Path,
        since: impl Fn() -> Result<Timestamp>,
    ) -> Result<usize> {
        let tenant = cluster::connect(kubeconfig).await?;
        let mut count = 0;
        self.until("the workers", async |tree| {
            if !tree.is_ready() {
                return Ok(Answer::No);
            }
            let nodes: Api<Node> = Api::all(tenant.clone());
            let nodes = nodes.list(&ListParams::default()).await.trying("list the tenant's nodes")?;
            let since = since()?;
            for node in &nodes {
                let name = node.name_any();
                if let Some(reason) = cluster::unready_node(&tenant, &name, since).await? {
                    return Ok(Answer::Because(format!("Node/{name}: {reason}")));
                }
            }
            count = nodes.items.len();
            Ok(if count > 0 { Answer::Yes } else { Answer::Because("no Node has joined".to_owned()) })
        })
        .await?;
        Ok(count)
    }

    /// Looks until a question about the tree is answered with yes; tells what is waited for whenever that changes.
    async fn until(
        &self,
        what: &str,
        mut question: impl AsyncFnMut(&Described) -> Result<Answer>,
    ) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut told = String::new();
        loop {
            let state = match self.look(&mut question).await {
                Ok(None) => return Ok(()),
                Ok(Some(state)) => state,
                Err(error) => error.with_causes(),
            };
            if Instant::now() >= deadline {
                let seconds = PATIENCE.as_secs();
                return Err(Error::TooSlow { what: what.to_owned(), seconds, state });
            }
            if state != told {
                (self.tell)(&state);
                told = state;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn look(
        &self,
        question: &mut impl AsyncFnMut(&Described) -> Result<Answer>,
    ) -> Result<Option<String>> {
        let Some(objects) = read(self.client, &self.sample.namespace, &self.sample.name).await? else {
            return Ok(Some("the Cluster is gone".to_owned()));
        };
        let tree = tree(&objects);
        Ok(match question(&tree).await? {
            Answer::Yes => None,
            Answer::No => Some(waiting_for(&tree)),
            Answer::Because(reason) => Some(reason),
        })
    }
}

/// The first wait of the tree, in one line.
fn waiting_for(tree: &Described) -> String {
    let waits = tree.all_waits();
    let Some((node, wait)) = waits.first() else {
        return "settling".to_owned();
    };
    let line = wait.message.lines().next().unwrap_or_default();
    format!("{}/{}: {line}", node.kind, node.name)
}

/// Where a tenant's kubeconfig lies.
pub(crate) fn kubeconfig_path(directory: &Path, cluster: &str) -> PathBuf {
    directory.join(format!("{cluster}.kubeconfig"))
}
