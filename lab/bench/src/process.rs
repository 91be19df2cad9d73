//! Processes that are measured and end with the bench, and commands that are run to their end.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// A child that ends with us.
pub(crate) struct Measured(Child);

impl Measured {
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        Ok(Self(command.spawn().with_context(|| format!("start {}", command.get_program().display()))?))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Resident and, of that, anonymous memory in KiB.
    pub(crate) fn memory(&self) -> anyhow::Result<(u64, u64)> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).context("process status")?;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        field("VmRSS:").zip(field("RssAnon:")).context("the process has no memory figures")
    }

    /// Seconds until `address` answers `path` with 200.
    pub(crate) fn seconds_until_ready(&mut self, address: &str, path: &str) -> anyhow::Result<f64> {
        let start = Instant::now();
        loop {
            if is_ok(address, path) {
                return Ok(start.elapsed().as_secs_f64());
            }
            if let Some(status) = self.0.try_wait()? {
                bail!("the process ended with {status} before it was ready");
            }
            if start.elapsed() > Duration::from_secs(60) {
                bail!("not ready after 60 s");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        // A term first: `serve` removes its directory then.
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_ok(address: &str, path: &str) -> bool {
    ask(address, path).is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
}

fn ask(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: bench\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The page at an address. In the old version of HTTP it ends with its connection and has no chunks.
pub(crate) fn page(address: &str, path: &str) -> anyhow::Result<String> {
    let answer = ask(address, path).with_context(|| format!("http://{address}{path}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without an end of headers")?;
    if head.split(' ').nth(1) != Some("200") {
        bail!("http://{address}{path}: {head}");
    }
    Ok(body.to_owned())
}

/// What a command prints, on either output. A command that fails is an error with this output.
pub(crate) fn words_of(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("start {program}"))?;
    let words =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    if !output.status.success() {
        bail!("{program} failed: {words}");
    }
    Ok(words)
}

/// Makes a directory ours alone, and puts a copy of the program into it: a build meanwhile does not change it, or the
/// manager's image would be another one.
pub(crate) fn own_program(directory: &Path, built: &Path) -> anyhow::Result<(PathBuf, File)> {
    fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
    // Not the directory itself: `hangar` locks that.
    let lock = File::create(directory.join("bench.lock"))?;
    if lock.try_lock().is_err() {
        bail!("another run uses {}", directory.display());
    }
    let program = directory.join("hangar");
    // A program of a killed run may still be running; a file in its place does not disturb it.
    let _ = fs::remove_file(&program);
    fs::copy(built, &program).context("copy the program")?;
    Ok((program, lock))
}

/// How many processes wanted to run, on average of the last minute.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or_default()
}
