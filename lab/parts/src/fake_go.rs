//! A `go` for tests that does what a script says.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Written by another process on purpose: a file that this one has open for writing while another test forks
/// cannot be executed ("text file busy").
pub(crate) fn write(directory: &Path, script: &str) -> PathBuf {
    let path = directory.join("go");
    let status = Command::new("/bin/sh")
        .args(["-c", r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#])
        .arg(&path)
        .arg(script)
        .status()
        .unwrap();
    assert!(status.success());
    path
}
