//! Finds programs on the `PATH` before they are needed.

use std::path::PathBuf;

/// The file that a name on the command line would start.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(&path, program)
}

fn find_in(path: &std::ffi::OsStr, program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    std::env::split_paths(path).map(|place| place.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_searched_and_paths_are_taken() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        std::fs::write(&program, "").unwrap();
        let path = std::env::join_paths([Path::new("/nowhere"), directory.path()]).unwrap();
        assert_eq!(find_in(&path, "program"), Some(program.clone()));
        assert_eq!(find_in(&path, "other"), None);
        assert_eq!(find_in("".as_ref(), program.to_str().unwrap()), Some(program));
    }
}
