//! Named network namespaces.
//!
//! A namespace lives as long as it is mounted on a file. The files are ours alone (not in `/run/netns`: there iproute2
//! mounts the directory over itself, which would leave a second, hidden mount behind). After a reboot a file may still
//! be there with nothing mounted on it; that counts as absent.

use std::{
    fs::{self, File, OpenOptions},
    io,
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::Duration,
};

use rustix::{
    io::Errno,
    mount::{UnmountFlags, mount_bind, unmount},
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe},
};

use super::link::Network;
use crate::error::{Doing, Error, Result, on};

/// File system type of namespace files.
const NSFS_MAGIC: u64 = 0x6e73_6673;

/// A network namespace by the path it is mounted at; it need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Netns {
    path: PathBuf,
}

impl Netns {
    /// Names a namespace.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is mounted, for `nsenter --net=…`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        rustix::fs::statfs(&self.path).is_ok_and(|stat| u64::try_from(stat.f_type) == Ok(NSFS_MAGIC))
    }

    /// Makes the namespace, with its loopback up. Fails when it exists.
    pub fn create(&self) -> Result<()> {
        if self.exists() {
            let name = self.path.display().to_string();
            return Err(Error::NameTaken { what: "network namespace", name, hint: String::new() });
        }
        self.make_file()?;
        in_thread(|| {
            unshare_network()?;
            mount_bind("/proc/thread-self/ns/net", &self.path)
                .doing(|| on("mount the network namespace at", &self.path))
        })?;
        self.set_up()
    }

    /// Makes the namespace unless it is there.
    pub fn ensure(&self) -> Result<()> {
        // Who made it may have been killed before it was up.
        if self.exists() { self.set_up() } else { self.create() }
    }

    fn make_file(&self) -> Result<()> {
        let mut attempts = 0;
        loop {
            if let Some(parent) = self.path.parent() {
                fs::create_dir_all(parent).doing(|| on("create", parent))?;
            }
            match OpenOptions::new().create(true).truncate(false).write(true).open(&self.path) {
                // Whoever removed the last other namespace also removed the empty directory.
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < 10 => attempts += 1,
                made => return made.map(drop).doing(|| on("create", &self.path)),
            }
        }
    }

    fn set_up(&self) -> Result<()> {
        self.network(|network| network.set_up("lo"))
    }

    /// Removes the namespace. Its links go with it, unless a process is still inside. `true` when it was there.
    pub fn delete(&self) -> Result<bool> {
        let mut existed = false;
        loop {
            match unmount(&self.path, UnmountFlags::DETACH) {
                Ok(()) => existed = true,
                // Not a mount point (any more), or no such file.
                Err(Errno::INVAL | Errno::NOENT) => break,
                Err(error) => return Err(error).doing(|| on("unmount", &self.path)),
            }
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).doing(|| on("remove", &self.path));
            }
            _ => {}
        }
        Ok(existed)
    }

    /// A handle that keeps the namespace alive.
    pub fn open(&self) -> Result<OwnedFd> {
        let file = File::open(&self.path).doing(|| on("open the network namespace", &self.path))?;
        if self.exists() {
            Ok(file.into())
        } else {
            let gone = io::Error::from(io::ErrorKind::NotFound);
            Err(gone).doing(|| on("open the network namespace", &self.path))
        }
    }

    /// Runs `work` on a thread inside the namespace. Sockets it opens stay there for good.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let namespace = self.open()?;
        in_thread(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .doing(|| on("enter the network namespace", &self.path))?;
            work()
        })
    }

    /// Changes links, addresses and routes inside.
    pub fn network<T: Send>(&self, work: impl FnOnce(&mut Network) -> Result<T> + Send) -> Result<T> {
        self.run(|| work(&mut Network::here()?))
    }

    /// A TCP listener inside, usable from any thread.
    pub fn listen_tcp(&self, address: SocketAddr) -> Result<TcpListener> {
        self.run(|| TcpListener::bind(address).doing(|| format!("listen on {address}")))
    }

    /// A TCP connection made from inside.
    pub fn connect_tcp(&self, address: SocketAddr, patience: Duration) -> Result<TcpStream> {
        self.run(|| TcpStream::connect_timeout(&address, patience).doing(|| format!("connect to {address}")))
    }

    /// A UDP socket inside.
    pub fn bind_udp(&self, address: SocketAddr) -> Result<UdpSocket> {
        self.run(|| UdpSocket::bind(address).doing(|| format!("bind {address}")))
    }

    /// Runs a program inside (only the network differs from the host) and collects its output.
    pub fn output(&self, command: &mut Command) -> Result<Output> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.run(|| command.output().doing(|| format!("run {program}")))
    }

    /// Sets a setting below `/proc/sys/net` inside, such as `ipv4/ip_forward`. Names with dots work too.
    pub fn set_sysctl(&self, name: &str, value: &str) -> Result<()> {
        let path = sysctl_path(name)?;
        // /proc/sys/net shows the namespace of the thread that looks.
        self.run(|| fs::write(&path, value).doing(|| on("write", &path)))
    }

    /// Whether a setting exists inside (bridge filtering may be missing in a kernel).
    pub fn has_sysctl(&self, name: &str) -> Result<bool> {
        let path = sysctl_path(name)?;
        self.run(|| Ok(path.exists()))
    }
}

fn sysctl_path(name: &str) -> Result<PathBuf> {
    let name = name.strip_prefix("net.").or(name.strip_prefix("net/")).unwrap_or(name);
    let relative = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    if relative.split('/').any(|part| part.is_empty() || part == "..") {
        return Err(Error::Invalid(format!("{name:?} is not the name of a network setting")));
    }
    Ok(Path::new("/proc/sys/net").join(relative))
}

/// Runs `work` on a fresh thread, which may change its namespaces as it likes.
fn in_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("netns".to_owned()).spawn_scoped(scope, work);
        match worker.doing(|| "start a thread")?.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn unshare_network() -> Result<()> {
    // SAFETY: only the network namespace of this thread changes. Memory, files and the file system view stay
    // shared with the other threads, which is what the call's safety is about.
    #[allow(unsafe_code)]
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.doing(|| "make a network namespace")
}
