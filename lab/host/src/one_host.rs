//! The handle of an environment: everything is found by its name and state directory.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use hangar_machine::{Environment, Machine, MachineState, Name, SupervisorCommand};
use hangar_parts::images::{Image, Upstream};
use hangar_parts::{Parts, Set};
use hangar_plan::hosted_control_plane::{Epoch, KubernetesVersion};
use ipnet::Ipv4Net;
use jiff::Timestamp;

use crate::cluster::Starts;
use crate::error::{At, Result};
use crate::layout::Layout;
use crate::management::{self, Node};

/// Where environments live.
pub const STATE_DIRECTORY: &str = "/var/lib/hangar";

/// The private network's name in its environment.
pub(crate) const FABRIC: &str = "private";

/// The running program and how it is asked to be something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnProgram {
    /// Its file, seen in machines too.
    pub program: PathBuf,
    /// The (hidden) subcommand that calls [`hangar_machine::supervise_main`].
    pub supervisor: OsString,
    /// The (hidden) subcommand that calls [`crate::provisioner::run`]; it is given `--kubeconfig`, `--node`,
    /// `--directory` and on the first node `--unassigned`.
    pub provisioner: Vec<String>,
}

/// What `up` makes.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// The private network's range; the first free one of a pool otherwise.
    pub range: Option<Ipv4Net>,
    /// With a Gateway and the wildcard name that leads to it.
    pub gateway: bool,
    /// How many nodes the management cluster has; otherwise as many as it has already, or one.
    pub nodes: Option<u8>,
    /// Of the management cluster.
    pub kubernetes: Set,
    pub etcd: Set,
    /// Of the first Cluster; otherwise what it has already, or [`Self::kubernetes`].
    pub cluster_kubernetes: Option<Set>,
    /// Kubernetes versions that Clusters can have beside [`Self::kubernetes`].
    pub offered: Vec<Set>,
    /// Images beside those that the cluster itself needs. They are shared by all machines as well, so only such that
    /// rarely change belong here.
    pub images: Vec<Upstream>,
    /// Images that only management machines have, such as one of our own program.
    pub own_images: Vec<Image>,
    /// The name of a first Cluster that is made and followed until its worker is Ready. Needs a payload that acts on it.
    pub cluster: Option<String>,
}

impl Default for UpOptions {
    fn default() -> Self {
        Self {
            range: None,
            gateway: false,
            nodes: None,
            kubernetes: Set::Kubernetes134,
            etcd: Set::Etcd36,
            cluster_kubernetes: None,
            offered: Vec::new(),
            images: vec![Upstream::KonnectivityServer, Upstream::KonnectivityAgent, Upstream::Flannel],
            own_images: Vec::new(),
            cluster: None,
        }
    }
}

impl UpOptions {
    /// Every shared image, sorted.
    pub fn upstream_images(&self) -> Vec<Upstream> {
        let mut images = vec![
            Upstream::Pause,
            Upstream::Etcd(self.etcd),
            Upstream::Coredns,
            Upstream::KubeVip,
            Upstream::KubeVipCloudProvider,
        ];
        for kubernetes in self.all_kubernetes() {
            images.extend([
                Upstream::KubeApiserver(kubernetes),
                Upstream::KubeControllerManager(kubernetes),
                Upstream::KubeScheduler(kubernetes),
                Upstream::KubeProxy(kubernetes),
            ]);
            images.extend(etcd_of(kubernetes));
        }
        if self.gateway {
            images.push(Upstream::Traefik);
        }
        images.extend(self.images.iter().copied());
        images.sort();
        images.dedup();
        images
    }

    /// The Kubernetes version of the first Cluster.
    pub fn first_kubernetes(&self) -> Set {
        self.cluster_kubernetes.unwrap_or(self.kubernetes)
    }

    /// How many nodes the management cluster has.
    pub fn node_count(&self) -> u8 {
        self.nodes.unwrap_or(1).clamp(1, Node::MOST)
    }

    /// The Kubernetes versions that Clusters can have.
    pub fn all_kubernetes(&self) -> Vec<Set> {
        let mut all = vec![self.kubernetes, self.first_kubernetes()];
        all.extend(self.offered.iter().copied());
        all.sort();
        all.dedup();
        all
    }

    /// Every set that must be built.
    pub fn sets(&self) -> Vec<Set> {
        let mut sets: Vec<Set> = self.upstream_images().into_iter().filter_map(Upstream::set).collect();
        sets.push(Set::CniPlugins);
        if self.gateway {
            sets.push(Set::GatewayApi);
        }
        sets.sort();
        sets.dedup();
        sets
    }
}

/// An environment on this host.
#[derive(Debug, Clone)]
pub struct OneHost {
    pub(crate) environment: Environment,
    pub(crate) layout: Layout,
    pub(crate) parts: Parts,
    pub(crate) own: OwnProgram,
}

