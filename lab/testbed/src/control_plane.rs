//! The programs of a testbed and the flags they run with.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hangar_parts::process::tail;
use hangar_parts::{Parts, Process, ProcessSpec, Set};

use crate::Error;
use crate::credentials::Credentials;
use crate::ports::Port;

/// Generous: a machine that builds something else at the same time is slow, and a test must not fail for that.
const START_LIMIT: Duration = Duration::from_mins(5);

/// Which Kubernetes and which etcd a testbed runs.
const KUBERNETES: Set = Set::Kubernetes134;
const ETCD: Set = Set::Etcd36;

/// Paths of the programs.
#[derive(Debug)]
pub(crate) struct Programs {
    etcd: PathBuf,
    api_server: PathBuf,
    controller_manager: Option<PathBuf>,
    scheduler: Option<PathBuf>,
}

impl Programs {
    /// Finds them, and builds what is missing, with progress on standard error.
    pub(crate) fn locate(controller_manager: bool, scheduler: bool) -> Result<Self, Error> {
        let parts = Parts::from_env()?;
        let mut needed = vec![(ETCD, "etcd"), (KUBERNETES, "kube-apiserver")];
        needed.extend(controller_manager.then_some((KUBERNETES, "kube-controller-manager")));
        needed.extend(scheduler.then_some((KUBERNETES, "kube-scheduler")));
        parts.ensure_programs(&needed)?;
        let optional = |wanted: bool, name| wanted.then(|| parts.program(KUBERNETES, name)).transpose();
        Ok(Self {
            etcd: parts.program(ETCD, "etcd")?,
            api_server: parts.program(KUBERNETES, "kube-apiserver")?,
            controller_manager: optional(controller_manager, "kube-controller-manager")?,
            scheduler: optional(scheduler, "kube-scheduler")?,
        })
    }
}

/// Ports and directories of one testbed.
#[derive(Debug)]
pub(crate) struct Layout {
    directory: PathBuf,
    etcd_port: Port,
    etcd_peer_port: Port,
    api_port: Port,
    controller_manager_port: Port,
    scheduler_port: Port,
}

impl Layout {
    pub(crate) fn choose(directory: PathBuf) -> Result<Self, Error> {
        Ok(Self {
            directory,
            etcd_port: Port::reserve()?,
            etcd_peer_port: Port::reserve()?,
            api_port: Port::reserve()?,
            controller_manager_port: Port::reserve()?,
            scheduler_port: Port::reserve()?,
        })
    }

