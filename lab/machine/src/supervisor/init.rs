//! The first process of a machine.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::Path,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use rustix::{
    process::getpid,
    stdio::{dup2_stdin, dup2_stdout},
};

use super::{
    control::{self, Event, Request, Response},
    logs::Logs,
    raise_open_files,
    reaper::Reaper,
    report::READY,
    unit::Waiter,
    units::Units,
};
use crate::{
    error::{Doing, Error, Result},
    log_file::keep_standard_error_small,
    record::Files,
    root,
    service::SUPERVISOR_LOG,
};

/// Answer to requests while the machine stops.
const STOPPING: &str = "the machine is stopping";
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
    let mut units = Units::new(record.spec.services.clone(), reaper, Logs::new(root::LOGS));
    units.advance(Instant::now());
    announce()?;
    supervise(&mut units, &events);
    units.flush_logs();
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
    let own_log = Path::new(root::LOGS).join(SUPERVISOR_LOG);
    loop {
        // What grows it are events: services that end again and again.
        keep_standard_error_small(&own_log);
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
                answer(units, request, &reply);
                continue;
            }
            None => {}
        }
        units.advance(Instant::now());
    }
}

/// Carries out a request, and answers it unless the answer comes later.
fn answer(units: &mut Units, request: Request, reply: &Sender<Response>) {
    let (wants_it_up, at_once) = match request {
        Request::StartService { at_once, .. } | Request::RestartService { at_once, .. } => (true, at_once),
        Request::StopService { at_once, .. } => (false, at_once),
        _ => (false, true),
    };
    let mut waiter = (!at_once).then(|| Waiter { reply: reply.clone(), wants_it_up });
    let done = match request {
        Request::Status | Request::Stop { .. } => Ok(()),
        Request::StartService { service, .. } => units.start(&service, &mut waiter),
        Request::StopService { service, .. } => units.stop(&service, &mut waiter),
        Request::RestartService { service, .. } => units.restart(&service, &mut waiter),
        Request::AddService { service } => units.add(service),
    };
    units.advance(Instant::now());
    let is_taken = !at_once && waiter.is_none();
    let response = match done {
        Ok(()) if is_taken => return,
        Ok(()) => Response::done(units.status()),
        Err(error) => Response::refused(error.to_string()),
    };
    let _ = reply.send(response);
}

/// Asks every service to end, then leaves; the kernel ends what is left.
fn stop(units: &mut Units, events: &Receiver<Event>, grace: Duration) {
    units.terminate_all(STOPPING);
    let mut deadline = Instant::now() + grace;
    let mut was_killed = false;
    while units.any_running() {
        match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Exited { pid, code }) => units.exited(pid, code, Instant::now()),
            Ok(Event::Asked { reply, .. }) => {
                let _ = reply.send(Response::refused(STOPPING.to_owned()));
            }
            Err(_) if was_killed => return,
            Err(_) => {
                units.kill_all();
                deadline = Instant::now() + LAST_WORDS;
                was_killed = true;
            }
        }
    }
}
