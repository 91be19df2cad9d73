//! Makes and starts a machine.

use std::{
    fs::{self, OpenOptions},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use super::{Machine, PATIENCE, logs::last_words};
use crate::{
    environment::Environment,
    error::{Doing, Error, Result, on},
    host, json_file,
    lock::Lock,
    record::Record,
    root::make_directory,
    service::SUPERVISOR_LOG,
    spec::MachineSpec,
    supervisor::report::{self, READY},
};

impl Environment {
    /// Makes a machine and starts it. When this fails, nothing of it is left.
    pub fn create_machine(&self, spec: MachineSpec) -> Result<Machine> {
        spec.check()?;
        host::check_privileges()?;
        let state_existed = self.state().exists();
        fs::create_dir_all(self.state()).doing(|| on("create", self.state()))?;
        let made = self.try_create(spec);
        self.tidy();
        if made.is_err() && !state_existed {
            // Only if nobody else put something there.
            let _ = fs::remove_dir(self.state());
        }
        made
    }

    fn try_create(&self, spec: MachineSpec) -> Result<Machine> {
        host::check(self.state())?;
        let machine = self.machine(&spec.name);
        let lock = Lock::acquire(&machine.files.directory, PATIENCE, || Ok(()))?;
        let remedy = match machine.files.read_record() {
            Ok(None) => None,
            Ok(Some(_)) => Some("start or delete it"),
            Err(Error::Record { .. }) => Some("its record cannot be read, delete it"),
            Err(error) => return Err(error),
        };
        if let Some(remedy) = remedy {
            let hint = format!(" in environment {}: {remedy}", self.name());
            return Err(Error::NameTaken { what: "machine", name: spec.name.to_string(), hint });
        }
        let made = machine.make(spec, &lock);
        if made.is_err() {
            // The first failure is what matters; a second attempt to delete remains possible.
            let _ = machine.remove_all();
        }
        drop(lock);
        made.map(|()| machine)
    }
}

impl Machine {
    fn make(&self, spec: MachineSpec, lock: &Lock) -> Result<()> {
        // A creator that was killed before it wrote a record may have left processes of an older life.
        self.end_processes()?;
        // And a deleter that was killed half way some of its data, which is not this machine's.
        Lock::clear_directory(&self.files.directory)?;
        let identity = self.environment.identity();
        let record = Record {
            environment: self.environment.name().clone(),
            state: self.environment.state().to_owned(),
            machine_id: uuid::Uuid::new_v4().simple().to_string(),
            cgroup: identity.cgroup(&self.name),
            netns: identity.machine_netns(&self.name),
            spec,
        };
        json_file::write_durably(&self.files.record(), &record)?;
        self.start_locked(lock)
    }

    /// Starts a machine that exists and does not run, also after a restart of the host.
    pub fn start(&self) -> Result<()> {
        self.record()?;
        host::check(self.environment.state())?;
        let (lock, _) = self.lock(PATIENCE)?;
        if self.files.first_process()?.is_some() {
            return Err(Error::AlreadyRunning(self.name.to_string()));
        }
        self.start_locked(&lock)
    }

    pub(super) fn start_locked(&self, lock: &Lock) -> Result<()> {
        let started = self.try_start(lock);
        if started.is_err() {
            let _ = self.end_processes();
        }
        started
    }

    fn try_start(&self, lock: &Lock) -> Result<()> {
        let record = self.record()?;
        // Anew each time: a group that had children cannot be entered on v2.
        let group = self.group()?;
        self.end_processes()?;
        group.create()?;
        self.connect(&record)?;
        make_directory(&self.files.logs(), 0o755)?;
        self.launch(lock)
    }

    /// Its network namespace with all links, before any process is in it.
    pub(super) fn connect(&self, record: &Record) -> Result<()> {
        let netns = self.netns();
        netns.ensure()?;
        for (name, value) in &record.spec.network_sysctls {
            if netns.has_sysctl(name)? {
                netns.set_sysctl(name, value)?;
            }
        }
        let identity = self.environment.identity();
        record.spec.nics.iter().try_for_each(|nic| nic.ensure(identity, &self.name, &netns))
    }

    fn launch(&self, lock: &Lock) -> Result<()> {
        let log = self.files.logs().join(SUPERVISOR_LOG);
        let errors = OpenOptions::new().create(true).append(true).open(&log).doing(|| on("open", &log))?;
        // What is in it so far is of earlier starts.
        let before = errors.metadata().map_or(0, |metadata| metadata.len());
        let supervisor = self.environment.supervisor();
        let mut command = Command::new(&supervisor.program);
        command
            .args(&supervisor.arguments)
            .arg("launch")
            .arg(&self.files.directory)
            .env_clear()
            .env("PATH", crate::service::SEARCH_PATH)
            .current_dir("/")
            .stdin(Stdio::from(lock.share()?))
            .stdout(Stdio::piped())
            .stderr(Stdio::from(errors));
        let mut launcher = command.spawn().doing(|| format!("start {}", supervisor.program.display()))?;
        // Ends when both the launcher and the first process have closed it.
        let report = launcher.stdout.take().map(|output| report::read(output, report::PATIENCE));
        let Some(report) = report.transpose()?.flatten() else {
            let _ = launcher.kill();
            let _ = launcher.wait();
            let seconds = report::PATIENCE.as_secs();
            let why = format!("it was not up after {seconds} s; {}", last_words(&log, before));
            return Err(Error::Boot { machine: self.name.to_string(), message: why });
        };
        let status = launcher.wait().doing(|| "wait for the launcher")?;
        let is_ready = status.success() && report.lines().any(|line| line == READY);
        if is_ready && self.files.first_process()?.is_some() {
            return Ok(());
        }
        let reason = report.lines().find(|line| *line != READY).map_or_else(
            || format!("its first process ended without a message; {}", last_words(&log, before)),
            str::to_owned,
        );
        Err(Error::Boot { machine: self.name.to_string(), message: reason })
    }

    /// Waits until a file exists inside, such as a service's socket. `false` when it does not in time.
    pub fn wait_for_file(&self, path: impl AsRef<Path>, patience: Duration) -> Result<bool> {
        let deadline = std::time::Instant::now() + patience;
        loop {
            if self.has_file(path.as_ref())? {
                return Ok(true);
            }
            if std::time::Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
