//! Machines: create, list, stop, start, delete, and what can be done with a running one.
//!
//! Every change happens under the machine's lock; reading needs none. The order within a change is chosen so that a
//! process killed at any moment leaves something that [`Machine::delete`] and [`Environment::create_machine`] can
//! finish: the record first, kernel objects with names that follow from the machine's, then processes, which are in the
//! machine's control groups before they do anything.

mod copy;
mod create;
mod exec;
mod logs;
mod remove;
mod repair;

pub use self::exec::Exec;
pub use self::repair::SEEDED;

use std::{path::PathBuf, time::Duration};

use crate::{
    cgroup::{Group, Hierarchies},
    environment::Environment,
    error::{Error, Result},
    json_file,
    lock::Lock,
    name::Name,
    net::{Netns, Nic},
    process::ProcessIdentity,
    record::{Files, Record},
    service::{Ending, Service, ServiceStatus},
    supervisor::control::{Request, Response, ask},
};

/// Starting takes well under a second; who waits longer waits for a process that hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a machine is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineState {
    /// It runs; this is its first process.
    Running(ProcessIdentity),
    /// Some process is changing it.
    Changing,
    /// It exists and does not run: it was stopped, or the host restarted.
    Stopped,
    /// Its creator was killed before it could say what the machine should be. It can only be deleted.
    Incomplete,
}

/// A machine as found on disk.
#[derive(Debug, Clone)]
pub struct MachineStatus {
    pub name: Name,
    /// What it is doing.
    pub state: MachineState,
    pub nics: Vec<Nic>,
    /// Where its files are.
    pub directory: PathBuf,
}

/// A handle on a machine, by name.
#[derive(Debug, Clone)]
pub struct Machine {
    environment: Environment,
    name: Name,
    files: Files,
}

impl Environment {
    /// A handle on a machine, whether it exists or not.
    pub fn machine(&self, name: &Name) -> Machine {
        let directory = self.directory().join("machines").join(name.as_str());
        Machine { environment: self.clone(), name: name.clone(), files: Files::new(directory) }
    }

    /// All machines of the environment.
    pub fn machines(&self) -> Result<Vec<MachineStatus>> {
        // One that is being deleted may vanish while we look.
        self.names_in("machines")?.iter().filter_map(|name| self.machine(name).look().transpose()).collect()
    }
}

impl Machine {
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Its directory: logs, root, overlay, data.
    pub fn directory(&self) -> &std::path::Path {
        &self.files.directory
    }

    /// Its network namespace.
    pub fn netns(&self) -> Netns {
        Netns::at(self.environment.identity().machine_netns(&self.name))
    }

    fn group(&self) -> Result<Group> {
        Ok(Group::new(Hierarchies::discover()?, self.environment.identity().cgroup(&self.name)))
    }

    /// What it is doing.
    pub fn status(&self) -> Result<MachineStatus> {
        self.look()?.ok_or_else(|| self.not_found())
    }

    /// What it does; nothing where it does not exist. An error says neither.
    pub fn state(&self) -> Result<Option<MachineState>> {
        Ok(self.look()?.map(|status| status.state))
    }

    fn look(&self) -> Result<Option<MachineStatus>> {
        // Half a record can only be deleted, like one that was never written. One that cannot be read now is an error:
        // callers delete what is incomplete.
        let record: Option<Record> = json_file::read_if_whole(&self.files.record())?;
        if record.is_none() && !self.files.directory.exists() {
            return Ok(None);
        }
        let is_changing = Lock::is_held(&self.files.directory)?;
        let state = match (self.files.first_process()?, &record) {
            (_, _) if is_changing => MachineState::Changing,
            (Some(first), _) => MachineState::Running(first),
            (None, Some(_)) => MachineState::Stopped,
            (None, None) => MachineState::Incomplete,
        };
        let nics = record.map(|record| record.spec.nics).unwrap_or_default();
        let directory = self.files.directory.clone();
        Ok(Some(MachineStatus { name: self.name.clone(), state, nics, directory }))
    }

    fn not_found(&self) -> Error {
        Error::NotFound {
            what: "machine",
            name: self.name.to_string(),
            environment: self.environment.name().to_string(),
        }
    }

    fn record(&self) -> Result<Record> {
        self.files.read_record()?.ok_or_else(|| self.not_found())
    }

    fn first_process(&self) -> Result<ProcessIdentity> {
        self.record()?;
        self.files.first_process()?.ok_or_else(|| Error::NotRunning(self.name.to_string()))
    }

    /// Takes the lock of a machine that exists, and still exists once the lock is taken.
    fn lock(&self, patience: Duration) -> Result<(Lock, Record)> {
        self.record()?;
        let lock = Lock::acquire_existing(&self.files.directory, patience)?;
        Ok((lock.ok_or_else(|| self.not_found())?, self.record()?))
    }

    fn ask(&self, request: &Request) -> Result<Response> {
        ask(&self.name, &self.first_process()?, request)
    }

    /// Its services, as the supervisor sees them.
    pub fn services(&self) -> Result<Vec<ServiceStatus>> {
        Ok(self.ask(&Request::Status)?.services)
    }

    /// Starts a service that was stopped or ended; one that is on its way out once it is gone.
    pub fn start_service(&self, service: &Name) -> Result<()> {
        self.ask(&Request::StartService { service: service.clone(), at_once: false }).map(drop)
    }

    /// Stops a service until it is started again. Returns when it is gone, at the latest some seconds after its
    /// [`Service::stop_limit_milliseconds`]; one that is not gone even then is an error.
    pub fn stop_service(&self, service: &Name) -> Result<Ending> {
        self.ask(&Request::StopService { service: service.clone(), at_once: false })
            .map(|answer| answer.ending())
    }

    /// Ends a service, as [`Self::stop_service`] does, and starts it again.
    pub fn restart_service(&self, service: &Name) -> Result<Ending> {
        let request = Request::RestartService { service: service.clone(), at_once: false };
        self.ask(&request).map(|answer| answer.ending())
    }

    /// Adds a service to the running machine. It is gone after a restart of the machine.
    pub fn add_service(&self, service: Service) -> Result<()> {
        service.check()?;
        self.ask(&Request::AddService { service }).map(drop)
    }

    /// Stops the machine: services get `grace` to end, then everything ends. Its data and links stay.
    pub fn stop(&self, grace: Duration) -> Result<()> {
        let (lock, _) = self.lock(PATIENCE.saturating_add(grace))?;
        let stopped = self.stop_locked(grace);
        drop(lock);
        stopped
    }

    fn stop_locked(&self, grace: Duration) -> Result<()> {
        if let Some(first) = self.files.first_process()? {
            let grace_milliseconds = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
            let asked = ask(&self.name, &first, &Request::Stop { grace_milliseconds });
            // A supervisor that does not answer gets no grace.
            if asked.is_ok() {
                first.wait_gone(grace.saturating_add(Duration::from_secs(1)));
            }
        }
        self.end_processes()
    }

    /// Stops the machine and starts it again, with its data.
    pub fn restart(&self, grace: Duration) -> Result<()> {
        let (lock, _) = self.lock(PATIENCE.saturating_add(grace))?;
        self.stop_locked(grace)?;
        self.start_locked(&lock)
    }
}
