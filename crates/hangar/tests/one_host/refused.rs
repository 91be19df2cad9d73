//! Hosts and options that `hangar up` refuses: with one clear line each, and nothing is left or changed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hangar_parts::Parts;

use crate::environment::Environment;
use crate::turn;

/// The words of the one error, after the progress of the steps.
#[track_caller]
fn refusal(output: &Output) -> String {
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{words}");
    let errors: Vec<&str> = words.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert_eq!(errors.len(), 1, "{words}");
    assert!(words.ends_with(&format!("error: {}\n", errors[0])), "{words}");
    errors[0].to_owned()
}

/// Everything below a directory.
fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        found.insert(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        }
    }
    found
}

#[track_caller]
fn assert_untouched(environment: &Environment) {
    environment.assert_gone();
    assert!(!environment.state.exists(), "the state directory was made");
}

#[test]
fn ranges_that_cannot_be_used() {
    let _turn = turn();
    let environment = Environment::new("range");
    for (range, reason) in [
        ("100.75.0.0/24", "the address range 100.75.0.0/24 is too small: 1024 addresses (a /22) are needed"),
        ("10.244.0.0/20", "the address range 10.244.0.0/20 overlaps 10.244.0.0/16"),
        ("10.0.0.0/8", "the address range 10.0.0.0/8 overlaps 10."),
        ("127.0.0.0/20", "address range 127.0.0.0/20 overlaps address 127.0.0.1/8 on lo"),
    ] {
        let output = environment.command("up").arg(format!("--range={range}")).output().unwrap();
        let words = refusal(&output);
        assert!(words.starts_with(&format!("checking this host failed: {reason}")), "{words}");
        assert!(
            words.ends_with("; likely fix: give another range, such as --range 10.213.0.0/20"),
            "{words}"
        );
        assert_untouched(&environment);
    }
    let output = environment.command("up").arg("--range=100.75.0.0").output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("'--range <CIDR>'"), "{words}");
    assert_untouched(&environment);
}

/// A place of somebody without privileges, with the program in it.
struct Nobody(tempfile::TempDir);

impl Nobody {
    fn new(mode: u32) -> Self {
        let place = tempfile::Builder::new().prefix("hangar-").tempdir_in("/tmp").unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_hangar"), place.path().join("hangar")).unwrap();
        Self(place)
    }

    /// What they are told.
    fn refused(&self, verb: &str, environment: &Environment) -> String {
        let output = Command::new(self.0.path().join("hangar"))
            .args([verb, "--name", &environment.name, "--state"])
            .arg(self.0.path().join("state"))
            .env("HANGAR_CACHE", self.0.path().join("cache"))
            .uid(65534)
            .gid(65534)
            .output()
            .unwrap();
        refusal(&output)
    }
}

#[test]
fn nobody_may_not() {
    let _turn = turn();
    let environment = Environment::new("nobody");
    // Where they may read, and may write.
    let nobody = Nobody::new(0o777);
    let before = files(nobody.0.path());
    for verb in ["up", "down"] {
        let words = nobody.refused(verb, &environment);
        assert!(words.contains("need root (user id 0)"), "{words}");
        assert!(words.ends_with("; likely fix: run it as root (sudo)"), "{words}");
        assert_eq!(files(nobody.0.path()), before);
    }
    assert_untouched(&environment);
}

/// As a second `up` beside one that works for long finds it.
#[test]
fn an_environment_that_somebody_else_changes() {
    let _turn = turn();
    let environment = Environment::new("busy");
    let directory = environment.state.join(&environment.name);
    fs::create_dir_all(&directory).unwrap();
    let lock = fs::File::create(directory.join("lock")).unwrap();
    lock.lock().unwrap();
    for verb in ["up", "down"] {
        let words = refusal(&environment.run(verb));
        let reason = format!("lock failed: another process is changing {}", directory.display());
        assert!(words.starts_with(&reason), "{words}");
        assert!(
            words.ends_with("; likely fix: wait until the other process is done, then run it again"),
            "{words}"
        );
        assert!(directory.join("lock").exists(), "{verb} took away what somebody holds");
    }
    // One that came no further than this is nothing that runs, and something to remove.
    let status = environment.run("status");
    let words = String::from_utf8_lossy(&status.stderr).into_owned();
    assert!(!status.status.success() && words.contains("no machine runs, but"), "{words}");
    drop(lock);
    environment.succeed("down");
    assert_untouched(&environment);
}

/// Who may not remove an environment that is there is told so, not that somebody else is at it.
#[test]
fn nobody_may_not_remove_what_is_there() {
    let _turn = turn();
    let environment = Environment::new("theirs");
    let nobody = Nobody::new(0o755);
    fs::create_dir_all(nobody.0.path().join("state").join(&environment.name)).unwrap();
    let words = nobody.refused("down", &environment);
    assert!(words.contains("need root (user id 0)"), "{words}");
}

/// Runs `up` in a mount namespace of its own, after a line of shell that changes what it sees. Its output ends with what
/// lies in the state directory afterwards.
fn up_after(environment: &Environment, change: &str, state: &Path) -> Output {
    let script = format!(
        "{change} || exit 99\n\"$2\" up --name \"$3\" --state \"$1\"\ncode=$?\nls -A \"$1\"\nexit $code"
    );
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"])
        .arg(state)
        .args([env!("CARGO_BIN_EXE_hangar"), &environment.name])
        .output()
        .unwrap()
}

#[test]
fn hosts_without_control_groups_or_disk() {
    let _turn = turn();
    let environment = Environment::new("host");
    let state = tempfile::tempdir_in("/var/tmp").unwrap();
    for (change, reason, fix) in [
        (
            "umount -R /sys/fs/cgroup",
            "no cgroup hierarchy is mounted on this host",
            "mount the cgroup hierarchies",
        ),
        (
            "mount -t tmpfs -o size=1g none \"$1\"",
            "MiB free, 2048 MiB are needed",
            "free some disk space, then run it again",
        ),
    ] {
        let output = up_after(&environment, change, state.path());
        let words = refusal(&output);
        assert!(words.contains(reason) && words.contains(&format!("; likely fix: {fix}")), "{words}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "files were left");
        assert_untouched(&environment);
    }
}

#[test]
fn programs_that_cannot_be_had() {
    let _turn = turn();
    let environment = Environment::new("program");
    let cache = tempfile::tempdir_in("/var/tmp").unwrap();
    // Nothing but what every Linux with a C library has.
    let path = tempfile::tempdir().unwrap();
    symlink("/usr/bin/ldd", path.path().join("ldd")).unwrap();
    let up = || {
        let mut command = environment.command("up");
        for variable in ["HANGAR_BIN_DIR", "KUBEBUILDER_ASSETS"] {
            command.env_remove(variable);
        }
        command.env("HANGAR_CACHE", cache.path()).env("PATH", path.path()).output().unwrap()
    };
    let words = refusal(&up());
    assert!(words.contains("needs Go 1.") && words.contains("no `go` is on the PATH"), "{words}");
    assert!(words.contains("; likely fix: install that Go, and have it on the PATH"), "{words}");
    assert_eq!(files(cache.path()), BTreeSet::new());
    assert_untouched(&environment);

    // The programs are there, the distribution's packages are not.
    let tools = Parts::from_env().unwrap().cache().root().join("tools");
    symlink(tools, cache.path().join("tools")).unwrap();
    let before = files(cache.path());
    let words = refusal(&up());
    assert!(words.contains("apt-get is missing: this needs a Debian-like host"), "{words}");
    assert_eq!(files(cache.path()), before);
    assert_untouched(&environment);
}
