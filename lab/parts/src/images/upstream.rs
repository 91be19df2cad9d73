//! The images of the pinned programs, under the names and tags that upstream manifests use.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Entry, Image, Source, hexadecimal, libraries, pause};
use crate::error::{Context, Error, Result};
use crate::locate::Parts;
use crate::packages::Packages;
use crate::sets::Set;

/// The sandbox image that Kubernetes 1.34 and containerd are told to use.
pub const PAUSE_TAG: &str = "3.10.1";

/// Raised when images are put together differently.
const RECIPE: &str = "3";

/// An image that upstream publishes and that we make ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say all; each takes the set that its program comes from")]
pub enum Upstream {
    Pause,
    Etcd(Set),
    KubeApiserver(Set),
    KubeControllerManager(Set),
    KubeScheduler(Set),
    KubeProxy(Set),
    Coredns,
    KonnectivityServer,
    KonnectivityAgent,
    KubeVip,
    KubeVipCloudProvider,
    Flannel,
    Traefik,
}

impl Upstream {
    /// The set with its programs; the sandbox needs none.
    pub fn set(self) -> Option<Set> {
        match self {
            Self::Pause => None,
            Self::Etcd(set)
            | Self::KubeApiserver(set)
            | Self::KubeControllerManager(set)
            | Self::KubeScheduler(set)
            | Self::KubeProxy(set) => Some(set),
            Self::Coredns => Some(Set::Coredns),
            Self::KonnectivityServer | Self::KonnectivityAgent => Some(Set::Konnectivity),
            Self::KubeVip => Some(Set::KubeVip),
            Self::KubeVipCloudProvider => Some(Set::KubeVipCloudProvider),
            Self::Flannel => Some(Set::Flannel),
            Self::Traefik => Some(Set::Traefik),
        }
    }

    /// Name and tag.
    pub fn reference(self) -> String {
        let version = self.set().map_or("", Set::version);
        let number = version.trim_start_matches('v');
        match self {
            Self::Pause => format!("registry.k8s.io/pause:{PAUSE_TAG}"),
            Self::Etcd(_) => format!("registry.k8s.io/etcd:{number}-0"),
            Self::KubeApiserver(_) => format!("registry.k8s.io/kube-apiserver:{version}"),
            Self::KubeControllerManager(_) => format!("registry.k8s.io/kube-controller-manager:{version}"),
            Self::KubeScheduler(_) => format!("registry.k8s.io/kube-scheduler:{version}"),
            Self::KubeProxy(_) => format!("registry.k8s.io/kube-proxy:{version}"),
            Self::Coredns => format!("registry.k8s.io/coredns/coredns:{version}"),
            Self::KonnectivityServer => format!("registry.k8s.io/kas-network-proxy/proxy-server:{version}"),
            Self::KonnectivityAgent => format!("registry.k8s.io/kas-network-proxy/proxy-agent:{version}"),
            Self::KubeVip => format!("ghcr.io/kube-vip/kube-vip:{version}"),
            Self::KubeVipCloudProvider => format!("ghcr.io/kube-vip/kube-vip-cloud-provider:{version}"),
            Self::Flannel => format!("ghcr.io/flannel-io/flannel:{version}"),
            Self::Traefik => format!("docker.io/library/traefik:{version}"),
        }
    }

