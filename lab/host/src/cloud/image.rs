//! The content of a worker's machine: Kubernetes' programs of one version, containerd and cloud-init from unpacked
//! packages, the shared container images.
//!
//! Such a machine is like one from an image builder: containerd runs, kubelet starts once kubeadm has configured it,
//! and it contains nothing of a cluster.

use std::ffi::OsStr;
use std::path::Path;

use hangar_cloud::driver::namespaces::{MachineImage, Seed, cloud_init};
use hangar_machine::{Bind, FileContent, SEEDED, Service, containerd_config, host};
use hangar_parts::images::Upstream;
use hangar_parts::packages::Packages;
use hangar_parts::{Parts, Set};

use crate::error::Result;
use crate::linked_programs::LinkedPrograms;
use crate::management::machine::{OWN_PROGRAM, PROGRAMS};

/// Settings of kubelet that belong to the machine rather than to a cluster; they go before the cluster's.
const KUBELET_DIRECTORY: &str = "/etc/hangar/kubelet";
/// Machines have no systemd, may be on cgroup v1, share the host's disk and cannot pull images again.
const KUBELET: &str = "\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
imageMinimumGCAge: 8760h0m0s
evictionHard:
  memory.available: 0%
  nodefs.available: 0%
  nodefs.inodesFree: 0%
  imagefs.available: 0%
  imagefs.inodesFree: 0%
";

/// Where the pieces are.
pub(super) struct Sources<'a> {
    pub(super) parts: &'a Parts,
    pub(super) linked: LinkedPrograms<'a>,
    pub(super) packages: &'a Packages,
    pub(super) cloud_init: &'a Packages,
    /// The directory with our own program.
    pub(super) programs: &'a Path,
    /// The word that makes our own program the supervisor.
    pub(super) supervisor: &'a OsStr,
    /// containerd's directory with the images.
    pub(super) images: &'a Path,
}

/// The image of one Kubernetes version.
pub(super) fn machine_image(sources: &Sources<'_>, kubernetes: Set) -> Result<MachineImage> {
    let mut image = MachineImage::default();
    image.layers.usr = vec![sources.cloud_init.usr(), sources.packages.usr()];
    image.binds = binds(sources, kubernetes)?;
    image.files = files(sources)?;
    image.seeds.push(Seed { data: "containerd".to_owned(), source: sources.images.to_owned() });
    image.services = services()?;
    Ok(image)
}

fn binds(sources: &Sources<'_>, kubernetes: Set) -> Result<Vec<Bind>> {
    let read_only = |source: &Path, target: String| Bind {
        source: source.to_owned(),
        target: target.into(),
        read_only: true,
    };
    let mut binds = vec![read_only(sources.programs, PROGRAMS.to_owned())];
    for name in ["kubelet", "kubeadm", "kubectl"] {
        let program = sources.linked.keep(&sources.parts.program(kubernetes, name)?)?;
        binds.push(read_only(&program, format!("/usr/local/bin/{name}")));
    }
    // One by one: the directory itself stays the machine's, because network add-ons put their own there.
    let bridge = sources.parts.program(Set::CniPlugins, "bridge")?;
    let directory = bridge.parent().unwrap_or(&bridge);
    for plugin in sources.linked.keep_all(directory)? {
        let name = plugin.file_name().unwrap_or_default().to_string_lossy().into_owned();
        binds.push(read_only(&plugin, format!("/opt/cni/bin/{name}")));
    }
    Ok(binds)
}

fn files(sources: &Sources<'_>) -> Result<Vec<FileContent>> {
    let file = |path: String, content: String| FileContent {
        path: path.into(),
        content,
        mode: 0o644,
        only_if_missing: false,
    };
    let lower_oom_score = host::abilities()?.lower_oom_score;
    let containerd = containerd_config(&Upstream::Pause.reference(), lower_oom_score);
    let mut files = cloud_init::files();
    files.push(file("/etc/containerd/config.toml".to_owned(), containerd));
    files.push(file(format!("{KUBELET_DIRECTORY}/10-machine.conf"), KUBELET.to_owned()));
    let supervisor = sources.supervisor.to_string_lossy();
    files.push(cloud_init::systemctl(&format!("{PROGRAMS}/{OWN_PROGRAM}"), &[&supervisor]));
    Ok(files)
}

fn services() -> Result<Vec<Service>> {
    let seeded = format!("/var/lib/containerd/{SEEDED}");
    let containerd = Service { when_exists: Some(seeded.into()), ..Service::containerd() };
    let mut kubelet = Service::kubelet();
    kubelet.environment.insert("KUBELET_IMAGE_ARGS".to_owned(), format!("--config-dir={KUBELET_DIRECTORY}"));
    kubelet.restart_delay_milliseconds = 500;
    let cloud_init = cloud_init::service(vec![containerd.name.clone()])?;
    Ok(vec![containerd, kubelet, cloud_init])
}
