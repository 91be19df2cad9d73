//! The spec of a machine. All of it is data, kept in the machine's record, so that a restart (also after a
//! reboot, also by another process) brings back the same machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    name::Name,
    net::Nic,
    service::Service,
};

/// Parts of the host that a machine never sees. A machine is a fresh system: the host's own cloud-init,
/// Kubernetes and containers are not its business.
const DEFAULT_MASKS: [&str; 17] = [
    "/etc/cloud",
    "/etc/cni",
    "/etc/containerd",
    "/etc/docker",
    "/etc/kubernetes",
    "/etc/sysctl.d",
    "/var/lib/cloud",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/etcd",
    "/var/lib/hangar",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/log",
    "/var/tmp",
];

/// Global kernel settings that kubelet writes, with what it wants them to be. A machine gets private files in
/// their place, so the host's stay as they are.
const DEFAULT_SYSCTLS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// Settings of the machine's own network namespace: kubeadm insists on the first two, and pods on a bridge need
/// the last.
const DEFAULT_NETWORK_SYSCTLS: [(&str, &str); 4] = [
    ("ipv4/ip_forward", "1"),
    ("bridge/bridge-nf-call-iptables", "1"),
    ("bridge/bridge-nf-call-ip6tables", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
];

/// A host directory or file that appears in the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// On the host, absolute.
    pub source: PathBuf,
    /// In the machine, absolute.
    pub target: PathBuf,
    /// The machine cannot write to it.
    #[serde(default)]
    pub read_only: bool,
}

/// A file written into the machine at each start, before any service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    /// In the machine, absolute. Missing directories are made.
    pub path: PathBuf,
    pub content: String,
    #[serde(default = "default_mode")]
    pub mode: u32,
    /// Leave a file that is there already alone.
    #[serde(default)]
    pub only_if_missing: bool,
}

fn default_mode() -> u32 {
    0o644
}

/// Directories laid over the host's, the first on top. Each list holds trees that look like the directory itself:
/// for `usr` a tree with `bin`, `lib` and so on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Layers {
    /// Over /usr, such as an unpacked containerd.
    pub usr: Vec<PathBuf>,
    pub etc: Vec<PathBuf>,
    pub var: Vec<PathBuf>,
}

/// What a machine should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSpec {
    /// Name in the environment.
    pub name: Name,
    /// Host name; the machine's name by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Links, made before the first process starts.
    #[serde(default)]
    pub nics: Vec<Nic>,
    /// Lines of /etc/resolv.conf after `nameserver`.
    #[serde(default)]
    pub nameservers: Vec<std::net::IpAddr>,
    /// More lines for /etc/hosts.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// What the supervisor runs.
    #[serde(default)]
    pub services: Vec<Service>,
    /// Host directories inside the machine.
    #[serde(default)]
    pub binds: Vec<Bind>,
    /// Directories over the host's /usr, /etc and /var.
    #[serde(default)]
    pub layers: Layers,
    #[serde(default)]
    pub files: Vec<FileContent>,
    /// Host directories under /usr, /etc and /var that start empty.
    #[serde(default = "default_masks")]
    pub masks: BTreeSet<PathBuf>,
    /// Files below /proc/sys that are private to the machine, with their first content.
    #[serde(default = "default_sysctls")]
    pub private_sysctls: BTreeMap<String, String>,
    /// Settings below /proc/sys/net of the machine's namespace; those the kernel lacks are skipped.
    #[serde(default = "default_network_sysctls")]
    pub network_sysctls: BTreeMap<String, String>,
}

fn default_masks() -> BTreeSet<PathBuf> {
    DEFAULT_MASKS.iter().map(PathBuf::from).collect()
}

