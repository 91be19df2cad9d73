//! The services of a machine, and when each is started.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::{
    control::Response,
    logs::Logs,
    reaper::Reaper,
    report::note,
    unit::{Ended, Main, Unit, Waiter},
};
use crate::{
    error::{Doing, Error, Result},
    name::Name,
    service::{SEARCH_PATH, Service, ServiceState, ServiceStatus},
};

/// What a shell answers for a program that cannot be run.
const NOT_RUN: i32 = 127;

pub(super) struct Units {
    all: Vec<Unit>,
    reaper: Reaper,
    logs: Logs,
}

impl Units {
    pub(super) fn new(services: Vec<Service>, reaper: Reaper, logs: Logs) -> Self {
        Self { all: services.into_iter().map(Unit::new).collect(), reaper, logs }
    }

    pub(super) fn status(&self) -> Vec<ServiceStatus> {
        self.all
            .iter()
            .map(|unit| ServiceStatus {
                name: unit.service.name.clone(),
                state: unit.state(),
                starts: unit.starts,
                last_exit: unit.last_exit,
            })
            .collect()
    }

    /// Goes on ending what should end, starts what can be started, and tells those who waited for it.
    pub(super) fn advance(&mut self, now: Instant) {
        let mut all_ended = Vec::new();
        // A service that runs may unblock the next in the same pass.
        for index in 0..self.all.len() {
            if let Some(ended) = self.all[index].go_on(now) {
                // The last words of what it had started.
                self.logs.flush(&self.all[index].service.log_file());
                all_ended.push(ended);
            }
            if self.can_start(index, now) {
                let unit = &mut self.all[index];
                unit.starts += 1;
                unit.not_before = None;
                match spawn(unit, &self.reaper, &mut self.logs) {
                    Ok(main) => {
                        unit.running = Some(main);
                        unit.state = ServiceState::Restarting;
                    }
                    Err(error) => {
                        note(&error);
                        unit.ended(NOT_RUN, now);
                    }
                }
            }
        }
        for ended in all_ended {
            self.tell(ended);
        }
    }

    fn tell(&self, ended: Ended) {
        for waiter in ended.waiters {
            let _ = waiter.reply.send(if waiter.wants_it_up && !ended.again {
                Response::refused("another request stopped it meanwhile".to_owned())
            } else {
                Response { was_killed: ended.was_killed, ..Response::done(self.status()) }
            });
        }
    }

    fn can_start(&self, index: usize, now: Instant) -> bool {
        let unit = &self.all[index];
        unit.is_pending()
            && unit.not_before.is_none_or(|time| time <= now)
            && unit.service.when_exists.as_ref().is_none_or(|path| path.exists())
            && unit.service.after.iter().all(|name| {
                self.all.iter().any(|other| other.service.name == *name && other.is_done_for_others())
            })
    }

    /// How long nothing can change by itself; `None` for "until an event".
    pub(super) fn next_look(&self, now: Instant) -> Option<Duration> {
        // A service that became due since its last try, or whose turn came by a service further down the list, causes
        // no event.
        if (0..self.all.len()).any(|index| self.can_start(index, now)) {
            return Some(Duration::ZERO);
        }
        self.all.iter().filter_map(|unit| unit.next_look(now)).min()
    }

    pub(super) fn exited(&mut self, pid: i32, code: i32, now: Instant) {
        let is_main =
            |unit: &Unit| unit.running.as_ref().is_some_and(|main| main.pid.as_raw_nonzero().get() == pid);
        if let Some(unit) = self.all.iter_mut().find(|unit| is_main(unit)) {
            self.logs.flush(&unit.service.log_file());
            note(format_args!("service {} ended with {code}", unit.service.name));
            unit.ended(code, now);
        }
    }

    fn find(&mut self, name: &Name) -> Result<&mut Unit> {
        let found = self.all.iter_mut().find(|unit| unit.service.name == *name);
        found.ok_or_else(|| Error::Invalid(format!("no service {name}")))
    }

    pub(super) fn add(&mut self, service: Service) -> Result<()> {
        service.check()?;
        if self.find(&service.name).is_ok() {
            return Err(Error::Invalid(format!("service {} exists already", service.name)));
        }
        self.all.push(Unit::new(service));
        Ok(())
    }

    /// Starts a service. Like the next two, it takes the waiter when there is something to wait for.
    pub(super) fn start(&mut self, name: &Name, waiter: &mut Option<Waiter>) -> Result<()> {
        let unit = self.find(name)?;
        if unit.is_stopping() {
            unit.stop(true, waiter, Instant::now());
        } else if unit.running.is_none() {
            unit.not_before = None;
            unit.state = ServiceState::Waiting;
        }
        Ok(())
    }

    pub(super) fn stop(&mut self, name: &Name, waiter: &mut Option<Waiter>) -> Result<()> {
        self.find(name)?.stop(false, waiter, Instant::now());
        Ok(())
    }

    pub(super) fn restart(&mut self, name: &Name, waiter: &mut Option<Waiter>) -> Result<()> {
        self.find(name)?.stop(true, waiter, Instant::now());
        Ok(())
    }

    pub(super) fn any_running(&self) -> bool {
        self.all.iter().any(|unit| unit.running.is_some())
    }

    /// Asks all to end, for good: no request waits for a single one any more.
    pub(super) fn terminate_all(&mut self, why: &str) {
        for unit in &mut self.all {
            unit.refuse(why);
            // Nobody is asked twice, see [`Unit::signal`].
            if !unit.is_stopping() {
                unit.terminate();
            }
        }
    }

    pub(super) fn kill_all(&self) {
        self.all.iter().for_each(|unit| unit.signal(Signal::KILL));
    }

    pub(super) fn flush_logs(&self) {
        self.logs.flush_all();
    }
}

fn spawn(unit: &Unit, reaper: &Reaper, logs: &mut Logs) -> Result<Main> {
    let service = &unit.service;
    let name = &service.name;
    let (program, arguments) = service
        .command
        .split_first()
        .ok_or_else(|| Error::Invalid(format!("service {name} has no command")))?;
    let log = service.log_file();
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
        .stdin(Stdio::null())
        .stdout(logs.writer(&log)?)
        .stderr(logs.writer(&log)?);
    if let Some(door) = unit.members.door().doing(|| format!("open the control group of service {name}"))? {
        // SAFETY: between fork and exec the closure makes one system call and touches no memory of the parent.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(move || rustix::io::write(&door, b"0").map(drop).map_err(io::Error::from));
        }
    }
    let guard = reaper.pause();
    let child = command.spawn();
    // Nobody collects it meanwhile, so this is the child and no other.
    let main = child.map(|child| {
        let pid = Pid::from_child(&child);
        Main { pid, pidfd: pidfd_open(pid, PidfdFlags::empty()).ok() }
    });
    drop(guard);
    // The reaper collects it; the handle is of no further use.
    reaper.wake();
    main.map_err(|error| Error::Invalid(format!("service {name}: {program}: {error}")))
}
