//! Finds which packages a package needs, and downloads them. Nothing is installed.
//!
//! A fresh host has no list of packages, an old image has one whose packages the mirror no longer has, and right after
//! the boot another `apt-get` may be at work. So whatever fails is tried once more with a new list, and locks of others
//! are waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use crate::cache::remove_directory;
use crate::error::{Context, Error, Result};

/// Part of every Debian-like system, and never to be laid over the host's.
const BASE: &[&str] = &["libc6", "libgcc-s1", "gcc-12-base", "libcrypt1", "debconf", "dpkg"];

/// How long another `apt-get` is waited for.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK: Duration = Duration::from_millis(500);

/// What else is needed, and what of it the host has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needed {
    pub(super) unpack: BTreeSet<String>,
    pub(super) on_host: BTreeSet<String>,
}

/// The programs of the distribution.
#[derive(Debug, Clone, Default)]
pub(super) struct Apt {
    /// Where they are looked for, if not where everything else is.
    pub(super) path: Option<OsString>,
}

type Answer<T> = std::result::Result<T, String>;

impl Apt {
    /// Downloads the packages and what they depend on into a directory, without what is installed.
    pub(super) fn obtain(
        &self,
        names: &[&str],
        installed: &BTreeSet<String>,
        archives: &Path,
        announce: &mut dyn FnMut(&str),
    ) -> Result<Needed> {
        let first = match self.attempt(names, installed, archives, announce)? {
            Ok(needed) => return Ok(needed),
            Err(reason) => reason,
        };
        announce("updating the list of packages (apt-get update)");
        // It may fail for one of several sources and still have done what is needed.
        let updated = run(self.command("apt-get").args(["update", "-q"]), announce);
        match (self.attempt(names, installed, archives, announce)?, updated) {
            (Ok(needed), _) => Ok(needed),
            (Err(second), Ok(_)) => Err(failed(names, &second)),
            (Err(_), Err(update)) => Err(failed(names, &format!("{first}, and {update}"))),
        }
    }

    fn attempt(
        &self,
        names: &[&str],
        installed: &BTreeSet<String>,
        archives: &Path,
        announce: &mut dyn FnMut(&str),
    ) -> Result<Answer<Needed>> {
        // Half a download must not be taken for a package.
        remove_directory(archives)?;
        fs::create_dir_all(archives).context("create", archives)?;
        let needed = match self.closure(names, installed) {
            Ok(needed) => needed,
            Err(reason) => return Ok(Err(reason)),
        };
        if needed.unpack.is_empty() {
            return Ok(Ok(needed));
        }
        announce(&format!("downloading {}", needed.unpack.iter().cloned().collect::<Vec<_>>().join(", ")));
        let mut download = self.command("apt-get");
        // As root apt would drop to a user that cannot write to the cache.
        download.args(["download", "-q", "-o", "APT::Sandbox::User=root"]);
        let downloaded = run(download.args(&needed.unpack).current_dir(archives), announce);
        Ok(downloaded.map(|_| needed).map_err(|reason| format!("{reason}; is the package mirror reachable?")))
    }

    /// Unpacks a downloaded package.
    pub(super) fn unpack(&self, names: &[&str], archive: &Path, target: &Path) -> Result<()> {
        let mut command = self.command("dpkg-deb");
        let unpacked = run(command.arg("-x").arg(archive).arg(target), &mut |_| ());
        unpacked.map(drop).map_err(|reason| failed(names, &reason))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command
    }

    /// The packages and what they depend on. Fails when apt does not know one.
    fn closure(&self, names: &[&str], installed: &BTreeSet<String>) -> Answer<Needed> {
        let mut needed = Needed::default();
        let mut open: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
        while !open.is_empty() {
            let (here, asked): (Vec<String>, Vec<String>) =
                open.into_iter().partition(|name| installed.contains(name));
            needed.on_host.extend(here);
            open = BTreeSet::new();
            if asked.is_empty() {
                break;
            }
            let mut command = self.command("apt-cache");
            let output = command.args(["show", "--no-all-versions"]).args(&asked).output();
            let text =
                output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            let known: BTreeMap<&str, BTreeMap<&str, &str>> = paragraphs(&text)
                .filter_map(|paragraph| Some((*paragraph.get("Package")?, paragraph)))
                .collect();
            for name in asked {
                let paragraph =
                    known.get(name.as_str()).ok_or_else(|| format!("apt knows no package {name}"))?;
                needed.unpack.insert(name);
                for field in ["Pre-Depends", "Depends"] {
                    let dependencies = paragraph.get(field).copied().unwrap_or_default();
                    open.extend(chosen(dependencies, installed));
                }
            }
            open.retain(|name| !needed.unpack.contains(name) && !BASE.contains(&name.as_str()));
        }
        Ok(needed)
    }
}

