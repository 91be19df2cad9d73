//! Requests to a machine's supervisor: one line of JSON each way over a socket in the machine.
//!
//! The host reaches the socket through the first process's root directory in /proc, which needs no bind and no long
//! path. Signals would not do: process 1 ignores those it has no handler for.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    sync::mpsc::{self, Sender},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::report::note;
use crate::{
    error::{Doing, Error, Result},
    name::Name,
    process::ProcessIdentity,
    service::{Service, ServiceStatus},
};

/// Path inside the machine.
pub(super) const SOCKET: &str = "/run/hangar-supervisor.sock";
/// The supervisor never works long before it answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// Who asks waits longer: others may be asked first, and on a busy host everything takes its time. Who gives up asks no
/// more, and then [`crate::Machine::stop`] leaves services no time to end.
const ASKER_PATIENCE: Duration = Duration::from_secs(15);
/// More than any service definition needs.
const LARGEST_REQUEST: u64 = 1 << 20;

/// What a supervisor can be asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verb")]
pub(crate) enum Request {
    Status,
    Stop { grace_milliseconds: u64 },
    StartService { service: Name },
    StopService { service: Name },
    RestartService { service: Name },
    AddService { service: Service },
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) refusal: Option<String>,
    pub(crate) services: Vec<ServiceStatus>,
}

impl Response {
    pub(super) fn done(services: Vec<ServiceStatus>) -> Self {
        Self { refusal: None, services }
    }

    pub(super) fn refused(refusal: String) -> Self {
        Self { refusal: Some(refusal), services: Vec::new() }
    }
}

/// What wakes the supervisor.
pub(super) enum Event {
    Exited { pid: i32, code: i32 },
    Asked { request: Request, reply: Sender<Response> },
}

/// Answers requests one after the other on a thread of its own.
pub(super) fn serve(listener: UnixListener, events: Sender<Event>) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            match stream {
                // A caller that went away is no concern of ours.
                Ok(stream) => drop(serve_one(&stream, &events)),
                Err(error) => {
                    note(format_args!("control socket: {error}"));
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
        }
    });
}

fn serve_one(stream: &UnixStream, events: &Sender<Event>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LARGEST_REQUEST)).read_line(&mut line)?;
    let response = match serde_json::from_str(&line) {
        Ok(request) => {
            let (reply, answer) = mpsc::channel();
            let _ = events.send(Event::Asked { request, reply });
            answer.recv_timeout(PATIENCE).unwrap_or_else(|_| Response::refused("no answer".to_owned()))
        }
        Err(error) => Response::refused(format!("request not understood: {error}")),
    };
    let mut text = serde_json::to_string(&response).unwrap_or_default();
    text.push('\n');
    let mut stream = stream;
    stream.write_all(text.as_bytes())
}

/// Asks the supervisor of a machine.
pub(crate) fn ask(machine: &Name, first: &ProcessIdentity, request: &Request) -> Result<Vec<ServiceStatus>> {
    let failed = |message: String| Error::Supervisor { machine: machine.to_string(), message };
    let path = format!("/proc/{}/root{SOCKET}", first.pid);
    let stream = UnixStream::connect(path);
    // The number could have been reused between the check and the connection.
    if !first.is_alive() {
        return Err(Error::NotRunning(machine.to_string()));
    }
    converse(stream.map_err(|error| failed(error.to_string()))?, request, failed)
}

/// Asks the supervisor of the machine that the calling process is in.
pub(super) fn ask_here(request: &Request) -> Result<Vec<ServiceStatus>> {
    let failed = |message: String| Error::Supervisor { machine: "this".to_owned(), message };
    let stream = UnixStream::connect(SOCKET).map_err(|error| failed(error.to_string()))?;
    converse(stream, request, failed)
}

fn converse(
    mut stream: UnixStream,
    request: &Request,
    failed: impl Fn(String) -> Error,
) -> Result<Vec<ServiceStatus>> {
    stream.set_read_timeout(Some(ASKER_PATIENCE)).doing(|| "set a timeout")?;
    stream.set_write_timeout(Some(ASKER_PATIENCE)).doing(|| "set a timeout")?;
    let mut text = serde_json::to_string(request).map_err(|error| failed(error.to_string()))?;
    text.push('\n');
    stream.write_all(text.as_bytes()).map_err(|error| failed(error.to_string()))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(|error| failed(error.to_string()))?;
    let response: Response = serde_json::from_str(&line).map_err(|error| failed(error.to_string()))?;
    match response.refusal {
        Some(refusal) => Err(failed(refusal)),
        None => Ok(response.services),
    }
}