impl OneHost {
    /// Names an environment; nothing is made yet.
    pub fn new(name: Name, state: impl AsRef<Path>, parts: Parts, own: OwnProgram) -> Result<Self> {
        let environment = Environment::new(state, name, supervisor(&own))?;
        let layout = Layout::new(environment.directory());
        Ok(Self { environment, layout, parts, own })
    }

    pub(crate) fn supervisor(&self) -> SupervisorCommand {
        supervisor(&self.own)
    }

    /// When the machines that run were started, by name: their records of the first process are written then.
    pub(crate) fn starts(&self) -> Result<Starts> {
        let mut starts = Starts::default();
        for status in self.environment.machines()? {
            if matches!(status.state, MachineState::Running(_)) {
                let time = started(&self.environment.machine(&status.name))?;
                starts.0.insert(status.name.to_string(), time);
            }
        }
        Ok(starts)
    }

    /// When the last of the machines that run was started.
    pub(crate) fn last_start(&self) -> Result<Timestamp> {
        Ok(self.starts()?.0.into_values().max().unwrap_or(Timestamp::UNIX_EPOCH))
    }

    pub fn name(&self) -> &Name {
        self.environment.name()
    }

    /// Its machines and networks.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The kubeconfig of the management cluster, for users and programs on the host.
    pub fn kubeconfig(&self) -> PathBuf {
        self.layout.kubeconfig()
    }

    /// The `kubectl` to use: the one on the `PATH`, or ours where this host has none.
    pub fn kubectl(&self) -> Result<PathBuf> {
        let name = "kubectl";
        let path = std::env::var_os("PATH").unwrap_or_default();
        if std::env::split_paths(&path).any(|place| place.join(name).is_file()) {
            return Ok(PathBuf::from(name));
        }
        Ok(self.parts.program(UpOptions::default().kubernetes, name)?)
    }

    /// The first management machine, whether it exists or not.
    pub fn management(&self) -> Result<Machine> {
        self.node_machine(Node::FIRST)
    }

    /// The machine of a node, whether it exists or not.
    pub(crate) fn node_machine(&self, node: Node) -> Result<Machine> {
        Ok(self.environment.machine(&management::machine::name(node)?))
    }
}

/// The image of etcd that control planes of this version get.
fn etcd_of(kubernetes: Set) -> Option<Upstream> {
    let version = KubernetesVersion::parse(kubernetes.version())?;
    let tag = format!(":{}", version.etcd_tag(Epoch::CURRENT));
    [Set::Etcd36, Set::Etcd37].map(Upstream::Etcd).into_iter().find(|etcd| etcd.reference().ends_with(&tag))
}

fn started(machine: &Machine) -> Result<Timestamp> {
    let path = machine.directory().join("running.json");
    let modified = fs::metadata(&path).and_then(|found| found.modified()).at("read", &path)?;
    Ok(Timestamp::try_from(modified).unwrap_or(Timestamp::UNIX_EPOCH))
}

fn supervisor(own: &OwnProgram) -> SupervisorCommand {
    SupervisorCommand { program: own.program.clone(), arguments: vec![own.supervisor.clone()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_the_etcd_that_its_control_planes_ask_for() {
        let versions = Set::ALL.iter().copied().filter(|set| set.name().starts_with("kubernetes-"));
        let found: Vec<(Set, Option<Upstream>)> = versions.map(|set| (set, etcd_of(set))).collect();
        assert_eq!(found.len(), 5);
        for (set, etcd) in found {
            let wanted = if set == Set::Kubernetes137 { Set::Etcd37 } else { Set::Etcd36 };
            assert_eq!(etcd, Some(Upstream::Etcd(wanted)), "{set}");
        }
    }

    #[test]
    fn what_clusters_can_have_is_there_and_nothing_twice() {
        let options = UpOptions {
            gateway: true,
            offered: vec![Set::Kubernetes133, Set::Kubernetes134, Set::Kubernetes137],
            ..UpOptions::default()
        };
        let (plain, more) = (UpOptions::default().upstream_images(), options.upstream_images());
        let added: Vec<Upstream> = more.iter().copied().filter(|image| !plain.contains(image)).collect();
        let expected = [
            Upstream::Etcd(Set::Etcd37),
            Upstream::KubeApiserver(Set::Kubernetes133),
            Upstream::KubeApiserver(Set::Kubernetes137),
            Upstream::KubeControllerManager(Set::Kubernetes133),
            Upstream::KubeControllerManager(Set::Kubernetes137),
            Upstream::KubeScheduler(Set::Kubernetes133),
            Upstream::KubeScheduler(Set::Kubernetes137),
            Upstream::KubeProxy(Set::Kubernetes133),
            Upstream::KubeProxy(Set::Kubernetes137),
            Upstream::Traefik,
        ];
        assert_eq!(added, expected);
        assert_eq!(more.len(), plain.len() + added.len());
        let sets = options.sets();
        for set in [Set::Kubernetes133, Set::Etcd37, Set::Traefik, Set::GatewayApi] {
            assert!(sets.contains(&set), "{set}");
        }
    }
}
