//! The Go command: which one there is, whether it is new enough, and how it is run.
//!
//! Every call gets its own caches and a fixed environment, so that neither a developer's settings nor a parent
//! directory's workspace file affect what is built. `GOPROXY` and related variables are left to the user.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::error::{Context, Error, Result};
use crate::progress::{GoLine, Progress};
use crate::search_path;
use crate::sets::{Content, Linkage, Program, Recipe, Set};

/// Enough to hold the compiler's complaint, little enough to read.
const KEPT_LINES: usize = 20;

/// How often progress may be shown while `go` is silent.
const TICK: Duration = Duration::from_secs(1);

/// A Go command that is new enough for the sets it was found for.
#[derive(Debug, Clone)]
pub(crate) struct Go {
    program: PathBuf,
    pub(crate) version: String,
}

impl Go {
    /// Finds `go` and checks its version once for all sets, and the C compiler for those that need one, so that the
    /// error comes before any work.
    pub(crate) fn find(program: &Path, sets: &[Set]) -> Result<Self> {
        let Some(&neediest) = sets.iter().max_by_key(|set| numbers(set.recipe().minimum_go())) else {
            return Ok(Self { program: program.to_owned(), version: String::new() });
        };
        let minimum = neediest.recipe().minimum_go().to_owned();
        let output = Command::new(program)
            .args(["env", "GOVERSION", "CC"])
            // Otherwise Go answers for a go.mod it finds in the caller's directory, or downloads a toolchain.
            .env("GOTOOLCHAIN", "local")
            .env("GOWORK", "off")
            .output()
            .map_err(|_| Error::GoMissing { set: neediest, minimum: minimum.clone() })?;
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = answer.lines().map(str::trim);
        let found = lines.next().unwrap_or_default().to_owned();
        let compiler = lines.next().unwrap_or_default();
        let Some(version) = found.strip_prefix("go").map(numbers).filter(|version| version.0 > 0) else {
            let answer = format!("{found}{}", String::from_utf8_lossy(&output.stderr));
            return Err(Error::GoAnswer { command: "go env GOVERSION".to_owned(), answer });
        };
        if version < numbers(&minimum) {
            return Err(Error::GoTooOld { set: neediest, minimum, found });
        }
        // It may be a path, and may have flags behind it.
        let compiler = compiler.split_whitespace().next().unwrap_or("cc");
        let needs_compiler = sets.iter().find(|set| set.recipe().linkage == Linkage::C);
        if let Some(&set) = needs_compiler
            && search_path::find(compiler).is_none()
        {
            return Err(Error::CompilerMissing { set, compiler: compiler.to_owned() });
        }
        Ok(Self { program: program.to_owned(), version: found })
    }

    /// Prepares the set's own Go directory: the pins as a module, and the caches. Whatever is run in it holds `lock`.
    pub(crate) fn workspace(&self, set: Set, directory: PathBuf, lock: File) -> Result<Workspace> {
        let recipe = set.recipe();
        let module = directory.join("module");
        let temporary = directory.join("tmp");
        // What a killed build left in there is of no use to the next one.
        crate::cache::remove_directory(&temporary)?;
        for path in [&module, &temporary] {
            fs::create_dir_all(path).context("create", path)?;
        }
        for (name, text) in [("go.mod", recipe.go_mod), ("go.sum", recipe.go_sum)] {
            let path = module.join(name);
            fs::write(&path, text).context("write", &path)?;
        }
        Ok(Workspace { go: self.clone(), set, directory, lock })
    }
}

/// The place where one set is built.
#[derive(Debug)]
pub(crate) struct Workspace {
    go: Go,
    set: Set,
    directory: PathBuf,
    lock: File,
}