fn pairs(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn default_sysctls() -> BTreeMap<String, String> {
    pairs(&DEFAULT_SYSCTLS)
}

fn default_network_sysctls() -> BTreeMap<String, String> {
    pairs(&DEFAULT_NETWORK_SYSCTLS)
}

impl MachineSpec {
    /// A machine with no link and no service.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            hostname: None,
            nics: Vec::new(),
            nameservers: Vec::new(),
            hosts: Vec::new(),
            services: Vec::new(),
            binds: Vec::new(),
            layers: Layers::default(),
            files: Vec::new(),
            masks: default_masks(),
            private_sysctls: default_sysctls(),
            network_sysctls: default_network_sysctls(),
        }
    }

    /// The host name it will have.
    pub fn hostname(&self) -> &str {
        self.hostname.as_deref().unwrap_or(self.name.as_str())
    }

    pub(crate) fn check(&self) -> Result<()> {
        let hostname = self.hostname();
        let well_formed =
            |label: &str| !label.is_empty() && label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
        if hostname.len() > 64 || !hostname.split('.').all(well_formed) {
            let why = "it is not a host name of at most 64 characters";
            return Err(Error::InvalidName { what: "host", name: hostname.to_owned(), why });
        }
        let mut links = BTreeSet::new();
        for nic in &self.nics {
            nic.check()?;
            if !links.insert(nic.name.as_str()) {
                return Err(Error::Invalid(format!("two links are called {}", nic.name)));
            }
        }
        let mut services = BTreeSet::new();
        for service in &self.services {
            service.check()?;
            if !services.insert(&service.name) {
                return Err(Error::Invalid(format!("two services are called {}", service.name)));
            }
        }
        for bind in &self.binds {
            absolute(&bind.target)?;
            exists(&bind.source)?;
        }
        for file in &self.files {
            absolute(&file.path)?;
        }
        let layers = &self.layers;
        for (under, list) in [("/usr", &layers.usr), ("/etc", &layers.etc), ("/var", &layers.var)] {
            for layer in list {
                exists(layer)?;
                overlay_path(layer)?;
                if layer.starts_with(under) {
                    let layer = layer.display();
                    return Err(Error::Invalid(format!(
                        "{layer} lies in {under} and so cannot be laid over it"
                    )));
                }
            }
        }
        Ok(())
    }
}

fn absolute(path: &Path) -> Result<()> {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if path.is_absolute() && plain {
        return Ok(());
    }
    Err(Error::Invalid(format!("{} is not an absolute path without dots", path.display())))
}

fn exists(path: &Path) -> Result<()> {
    absolute(path)?;
    if path.exists() { Ok(()) } else { Err(Error::Invalid(format!("{} does not exist", path.display()))) }
}

/// overlayfs takes its directories in one text with separators that cannot all be escaped.
pub(crate) fn overlay_path(path: &Path) -> Result<&str> {
    match path.to_str() {
        Some(text) if !text.contains([':', ',', '\\', '"']) => Ok(text),
        _ => Err(Error::Invalid(format!(
            "{} cannot be a layer: its path holds a colon, comma, quote or backslash",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> MachineSpec {
        MachineSpec::new(Name::new("w1").unwrap())
    }

    #[test]
    fn survives_its_record() {
        let spec = spec();
        let text = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<MachineSpec>(&text).unwrap(), spec);
        assert_eq!(serde_json::from_str::<MachineSpec>(r#"{"name":"w1"}"#).unwrap(), spec);
    }

    #[test]
    fn refuses_what_cannot_work() {
        spec().check().unwrap();
        let bind = |source: &str, target: &str| Bind {
            source: source.into(),
            target: target.into(),
            read_only: false,
        };
        let cases = [
            MachineSpec { hostname: Some("a b".to_owned()), ..spec() },
            MachineSpec { hostname: Some("a..b".to_owned()), ..spec() },
            MachineSpec { hostname: Some("x".repeat(65)), ..spec() },
            MachineSpec { binds: vec![bind("/does/not/exist", "/mnt")], ..spec() },
            MachineSpec { binds: vec![bind("/usr", "mnt")], ..spec() },
            MachineSpec { binds: vec![bind("/usr", "/mnt/../etc")], ..spec() },
            MachineSpec { services: vec![Service::containerd(), Service::containerd()], ..spec() },
        ];
        for case in cases {
            assert!(case.check().is_err(), "{case:?}");
        }
    }
}
