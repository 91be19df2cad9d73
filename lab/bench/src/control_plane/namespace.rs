//! Starts this program again in a network namespace in which every address of 10.0.0.0/8 is local.
//!
//! Load balancers and pods of the second half have such addresses, and one actor answers at all of them. Nothing of it
//! reaches the host, ports are free, and the kernel removes all of it with the last process.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

const READY: &str = r#"ip link set lo up && ip route add local 10.0.0.0/8 dev lo && exec "$@""#;

/// Runs the bench inside, with the same arguments and the programs.
pub(super) fn run_inside(programs: [&Path; 2]) -> anyhow::Result<()> {
    let this = std::env::current_exe().context("this program")?;
    let status = Command::new("unshare")
        .args(["--map-root-user", "--net", "--", "sh", "-c", READY, "sh"])
        .arg(this)
        .args(std::env::args_os().skip(1))
        .arg("--inside")
        .args(programs)
        .status()
        .context("unshare")?;
    if !status.success() {
        bail!("the bench in its network namespace ended with {status}");
    }
    Ok(())
}
