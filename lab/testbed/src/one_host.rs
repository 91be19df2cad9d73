//! A whole cluster with real pods: what `hangar up` makes, one for all tests of a binary. Needs root.
//!
//! `hangar` starts it, because that program is also the first process of the machine, which a test binary cannot be.
//! The guardian removes it in the same way, however the test binary ended. After a panic the logs are collected first.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::Error;
use crate::bed::keep_logs_after_panic;
use crate::error::At;
use crate::guardian::Guardian;
use crate::runtime::OwnRuntime;

/// A running cluster.
#[derive(Debug)]
pub struct OneHost {
    program: PathBuf,
    environment: [String; 2],
    kubeconfig: PathBuf,
    runtime: OwnRuntime,
    next_namespace: AtomicU64,
    _guardian: Guardian,
}

/// The one cluster of this test binary, started by the first caller. `program` is `hangar`, such as
/// `env!("CARGO_BIN_EXE_hangar")`; it is the same for all who ask. Without the sample cluster, which takes minutes.
///
/// # Panics
/// When it does not start; there is no test without it.
#[allow(clippy::panic)] // Only tests call this, and each would do the same.
pub fn one_host(program: impl AsRef<Path>) -> &'static OneHost {
    static SHARED: OnceLock<OneHost> = OnceLock::new();
    SHARED.get_or_init(|| match OneHost::start(program.as_ref(), &["--no-cluster"]) {
        Ok(host) => host,
        Err(error) => panic!("the shared cluster did not start: {error}"),
    })
}

impl OneHost {
    /// Starts a cluster of one's own, with more arguments for `up`, such as `--gateway`.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self, Error> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        // Not in /tmp, which may be in memory: a cluster writes some hundred megabytes.
        let parent = Path::new("/var/tmp");
        let directory =
            tempfile::Builder::new().prefix("hangar-one-host-").tempdir_in(parent).at(parent)?.keep();
        let unique = directory.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let name = format!("test-{}", unique.rsplit('-').next().unwrap_or_default());
        let state = directory.join("state");
        keep_logs_after_panic(&directory);
        let runtime = OwnRuntime::start()?;
        let environment = [format!("--name={name}"), format!("--state={}", state.display())];
        let (guardian, is_up) = Guardian::of_cluster(&directory, program, &environment, arguments)?;
        let said = |file: &str| std::fs::read_to_string(directory.join(file)).unwrap_or_default();
        if !is_up {
            return Err(Error::Up { program: program.to_owned(), output: said("up.err") });
        }
        Ok(Self {
            program: program.to_owned(),
            environment,
            kubeconfig: PathBuf::from(said("up.out").lines().last().unwrap_or_default()),
            runtime,
            next_namespace: AtomicU64::new(0),
            _guardian: guardian,
        })
    }

    /// A command of the program about this cluster, such as `status`.
    pub fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(verb).args(&self.environment);
        command
    }

    /// Path of the administrator's kubeconfig, for programs.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Configuration of the administrator.
    ///
    /// # Panics
    /// When the kubeconfig cannot be read.
    #[allow(clippy::panic)] // Only tests call this.
    pub fn config(&self) -> Config {
        let path = self.kubeconfig.clone();
        let read = self.runtime.wait(async move {
            let kubeconfig = Kubeconfig::read_from(path)?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
        });
        match read {
            Ok(config) => config,
            Err(error) => panic!("{}: {error}", self.kubeconfig.display()),
        }
    }

    /// A client for the administrator. Call it inside the runtime that will use it.
    ///
    /// # Panics
    /// Outside a runtime.
    #[allow(clippy::panic)] // Only tests call this.
    pub fn client(&self) -> Client {
        match Client::try_from(self.config()) {
            Ok(client) => client,
            Err(error) => panic!("client: {error}"),
        }
    }

    /// A fresh namespace. Its name begins with `prefix`.
    ///
    /// # Panics
    /// When the API server refuses.
    #[allow(clippy::panic)] // Only tests call this.
    pub fn namespace(&self, prefix: &str) -> String {
        let number = self.next_namespace.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}-{number}");
        let (config, metadata) =
            (self.config(), ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() });
        let created = self.runtime.wait(async move {
            let namespace = Namespace { metadata, ..Namespace::default() };
            Api::all(Client::try_from(config)?).create(&PostParams::default(), &namespace).await
        });
        match created {
            Ok(_) => name,
            Err(error) => panic!("namespace {name}: {error}"),
        }
    }
}
