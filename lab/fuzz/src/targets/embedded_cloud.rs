//! Requests to the embedded cloud: a first line with method and path, then the body. What begins with `!` is sent as it
//! is.
//!
//! The cloud keeps what it is asked for, so it is begun anew from time to time.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use hangar_cloud::driver::RecordingDriver;
use hangar_cloud::{Cloud, Config, Handle};
use tokio::runtime::Runtime;

use super::text;

/// Inputs for one cloud.
const ROUNDS: u32 = 2_000;

/// No answer comes later than this, unless the cloud hangs.
const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    rounds: u32,
    token: String,
    cloud: Handle,
    /// Runs the cloud; dropped after it.
    _runtime: Runtime,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

pub(super) fn run(input: &[u8]) {
    RUNNING.with_borrow_mut(|running| {
        if running.as_ref().is_none_or(|running| running.rounds == 0) {
            *running = Some(start());
        }
        let Some(running) = running else { return };
        running.rounds -= 1;
        if let Some(raw) = input.strip_prefix(b"!") {
            exchange(&running.cloud, raw, true);
        } else if let Some(request) = request(input, &running.token) {
            let answer = exchange(&running.cloud, &request, false);
            let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
            let Some(status) = status else { panic!("no answer, but {answer:?}") };
            assert!(!status.starts_with('5') || status == "501" || status == "503", "{answer}");
        }
    });
}

fn start() -> Running {
    let Ok(runtime) = Runtime::new() else { panic!("no runtime") };
    let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { panic!("no port on loopback") };
    let serving = Cloud::serve(listener, Config::for_tests(), RecordingDriver::new());
    let Ok(cloud) = runtime.block_on(serving) else { panic!("the cloud does not start") };
    let login = r#"POST /identity/v3/auth/tokens
{"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": "demo", "password": "secret",
"domain": {"id": "default"}}}}, "scope": {"project": {"name": "demo", "domain": {"id": "default"}}}}}"#;
    let answer =
        request(login.as_bytes(), "").map(|login| exchange(&cloud, &login, false)).unwrap_or_default();
    let header = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("x-subject-token").then(|| value.to_owned())
    });
    let Some(token) = header else { panic!("no token: {answer}") };
    Running { rounds: ROUNDS, token, cloud, _runtime: runtime }
}

/// A well-formed request; nothing where the first line cannot be one.
fn request(input: &[u8], token: &str) -> Option<Vec<u8>> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let (line, body) = (text(&input[..end])?, &input[end + 1..]);
    let (method, path) = line.split_once(' ')?;
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_path = path.starts_with('/') && path.len() < 4096 && path.parse::<http::Uri>().is_ok();
    if !is_method || !is_path || path.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return None;
    }
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nHost: cloud\r\nConnection: close\r\nX-Auth-Token: {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    Some(request)
}

/// Sends all of it, and reads until the other side ends. It may wait for more of what is no request; then ours ends first.
fn exchange(cloud: &Handle, request: &[u8], is_ended: bool) -> String {
    let Ok(mut stream) = TcpStream::connect(cloud.address()) else { panic!("the cloud does not listen") };
    // These fail where the cloud has hung up already.
    drop(stream.set_read_timeout(Some(PATIENCE)));
    drop(stream.write_all(request));
    if is_ended {
        drop(stream.shutdown(Shutdown::Write));
    }
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "no answer within {PATIENCE:?}");
    }
    String::from_utf8_lossy(&answer).into_owned()
}
