//! One service: its process, its next state, and how it is ended.
//!
//! A service is ended as `systemctl stop` promises: SIGTERM, then after the service's time
//! ([`Service::stop_limit_milliseconds`]) SIGKILL, to the processes that its [`KillMode`] names. The request is
//! answered when those processes are gone. A process that cannot be killed (the kernel waits for a disk) is reported.

use std::{
    os::fd::OwnedFd,
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, pidfd_send_signal};

use super::{control::Response, members::Members, report::note};
use crate::service::{KillMode, Restart, Service, ServiceState};

/// Interval of checks for missing files and for processes that should end. Only while there are such.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// The same for processes that were killed and did not end.
const SELDOM: Duration = Duration::from_secs(1);
/// Killed processes are gone in milliseconds; only a hanging kernel takes longer.
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// The service's first process.
pub(super) struct Main {
    pub(super) pid: Pid,
    /// Pins it. Nothing when there was no descriptor left.
    pub(super) pidfd: Option<OwnedFd>,
}

/// A request that is answered once the service has ended.
pub(super) struct Waiter {
    pub(super) reply: Sender<Response>,
    /// The request is a restart.
    pub(super) wants_it_up: bool,
}

/// On its way out.
struct Stopping {
    phase: StopPhase,
    /// When the next phase begins.
    deadline: Instant,
    /// It is started again once it is gone, whatever its policy.
    again: bool,
    waiters: Vec<Waiter>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StopPhase {
    Asked,
    Killed,
    GivenUp,
}

/// A service that has ended, and the requests to answer.
pub(super) struct Ended {
    pub(super) waiters: Vec<Waiter>,
    pub(super) was_killed: bool,
    pub(super) again: bool,
}

pub(super) struct Unit {
    pub(super) service: Service,
    pub(super) members: Members,
    /// Its process, while it has one.
    pub(super) running: Option<Main>,
    /// What it is when it has no process, and is not on its way out.
    pub(super) state: ServiceState,
    pub(super) starts: u32,
    pub(super) last_exit: Option<i32>,
    pub(super) not_before: Option<Instant>,
    stopping: Option<Stopping>,
}

impl Unit {
    pub(super) fn new(service: Service) -> Self {
        Self {
            members: Members::of(&service.name),
            service,
            running: None,
            state: ServiceState::Waiting,
            starts: 0,
            last_exit: None,
            not_before: None,
            stopping: None,
        }
    }

    pub(super) fn state(&self) -> ServiceState {
        match (&self.stopping, &self.running) {
            (Some(_), _) => ServiceState::Stopping,
            (None, Some(main)) => ServiceState::Running(main.pid.as_raw_nonzero().get().cast_unsigned()),
            (None, None) => self.state.clone(),
        }
    }

    /// Sends a signal, once to each: many programs take a second SIGTERM for impatience and end at once. What the service
    /// starts when it hears the signal is not asked: it most likely tidies up.
    pub(super) fn signal(&self, signal: Signal) {
        let is_group = self.service.kill_mode == KillMode::ControlGroup;
        let main = self.running.as_ref().map(|main| main.pid);
        let others = if is_group { self.members.pin_all_but(main) } else { Vec::new() };
        if let Some(main) = &self.running {
            let _ = match &main.pidfd {
                // It leads its own process group.
                _ if is_group && !self.members.are_known() => kill_process_group(main.pid, signal),
                Some(pidfd) => pidfd_send_signal(pidfd, signal),
                None => kill_process(main.pid, signal),
            };
        }
        for other in others {
            let _ = pidfd_send_signal(other, signal);
        }
    }

    /// Asks it to end. A stopped process (SIGSTOP) hears it only once it goes on.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    pub(super) fn is_pending(&self) -> bool {
        self.running.is_none()
            && self.stopping.is_none()
            && matches!(self.state, ServiceState::Waiting | ServiceState::Restarting)
    }

    /// Whether services after this one may start.
    pub(super) fn is_done_for_others(&self) -> bool {
        if self.service.restart == Restart::Never { self.last_exit == Some(0) } else { self.starts > 0 }
    }