    pub(crate) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_port())
    }

    pub(crate) fn api_port(&self) -> u16 {
        self.api_port.number()
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("logs")
    }

    fn process(&self, name: &str, program: &Path) -> ProcessSpec {
        // Half the garbage for no measurable time: several testbeds run side by side.
        ProcessSpec::new(name, program, self.logs().join(format!("{name}.log"))).variable("GOGC", "50")
    }

    pub(crate) fn etcd(&self, programs: &Programs, credentials: &Credentials) -> Result<Process, Error> {
        let client = format!("https://127.0.0.1:{}", self.etcd_port.number());
        let peer = format!("https://127.0.0.1:{}", self.etcd_peer_port.number());
        let file = |name: &str| credentials.path(name).display().to_string();
        let process = self
            .process("etcd", &programs.etcd)
            .arguments([
                "--name=testbed".to_owned(),
                format!("--data-dir={}", self.directory.join("etcd").display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=testbed={peer}"),
                format!("--cert-file={}", file("etcd.crt")),
                format!("--key-file={}", file("etcd.key")),
                format!("--trusted-ca-file={}", file("etcd-ca.crt")),
                "--client-cert-auth=true".to_owned(),
                format!("--peer-cert-file={}", file("etcd.crt")),
                format!("--peer-key-file={}", file("etcd.key")),
                format!("--peer-trusted-ca-file={}", file("etcd-ca.crt")),
                "--peer-client-cert-auth=true".to_owned(),
                // The data is thrown away, so it need not survive a power cut.
                "--unsafe-no-fsync=true".to_owned(),
            ])
            .start()?;
        Ok(process)
    }

    pub(crate) fn api_server(
        &self,
        programs: &Programs,
        credentials: &Credentials,
    ) -> Result<Process, Error> {
        let file = |name: &str| credentials.path(name).display().to_string();
        let mut process = self.process("kube-apiserver", &programs.api_server).arguments([
            format!("--etcd-servers=https://127.0.0.1:{}", self.etcd_port.number()),
            format!("--etcd-cafile={}", file("etcd-ca.crt")),
            format!("--etcd-certfile={}", file("etcd-client.crt")),
            format!("--etcd-keyfile={}", file("etcd-client.key")),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.api_port()),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--enable-bootstrap-token-auth=true".to_owned(),
            "--allow-privileged=true".to_owned(),
            // Some clusters have it on: who sets an owner that blocks deletion needs a right to that owner's finalizers.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
            // A loopback address is refused as an endpoint; nobody in a testbed uses the Service.
            "--endpoint-reconciler-type=none".to_owned(),
            // Watches end at once instead of holding up a stop.
            "--shutdown-delay-duration=0s".to_owned(),
        ]);
        if programs.controller_manager.is_none() {
            // Without a controller-manager nobody makes default ServiceAccounts, and every pod would be refused.
            process = process.argument("--disable-admission-plugins=ServiceAccount");
        }
        Ok(process.start()?)
    }

    pub(crate) fn controller_manager(
        &self,
        programs: &Programs,
        credentials: &Credentials,
    ) -> Result<Option<Process>, Error> {
        let Some(program) = &programs.controller_manager else { return Ok(None) };
        let file = |name: &str| credentials.path(name).display().to_string();
        let kubeconfig =
            credentials.write_kubeconfig(&self.server(), "system:kube-controller-manager", &[])?;
        let process = self
            .process("kube-controller-manager", program)
            .arguments([
                format!("--kubeconfig={}", kubeconfig.display()),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={}", self.controller_manager_port.number()),
                format!("--root-ca-file={}", file("ca.crt")),
                format!("--service-account-private-key-file={}", file("sa.key")),
                format!("--cluster-signing-cert-file={}", file("ca.crt")),
                format!("--cluster-signing-key-file={}", file("ca.key")),
                "--use-service-account-credentials=true".to_owned(),
                "--controllers=*,bootstrap-signer-controller,token-cleaner-controller".to_owned(),
                // A quarter of a minute otherwise, and a test of an autoscaler waits for several looks.
                "--horizontal-pod-autoscaler-sync-period=1s".to_owned(),
                "--leader-elect=false".to_owned(),
            ])
            .start()?;
        Ok(Some(process))
    }

    pub(crate) fn scheduler(
        &self,
        programs: &Programs,
        credentials: &Credentials,
    ) -> Result<Option<Process>, Error> {
        let Some(program) = &programs.scheduler else { return Ok(None) };
        let kubeconfig = credentials.write_kubeconfig(&self.server(), "system:kube-scheduler", &[])?;
        let process = self
            .process("kube-scheduler", program)
            .arguments([
                format!("--kubeconfig={}", kubeconfig.display()),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--secure-port={}", self.scheduler_port.number()),
                "--leader-elect=false".to_owned(),
            ])
            .start()?;
        Ok(Some(process))
    }
}

/// Returns once `probe` succeeds; fails when the process ends or takes too long.
pub(crate) fn wait_until(
    process: &mut Process,
    mut probe: impl FnMut() -> Result<(), String>,
) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        process.check_running()?;
        let Err(answer) = probe() else { return Ok(()) };
        if start.elapsed() > START_LIMIT {
            return Err(Error::NotReady {
                program: process.name().to_owned(),
                seconds: START_LIMIT.as_secs(),
                answer,
                log: process.log().to_owned(),
                tail: tail(process.log()),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
