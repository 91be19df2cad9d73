//! Requests to a machine's supervisor: one line of JSON each way over a socket in the machine.
//!
//! A stop or restart of a service may take long, and its request is answered when it is done. Every request has a
//! thread of its own, so that none waits for another.
//!
//! The host reaches the socket through the first process's root directory in /proc, which needs no bind and no long
//! path. Signals would not work: process 1 ignores those it has no handler for.

use std::{
    io::{BufRead, BufReader, Read, Write},
    ops::Not,
    os::unix::net::{UnixListener, UnixStream},
    sync::mpsc::{self, Sender},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{report::note, unit::KILL_PATIENCE};
use crate::{
    error::{Doing, Error, Result},
    name::Name,
    process::ProcessIdentity,
    service::{Ending, LONGEST_STOP, Service, ServiceStatus},
};

/// Path inside the machine.
pub(super) const SOCKET: &str = "/run/hangar-supervisor.sock";
/// For a caller that connects and says nothing, or does not listen.
const PATIENCE: Duration = Duration::from_secs(5);
/// Who asks waits longer: on a busy host everything takes its time. Who gives up asks no more, and then
/// [`crate::Machine::stop`] leaves services no time to end.
const ASKER_PATIENCE: Duration = Duration::from_secs(15);
/// More than any service definition needs.
const LARGEST_REQUEST: u64 = 1 << 20;

/// What a supervisor can be asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verb")]
pub(crate) enum Request {
    Status,
    Stop {
        grace_milliseconds: u64,
    },
    StartService {
        service: Name,
        /// Answered when it is under way, not when it is done.
        #[serde(default, skip_serializing_if = "Not::not")]
        at_once: bool,
    },
    StopService {
        service: Name,
        #[serde(default, skip_serializing_if = "Not::not")]
        at_once: bool,
    },
    RestartService {
        service: Name,
        #[serde(default, skip_serializing_if = "Not::not")]
        at_once: bool,
    },
    AddService {
        service: Service,
    },
}

impl Request {
    /// How long the answer may take.
    fn patience(&self) -> Duration {
        match self {
            Self::StartService { at_once: false, .. }
            | Self::StopService { at_once: false, .. }
            | Self::RestartService { at_once: false, .. } => LONGEST_STOP + KILL_PATIENCE + ASKER_PATIENCE,
            _ => ASKER_PATIENCE,
        }
    }
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) refusal: Option<String>,
    pub(crate) services: Vec<ServiceStatus>,
    /// The service did not end in time.
    #[serde(default)]
    pub(crate) was_killed: bool,
}

impl Response {
    pub(super) fn done(services: Vec<ServiceStatus>) -> Self {
        Self { refusal: None, services, was_killed: false }
    }

    pub(super) fn refused(refusal: String) -> Self {
        Self { refusal: Some(refusal), services: Vec::new(), was_killed: false }
    }

    pub(crate) fn ending(&self) -> Ending {
        if self.was_killed { Ending::Killed } else { Ending::InTime }
    }
}

/// What wakes the supervisor.
pub(super) enum Event {
    Exited { pid: i32, code: i32 },
    Asked { request: Request, reply: Sender<Response> },
}

pub(super) fn serve(listener: UnixListener, events: Sender<Event>) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            match stream {
                Ok(stream) => {
                    let events = events.clone();
                    // A caller that went away is no concern of ours.
                    let answer = move || drop(serve_one(&stream, &events));
                    if let Err(error) = std::thread::Builder::new().spawn(answer) {
                        note(format_args!("control socket: {error}"));
                    }
                }
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
            answer.recv().unwrap_or_else(|_| Response::refused("no answer".to_owned()))
        }
        Err(error) => Response::refused(format!("request not understood: {error}")),
    };
    let mut text = serde_json::to_string(&response).unwrap_or_default();
    text.push('\n');
    let mut stream = stream;
    stream.write_all(text.as_bytes())
}

/// Asks the supervisor of a machine.
pub(crate) fn ask(machine: &Name, first: &ProcessIdentity, request: &Request) -> Result<Response> {
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
pub(super) fn ask_here(request: &Request) -> Result<Response> {
    let failed = |message: String| Error::Supervisor { machine: "this".to_owned(), message };
    let stream = UnixStream::connect(SOCKET).map_err(|error| failed(error.to_string()))?;
    converse(stream, request, failed)
}

fn converse(mut stream: UnixStream, request: &Request, failed: impl Fn(String) -> Error) -> Result<Response> {
    stream.set_read_timeout(Some(request.patience())).doing(|| "set a timeout")?;
    stream.set_write_timeout(Some(ASKER_PATIENCE)).doing(|| "set a timeout")?;
    let mut text = serde_json::to_string(request).map_err(|error| failed(error.to_string()))?;
    text.push('\n');
    stream.write_all(text.as_bytes()).map_err(|error| failed(error.to_string()))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).map_err(|error| failed(error.to_string()))?;
    let response: Response = serde_json::from_str(&line).map_err(|error| failed(error.to_string()))?;
    match response.refusal {
        Some(refusal) => Err(failed(refusal)),
        None => Ok(response),
    }
}
