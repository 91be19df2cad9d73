//! The cloud's process: it runs detached, is found again by its record, and is signalled only if it is proven to be
//! ours.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hangar_cloud::driver::namespaces::{self, ProcessConfig};
use hangar_kit::metrics::Metrics;
use hangar_kit::telemetry::{LogFormat, Telemetry, TelemetrySettings};
use hangar_machine::ProcessIdentity;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::error::{At, Error, Result};
use crate::layout::Layout;
use crate::management::machine::OWN_PROGRAM;

/// The arguments that make our own program the cloud; `--config` and the file follow.
pub(super) const WORDS: [&str; 2] = ["cloud", "serve"];
/// It answers within a second; a host that is busy with other things takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// It ends at once when it is asked to.
const GRACE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);
/// A log that grew large in an earlier life is put aside.
const LARGE_LOG: u64 = 64 << 20;

/// Is the process: serves the configuration in a file until it is told to stop. Servers go on running after it.
pub async fn serve(config: &Path, stop: CancellationToken) -> Result<()> {
    let settings = TelemetrySettings { format: LogFormat::Text, ..TelemetrySettings::default() };
    let failed = |message: String| Error::Program { program: "the cloud".to_owned(), message };
    let telemetry =
        Telemetry::start(&settings, &Metrics::new()).map_err(|error| failed(error.to_string()))?;
    let config = ProcessConfig::read(config).map_err(|error| failed(error.to_string()))?;
    let served = namespaces::serve(config, stop).await;
    telemetry.shutdown(GRACE).await;
    served.map_err(|error| failed(error.to_string()))
}

/// Starts the process unless one runs with this configuration, this program and in this network. What was done.
pub(super) fn ensure(
    layout: &Layout,
    config: &ProcessConfig,
    is_other: bool,
) -> Result<Option<&'static str>> {
    let program = layout.programs().join(OWN_PROGRAM);
    let running = config.process();
    if let Some(process) = &running {
        if !is_other && runs(process, &program) && listens(config.listen) {
            return Ok(None);
        }
        end(process);
    }
    start(layout, &program)?;
    Ok(Some(if running.is_some() { "started again" } else { "started" }))
}

fn start(layout: &Layout, program: &Path) -> Result<()> {
    let path = layout.cloud_log();
    if fs::metadata(&path).is_ok_and(|found| found.len() > LARGE_LOG) {
        let _ = fs::rename(&path, path.with_extension("log.old"));
    }
    let log = File::options().create(true).append(true).open(&path).at("open", &path)?;
    let copy = log.try_clone().at("open", &path)?;
    let mut command = Command::new(program);
    command
        .args(WORDS)
        .arg("--config")
        .arg(layout.cloud_config())
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(copy);
    // It leaves our session by itself, and is collected by the host's first process when we are gone.
    command.spawn().at("start", program).map(drop)
}

/// Whether the process is the program at this path, which may have been replaced since.
fn runs(process: &ProcessIdentity, program: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let own = identity(Path::new(&format!("/proc/{}/exe", process.pid)));
    own.is_some() && own == identity(program)
}

/// Not when the private network was made anew: its socket is in the old one.
fn listens(address: SocketAddr) -> bool {
    std::net::TcpStream::connect_timeout(&address, GRACE).is_ok()
}

fn end(process: &ProcessIdentity) {
    process.terminate();
    if !process.wait_gone(GRACE) {
        process.kill();
        process.wait_gone(GRACE);
    }
}

/// Ends the process that is recorded. `true` when it ran.
pub(super) fn stop(layout: &Layout) -> Result<bool> {
    let record = layout.cloud().join("process.json");
    let Ok(text) = fs::read(&record) else { return Ok(false) };
    let known: Option<ProcessIdentity> = serde_json::from_slice(&text).ok();
    // First: one that is just starting sees that it is not wanted.
    fs::remove_file(&record).at("remove", &record)?;
    let Some(process) = known.filter(ProcessIdentity::is_alive) else { return Ok(false) };
    end(&process);
    Ok(true)
}

/// Waits until the API answers.
pub(super) async fn wait_until_it_answers(address: SocketAddr, log: &Path) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Some(obstacle) = obstacle(address).await else { return Ok(()) };
        if Instant::now() >= deadline {
            let text = fs::read_to_string(log).unwrap_or_default();
            let last = text.lines().last().unwrap_or("its log is empty");
            let (what, seconds) = ("the cloud's answer".to_owned(), PATIENCE.as_secs());
            return Err(Error::TooSlow { what, seconds, state: format!("{obstacle}; {last}") });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Why the API does not answer, if it does not.
pub(super) async fn obstacle(address: SocketAddr) -> Option<String> {
    match tokio::time::timeout(GRACE, ask(address)).await {
        Ok(Ok(status)) if status.contains(" 200 ") => None,
        Ok(Ok(status)) => Some(format!("it answers {status:?}")),
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("no answer".to_owned()),
    }
}

/// The first line of the answer of the identity service, which returns its versions without a token.
async fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /identity/v3 HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}
