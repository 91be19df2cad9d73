//! A management machine: what is laid over the host's /usr, what is bound into it, what its supervisor runs.
//!
//! What must outlive the machine (etcd's data, volumes, certificates) is bound from the environment's directory, so a
//! machine whose description changed can be made anew without losing anything. For the same reason the description does
//! not depend on anything that changes by itself, such as the host's resolvers.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use hangar_machine::net::{Fabric, Route};
use hangar_machine::{Bind, FileContent, MachineSpec, Name, Restart, Service, containerd_config, host};
use hangar_parts::images::Upstream;
use hangar_parts::packages::Packages;
use hangar_parts::{Parts, Set};
use ipnet::IpNet;

use super::{Node, ZONE_LABEL, control_plane, kubelet};
use crate::addresses::Addresses;
use crate::error::Result;
use crate::layout::Layout;
use crate::linked_programs::LinkedPrograms;
use crate::one_host::OwnProgram;
use crate::resolver;

/// Exists once containerd's images are in place; containerd waits for it.
pub const SEEDED: &str = "/var/lib/containerd/.seeded";
/// Where volumes lie in the machine.
pub const VOLUMES: &str = "/var/lib/hangar/volumes";
/// Where our own program lies in the machine.
pub(crate) const PROGRAMS: &str = "/usr/local/lib/hangar";
/// Its name there.
pub const OWN_PROGRAM: &str = "hangar";

/// The service that makes volumes.
pub const PROVISIONER: &str = "provisioner";

/// What the machine depends on.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    pub node: Node,
    /// Where programs come from.
    pub parts: &'a Parts,
    pub linked: &'a LinkedPrograms<'a>,
    /// What is laid over /usr.
    pub packages: &'a Packages,
    pub kubernetes: Set,
    /// The environment's files.
    pub layout: &'a Layout,
    pub fabric: &'a Fabric,
    pub addresses: Addresses,
    /// Our own program, for the provisioner.
    pub own: &'a OwnProgram,
}

/// The name of a node's machine.
pub fn name(node: Node) -> Result<Name> {
    Ok(Name::new(node.name())?)
}

/// The machine. Directories that are bound must exist.
pub fn spec(options: &Options<'_>) -> Result<MachineSpec> {
    let mut spec = MachineSpec::new(name(options.node)?);
    let mut nic = options.fabric.nic("eth0", options.node.address(&options.addresses))?;
    // To nodes that may never be made, too: a machine does not change when others come.
    nic.routes.extend(options.node.others().map(|other| Route {
        destination: IpNet::V4(other.pod_range()),
        via: Some(IpAddr::V4(other.address(&options.addresses))),
        link: None,
    }));
    spec.nics.push(nic);
    spec.nameservers.push(IpAddr::V4(options.addresses.management));
    spec.layers.usr.push(options.packages.usr());
    spec.binds = binds(options)?;
    spec.files = files(options.node)?;
    spec.services = services(options)?;
    Ok(spec)
}

fn binds(options: &Options<'_>) -> Result<Vec<Bind>> {
    let program = |set: Set, name: &str| -> Result<Bind> {
        let source = options.linked.keep(&options.parts.program(set, name)?)?;
        Ok(Bind { source, target: Path::new("/usr/local/bin").join(name), read_only: true })
    };
    let directory = |source: PathBuf, target: &str| Bind { source, target: target.into(), read_only: false };
    let bridge = options.parts.program(Set::CniPlugins, "bridge")?;
    options.linked.keep_all(bridge.parent().unwrap_or(&bridge))?;
    let bridge = options.linked.keep(&bridge)?;
    let plugins = bridge.parent().unwrap_or(&bridge).to_owned();
    let layout = options.layout.node(options.node);
    let mut binds = vec![
        program(options.kubernetes, "kubelet")?,
        program(options.kubernetes, "kubectl")?,
        program(options.kubernetes, "kubeadm")?,
        Bind { source: options.layout.programs(), target: PROGRAMS.into(), read_only: true },
        Bind { source: plugins, target: "/opt/cni/bin".into(), read_only: true },
        directory(layout.kubernetes(), "/etc/kubernetes"),
        directory(layout.volumes(), VOLUMES),
    ];
    if options.node.is_first() {
        binds.push(program(Set::Coredns, "coredns")?);
        binds.push(directory(options.layout.etcd(), control_plane::ETCD_DATA));
    }
    Ok(binds)
}

fn files(node: Node) -> Result<Vec<FileContent>> {
    let lower_oom_score = host::abilities()?.lower_oom_score;
    let file = |path: &str, content: String| FileContent {
        path: path.into(),
        content,
        mode: 0o644,
        only_if_missing: false,
    };
    Ok(vec![
        file("/etc/containerd/config.toml", containerd_config(&Upstream::Pause.reference(), lower_oom_score)),
        file(kubelet::NETWORK_PATH, kubelet::network(node.pod_range()).to_string()),
        file(kubelet::MASQUERADE_PATH, kubelet::masquerade(node.pod_range())),
    ])
}

fn services(options: &Options<'_>) -> Result<Vec<Service>> {
    let node = options.node;
    let mut masquerade = Service::new(Name::new("masquerade")?, ["nft", "-f", kubelet::MASQUERADE_PATH]);
    masquerade.restart = Restart::OnFailure;
    let containerd = Service { when_exists: Some(SEEDED.into()), ..Service::containerd() };
    let mut kubelet = Service::new(
        Name::new("kubelet")?,
        [
            "kubelet".to_owned(),
            "--kubeconfig=/etc/kubernetes/kubelet.conf".to_owned(),
            format!("--config={}", kubelet::CONFIGURATION_PATH),
            format!("--node-ip={}", node.address(&options.addresses)),
            format!("--hostname-override={node}"),
            format!("--node-labels={ZONE_LABEL}={}", node.zone()),
        ],
    );
    kubelet.when_exists = Some(kubelet::CONFIGURATION_PATH.into());
    kubelet.after = vec![containerd.name.clone(), masquerade.name.clone()];
    kubelet.restart_delay_milliseconds = 500;

    let mut command = vec![format!("{PROGRAMS}/{OWN_PROGRAM}")];
    command.extend(options.own.provisioner.iter().cloned());
    command.extend([
        "--kubeconfig=/etc/kubernetes/provisioner.conf".to_owned(),
        format!("--node={node}"),
        format!("--directory={VOLUMES}"),
    ]);
    if node.is_first() {
        // Claims of classes that bind at once: one must serve them.
        command.push("--unassigned".to_owned());
    }
    let mut provisioner = Service::new(Name::new(PROVISIONER)?, command);
    // Once kubelet is told to run there will soon be an API server to talk to.
    provisioner.when_exists = Some(kubelet::CONFIGURATION_PATH.into());
    let mut services = vec![masquerade, containerd, kubelet, provisioner];
    if node.is_first() {
        services.push(resolver::service(Path::new("/usr/local/bin/coredns"))?);
    }
    Ok(services)
}
