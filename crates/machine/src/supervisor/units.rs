//! The services of a machine and when to start which.

use std::{
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{init::open_log, reaper::Reaper, report::note};
use crate::{
    error::{Error, Result},
    name::Name,
    service::{Restart, SEARCH_PATH, Service, ServiceState, ServiceStatus},
};

/// How often missing files are looked for. Only while some service waits for one.
const LOOK: Duration = Duration::from_millis(20);
/// What a shell answers for a program that cannot be run.
const NOT_RUN: i32 = 127;

struct Unit {
    service: Service,
    /// Its process, while it has one.
    running: Option<Pid>,
    /// What it is when it has no process, or will be once its process is gone.
    state: ServiceState,
    starts: u32,
    last_exit: Option<i32>,
    not_before: Option<Instant>,
    /// Asked to start again as soon as it ended, whatever its policy.
    again: bool,
}

impl Unit {
    fn new(service: Service) -> Self {
        let state = ServiceState::Waiting;
        Self { service, running: None, state, starts: 0, last_exit: None, not_before: None, again: false }
    }

    fn signal(&self, signal: Signal) {
        // The service leads its own group, so its helpers get the signal too.
        if let Some(pid) = self.running {
            let _ = kill_process_group(pid, signal);
        }
    }

    fn is_pending(&self) -> bool {
        self.running.is_none() && matches!(self.state, ServiceState::Waiting | ServiceState::Restarting)
    }

    /// Whether services after this one may start.
    fn is_done_for_others(&self) -> bool {
        if self.service.restart == Restart::Never { self.last_exit == Some(0) } else { self.starts > 0 }
    }

    fn ended(&mut self, code: i32, now: Instant) {
        self.running = None;
        self.last_exit = Some(code);
        let again = match self.service.restart {
            Restart::Always => true,
            Restart::OnFailure => code != 0,
            Restart::Never => false,
        };
        if self.again {
            self.again = false;
            self.not_before = None;
            self.state = ServiceState::Restarting;
        } else if self.state == ServiceState::Stopped {
            // Asked for: it stays so.
        } else if again {
            self.not_before = Some(now + Duration::from_millis(self.service.restart_delay_milliseconds));
            self.state = ServiceState::Restarting;
        } else {
            self.state = ServiceState::Ended(code);
        }
    }
}

/// All services.
pub(super) struct Units {
    units: Vec<Unit>,
    reaper: Reaper,
}

impl Units {
    pub(super) fn new(services: Vec<Service>, reaper: Reaper) -> Self {
        Self { units: services.into_iter().map(Unit::new).collect(), reaper }
    }

    pub(super) fn status(&self) -> Vec<ServiceStatus> {
        self.units
            .iter()
            .map(|unit| ServiceStatus {
                name: unit.service.name.clone(),
                state: match unit.running {
                    Some(pid) => ServiceState::Running(pid.as_raw_nonzero().get().cast_unsigned()),
                    None => unit.state.clone(),
                },
                starts: unit.starts,
                last_exit: unit.last_exit,
            })
            .collect()
    }

    /// Starts what can be started.
    pub(super) fn advance(&mut self, now: Instant) {
        // A service that runs may unblock the next in the same pass.
        for index in 0..self.units.len() {
            if self.can_start(index, now) {
                let unit = &mut self.units[index];
                unit.starts += 1;
                unit.not_before = None;
                match spawn(&unit.service, &self.reaper) {
                    Ok(pid) => {
                        unit.running = Some(pid);
                        unit.state = ServiceState::Restarting;
                    }
                    Err(error) => {
                        note(&error);
                        unit.ended(NOT_RUN, now);
                    }
                }
            }
        }
    }

    fn can_start(&self, index: usize, now: Instant) -> bool {
        let unit = &self.units[index];
        unit.is_pending()
            && unit.not_before.is_none_or(|time| time <= now)
            && unit.service.when_exists.as_ref().is_none_or(|path| path.exists())
            && unit.service.after.iter().all(|name| {
                self.units.iter().any(|other| other.service.name == *name && other.is_done_for_others())
            })
    }

    /// How long nothing can change by itself; `None` for "until an event".
    pub(super) fn next_look(&self, now: Instant) -> Option<Duration> {
        self.units
            .iter()
            .filter(|unit| unit.is_pending())
            .filter_map(|unit| match unit.not_before {
                Some(time) if time > now => Some(time - now),
                _ => unit.service.when_exists.as_ref().map(|_| LOOK),
            })
            .min()
    }

    pub(super) fn exited(&mut self, pid: i32, code: i32, now: Instant) {
        let pid = Pid::from_raw(pid);
        if let Some(unit) = self.units.iter_mut().find(|unit| unit.running.is_some() && unit.running == pid) {
            note(format_args!("service {} ended with {code}", unit.service.name));
            unit.ended(code, now);
        }
    }

    fn find(&mut self, name: &Name) -> Result<&mut Unit> {
        let found = self.units.iter_mut().find(|unit| unit.service.name == *name);
        found.ok_or_else(|| Error::Invalid(format!("no service {name}")))
    }

    pub(super) fn add(&mut self, service: Service) -> Result<()> {
        service.check()?;
        if self.find(&service.name).is_ok() {
            return Err(Error::Invalid(format!("service {} exists already", service.name)));
        }
        self.units.push(Unit::new(service));
        Ok(())
    }

    pub(super) fn start(&mut self, name: &Name) -> Result<()> {
        let unit = self.find(name)?;
        unit.not_before = None;
        if unit.running.is_none() {
            unit.state = ServiceState::Waiting;
        } else if unit.state == ServiceState::Stopped {
            // Still on its way out.
            unit.again = true;
        }
        Ok(())
    }

    pub(super) fn stop(&mut self, name: &Name) -> Result<()> {
        let unit = self.find(name)?;
        unit.signal(Signal::TERM);
        unit.again = false;
        unit.state = ServiceState::Stopped;
        Ok(())
    }

    pub(super) fn restart(&mut self, name: &Name) -> Result<()> {
        let unit = self.find(name)?;
        if unit.running.is_some() {
            unit.again = true;
            unit.signal(Signal::TERM);
        } else {
            unit.state = ServiceState::Waiting;
            unit.not_before = None;
        }
        Ok(())
    }

    pub(super) fn any_running(&self) -> bool {
        self.units.iter().any(|unit| unit.running.is_some())
    }

    pub(super) fn signal_all(&self, signal: Signal) {
        for unit in &self.units {
            unit.signal(signal);
        }
    }
}

fn spawn(service: &Service, reaper: &Reaper) -> Result<Pid> {
    let name = &service.name;
    let (program, arguments) = service
        .command
        .split_first()
        .ok_or_else(|| Error::Invalid(format!("service {name} has no command")))?;
    let log = open_log(&service.log_file())?;
    let copy = |log: &std::fs::File| log.try_clone().map(Stdio::from);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", SEARCH_PATH)
        .env("HOME", "/root")
        .env("LANG", "C.UTF-8")
        .envs(&service.environment)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null());
    let failed = |error: std::io::Error| Error::Invalid(format!("service {name}: {program}: {error}"));
    command.stdout(copy(&log).map_err(failed)?).stderr(Stdio::from(log));
    let guard = reaper.pause();
    let child = command.spawn();
    drop(guard);
    reaper.wake();
    // The reaper collects it; the handle is of no further use.
    Ok(Pid::from_child(&child.map_err(failed)?))
}
