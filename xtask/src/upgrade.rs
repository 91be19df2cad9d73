//! `cargo xtask e2e --kubernetes VERSION`: the upgrade of a tenant under use to a version that CI does not build, from the
//! minor before it.

use std::process::Command;

use anyhow::{Context, bail};
use hangar_parts::{Parts, Set};

/// The tests of one way in each.
const TESTS: &str = "upgrade::";

pub(crate) fn run(version: &str) -> anyhow::Result<()> {
    let (from, to) = pair(version)?;
    println!("== from {} to {}", from.version(), to.version());
    let etcd = if to == Set::Kubernetes137 { &[Set::Etcd37][..] } else { &[] };
    Parts::from_env()?.ensure(&[&[from, to], etcd].concat())?;
    let arguments = ["test", "--locked", "--package", "hangar", "--test", "one_host", "--"];
    let status = Command::new("cargo")
        .args(arguments)
        .args(["--include-ignored", "--nocapture", TESTS])
        .env("HANGAR_UPGRADE_TO", to.version())
        .status()
        .context("cargo test")?;
    if !status.success() {
        bail!("the upgrade from {} to {} failed", from.version(), to.version());
    }
    Ok(())
}

/// The set of a version, and that of the minor before it.
fn pair(version: &str) -> anyhow::Result<(Set, Set)> {
    let mut known: Vec<Set> =
        Set::ALL.iter().copied().filter(|set| set.name().starts_with("kubernetes-")).collect();
    known.sort();
    let found = known.windows(2).find_map(|pair| match pair {
        [from, to] if to.version() == version => Some((*from, *to)),
        _ => None,
    });
    found.with_context(|| {
        let versions: Vec<&str> = known.iter().skip(1).map(|set| set.version()).collect();
        format!("{version}: upgrades lead to {}", versions.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minor_is_reached_from_the_one_before() {
        let pair = |version: &str| pair(version).unwrap();
        assert_eq!(pair(Set::Kubernetes134.version()), (Set::Kubernetes133, Set::Kubernetes134));
        assert_eq!(pair(Set::Kubernetes137.version()), (Set::Kubernetes136, Set::Kubernetes137));
        assert!(super::pair(Set::Kubernetes133.version()).is_err());
    }
}
