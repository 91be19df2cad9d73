//! The registry: which sets exist, at which version, and which programs each contains.
//!
//! The table itself is in `recipes.rs`; this file gives it a type, so that a misspelt set does not compile.

mod pins;
mod recipes;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// A program of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// The file's name in the cache; what [`crate::Parts::program`] is asked for.
    pub name: &'static str,
    /// The Go package that it is made of.
    pub package: &'static str,
    /// Which part of the package.
    pub content: Content,
}

/// What a program has of its package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Main,
    /// Its tests, as a program that runs them.
    Tests,
}

impl Program {
    /// The name of the file that Go builds: for a `main` the last element of the package path, ignoring a major version.
    pub(crate) fn built_name(&self) -> &'static str {
        if self.content == Content::Tests {
            return self.name;
        }
        let mut elements = self.package.rsplit('/');
        let last = elements.next().unwrap_or(self.package);
        let is_major = last.strip_prefix('v').is_some_and(|digits| digits.parse::<u32>().is_ok());
        if is_major { elements.next().unwrap_or(last) } else { last }
    }
}

/// A directory or file that is copied out of a module as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleFiles {
    /// The module, required in the set's `go.mod`.
    pub module: &'static str,
    /// The path inside the module.
    pub source: &'static str,
    /// The path below the set's `files` directory.
    pub target: &'static str,
}

/// Whether C is needed. Either way the result is static: it must run in any container and any machine root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linkage {
    Go,
    /// Needs a C compiler, linked statically.
    C,
}

/// Everything that decides a set's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// The set's name, also its directory below `tools/`.
    pub name: &'static str,
    /// The version of `module`, with its `v`.
    pub version: &'static str,
    /// The module whose version is the set's.
    pub module: &'static str,
    /// The embedded `go.mod`.
    pub go_mod: &'static str,
    /// The embedded `go.sum`.
    pub go_sum: &'static str,
    pub programs: &'static [Program],
    pub files: &'static [ModuleFiles],
    /// Variables the linker sets; `{version}`, `{number}` (no `v`), `{major}` and `{minor}` are filled in.
    pub stamps: &'static [&'static str],
    /// Build tags.
    pub tags: &'static [&'static str],
    /// Whether C is needed.
    pub linkage: Linkage,
    /// Free disk that a cold build needs at its peak, in MiB: measured with a tenth to spare, or a high guess.
    pub peak_mebibytes: u64,
    /// What is left of it when the set is done, in MiB.
    pub kept_mebibytes: u64,
}

impl Recipe {
    /// The linker flags, stamps included.
    pub fn linker_flags(&self) -> String {
        let number = self.version.trim_start_matches('v');
        let mut elements = number.split('.');
        let (major, minor) = (elements.next().unwrap_or("0"), elements.next().unwrap_or("0"));
        let mut flags = String::from("-s -w");
        for stamp in self.stamps {
            let filled = stamp
                .replace("{version}", self.version)
                .replace("{number}", number)
                .replace("{major}", major)
                .replace("{minor}", minor);
            flags.push_str(" -X ");
            flags.push_str(&filled);
        }
        if self.linkage == Linkage::C {
            flags.push_str(" -extldflags \"-static\"");
        }
        flags
    }

    /// Twelve hex digits over everything that decides the content. The Go version is left out on purpose: the
    /// same pins built with a newer compiler are the same programs, and a Go update must not cost half an hour.
    pub fn fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        for text in [self.name, self.version, self.go_mod, self.go_sum, &self.linker_flags()] {
            hasher.update(text.as_bytes());
            hasher.update([0]);
        }
        for program in self.programs {
            let content = match program.content {
                Content::Main => "program",
                Content::Tests => "tests",
            };
            hasher.update(format!("{content} {} {}\0", program.name, program.package));
        }
        for files in self.files {
            hasher.update(format!("files {} {} {}\0", files.module, files.source, files.target));
        }
        for tag in self.tags {
            hasher.update(format!("tag {tag}\0"));
        }
        hasher.update(format!("{:?} {} {}", self.linkage, std::env::consts::OS, std::env::consts::ARCH));
        let digest = hasher.finalize();
        let number = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        format!("{number:012x}")
    }

    /// The name of the set's directory in the cache.
    pub fn directory_name(&self) -> String {
        format!("{}-{}-{}", self.name, self.version, self.fingerprint())
    }

    /// The lowest Go that can build the set: its `go` line, which the registry's modules decide.
    pub fn minimum_go(&self) -> &'static str {
        pins::go_line(self.go_mod)
    }

    /// The version of a module that `go.mod` requires.
    pub fn required_version(&self, module: &str) -> Option<&'static str> {
        pins::required_version(self.go_mod, module)
    }

    /// The content hash that `go.sum` has for a module.
    pub fn pinned_sum(&self, module: &str, version: &str) -> Option<&'static str> {
        pins::sum(self.go_sum, module, version)
    }

    /// Whether the set has a program of this name.
    pub fn has_program(&self, name: &str) -> bool {
        self.programs.iter().any(|program| program.name == name)
    }
}

