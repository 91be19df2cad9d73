//! `cargo xtask beside`: the tests beside Cluster API's own core. They are ignored elsewhere: its Go build takes minutes.

use std::process::Command;

use anyhow::{Context, bail};

pub(crate) fn run() -> anyhow::Result<()> {
    let arguments = ["test", "--locked", "--package", "hangar-operator", "--test", "operator", "--"];
    let status = Command::new("cargo")
        .args(arguments)
        .args(["--ignored", "--nocapture", "beside::"])
        .status()
        .context("cargo test")?;
    if !status.success() {
        bail!("a control plane does not live beside Cluster API's own core");
    }
    Ok(())
}