    /// The program that starts, with its place in the image.
    fn program(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Pause => return None,
            Self::Etcd(_) => ("etcd", "/usr/local/bin/etcd"),
            Self::KubeApiserver(_) => ("kube-apiserver", "/usr/local/bin/kube-apiserver"),
            Self::KubeControllerManager(_) => {
                ("kube-controller-manager", "/usr/local/bin/kube-controller-manager")
            }
            Self::KubeScheduler(_) => ("kube-scheduler", "/usr/local/bin/kube-scheduler"),
            Self::KubeProxy(_) => ("kube-proxy", "/usr/local/bin/kube-proxy"),
            Self::Coredns => ("coredns", "/coredns"),
            Self::KonnectivityServer => ("proxy-server", "/proxy-server"),
            Self::KonnectivityAgent => ("proxy-agent", "/proxy-agent"),
            Self::KubeVip => ("kube-vip", "/kube-vip"),
            Self::KubeVipCloudProvider => ("kube-vip-cloud-provider", "/kube-vip-cloud-provider"),
            Self::Flannel => ("flanneld", "/opt/bin/flanneld"),
            Self::Traefik => ("traefik", "/usr/local/bin/traefik"),
        })
    }

    /// A hash that changes when the image would, without putting it together: of its programs' names, sizes and times
    /// and of the packages' place in the cache, which follows from what they are.
    pub fn fingerprint(self, parts: &Parts, packages: &Packages) -> Result<String> {
        let mut hasher = Sha256::new();
        hasher.update(format!("{RECIPE} {}\0{}\0", self.reference(), packages.root().display()));
        if let (Some(set), Some((name, _))) = (self.set(), self.program()) {
            let source = parts.program(set, name)?;
            let found = std::fs::metadata(&source).context("read", &source)?;
            let time = (found.mtime(), found.mtime_nsec());
            hasher.update(format!("{} {} {time:?}", source.display(), found.len()));
        }
        Ok(hexadecimal(&hasher.finalize()))
    }

    /// Puts the image together from what is there; never builds a program.
    pub fn image(self, parts: &Parts, packages: &Packages) -> Result<Image> {
        let reference = self.reference();
        let (Some(set), Some((name, path))) = (self.set(), self.program()) else {
            let entry = Entry::File(Source::Bytes(pause::program()?), 0o755);
            return Ok(Image::new(reference, ["/pause"]).with("/pause", entry));
        };
        let source = parts.program(set, name)?;
        let image = Image::new(reference, [path]).with_dynamic_program(path, &source, None)?;
        match self {
            Self::Etcd(_) => {
                let control = parts.program(set, "etcdctl")?;
                let utility = parts.program(set, "etcdutl")?;
                Ok(image
                    .with_program("/usr/local/bin/etcdctl", control)
                    .with_program("/usr/local/bin/etcdutl", utility))
            }
            Self::KubeProxy(_) => with_packet_filters(image, packages),
            Self::Flannel => with_shell(with_packet_filters(image, packages)?, packages),
            _ => Ok(image),
        }
    }
}

/// Adds `nft`, `iptables` and `conntrack` of the distribution, with what they load.
fn with_packet_filters(mut image: Image, packages: &Packages) -> Result<Image> {
    let mut loaded = Vec::new();
    for name in ["nft", "xtables-nft-multi", "conntrack"] {
        let source = packages.program(name).ok_or_else(|| Error::Image {
            image: image.reference().to_owned(),
            reason: format!("the program {name} is neither in the unpacked packages nor on this machine"),
        })?;
        image = image.with_program(&format!("/usr/sbin/{name}"), &source);
        loaded.push(source);
    }
    for name in ["iptables", "ip6tables"] {
        for suffix in ["", "-save", "-restore"] {
            let link = Entry::Link("xtables-nft-multi".to_owned());
            image = image.with(&format!("/usr/sbin/{name}{suffix}"), link);
        }
    }
    for (path, source) in extensions(packages) {
        image = image.with(&path, Entry::File(Source::Path(source.clone()), 0o644));
        loaded.push(source);
    }
    let loaded: Vec<&Path> = loaded.iter().map(PathBuf::as_path).collect();
    libraries::add(image, &loaded, Some(packages))
}

/// Adds a busybox under its usual names: upstream's image has one too, and manifests use it to write files.
fn with_shell(image: Image, packages: &Packages) -> Result<Image> {
    let source = packages.program("busybox").ok_or_else(|| Error::Image {
        image: image.reference().to_owned(),
        reason: "the program busybox is neither in the unpacked packages nor on this machine".to_owned(),
    })?;
    let image = image.with_program("/bin/busybox", source);
    let names = ["cat", "cp", "httpd", "mkdir", "mv", "nc", "nslookup", "sh", "sleep"];
    Ok(names
        .into_iter()
        .fold(image, |image, name| image.with(&format!("/bin/{name}"), Entry::Link("busybox".to_owned()))))
}

/// The matches and targets of iptables, which it loads by name: path in the image and here.
fn extensions(packages: &Packages) -> Vec<(String, PathBuf)> {
    let unpacked = packages.library_directories();
    let on_host = unpacked
        .iter()
        .filter_map(|directory| Some(Path::new("/").join(directory.strip_prefix(packages.root()).ok()?)));
    let directories: Vec<PathBuf> = unpacked.iter().cloned().chain(on_host).collect();
    let directory = directories.iter().map(|directory| directory.join("xtables")).find(|path| path.is_dir());
    let Some(directory) = directory else { return Vec::new() };
    let inside = directory.strip_prefix(packages.root()).unwrap_or(&directory).to_owned();
    let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> = entries
        .map(|entry| {
            let path = Path::new("/").join(&inside).join(entry.file_name());
            (path.to_string_lossy().into_owned(), entry.path())
        })
        .collect();
    found.sort();
    found
}
