//! Developer programs that come from the crate registry, built once into the cache.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use hangar_parts::Parts;

/// A program at the one version that CI uses.
pub(crate) struct Installed {
    package: &'static str,
    version: &'static str,
    program: &'static str,
    /// How `cargo install` is asked for it. No default features: they fetch, serve or index, none of which is used.
    arguments: &'static [&'static str],
}

impl Installed {
    pub(crate) const DENY: Self = Self {
        package: "cargo-deny",
        version: "0.20.2",
        program: "cargo-deny",
        arguments: &["--no-default-features"],
    };
    pub(crate) const MDBOOK: Self = Self {
        package: "mdbook",
        version: "0.5.4",
        program: "mdbook",
        arguments: &["--no-default-features"],
    };

    /// Runs it in the workspace's root, after it was installed where it is missing.
    pub(crate) fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let program = self.ensure()?;
        let status =
            Command::new(&program).args(arguments).status().with_context(|| program.display().to_string())?;
        if !status.success() {
            bail!("`{} {}` failed", self.program, arguments.join(" "));
        }
        Ok(())
    }

    fn ensure(&self) -> anyhow::Result<PathBuf> {
        let cache = Parts::from_env()?.cache().root().join("cargo");
        let root = cache.join(format!("{}-{}", self.package, self.version));
        let program = root.join("bin").join(self.program);
        if program.exists() {
            return Ok(program);
        }
        println!("installing {} {}, once", self.package, self.version);
        let status = Command::new("cargo")
            .args(["install", "--locked", "--debug", "--force", "--version", self.version, "--root"])
            .arg(&root)
            .args(self.arguments)
            .arg(self.package)
            // A directory of its own: what it leaves behind is of no use for our build.
            .env("CARGO_TARGET_DIR", root.join("build"))
            .status()
            .context("cargo install")?;
        if !status.success() {
            bail!("`cargo install {}` failed", self.package);
        }
        std::fs::remove_dir_all(root.join("build")).context("what the installation left behind")?;
        Ok(program)
    }
}