/// A set of pinned programs or files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say all; recipes.rs holds the versions")]
pub enum Set {
    Etcd36,
    Etcd37,
    Kubernetes133,
    Kubernetes134,
    Kubernetes135,
    Kubernetes136,
    Kubernetes137,
    Conformance134,
    UpstreamCrds,
    NeighbourCrds,
    GatewayApi,
    Coredns,
    Konnectivity,
    CniPlugins,
    Helm,
    KubeVip,
    KubeVipCloudProvider,
    Flannel,
    Traefik,
    ClusterApi111,
    Prometheus,
    Versitygw,
    ClusterApi,
    ClusterApiOpenstack,
    CloudProviderOpenstack,
}

impl Set {
    /// Every set, in the order they are listed and built.
    pub const ALL: &'static [Self] = &[
        Self::Etcd36,
        Self::Kubernetes134,
        Self::UpstreamCrds,
        Self::NeighbourCrds,
        Self::GatewayApi,
        Self::Kubernetes133,
        Self::Coredns,
        Self::Konnectivity,
        Self::CniPlugins,
        Self::Helm,
        Self::KubeVip,
        Self::KubeVipCloudProvider,
        Self::Flannel,
        Self::Traefik,
        Self::Prometheus,
        Self::Versitygw,
        Self::ClusterApi,
        Self::ClusterApiOpenstack,
        Self::CloudProviderOpenstack,
        Self::ClusterApi111,
        Self::Etcd37,
        Self::Kubernetes135,
        Self::Kubernetes136,
        Self::Kubernetes137,
        Self::Conformance134,
    ];

    /// What the README's test command needs.
    pub const FOR_TESTS: &'static [Self] = &[
        Self::Etcd36,
        Self::Kubernetes134,
        Self::UpstreamCrds,
        Self::NeighbourCrds,
        Self::Konnectivity,
        Self::Prometheus,
        Self::Versitygw,
    ];

    /// What the set consists of.
    pub fn recipe(self) -> &'static Recipe {
        recipes::recipe(self)
    }

    /// The name on the command line and below `tools/`.
    pub fn name(self) -> &'static str {
        self.recipe().name
    }

    /// The version of the set's module, with its `v`.
    pub fn version(self) -> &'static str {
        self.recipe().version
    }

    /// Only built when named: `--all` leaves them out, and nothing in CI builds them. Later versions of a set above, and
    /// tests that run for an hour.
    pub fn is_on_demand(self) -> bool {
        matches!(
            self,
            Self::Etcd37
                | Self::Kubernetes135
                | Self::Kubernetes136
                | Self::Kubernetes137
                | Self::Conformance134
        )
    }

    /// Whether a program lying directly in an override directory may stand for this set's. Several sets have a
    /// `kube-apiserver`; only the one that tests use by default takes it, else an upgrade test would go from
    /// one version to the same version.
    pub(crate) fn takes_flat_override(self) -> bool {
        !self.is_on_demand() && !matches!(self, Self::Kubernetes133 | Self::ClusterApi111)
    }
}

impl fmt::Display for Set {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Set {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|set| set.name() == name).ok_or_else(|| Error::UnknownSet {
            name: name.to_owned(),
            known: Self::ALL.iter().map(|set| set.name()).collect::<Vec<_>>().join(", "),
        })
    }
}
