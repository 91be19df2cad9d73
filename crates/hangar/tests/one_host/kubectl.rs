//! `kubectl` as somebody runs it, from a place in the network.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use hangar_machine::net::Netns;
use hangar_parts::{Parts, Set};

use crate::waiting::PATIENCE;

/// A cluster, by its kubeconfig and by where it is used from.
#[derive(Clone)]
pub(crate) struct Kubectl {
    kubeconfig: PathBuf,
    seat: Seat,
}

/// Where somebody sits.
#[derive(Clone)]
pub(crate) enum Seat {
    Host,
    /// On the host, with this file as their `resolv.conf`.
    Resolving(PathBuf),
    /// In this network.
    Inside(Netns),
}

impl Seat {
    /// A program that is run there.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = match self {
            Self::Host => return Command::new(program),
            Self::Resolving(settings) => {
                let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(settings);
                command
            }
            Self::Inside(network) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", network.path().display()));
                command
            }
        };
        command.arg(program);
        command
    }

    /// A connection from there.
    pub(crate) fn connect(&self, address: SocketAddr) -> Result<TcpStream, String> {
        match self {
            Self::Host | Self::Resolving(_) => {
                TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| error.to_string())
            }
            Self::Inside(network) => {
                network.connect_tcp(address, PATIENCE).map_err(|error| error.to_string())
            }
        }
    }
}

impl Kubectl {
    pub(crate) fn new(kubeconfig: PathBuf) -> Self {
        Self { kubeconfig, seat: Seat::Host }
    }

    pub(crate) fn from(self, seat: Seat) -> Self {
        Self { seat, ..self }
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let program = Parts::from_env().unwrap().program(Set::Kubernetes134, "kubectl").unwrap();
        let mut command = self.seat.command(&program);
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    #[track_caller]
    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        self.attempt(arguments).unwrap()
    }

    /// What it printed, or its complaint.
    pub(crate) fn attempt(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(format!("kubectl {arguments:?}: {error}"));
        }
        Ok(String::from_utf8(output.stdout).unwrap())
    }

    #[track_caller]
    pub(crate) fn apply(&self, manifest: &str) {
        self.try_apply(manifest).unwrap();
    }

    pub(crate) fn try_apply(&self, manifest: &str) -> Result<(), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), manifest).unwrap();
        self.attempt(&["apply", "-f", file.path().to_str().unwrap()]).map(drop)
    }

    /// Host and port in the kubeconfig.
    pub(crate) fn server(&self) -> (String, u16) {
        let text = fs::read_to_string(&self.kubeconfig).unwrap();
        let (_, rest) = text.split_once("https://").unwrap();
        let (host, port) = rest.lines().next().unwrap().trim_matches('"').rsplit_once(':').unwrap();
        (host.to_owned(), port.parse().unwrap())
    }
}

/// A program that does not outlive its test: it would hold the environment's lock.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
