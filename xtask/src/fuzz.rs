//! `cargo xtask fuzz`: odd input for everything that reads text from outside.
//!
//! The engine is libFuzzer, and needs a C++ compiler. The corpus in `lab/fuzz/corpus` is where it begins. What it finds on its way stays in the build directory; an
//! input that fails is named, and belongs into the corpus together with the mend.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::Args;

/// Make odd inputs for each target until one fails.
#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Only these targets; all where none is named
    targets: Vec<String>,

    /// Inputs for each target
    #[arg(long, default_value_t = 1_300_000)]
    inputs: u64,
}

impl Fuzz {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fuzz/corpus");
        let targets = if self.targets.is_empty() { names(&corpora)? } else { self.targets.clone() };
        let engine = engine()?;
        let found = engine.with_file_name("fuzz-found");
        for target in &targets {
            let kept = found.join(target);
            std::fs::create_dir_all(&kept).with_context(|| kept.display().to_string())?;
            println!("fuzz: {target}, {} inputs", self.inputs);
            let status = Command::new(&engine)
                .env("HANGAR_FUZZ_TARGET", target)
                .args([
                    "-rss_limit_mb=4096",
                    "-timeout=60",
                    "-print_final_stats=1",
                    "-verbosity=0",
                    "-keep_seed=1",
                ])
                .arg(format!("-runs={}", self.inputs))
                .arg(format!("-artifact_prefix={}/failed-{target}-", found.display()))
                // The first directory receives what is new, the others are only read.
                .args([&kept, &corpora.join(target)])
                .status()
                .with_context(|| engine.display().to_string())?;
            if !status.success() {
                bail!("{target}: {status}; the input is in {}", found.display());
            }
        }
        println!("fuzz: {} targets, {} inputs each, none failed", targets.len(), self.inputs);
        Ok(())
    }
}

/// Builds the engine and says where it is.
fn engine() -> anyhow::Result<PathBuf> {
    let wrapper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/fuzz/instrument");
    let output = Command::new("cargo")
        .args(["build", "--locked", "--release", "--package=hangar-fuzz", "--features=engine", "--bin=fuzz"])
        .args(["--message-format=json-render-diagnostics"])
        .env("RUSTC_WORKSPACE_WRAPPER", wrapper.canonicalize()?)
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cargo build")?;
    if !output.status.success() {
        bail!("cargo build: {}", output.status);
    }
    let artifacts = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<serde_json::Value>();
    let engine = artifacts.filter_map(Result::ok).find_map(|message| {
        let is_engine = message["target"]["name"] == "fuzz";
        message["executable"].as_str().filter(|_| is_engine).map(PathBuf::from)
    });
    engine.context("cargo built no engine")
}

/// One target per directory.
fn names(corpora: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(corpora).with_context(|| corpora.display().to_string())? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}
