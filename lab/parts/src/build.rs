//! Makes sets: it checks first what can be checked, then fills a staging directory per set and commits it.
//!
//! One function, `produce`, fills the staging directory. Another source of the same programs (a release's checksummed
//! binaries, where the internet is reachable) would be a second such function, and nothing else would change.
//!
//! Ctrl-C needs no handler: the terminal signals `go` as well, nothing was committed, and Go's caches are kept until
//! the set is done, so the next run continues where this one stopped. If only our process is killed, `go` lives on and
//! holds the set's lock until it ends, so that no other process commits what it is still writing.

use std::fs;
use std::path::Path;

use crate::cache::{Cache, Stamp};
use crate::disk;
use crate::error::{Context, Result};
use crate::go::{Go, Workspace};
use crate::progress::{Audience, Progress, minutes};
use crate::sets::{Recipe, Set};

/// What [`crate::Parts::ensure`] did for a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildResult {
    /// Nothing: it was complete, or an override stands for it.
    Present(Set),
    /// It was built now.
    Built(Set, Stamp),
}

/// Builds those of the sets that are not complete, in the given order.
pub(crate) fn ensure(
    cache: &Cache,
    go_program: &Path,
    sets: &[Set],
    audience: &mut Audience<'_>,
) -> Result<Vec<BuildResult>> {
    sets.iter().try_for_each(|set| cache.drop_leftovers(set.recipe()))?;
    let Some(go) = check(cache, go_program, sets)? else {
        return Ok(sets.iter().copied().map(BuildResult::Present).collect());
    };
    let count = missing(cache, sets).len();
    let mut number = 0;
    let mut results = Vec::new();
    for &set in sets {
        if cache.stamp(set.recipe()).is_some() {
            results.push(BuildResult::Present(set));
            continue;
        }
        number += 1;
        let built = build(cache, &go, set, Progress::start(set.recipe(), (number, count), audience))?;
        results.push(built.map_or(BuildResult::Present(set), |stamp| BuildResult::Built(set, stamp)));
    }
    Ok(results)
}

fn missing(cache: &Cache, sets: &[Set]) -> Vec<Set> {
    sets.iter().copied().filter(|set| cache.stamp(set.recipe()).is_none()).collect()
}

/// Whether those of the sets that are not complete can be built, and with which Go; none if all are complete. Nothing
/// is written.
pub(crate) fn check(cache: &Cache, go_program: &Path, sets: &[Set]) -> Result<Option<Go>> {
    let missing = missing(cache, sets);
    if missing.is_empty() {
        return Ok(None);
    }
    let go = Go::find(go_program, &missing)?;
    disk::check(cache, &missing)?;
    Ok(Some(go))
}

/// Builds one set, unless another process completes it meanwhile.
fn build(cache: &Cache, go: &Go, set: Set, mut progress: Progress<'_, '_>) -> Result<Option<Stamp>> {
    let recipe = set.recipe();
    let mut is_told = false;
    let lock = cache.lock(recipe, || {
        if std::mem::replace(&mut is_told, true) {
            progress.tick();
        } else {
            progress.phase("another process builds it, waiting");
        }
    })?;
    if cache.stamp(recipe).is_some() {
        progress.finish("built by another process");
        return Ok(None);
    }
    let staging = cache.begin(recipe, &lock)?;
    let workspace = go.workspace(set, cache.go_directory(recipe), lock.share()?)?;
    produce(recipe, &workspace, &staging, &mut progress)?;
    let stamp = Stamp {
        set: recipe.name.to_owned(),
        version: recipe.version.to_owned(),
        go: go.version.clone(),
        seconds: progress.elapsed().as_secs(),
        bytes: disk::size(&staging)?,
    };
    cache.commit(recipe, &stamp, &lock)?;
    let took = minutes(progress.elapsed());
    progress.finish(&format!("done in {took}, {} MiB", stamp.bytes / (1024 * 1024)));
    Ok(Some(stamp))
}

/// Fills the staging directory from the Go module registry.
fn produce(
    recipe: &Recipe,
    workspace: &Workspace,
    staging: &Path,
    progress: &mut Progress<'_, '_>,
) -> Result<()> {
    if !recipe.programs.is_empty() {
        progress.phase("building");
        let programs = staging.join("bin");
        fs::create_dir_all(&programs).context("create", &programs)?;
        workspace.build(&programs, progress)?;
        for program in recipe.programs.iter().filter(|program| program.built_name() != program.name) {
            let built = programs.join(program.built_name());
            fs::rename(&built, programs.join(program.name)).context("rename", &built)?;
        }
    }
    for files in recipe.files {
        progress.phase(&format!("fetching {} of {}", files.source, files.module));
        let source = workspace.module_directory(files.module)?.join(files.source);
        copy(&source, &staging.join("files").join(files.target))?;
    }
    Ok(())
}

/// Copies a file or a directory by content: the module cache's files are read-only, ours need not be.
fn copy(source: &Path, target: &Path) -> Result<()> {
    let metadata = fs::metadata(source).context("read", source)?;
    if !metadata.is_dir() {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).context("create", parent)?;
        }
        let content = fs::read(source).context("read", source)?;
        return fs::write(target, content).context("write", target);
    }
    fs::create_dir_all(target).context("create", target)?;
    for entry in fs::read_dir(source).context("read", source)? {
        let entry = entry.context("read", source)?;
        copy(&entry.path(), &target.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
