//! The services of a machine.
//!
//! A service is data: a command, when to start it, and what to do when it ends. Services that run for long are
//! restarted; others can wait for those that run once ([`Restart::Never`], [`Service::after`]).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    log_file::is_older_name,
    name::Name,
};

/// Search path of everything that runs in a machine, unless it says otherwise.
pub(crate) const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Longest time that a service may be given to end: the request waits as long.
pub(crate) const LONGEST_STOP: Duration = Duration::from_mins(5);

/// Where process 1 itself writes.
pub(crate) const SUPERVISOR_LOG: &str = "supervisor.log";

/// When a service is started again after it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    #[default]
    Always,
    /// Only when it failed.
    OnFailure,
    /// It runs once per start of the machine.
    Never,
}

/// Which processes end when a service is stopped, with systemd's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KillMode {
    /// All that it started, wherever they went, except those that were moved to other control groups (containers).
    #[default]
    ControlGroup,
    /// Only the one that was started: the others go on without it.
    Process,
}

/// Something the supervisor runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Name, unique in the machine; also the name of its log.
    pub name: Name,
    pub command: Vec<String>,
    /// Variables beside `PATH`, `HOME` and `LANG`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Started only once this file exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_exists: Option<PathBuf>,
    /// Started only after these: a service that runs once must have succeeded, others must have been started.
    #[serde(default)]
    pub after: Vec<Name>,
    /// What happens when it ends.
    #[serde(default)]
    pub restart: Restart,
    /// Pause before it is started again.
    #[serde(default = "default_delay")]
    pub restart_delay_milliseconds: u64,
    /// Which processes end when it is stopped.
    #[serde(default)]
    pub kill_mode: KillMode,
    /// How long it may take to end when it is stopped; then it is killed.
    #[serde(default = "default_stop_limit")]
    pub stop_limit_milliseconds: u64,
    /// Log file in the machine's log directory; `<name>.log` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

fn default_delay() -> u64 {
    1000
}

/// kubelet and containerd end within a second; on a very busy host it may be many. systemd would wait 90 s, and a person
/// with a service that hangs, too.
fn default_stop_limit() -> u64 {
    30_000
}

impl Service {
    /// A service that is started at once and restarts whenever it ends.
    pub fn new(name: Name, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            name,
            command: command.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            when_exists: None,
            after: Vec::new(),
            restart: Restart::Always,
            restart_delay_milliseconds: default_delay(),
            kill_mode: KillMode::default(),
            stop_limit_milliseconds: default_stop_limit(),
            log: None,
        }
    }

    fn known(name: &'static str, command: &[&str]) -> Self {
        Self::new(Name::known(name), command.iter().copied())
    }

    /// containerd with the configuration in /etc/containerd/config.toml. Its shims, and so all containers, outlive it and
    /// are found again by the next one.
    pub fn containerd() -> Self {
        Self { kill_mode: KillMode::Process, ..Self::known("containerd", &["containerd"]) }
    }

    /// kubelet as kubeadm expects it from the distribution: it starts once it is configured, with the flags that
    /// kubeadm wrote and those in /etc/default/kubelet. Flags of the machine's own go into its environment as
    /// `KUBELET_IMAGE_ARGS`.
    pub fn kubelet() -> Self {
        let script = r"
[ -e /var/lib/kubelet/kubeadm-flags.env ] && . /var/lib/kubelet/kubeadm-flags.env
[ -e /etc/default/kubelet ] && . /etc/default/kubelet
bootstrap=
[ -e /etc/kubernetes/bootstrap-kubelet.conf ] && bootstrap=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf
exec kubelet $bootstrap --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_IMAGE_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
";
        Self {
            when_exists: Some(PathBuf::from("/var/lib/kubelet/config.yaml")),
            ..Self::known("kubelet", &["/bin/sh", "-c", script])
        }
    }

    /// Name of its log file.
    pub fn log_file(&self) -> String {
        self.log.clone().unwrap_or_else(|| format!("{}.log", self.name))
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.command.first().is_none_or(String::is_empty) {
            return Err(Error::Invalid(format!("service {} has no command", self.name)));
        }
        let log = self.log_file();
        if log.contains('/') || log.starts_with('.') {
            return Err(Error::Invalid(format!("service {}: {log:?} is not a file name", self.name)));
        }
        if log == SUPERVISOR_LOG || is_older_name(&log) {
            return Err(Error::Invalid(format!("service {}: {log:?} is the name of another log", self.name)));
        }
        if Duration::from_millis(self.stop_limit_milliseconds) > LONGEST_STOP {
            let most = LONGEST_STOP.as_secs();
            return Err(Error::Invalid(format!("service {}: more than {most} s to end", self.name)));
        }
        if self.when_exists.as_deref().is_some_and(Path::is_relative) {
            return Err(Error::Invalid(format!("service {}: it waits for a relative path", self.name)));
        }
        Ok(())
    }
}

/// What a service is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceState {
    /// Its file or one of the services before it is missing.
    Waiting,
    /// It runs, with this number inside the machine.
    Running(u32),
    /// It ended and will be started again.
    Restarting,
    /// It ended for good, with this code (128 and more: by a signal).
    Ended(i32),
    /// It was told to end, and it or something it started is still there.
    Stopping,
    /// It was stopped by request.
    Stopped,
}

/// How a service that was told to end did so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Within its time, or it did not run.
    InTime,
    /// It did not end by itself and was killed.
    Killed,
}

/// A service as the supervisor sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStatus {
    pub name: Name,
    /// What it is doing.
    pub state: ServiceState,
    /// How often it was started.
    pub starts: u32,
    /// How it ended last.
    pub last_exit: Option<i32>,
}

/// A containerd 1.6/1.7 configuration (format 2) that works in a machine.
///
/// `lower_oom_score` is [`crate::host::Abilities::lower_oom_score`]: without that ability every pod would fail
/// unless containerd is told not to try.
pub fn containerd_config(sandbox_image: &str, lower_oom_score: bool) -> String {
    format!(
        r#"version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{sandbox_image}"
  restrict_oom_score_adj = {}

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
"#,
        !lower_oom_score
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without `CAP_SYS_RESOURCE` containerd must not try to lower scores; with it, it must, or pods lose their order.
    #[test]
    fn scores_are_restricted_only_where_they_must_be() {
        for (lower_oom_score, line) in
            [(false, "restrict_oom_score_adj = true"), (true, "restrict_oom_score_adj = false")]
        {
            let config = containerd_config("registry.k8s.io/pause:3.10", lower_oom_score);
            assert!(config.lines().any(|other| other.trim() == line), "{config}");
        }
    }

    #[test]
    fn known_services_are_well_formed() {
        for service in [Service::containerd(), Service::kubelet()] {
            Name::new(service.name.as_str()).unwrap();
            service.check().unwrap();
        }
        for log in ["../x", ".x", "supervisor.log", "kubelet.1.log"] {
            let bad = Service { log: Some(log.to_owned()), ..Service::containerd() };
            assert!(bad.check().is_err(), "{log}");
        }
        let endless = Service { stop_limit_milliseconds: 1_000_000, ..Service::containerd() };
        assert!(endless.check().is_err());
        assert!(Service::new(Name::new("x").unwrap(), Vec::<String>::new()).check().is_err());
    }
}