/// Runs a command that must succeed; waits for others that hold apt's locks.
fn run(command: &mut Command, announce: &mut dyn FnMut(&str)) -> Answer<Output> {
    let deadline = Instant::now() + PATIENCE;
    let mut is_told = false;
    loop {
        let name = command.get_program().to_string_lossy().into_owned();
        let output = match command.output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(super::needs_debian(&name));
            }
            Err(error) => return Err(format!("{name} cannot be run: {error}")),
            Ok(output) => output,
        };
        if output.status.success() {
            return Ok(output);
        }
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        if !words.contains("Could not get lock") || Instant::now() >= deadline {
            return Err(format!("{name} failed ({}): {}", output.status, complaint(&words)));
        }
        if !is_told {
            announce("waiting for another apt-get");
            is_told = true;
        }
        thread::sleep(LOOK);
    }
}

fn failed(names: &[&str], reason: &str) -> Error {
    Error::Packages { packages: names.join(", "), reason: reason.to_owned() }
}

/// The lines that say what is wrong, or all.
fn complaint(words: &str) -> String {
    let said: Vec<&str> =
        words.lines().filter(|line| line.starts_with("E:") || line.contains("error")).collect();
    if said.is_empty() { words.trim().to_owned() } else { said.join("; ") }
}

/// Packages that are installed on the host, from dpkg's own list. None where there is no dpkg.
pub(super) fn installed() -> BTreeSet<String> {
    let text = fs::read_to_string("/var/lib/dpkg/status").unwrap_or_default();
    paragraphs(&text)
        .filter(|paragraph| paragraph.get("Status").is_some_and(|status| *status == "install ok installed"))
        .filter_map(|paragraph| paragraph.get("Package").map(|name| (*name).to_owned()))
        .collect()
}

/// The fields of each paragraph that are on one line.
fn paragraphs(text: &str) -> impl Iterator<Item = BTreeMap<&str, &str>> {
    text.split("\n\n").map(|paragraph| {
        let lines = paragraph.lines().filter(|line| !line.starts_with(' '));
        lines.filter_map(|line| line.split_once(": ")).collect()
    })
}

