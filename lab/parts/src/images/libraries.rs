//! The shared libraries of a program, found by asking the loader (`ldd`).
//!
//! They go to the path they have on the host, with /lib and /lib64 as links into /usr.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Entry, Image, Source};
use crate::error::{Error, Result};
use crate::packages::Packages;

/// Adds what the programs need; nothing for static ones. One question for all: each costs a process.
pub(super) fn add(mut image: Image, programs: &[&Path], packages: Option<&Packages>) -> Result<Image> {
    let failed = |reason: String| Error::Image { image: image.reference.clone(), reason };
    let mut command = Command::new("ldd");
    command.args(programs).env("LC_ALL", "C");
    if let Some(packages) = packages {
        command.env("LD_LIBRARY_PATH", packages.library_path());
    }
    let output = command.output().map_err(|error| failed(format!("ldd cannot be run: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = parse(&text)
        .map_err(|library| failed(format!("it needs {library}, which is not on this machine")))?;
    if found.is_empty() {
        return Ok(image);
    }
    for (link, target) in [("/lib", "usr/lib"), ("/lib64", "usr/lib64")] {
        image = image.with(link, Entry::Link(target.to_owned()));
    }
    for path in found {
        let inside = inside(&path, packages.map(Packages::root));
        image = image.with(&inside, Entry::File(Source::Path(path), 0o755));
    }
    Ok(image)
}

/// The paths in the loader's answer. Fails with the name of a library that is missing.
fn parse(text: &str) -> std::result::Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    // Asked about several, it puts the name of each on a line of its own.
    for line in text.lines().map(str::trim).filter(|line| !line.ends_with(':')) {
        let (name, path) = match line.split_once(" => ") {
            Some((name, path)) => (name, path),
            // The loader itself, by its path; and the kernel's own library, which has none.
            None => (line, line),
        };
        if path.starts_with("not found") {
            return Err(name.to_owned());
        }
        if path.starts_with('/') {
            paths.extend(path.split_whitespace().next().map(PathBuf::from));
        }
    }
    Ok(paths)
}

/// Where a library lies in the image.
fn inside(path: &Path, root: Option<&Path>) -> String {
    let path = root.and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    let text = path.to_string_lossy();
    let text = text.trim_start_matches('/');
    if text.starts_with("usr/") { format!("/{text}") } else { format!("/usr/{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loaders_answer_is_read() {
        let text = "/cache/usr/sbin/nft:\n\tlinux-vdso.so.1 (0x00007ffd)\n\tlibmnl.so.0 => /cache/usr/lib/x/libmnl.so.0 (0x00)\n\t\
                    libc.so.6 => /lib/x/libc.so.6 (0x00)\n\t/lib64/ld-linux-x86-64.so.2 (0x00)\n";
        let paths = parse(text).unwrap();
        let inside: Vec<String> = paths.iter().map(|path| inside(path, Some(Path::new("/cache")))).collect();
        assert_eq!(
            inside,
            ["/usr/lib/x/libmnl.so.0", "/usr/lib/x/libc.so.6", "/usr/lib64/ld-linux-x86-64.so.2"]
        );
        assert_eq!(parse("\tstatically linked\n").unwrap(), Vec::<PathBuf>::new());
        assert_eq!(parse("\tlibx.so => not found\n").unwrap_err(), "libx.so");
    }
}
