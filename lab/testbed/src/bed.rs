//! One testbed: how it starts and ends, its clients, its namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hangar_parts::Process;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::Error;
use crate::control_plane::{Layout, Programs, wait_until};
use crate::credentials::Credentials;
use crate::error::At;
use crate::guardian::Guardian;
use crate::runtime::OwnRuntime;

/// An API server with open watches uses all the grace it gets; no test needs it to.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// Nothing takes this long; it only keeps a definition that is never served from hanging the tests.
const SERVE_LIMIT: Duration = Duration::from_mins(2);

/// What a testbed runs besides etcd and the API server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Run the controller-manager: garbage collection, ServiceAccounts, Deployments.
    pub controller_manager: bool,
    pub scheduler: bool,
}

/// A running etcd and API server.
#[derive(Debug)]
pub struct Testbed {
    layout: Layout,
    programs: Programs,
    credentials: Credentials,
    kubeconfig: PathBuf,
    runtime: OwnRuntime,
    state: Mutex<State>,
    next_namespace: AtomicU64,
}

/// The processes and the one who ends them; fields are dropped in this order.
#[derive(Debug)]
struct State {
    others: Vec<Process>,
    api_server: Option<Process>,
    _etcd: Process,
    guardian: Guardian,
}

/// The one testbed of this test binary, started by the first caller.
///
/// # Panics
/// When it does not start; there is no test without it.
#[allow(clippy::panic)] // Only tests call this, and each would do the same.
pub fn shared() -> &'static Testbed {
    static SHARED: OnceLock<Testbed> = OnceLock::new();
    SHARED.get_or_init(|| match Testbed::start(Options::default()) {
        Ok(testbed) => testbed,
        Err(error) => panic!("the shared testbed did not start: {error}"),
    })
}

impl Testbed {
    /// Starts a testbed of one's own.
    pub fn start(options: Options) -> Result<Self, Error> {
        // Two crates in the tree could each bring a TLS provider; the first one installed is the one in use.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let programs = Programs::locate(options.controller_manager, options.scheduler)?;
        let directory = tempfile::Builder::new()
            .prefix("hangar-testbed-")
            .tempdir()
            .at(&std::env::temp_dir())?
            // The guardian removes it: a TempDir in a static is never dropped.
            .keep();
        let mut guardian = Guardian::start(&directory)?;
        keep_logs_after_panic(&directory);
        let layout = Layout::choose(directory.clone())?;
        let credentials = Credentials::create(directory.join("pki"))?;
        let runtime = OwnRuntime::start()?;
        let kubeconfig = credentials.write_kubeconfig(&layout.server(), "admin", &["system:masters"])?;

        let etcd = layout.etcd(&programs, &credentials)?;
        guardian.watch(etcd.id())?;
        let state = State { others: Vec::new(), api_server: None, _etcd: etcd, guardian };
        let testbed = Self {
            layout,
            programs,
            credentials,
            kubeconfig,
            runtime,
            state: Mutex::new(state),
            next_namespace: AtomicU64::new(0),
        };
        testbed.start_api_server()?;
        testbed.start_others()?;
        Ok(testbed)
    }

    fn start_others(&self) -> Result<(), Error> {
        let controller_manager = self.layout.controller_manager(&self.programs, &self.credentials)?;
        let scheduler = self.layout.scheduler(&self.programs, &self.credentials)?;
        let mut state = self.lock();
        for mut process in [controller_manager, scheduler].into_iter().flatten() {
            state.guardian.watch(process.id())?;
            process.check_running()?;
            state.others.push(process);
        }
        Ok(())
    }

    /// Starts the API server again after [`Self::stop_api_server`], on the same port, and waits until it is ready.
    pub fn start_api_server(&self) -> Result<(), Error> {
        let mut state = self.lock();
        if state.api_server.is_some() {
            return Ok(());
        }
        let mut process = self.layout.api_server(&self.programs, &self.credentials)?;
        state.guardian.watch(process.id())?;
        let config = self.config();
        wait_until(&mut process, || self.probe(config.clone()))?;
        state.api_server = Some(process);
        Ok(())
    }

    /// Ends the API server. Its address refuses connections until it is started again.
    pub fn stop_api_server(&self) -> Result<(), Error> {
        if let Some(mut process) = self.lock().api_server.take() {
            process.stop(STOP_GRACE)?;
        }
        Ok(())
    }

    /// Stops and starts the API server. Only for a testbed of one's own: the shared one is used by others.
    pub fn restart_api_server(&self) -> Result<(), Error> {
        self.stop_api_server()?;
        self.start_api_server()
    }

    /// Configuration of an administrator. It never changes, also not over a restart.
    pub fn config(&self) -> Config {
        self.config_for("admin", &["system:masters"])
    }