/// One package for each dependency: an alternative that is installed, else the first.
fn chosen(dependencies: &str, installed: &BTreeSet<String>) -> Vec<String> {
    let bare = |alternative: &str| {
        let name = alternative.split_whitespace().next().unwrap_or_default();
        name.split(':').next().unwrap_or_default().to_owned()
    };
    let alternatives = dependencies.split(',').filter(|dependency| !dependency.trim().is_empty());
    alternatives
        .filter_map(|dependency| {
            let names: Vec<String> = dependency.split('|').map(bare).collect();
            names.iter().find(|name| installed.contains(*name)).or(names.first()).cloned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_package_for_each_dependency() {
        let installed = BTreeSet::from(["mawk".to_owned()]);
        let dependencies = "libc6 (>= 2.34), gawk | mawk, perl:any, libnft1 (= 1.0)";
        assert_eq!(chosen(dependencies, &installed), ["libc6", "mawk", "perl", "libnft1"]);
        assert!(chosen("", &installed).is_empty());
    }

    #[test]
    fn continuation_lines_are_not_fields() {
        let text = "Package: a\nDepends: b\nDescription: x\n not: a field\n\nPackage: c\n";
        let all: Vec<_> = paragraphs(text).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].get("Depends"), Some(&"b"));
        assert_eq!(all[0].len(), 3);
    }

    /// A distribution whose `apt-get` does what a line of shell says, with the place of its own files as `$place`. Its
    /// `apt-cache` shows what is in the file `list` there.
    struct Distribution(tempfile::TempDir);

    impl Distribution {
        fn new(get: &str, list: &str) -> Self {
            let place = tempfile::tempdir().unwrap();
            fs::write(place.path().join("list"), list).unwrap();
            for (name, line) in [("apt-get", get), ("apt-cache", "cat $place/list 2>/dev/null")] {
                // Written by another process: what this one has open while another test forks cannot be executed.
                let script = format!("#!/bin/sh\nplace={}\n{line}\n", place.path().display());
                let write = Command::new("/bin/sh")
                    .args(["-c", r#"printf '%s' "$1" > "$0" && chmod 755 "$0""#])
                    .arg(place.path().join(name))
                    .arg(script)
                    .status();
                assert!(write.unwrap().success());
            }
            Self(place)
        }

        fn obtain(&self, installed: &[&str]) -> (Result<Needed>, Vec<String>, Vec<String>) {
            let path = std::env::join_paths([self.0.path(), Path::new("/usr/bin"), Path::new("/bin")]);
            let apt = Apt { path: Some(path.unwrap()) };
            let installed = installed.iter().map(|name| (*name).to_owned()).collect();
            let archives = self.0.path().join("archives");
            let mut said = Vec::new();
            let needed = apt.obtain(&["tool"], &installed, &archives, &mut |text| said.push(text.to_owned()));
            let files = fs::read_dir(archives).into_iter().flatten().flatten();
            let mut files: Vec<String> =
                files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            files.sort();
            (needed, said, files)
        }
    }

    const LIST: &str = "Package: tool\nDepends: library, base\n\nPackage: library\n\nPackage: base\n";
    const DOWNLOAD: &str = "for name; do case $name in tool|library|base) touch $name.deb;; esac; done";

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_the_host_has_is_not_downloaded() {
        let (needed, said, files) = Distribution::new(DOWNLOAD, LIST).obtain(&["base"]);
        assert_eq!(needed.unwrap(), Needed { unpack: set(&["tool", "library"]), on_host: set(&["base"]) });
        assert_eq!(said, ["downloading library, tool"]);
        assert_eq!(files, ["library.deb", "tool.deb"]);
    }

    #[test]
    fn a_fresh_machine_gets_a_list_first() {
        let get = format!("[ $1 = update ] && exec cp $place/new $place/list\n{DOWNLOAD}");
        let distribution = Distribution::new(&get, "");
        fs::write(distribution.0.path().join("new"), LIST).unwrap();
        let (needed, said, files) = distribution.obtain(&["base", "library"]);
        assert_eq!(needed.unwrap().unpack, set(&["tool"]));
        assert_eq!(said, ["updating the list of packages (apt-get update)", "downloading tool"]);
        assert_eq!(files, ["tool.deb"]);
    }

    #[test]
    fn a_list_of_packages_that_the_mirror_dropped_is_renewed() {
        let get = format!(
            "[ $1 = update ] && exec touch $place/updated\n\
             [ -e $place/updated ] || {{ touch half.deb; echo 'E: Failed to fetch: 404 Not Found' >&2; exit 100; }}\n\
             {DOWNLOAD}"
        );
        let (needed, said, files) = Distribution::new(&get, LIST).obtain(&["base", "library"]);
        assert_eq!(needed.unwrap().unpack, set(&["tool"]));
        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!(files, ["tool.deb"], "half a download stayed");
    }

    #[test]
    fn a_mirror_that_is_away_is_told_with_both_reasons() {
        let get = "echo \"E: no route to the mirror ($1)\" >&2; exit 100";
        let (needed, _, _) = Distribution::new(get, LIST).obtain(&["base", "library"]);
        let text = needed.unwrap_err().to_string();
        assert!(text.contains("no route to the mirror (download)"), "{text}");
        assert!(text.contains("no route to the mirror (update)"), "{text}");
        let (needed, _, _) = Distribution::new("exit 0", "").obtain(&[]);
        assert!(needed.unwrap_err().to_string().contains("apt knows no package tool"));
    }

    #[test]
    fn another_apt_is_waited_for() {
        let get = format!(
            "[ -e $place/free ] || {{ touch $place/free; echo 'E: Could not get lock /x. It is held by 1' >&2; exit 100; }}\n\
             {DOWNLOAD}"
        );
        let (needed, said, _) = Distribution::new(&get, LIST).obtain(&["base", "library"]);
        needed.unwrap();
        assert_eq!(said, ["downloading tool", "waiting for another apt-get"]);
    }
}
