//! How much disk space there is, how much a build needs, and how much a directory takes.

use std::fs;
use std::io;
use std::path::Path;

use crate::cache::Cache;
use crate::error::{Context, Error, Result};
use crate::sets::Set;

const MEBIBYTE: u64 = 1024 * 1024;

/// Says before the start, not half an hour later, that the disk is too small.
pub(crate) fn check(cache: &Cache, sets: &[Set]) -> Result<()> {
    if sets.is_empty() {
        return Ok(());
    }
    // The cache may not be there yet: what counts is the disk it will be on.
    let existing = cache.root().ancestors().find(|path| path.exists()).unwrap_or(cache.root());
    let have_mebibytes = free_mebibytes(existing)?;
    // What an interrupted build already has on disk need not be found again.
    let already = |set: Set| size(&cache.go_directory(set.recipe())).unwrap_or(0) / MEBIBYTE;
    compare(cache.root(), sets, needed_mebibytes(sets, already), have_mebibytes)
}

/// Sets are built one after the other and their Go caches dropped in between: at every moment the need is what
/// the earlier ones left behind and the peak of the current one.
pub(crate) fn needed_mebibytes(sets: &[Set], already: impl Fn(Set) -> u64) -> u64 {
    let mut kept = 0;
    let mut need = 0;
    for &set in sets {
        let recipe = set.recipe();
        need = need.max(kept + recipe.peak_mebibytes.saturating_sub(already(set)));
        kept += recipe.kept_mebibytes;
    }
    need
}

pub(crate) fn compare(path: &Path, sets: &[Set], need_mebibytes: u64, have_mebibytes: u64) -> Result<()> {
    if have_mebibytes >= need_mebibytes {
        return Ok(());
    }
    Err(Error::DiskFull {
        sets: sets.iter().map(|set| set.name()).collect::<Vec<_>>().join(", "),
        path: path.to_owned(),
        need_mebibytes,
        have_mebibytes,
    })
}

fn free_mebibytes(path: &Path) -> Result<u64> {
    let usage =
        rustix::fs::statvfs(path).map_err(io::Error::from).context("measure the free disk of", path)?;
    Ok(usage.f_bavail.saturating_mul(usage.f_frsize) / MEBIBYTE)
}

/// The bytes of all files below a path; 0 if it is not there.
pub(crate) fn size(path: &Path) -> Result<u64> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error).context("read", path),
    };
    let mut total = 0;
    for entry in entries {
        let entry = entry.context("read", path)?;
        let metadata = entry.metadata().context("read", path)?;
        total += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_need_is_the_highest_peak_plus_what_earlier_sets_left() {
        let sets = [Set::Etcd36, Set::Kubernetes134];
        let (etcd, kubernetes) = (sets[0].recipe(), sets[1].recipe());
        assert_eq!(needed_mebibytes(&sets, |_| 0), etcd.kept_mebibytes + kubernetes.peak_mebibytes);
        assert_eq!(needed_mebibytes(&sets, |_| u64::MAX), etcd.kept_mebibytes);
        assert_eq!(needed_mebibytes(&[], |_| 0), 0);
    }

    #[test]
    fn too_little_names_need_have_and_sets() {
        let error = compare(Path::new("/somewhere"), &[Set::Etcd36], 2000, 150).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("etcd-3.6") && text.contains("2000 MiB") && text.contains("150 MiB"), "{text}");
        assert!(compare(Path::new("/somewhere"), &[Set::Etcd36], 2000, 2000).is_ok());
    }

    #[test]
    fn size_counts_nested_files_and_forgives_absence() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("nested")).unwrap();
        fs::write(directory.path().join("nested/file"), [0; 100]).unwrap();
        fs::write(directory.path().join("file"), [0; 11]).unwrap();
        assert_eq!(size(directory.path()).unwrap(), 111);
        assert_eq!(size(&directory.path().join("absent")).unwrap(), 0);
    }
}