    /// Configuration of a user with the given groups, by client certificate.
    ///
    /// # Panics
    /// When no certificate can be made, which a test cannot do anything about.
    #[allow(clippy::panic)] // Only tests call this.
    pub fn config_for(&self, user: &str, groups: &[&str]) -> Config {
        let build = || -> Result<Config, Error> {
            let text = self.credentials.kubeconfig(&self.layout.server(), user, groups)?;
            let kubeconfig = Kubeconfig::from_yaml(&text)?;
            let load = async move {
                Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
            };
            Ok(self.runtime.wait(load)?)
        };
        match build() {
            Ok(config) => config,
            Err(error) => panic!("configuration for {user}: {error}"),
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

    /// Path of the administrator's kubeconfig, for programs.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Path of a kubeconfig with a token of a ServiceAccount, so that a program runs with its real rights.
    ///
    /// # Panics
    /// When there is no such ServiceAccount.
    #[allow(clippy::panic)] // Only tests call this.
    pub fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> PathBuf {
        let config = self.config();
        let (account, account_namespace) = (name.to_owned(), namespace.to_owned());
        let issued = self.runtime.wait(async move {
            let api: Api<ServiceAccount> = Api::namespaced(Client::try_from(config)?, &account_namespace);
            api.create_token_request(&account, &PostParams::default(), &TokenRequest::default()).await
        });
        let token = match issued {
            Ok(request) => request.status.map(|status| status.token).unwrap_or_default(),
            Err(error) => panic!("a token for {namespace}/{name}: {error}"),
        };
        match self.credentials.write_token_kubeconfig(
            &self.layout.server(),
            &format!("{namespace}-{name}"),
            &token,
        ) {
            Ok(path) => path,
            Err(error) => panic!("a kubeconfig for {namespace}/{name}: {error}"),
        }
    }

    /// Lets the guardian end a process that a test started, if the testbed's directory is named on its command line.
    ///
    /// # Panics
    /// When the guardian is gone.
    #[allow(clippy::panic)] // Only tests call this.
    pub fn guard(&self, process_id: u32) {
        if let Err(error) = self.lock().guardian.watch(process_id) {
            panic!("{error}");
        }
    }

    /// A fresh namespace with a default ServiceAccount. Its name begins with `prefix`.
    ///
    /// # Panics
    /// When the API server refuses.
    #[allow(clippy::panic)] // Only tests call this.
    pub fn namespace(&self, prefix: &str) -> String {
        let number = self.next_namespace.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}-{number}");
        let config = self.config();
        let created = self.runtime.wait({
            let name = name.clone();
            async move {
                let client = Client::try_from(config)?;
                let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
                let namespace = Namespace { metadata: named(&name), ..Namespace::default() };
                let parameters = PostParams::default();
                Api::all(client.clone()).create(&parameters, &namespace).await?;
                let account = ServiceAccount { metadata: named("default"), ..ServiceAccount::default() };
                match Api::namespaced(client, &name).create(&parameters, &account).await {
                    // A controller-manager was faster.
                    Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                    result => result.map(drop),
                }
            }
        });
        match created {
            Ok(()) => name,
            Err(error) => panic!("namespace {name}: {error}"),
        }
    }

    /// Installs custom resources, and returns once each of them can be used.
    ///
    /// # Panics
    /// When the API server refuses one, or does not serve it.
    #[allow(clippy::panic)] // Only tests call this.
    pub fn install(&self, definitions: impl IntoIterator<Item = CustomResourceDefinition>) {
        let (config, definitions) = (self.config(), definitions.into_iter().collect::<Vec<_>>());
        let installed = self.runtime.wait(async move {
            let client = Client::try_from(config)?;
            let api = Api::all(client.clone());
            for definition in &definitions {
                api.create(&PostParams::default(), definition).await?;
            }
            for definition in &definitions {
                serves(&client, definition).await?;
            }
            Ok::<(), kube::Error>(())
        });
        if let Err(error) = installed {
            panic!("custom resources: {error}");
        }
    }

    /// The port of the API server.
    pub fn api_port(&self) -> u16 {
        self.layout.api_port()
    }

    /// Where the logs of the programs are.
    pub fn logs(&self) -> PathBuf {
        self.layout.logs()
    }

    /// Whether `/readyz` says ok, or why not.
    fn probe(&self, config: Config) -> Result<(), String> {
        self.runtime.wait(async move {
            let answer = async {
                let client = Client::try_from(config)?;
                let request =
                    http::Request::get("/readyz").body(Vec::new()).map_err(kube::Error::HttpError)?;
                client.request_text(request).await
            };
            match answer.await.as_deref() {
                Ok("ok") => Ok(()),
                Ok(other) => Err(other.to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in one test must not hide the result of the others.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns once objects of every version can be listed. That a definition is established is not enough: those who serve
/// its objects hear of it a moment later.
async fn serves(client: &Client, definition: &CustomResourceDefinition) -> kube::Result<()> {
    let deadline = Instant::now() + SERVE_LIMIT;
    for version in definition.spec.versions.iter().filter(|version| version.served) {
        let resource = ApiResource {
            group: definition.spec.group.clone(),
            version: version.name.clone(),
            api_version: format!("{}/{}", definition.spec.group, version.name),
            kind: definition.spec.names.kind.clone(),
            plural: definition.spec.names.plural.clone(),
        };
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        while let Err(error) = api.list(&ListParams::default().limit(1)).await {
            if Instant::now() >= deadline {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

/// After a panic anywhere in this binary the logs stay, and are named once.
pub(crate) fn keep_logs_after_panic(directory: &Path) {
    let directory = directory.to_owned();
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |information| {
        previous(information);
        let marker = directory.join("keep");
        if directory.exists() && !marker.exists() && fs::write(&marker, "").is_ok() {
            eprintln!("the testbed's logs stay in {}", directory.join("logs").display());
        }
    }));
}