    /// Its process ended, asked or not.
    pub(super) fn ended(&mut self, code: i32, now: Instant) {
        self.running = None;
        self.last_exit = Some(code);
        if self.stopping.is_some() {
            // What becomes of it is decided once all of it is gone.
            return;
        }
        let again = match self.service.restart {
            Restart::Always => true,
            Restart::OnFailure => code != 0,
            Restart::Never => false,
        };
        if again {
            self.not_before = Some(now + Duration::from_millis(self.service.restart_delay_milliseconds));
            self.state = ServiceState::Restarting;
        } else {
            self.state = ServiceState::Ended(code);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    fn is_there(&self) -> bool {
        self.running.is_some() || (self.service.kill_mode == KillMode::ControlGroup && self.members.any())
    }

    /// Begins to end it; takes the waiter when there is something to wait for.
    pub(super) fn stop(&mut self, again: bool, waiter: &mut Option<Waiter>, now: Instant) {
        let is_there = self.is_there();
        match &mut self.stopping {
            None if !is_there => self.rest(again),
            None => {
                self.terminate();
                let limit = Duration::from_millis(self.service.stop_limit_milliseconds);
                let (phase, deadline) = (StopPhase::Asked, now + limit);
                let waiters = waiter.take().into_iter().collect();
                self.stopping = Some(Stopping { phase, deadline, again, waiters });
            }
            Some(stopping) => {
                if stopping.phase == StopPhase::GivenUp {
                    stopping.phase = StopPhase::Killed;
                    stopping.deadline = now + KILL_PATIENCE;
                }
                stopping.again = again;
                stopping.waiters.extend(waiter.take());
            }
        }
    }

    /// Nothing of it is left.
    fn rest(&mut self, again: bool) {
        self.not_before = None;
        self.state = if again { ServiceState::Waiting } else { ServiceState::Stopped };
    }

    /// Goes on ending it; something once it is over.
    pub(super) fn go_on(&mut self, now: Instant) -> Option<Ended> {
        self.stopping.as_ref()?;
        if !self.is_there() {
            let Stopping { phase, again, waiters, .. } = self.stopping.take()?;
            self.rest(again);
            return Some(Ended { waiters, was_killed: phase != StopPhase::Asked, again });
        }
        let stopping = self.stopping.as_mut()?;
        let name = &self.service.name;
        match stopping.phase {
            StopPhase::Asked if now >= stopping.deadline => {
                let limit = self.service.stop_limit_milliseconds;
                note(format_args!("service {name} did not end within {limit} ms of SIGTERM: it is killed"));
                stopping.phase = StopPhase::Killed;
                stopping.deadline = now + KILL_PATIENCE;
            }
            StopPhase::Killed if now >= stopping.deadline => {
                let refusal = format!(
                    "service {name} was killed and does not end: the kernel waits, for a disk or a network file system most \
                     likely (see /proc/PID/stack)"
                );
                note(&refusal);
                for waiter in stopping.waiters.drain(..) {
                    let _ = waiter.reply.send(Response::refused(refusal.clone()));
                }
                stopping.phase = StopPhase::GivenUp;
            }
            _ => {}
        }
        if stopping.phase != StopPhase::Asked {
            // Each time: one that was about to be killed may have had a child a moment before.
            self.signal(Signal::KILL);
        }
        None
    }

    /// Refuses all waiting requests.
    pub(super) fn refuse(&mut self, why: &str) {
        for waiter in self.stopping.iter_mut().flat_map(|stopping| stopping.waiters.drain(..)) {
            let _ = waiter.reply.send(Response::refused(why.to_owned()));
        }
    }

    /// How long nothing can change by itself; `None` for "until an event".
    pub(super) fn next_look(&self, now: Instant) -> Option<Duration> {
        match &self.stopping {
            Some(stopping) if stopping.phase == StopPhase::GivenUp => Some(SELDOM),
            Some(_) => Some(LOOK),
            None if !self.is_pending() => None,
            None => match self.not_before {
                Some(time) if time > now => Some(time - now),
                _ => self.service.when_exists.as_ref().map(|_| LOOK),
            },
        }
    }
}