impl Workspace {
    fn recipe(&self) -> &'static Recipe {
        self.set.recipe()
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        // As its standard input, which `go` does not read: the lock goes only when `go` has ended too.
        let lock = self.lock.try_clone().context("share the lock of", &self.directory)?;
        let mut command = Command::new(&self.go.program);
        command
            .args(arguments)
            .current_dir(self.directory.join("module"))
            .env("GOCACHE", self.directory.join("build"))
            .env("GOMODCACHE", self.directory.join("mod"))
            .env("GOTMPDIR", self.directory.join("tmp"))
            .env("GOTOOLCHAIN", "local")
            .env("GOWORK", "off")
            // The module cache is read-only by default, and then only root can drop it.
            .env("GOFLAGS", "-mod=readonly -modcacherw -buildvcs=false")
            .env("CGO_ENABLED", if self.recipe().linkage == Linkage::C { "1" } else { "0" })
            .env_remove("GOOS")
            .env_remove("GOARCH")
            .stdin(lock);
        Ok(command)
    }

    /// Builds all programs of `main` packages in one go, because they share most of their packages; then each test.
    pub(crate) fn build(&self, target: &Path, progress: &mut Progress<'_, '_>) -> Result<()> {
        let (mains, tests): (Vec<&Program>, Vec<&Program>) =
            self.recipe().programs.iter().partition(|program| program.content == Content::Main);
        // The trailing separator makes `go` treat it as a directory even for one program.
        let directory = format!("{}/", target.display());
        let packages: Vec<&str> = mains.iter().map(|program| program.package).collect();
        self.make(&["build", "-v"], &directory, &packages, progress)?;
        for program in tests {
            // Go does not say which package of a test it compiles.
            progress.phase(&format!("building {}", program.name));
            let file = target.join(program.name).display().to_string();
            self.make(&["test", "-c"], &file, &[program.package], progress)?;
        }
        Ok(())
    }

    fn make(
        &self,
        verb: &[&str],
        target: &str,
        packages: &[&str],
        progress: &mut Progress<'_, '_>,
    ) -> Result<()> {
        let linker_flags = format!("-ldflags={}", self.recipe().linker_flags());
        let tags = format!("-tags={}", self.recipe().tags.join(","));
        let options = ["-trimpath", &tags, &linker_flags, "-o", target];
        let mut command = self.command(&[verb, &options, packages].concat())?;
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("start", &self.go.program)?;
        let kept = child.stderr.take().map(|output| follow(output, progress)).unwrap_or_default();
        let status = child.wait().context("wait for", &self.go.program)?;
        if status.success() {
            return Ok(());
        }
        Err(self.failed(&format!("go {}", verb.join(" ")), &status.to_string(), kept.join("\n")))
    }

    /// The directory of a module's content, downloaded if need be and checked against `go.sum`.
    pub(crate) fn module_directory(&self, module: &str) -> Result<PathBuf> {
        let recipe = self.recipe();
        let missing = || Error::PinMissing { set: self.set, module: module.to_owned() };
        let version = recipe.required_version(module).ok_or_else(missing)?;
        let expected = recipe.pinned_sum(module, version).ok_or_else(missing)?;
        let wanted = format!("{module}@{version}");
        let output = self
            .command(&["mod", "download", "-json", &wanted])?
            .output()
            .context("start", &self.go.program)?;
        if !output.status.success() {
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            return Err(self.failed(&format!("go mod download {wanted}"), &output.status.to_string(), text));
        }
        let answer: Download = serde_json::from_slice(&output.stdout).map_err(|_| Error::GoAnswer {
            command: format!("go mod download {wanted}"),
            answer: String::from_utf8_lossy(&output.stdout).chars().take(200).collect(),
        })?;
        // `go` compares too, but only with sums it finds; for an explicit version a missing line is no error to it.
        if answer.sum != expected {
            let (expected, found) = (expected.to_owned(), answer.sum);
            return Err(Error::SumMismatch { set: self.set, module: wanted, expected, found });
        }
        Ok(answer.directory)
    }

    fn failed(&self, command: &str, status: &str, output: String) -> Error {
        Error::GoFailed { set: self.set, command: command.to_owned(), status: status.to_owned(), output }
    }
}

#[derive(serde::Deserialize)]
struct Download {
    #[serde(rename = "Dir")]
    directory: PathBuf,
    #[serde(rename = "Sum")]
    sum: String,
}

/// Shows what `go` says until it is silent for good, and returns the last lines that are no progress. Read on a
/// thread of its own, so that a person sees time pass while nothing is said.
fn follow(output: impl Read + Send + 'static, progress: &mut Progress<'_, '_>) -> Vec<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        // Fails only when nobody listens any more.
        let _ = lines.map(|line| sender.send(line)).find(Result::is_err);
    });
    let mut kept = VecDeque::new();
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => {
                let event = GoLine::parse(&line);
                progress.go_says(&event);
                if matches!(event, GoLine::Other(_)) {
                    kept.push_back(line);
                }
                if kept.len() > KEPT_LINES {
                    kept.pop_front();
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return kept.into(),
        }
        progress.tick();
    }
}

/// A Go version as numbers. Release candidates (`1.27rc1`) count as their release: close enough for a minimum.
fn numbers(version: &str) -> (u32, u32, u32) {
    let mut elements = version.split('.').map(|element| {
        let end = element.find(|character: char| !character.is_ascii_digit()).unwrap_or(element.len());
        element.get(..end).and_then(|digits| digits.parse().ok()).unwrap_or(0)
    });
    let mut next = || elements.next().unwrap_or(0);
    (next(), next(), next())
}

#[cfg(test)]
mod tests;
