//! The first process of a machine.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use rustix::{
    process::{Signal, getpid},
    stdio::{dup2_stdin, dup2_stdout},
};

use super::{
    control::{self, Event, Request, Response},
    raise_open_files,
    reaper::Reaper,
    report::READY,
    units::Units,
};
use crate::{
    error::{Doing, Error, Result},
    record::Files,
    root,
};

/// After the services had their time, this long for the rest before the kernel ends it.
const LAST_WORDS: Duration = Duration::from_millis(200);

pub(super) fn run(directory: &Path) -> Result<()> {
    if !getpid().is_init() {
        return Err(Error::Invalid("only the first process of a machine may do this".to_owned()));
    }
    // Otherwise it is called after the link in /proc that started it.
    let _ = rustix::thread::set_name(c"supervisor");
    let files = Files::new(directory);
    let record = files.expect_record()?;
    raise_open_files();
    root::enter(&files, &record)?;

    let (sender, events) = mpsc::channel();
    let reaper = Reaper::start(sender.clone());
    let listener = UnixListener::bind(control::SOCKET).doing(|| "open the control socket")?;
    fs::set_permissions(control::SOCKET, fs::Permissions::from_mode(0o600))
        .doing(|| "protect the control socket")?;
    control::serve(listener, sender);
    let mut units = Units::new(record.spec.services.clone(), reaper);
    units.advance(Instant::now());
    announce()?;
    supervise(&mut units, &events);
    Ok(())
}

/// Reports success and lets go of the lock and the report's pipe.
fn announce() -> Result<()> {
    let mut output = std::io::stdout();
    // The creator may be dead: the machine runs all the same.
    let _ = writeln!(output, "{READY}").and_then(|()| output.flush());
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").doing(|| "open /dev/null")?;
    dup2_stdout(&null).doing(|| "detach the output")?;
    dup2_stdin(&null).doing(|| "release the lock")
}

fn supervise(units: &mut Units, events: &Receiver<Event>) {
    loop {
        let now = Instant::now();
        let event = match units.next_look(now) {
            Some(pause) => match events.recv_timeout(pause) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            },
            None => match events.recv() {
                Ok(event) => Some(event),
                Err(_) => return,
            },
        };
        match event {
            Some(Event::Exited { pid, code }) => units.exited(pid, code, Instant::now()),
            Some(Event::Asked { request: Request::Stop { grace_milliseconds }, reply }) => {
                let _ = reply.send(Response::done(units.status()));
                return stop(units, events, Duration::from_millis(grace_milliseconds));
            }
            Some(Event::Asked { request, reply }) => {
                let answer = answer(units, request);
                units.advance(Instant::now());
                let _ = reply.send(match answer {
                    Ok(()) => Response::done(units.status()),
                    Err(error) => Response::refused(error.to_string()),
                });
                continue;
            }
            None => {}
        }
        units.advance(Instant::now());
    }
}

fn answer(units: &mut Units, request: Request) -> Result<()> {
    match request {
        Request::Status | Request::Stop { .. } => Ok(()),
        Request::StartService { service } => units.start(&service),
        Request::StopService { service } => units.stop(&service),
        Request::RestartService { service } => units.restart(&service),
        Request::AddService { service } => units.add(service),
    }
}

/// Asks every service to end, then leaves; the kernel ends what is left.
fn stop(units: &mut Units, events: &Receiver<Event>, grace: Duration) {
    units.signal_all(Signal::TERM);
    let mut deadline = Instant::now() + grace;
    let mut was_killed = false;
    while units.any_running() {
        match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Exited { pid, code }) => units.exited(pid, code, Instant::now()),
            Ok(Event::Asked { reply, .. }) => {
                let _ = reply.send(Response::refused("the machine is stopping".to_owned()));
            }
            Err(_) if was_killed => return,
            Err(_) => {
                units.signal_all(Signal::KILL);
                deadline = Instant::now() + LAST_WORDS;
                was_killed = true;
            }
        }
    }
}

/// Opens a log for appending. One that grew large in an earlier life is put aside.
pub(super) fn open_log(name: &str) -> Result<File> {
    const LARGE: u64 = 64 << 20;
    let path = Path::new(root::LOGS).join(name);
    if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > LARGE) {
        let _ = fs::rename(&path, path.with_extension("log.old"));
    }
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    opened.doing(|| format!("open {}", path.display()))
}
