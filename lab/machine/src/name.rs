//! Names that users choose, and the kernel names that follow from them.
//!
//! Every kernel object (cgroup, network namespace, link) has a name that follows from the state directory, the
//! environment and the machine alone. So whatever a killed creator left behind is found again without a record, and the
//! names of two environments never collide, even if both have the same name in different state directories.

use std::{
    fmt,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Longest name: with the prefixes around it, it still is a hostname and a file name.
const LONGEST: usize = 48;
/// Longest name of a link: the kernel's IFNAMSIZ without its terminating zero.
pub(crate) const LONGEST_LINK: usize = 15;

/// What the files of machines' network namespaces begin with.
pub(crate) const MACHINE_NETNS: &str = "machine.";
/// What those of private networks begin with.
pub(crate) const FABRIC_NETNS: &str = "fabric.";

/// Name of an environment, machine, fabric or service: lower case letters, digits and inner hyphens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let why = if name.is_empty() {
            Some("it is empty")
        } else if name.len() > LONGEST {
            Some("it is longer than 48 characters")
        } else if !name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-') {
            Some("only lower case letters, digits and hyphens are allowed")
        } else if name.starts_with('-') || name.ends_with('-') {
            Some("it starts or ends with a hyphen")
        } else {
            None
        };
        match why {
            Some(why) => Err(Error::InvalidName { what: "the", name, why }),
            None => Ok(Self(name)),
        }
    }

    /// A name that this crate itself gives; a test holds every one of them to the rule.
    pub(crate) fn known(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

impl TryFrom<String> for Name {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

/// Checks the name of a network link against what the kernel takes.
pub(crate) fn check_link(name: &str) -> Result<()> {
    let why = if name.is_empty() || name == "." || name == ".." {
        "it is empty or a dot"
    } else if name.len() > LONGEST_LINK {
        "it is longer than 15 characters"
    } else if name.bytes().any(|c| c == b'/' || c == b':' || c.is_ascii_whitespace() || c.is_ascii_control())
    {
        "it holds a slash, a colon or white space"
    } else {
        return Ok(());
    };
    Err(Error::InvalidName { what: "link", name: name.to_owned(), why })
}

/// `length` hexadecimal digits that follow from the parts.
pub(crate) fn digest(parts: &[&[u8]], length: usize) -> String {
    let bytes = digest_bytes(parts);
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    nibbles.take(length).filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect()
}

fn digest_bytes(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        // The length in front keeps ("ab", "c") and ("a", "bc") apart.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// A locally administered MAC address that follows from the parts: the same machine keeps its address.
pub(crate) fn mac(parts: &[&[u8]]) -> [u8; 6] {
    let hash = digest_bytes(parts);
    [0x02, hash[0], hash[1], hash[2], hash[3], hash[4]]
}

/// Where kernel names of one environment come from.
#[derive(Debug, Clone)]
pub(crate) struct EnvironmentIdentity {
    pub(crate) environment: Name,
    tag: String,
}

impl EnvironmentIdentity {
    pub(crate) fn new(state: &Path, environment: Name) -> Self {
        let tag = digest(&[state.as_os_str().as_bytes(), environment.as_str().as_bytes()], 8);
        Self { environment, tag }
    }

    /// Network namespaces are bound here. Under /run, so that a reboot forgets them.
    pub(crate) fn netns_directory(&self) -> PathBuf {
        Path::new("/run/hangar").join(format!("{}-{}", self.environment, self.tag)).join("netns")
    }

    pub(crate) fn machine_netns(&self, machine: &Name) -> PathBuf {
        self.netns_directory().join(format!("{MACHINE_NETNS}{machine}"))
    }

    pub(crate) fn fabric_netns(&self, fabric: &Name) -> PathBuf {
        self.netns_directory().join(format!("{FABRIC_NETNS}{fabric}"))
    }

    /// One flat name per machine, so that machines share no parent whose removal could race.
    pub(crate) fn cgroup(&self, machine: &Name) -> String {
        format!("hangar.{}.{}.{}", self.environment, machine, self.tag)
    }

    /// The host's end of a fabric's link.
    pub(crate) fn host_link(&self, fabric: &Name) -> String {
        format!("hg-{}", digest(&[self.tag.as_bytes(), fabric.as_str().as_bytes()], 10))
    }

    /// The bridge's end of a machine's link.
    pub(crate) fn port(&self, machine: &Name, link: &str) -> String {
        format!("p-{}", digest(&[self.tag.as_bytes(), machine.as_str().as_bytes(), link.as_bytes()], 12))
    }

    pub(crate) fn mac(&self, machine: &Name, link: &str) -> [u8; 6] {
        mac(&[self.tag.as_bytes(), machine.as_str().as_bytes(), link.as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_host_names() {
        for good in ["a", "worker-1", "0", &"x".repeat(48)] {
            assert_eq!(Name::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a/b", "..", "a b", &"x".repeat(49)] {
            assert!(Name::new(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn links_fit_the_kernel() {
        let identity =
            EnvironmentIdentity::new(Path::new("/var/lib/hangar"), Name::new("x".repeat(48)).unwrap());
        let machine = Name::new("y".repeat(48)).unwrap();
        check_link(&identity.host_link(&machine)).unwrap();
        check_link(&identity.port(&machine, "eth0")).unwrap();
        assert!(check_link("sixteencharacter").is_err());
        assert!(check_link("a/b").is_err());
    }

    /// A rename would orphan what an older version made.
    #[test]
    fn kernel_names_are_pinned() {
        let identity = EnvironmentIdentity::new(Path::new("/var/lib/hangar"), Name::new("demo").unwrap());
        let machine = Name::new("w1").unwrap();
        assert_eq!(identity.cgroup(&machine), "hangar.demo.w1.ac14888d");
        assert_eq!(identity.machine_netns(&machine), Path::new("/run/hangar/demo-ac14888d/netns/machine.w1"));
        assert_eq!(identity.host_link(&machine), "hg-222351d24d");
        assert_eq!(identity.port(&machine, "eth0"), "p-6aba1efe0af6");
    }

    #[test]
    fn state_directories_do_not_meet() {
        let name = Name::new("demo").unwrap();
        let (one, two) = (
            EnvironmentIdentity::new(Path::new("/a"), name.clone()),
            EnvironmentIdentity::new(Path::new("/b"), name.clone()),
        );
        assert_ne!(one.cgroup(&name), two.cgroup(&name));
        assert_ne!(one.host_link(&name), two.host_link(&name));
        assert_ne!(one.netns_directory(), two.netns_directory());
    }
}
