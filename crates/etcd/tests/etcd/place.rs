//! Where the programs of a test run: a directory, an address, certificates.
//!
//! Each test binary has a loopback address of its own, made of its process id, so that ports need not be searched for.
//! The programs get a signal when the test that started them is gone.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use hangar_etcd::Credentials;
use hangar_parts::{Parts, Process, ProcessSpec, Set};
use hangar_pki::{Authority, Intent, KeyPairPem, Usage, issue};
use jiff::Timestamp;

/// Longer than any test run.
const LIFETIME: Duration = Duration::from_hours(24);

/// Generous: a machine that builds something else at the same time is slow, and a test must not fail for that.
const LIMIT: Duration = Duration::from_mins(5);

pub(crate) struct Place {
    directory: tempfile::TempDir,
    authority: Authority,
}

/// A path and what is in it.
pub(crate) struct PairFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("hangar-etcd-").tempdir().unwrap();
        let authority =
            Authority::self_signed(&Intent::authority("etcd-ca", LIFETIME), Timestamp::now()).unwrap();
        let place = Self { directory, authority };
        std::fs::write(place.path("ca.crt"), place.authorities()).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn authorities(&self) -> String {
        self.authority.pair().certificate.clone()
    }

    /// For a server at our address, which is also called `name`.etcd.test.
    pub(crate) fn server_pair(&self, name: &str) -> PairFiles {
        let intent = Intent::new(name, Usage::ServerAndClient, LIFETIME)
            // Members look at the address that another one calls from, which is the host's first one.
            .ip_addresses([address().into(), Ipv4Addr::LOCALHOST.into()])
            .dns_names([format!("{name}.etcd.test")]);
        let pair = self.issue(&intent);
        let files = PairFiles {
            certificate: self.path(&format!("{name}.crt")),
            key: self.path(&format!("{name}.key")),
        };
        std::fs::write(&files.certificate, pair.certificate).unwrap();
        std::fs::write(&files.key, pair.key.expose()).unwrap();
        files
    }

    pub(crate) fn credentials(&self) -> Credentials {
        let pair = self.issue(&Intent::new("operator", Usage::Client, LIFETIME));
        Credentials {
            authorities: self.authorities(),
            certificate: pair.certificate,
            key: pair.key.expose().to_owned().into(),
        }
    }

    fn issue(&self, intent: &Intent) -> KeyPairPem {
        issue(&self.authority, intent, Timestamp::now()).unwrap()
    }

    /// Starts a program of a set.
    pub(crate) fn start(&self, name: &str, set: Set, program: &str, arguments: Vec<String>) -> Process {
        let log = self.path(&format!("{name}.log"));
        ProcessSpec::new(name, "setpriv", log)
            .arguments(["--pdeathsig".to_owned(), "KILL".to_owned()])
            .argument(locate(set, program))
            .arguments(arguments)
            .start()
            .unwrap()
    }
}

pub(crate) fn locate(set: Set, program: &str) -> PathBuf {
    let parts = Parts::from_env().unwrap();
    parts.ensure_programs(&[(set, program)]).unwrap();
    parts.program(set, program).unwrap()
}

/// Process ids have 22 bits.
pub(crate) fn address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 + high, middle, low)
}

/// Below those that the kernel gives to who connects.
pub(crate) fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Asks until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(start.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// All files below a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
