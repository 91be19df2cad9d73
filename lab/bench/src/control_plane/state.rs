//! What the actor says: how many control planes are at their goal, and what was called.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::process::page;

const ACTOR: &str = "127.0.0.1:18090";
/// Between two questions.
const LOOK: Duration = Duration::from_millis(500);
/// Between two lines about the progress.
const TOLD: Duration = Duration::from_secs(15);
/// A run in which nothing more comes for so long has failed.
const PATIENCE: Duration = Duration::from_mins(3);

/// The actor's page.
pub(super) fn told() -> anyhow::Result<Value> {
    serde_json::from_str(&page(ACTOR, "/")?).context("what the actor told")
}

/// Waits until so many control planes are there and all of them are at their goal.
pub(super) fn wait_until_there(size: u64) -> anyhow::Result<()> {
    let (mut best, mut since, mut told_at) = (0, Instant::now(), Instant::now());
    loop {
        let state = told()?;
        let (total, there) = (state["total"].as_u64(), state["there"].as_u64().unwrap_or_default());
        if (total, there) == (Some(size), size) {
            return Ok(());
        }
        if there > best {
            (best, since) = (there, Instant::now());
        }
        if since.elapsed() > PATIENCE {
            bail!("{there} of {size} control planes are at their goal, and no more come: {}", state["waits"]);
        }
        if told_at.elapsed() > TOLD {
            told_at = Instant::now();
            eprintln!("{there} of {size} control planes are at their goal");
        }
        std::thread::sleep(LOOK);
    }
}

/// That all still are.
pub(super) fn check_there(size: u64, state: &Value) -> anyhow::Result<()> {
    if (state["total"].as_u64(), state["there"].as_u64()) != (Some(size), Some(size)) {
        bail!("not all of the {size} control planes stayed at their goal: {}", state["waits"]);
    }
    Ok(())
}
