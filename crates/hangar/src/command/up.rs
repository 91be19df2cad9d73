//! `hangar up`: makes a management cluster, a cloud and a first cluster on this host.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use hangar_host::management::Node;
use hangar_host::{Cluster, Image, Installed, Installing, Payload, PayloadError, Set, UpOptions, ipnet};
use hangar_operator::install::{self, Options, Target};
use hangar_operator::{DEFAULT_NAMESPACE, Namespaces, Selection};

use super::environment::EnvironmentArguments;
use crate::configuration;
use crate::limits;
use crate::progress::Phases;

/// Start or repair everything on this host: management cluster, cloud, Hangar and a first cluster. Needs root.
#[derive(Debug, Args)]
pub(crate) struct Up {
    #[command(flatten)]
    environment: EnvironmentArguments,
    /// Install a Gateway (Traefik) with the name *.clusters.hangar.test
    #[arg(long)]
    gateway: bool,
    /// Nodes of the management cluster, in three zones: each a machine of its own. They can be added later, not removed
    /// [default: as many as there are, or 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=i64::from(MOST_NODES)))]
    management_nodes: Option<u8>,
    /// Kubernetes version that clusters can have, such as v1.33.0; may be given several times. The first cluster has the
    /// first of them [default: v1.34.10, which clusters can always have]
    #[arg(long, alias = "kubernetes", value_name = "VERSION", value_parser = kubernetes_version)]
    kubernetes_version: Vec<Set>,
    /// File with what HostedControlPlanes may ask for beyond their namespace, as of `hangar install`
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// Create no first cluster: only the management cluster, the cloud and Hangar
    #[arg(long)]
    no_cluster: bool,
    /// Address range of the private network [default: a free part of 100.72.0.0/16]
    #[arg(long, value_name = "CIDR")]
    range: Option<ipnet::Ipv4Net>,
}

impl Up {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let host = self.environment.open()?;
        let image = manager_image()?;
        let reference = image.reference().to_owned();
        let options = UpOptions {
            range: self.range,
            gateway: self.gateway,
            nodes: self.management_nodes,
            cluster_kubernetes: self.kubernetes_version.first().copied(),
            offered: self.kubernetes_version,
            own_images: vec![image],
            cluster: (!self.no_cluster).then(|| CLUSTER.to_owned()),
            ..UpOptions::default()
        };
        let limits = self.limits.as_deref().map(limits::read).transpose()?.map(|(text, _)| text);
        let manager = Manager { image: reference, limits };
        let up = host.up(&options, Some(&manager), Arc::new(Phases::new())).await?;
        if let Some(obstacle) = up.outside_obstacle {
            println!("machines and pods cannot reach the outside: {obstacle}");
        }
        let management = up.kubeconfig.display();
        let kubectl = host.kubectl()?;
        let kubectl = kubectl.display();
        let hangar = std::env::args().next().unwrap_or_else(|| "hangar".to_owned());
        let name = self.environment.as_flag();
        println!();
        if let Some(cluster) = &up.cluster_kubeconfig {
            println!(
                "The cluster {CLUSTER} runs: its control plane in the management cluster, its worker in the cloud. Try:"
            );
            println!("  {kubectl} --kubeconfig {} get nodes,pods -A", cluster.display());
            println!("  {hangar} describe cluster {CLUSTER} --kubeconfig {management}");
        } else {
            println!("The management cluster runs, with Hangar in it. Try:");
        }
        println!("  {kubectl} --kubeconfig {management} get pods -A");
        println!("  {hangar} status{name}");
        println!("  {hangar} down{name}");
        println!();
        println!("{}", up.cluster_kubeconfig.as_ref().unwrap_or(&up.kubeconfig).display());
        Ok(())
    }
}

/// The set of a version, or of a minor.
fn kubernetes_version(text: &str) -> Result<Set, String> {
    let number = text.strip_prefix('v').unwrap_or(text);
    let minor = |set: Set| set.name().strip_prefix("kubernetes-");
    let mut known: Vec<Set> = Set::ALL.iter().copied().filter(|set| minor(*set).is_some()).collect();
    known.sort();
    let is_it = |set: &Set| minor(*set) == Some(number) || set.version().strip_prefix('v') == Some(number);
    known.iter().copied().find(is_it).ok_or_else(|| {
        let versions: Vec<&str> = known.iter().map(|set| set.version()).collect();
        format!("known are {}", versions.join(", "))
    })
}

const MOST_NODES: u8 = Node::MOST;

/// The first cluster's name.
const CLUSTER: &str = "demo";

/// CRDs, rights, webhooks and the manager itself, from an image that the machine has.
struct Manager {
    image: String,
    limits: Option<String>,
}

impl Payload for Manager {
    fn install<'a>(&'a self, cluster: &'a Cluster) -> Installing<'a> {
        Box::pin(self.apply(cluster))
    }
}

impl Manager {
    async fn apply(&self, cluster: &Cluster) -> Result<Installed, PayloadError> {
        let config = configuration::from_file(&cluster.kubeconfig).await?;
        let options = Options {
            namespace: DEFAULT_NAMESPACE.to_owned(),
            image: self.image.clone(),
            // On different nodes, where there are some.
            replicas: u16::from(cluster.nodes.min(2)),
            controllers: Selection::all(),
            target: Target::Service { namespace: DEFAULT_NAMESPACE.to_owned() },
            api_server: Some(cluster.api_server()),
            namespaces: Namespaces::All,
            limits: self.limits.clone(),
        };
        let mut changed = 0;
        install::apply(config.clone(), &options, |progress| {
            changed += usize::from(progress.outcome != "unchanged");
        })
        .await?;
        install::wait_until_available(config, DEFAULT_NAMESPACE).await?;
        let outcome = if changed == 0 { "unchanged" } else { "the manager runs" };
        Ok(Installed { outcome: outcome.to_owned(), changed: changed > 0 })
    }
}

/// An image of this very program. Its tag follows its content, so that another program is another rollout.
fn manager_image() -> anyhow::Result<Image> {
    let program = std::env::current_exe()?;
    let image = |reference: String| {
        Image::new(reference, ["/hangar"]).with_dynamic_program("/hangar", &program, None)
    };
    let content = image("hangar".to_owned())?.fingerprint()?;
    let short = content.get(..12).unwrap_or(&content);
    Ok(image(format!("hangar.local/hangar:v{}-{short}", env!("CARGO_PKG_VERSION")))?)
}
