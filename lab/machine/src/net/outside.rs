//! The way out of a private network, if the host has one.
//!
//! Translation in the kernel would need forwarding and rules in the host's own namespace, which is not ours to change.
//! Instead a rule inside the network's namespace hands every TCP connection that leaves the range to a relay, a process
//! of the host that listens inside the namespace and connects from outside it, as any program of the host would. UDP
//! and ICMP stay inside; names are resolved on the gateway ([`super::names`]).
//!
//! The relay belongs to one network: it records itself before it releases the network's lock, and ends when its record
//! is gone or names another.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use ipnet::Ipv4Net;
use rustix::{
    net::sockopt::{self, ip_original_dst},
    stdio::{dup2_stdin, dup2_stdout},
};

use super::{Netns, Network, names, nft::Nft, threads::Threads};
use crate::{
    environment::SupervisorCommand,
    error::{Doing, Error, Result, on},
    json_file,
    lock::Lock,
    log_file::keep_standard_error_small,
    process::ProcessIdentity,
    supervisor::{
        raise_open_files,
        report::{self, READY, note},
    },
};

/// Where the relay listens inside the network's namespace.
const PORT: u16 = 3129;
/// As long as a kernel would try.
const CONNECT: Duration = Duration::from_secs(30);
/// Enough for many parallel downloads of many machines; each connection costs two threads.
const MOST_CONNECTIONS: usize = 512;
/// Its log, in the network's directory.
const LOG: &str = "relay.log";
/// How often a relay looks whether it still is the one.
const LOOK: Duration = Duration::from_secs(2);
/// Marks the host's ends of private networks, which are not the outside.
pub(super) const ALIAS: &str = "hangar ";

fn record(directory: &Path) -> PathBuf {
    directory.join("relay.json")
}

/// Why there is no way out, or nothing.
pub(super) fn obstacle(nft: &Nft) -> Result<Option<&'static str>> {
    // A VPN may have halves of the whole space instead.
    let has_default = Network::here()?.routes()?.iter().any(|(_, net)| net.prefix_len() <= 1);
    Ok(if !has_default {
        Some("this host has no default route")
    } else if !nft.is_usable() {
        Some("the program nft is missing")
    } else {
        None
    })
}

/// Sends what leaves the ranges `inside` to the relay, and starts the relay unless it runs.
pub(super) fn open(
    directory: &Path,
    netns: &Netns,
    bridge: &str,
    inside: &[Ipv4Net],
    nft: &Nft,
    supervisor: &SupervisorCommand,
    lock: &Lock,
) -> Result<()> {
    let inside: Vec<String> = inside.iter().map(ToString::to_string).collect();
    let inside = inside.join(", ");
    let rules = format!(
        "table ip hangar_outside\n\
         delete table ip hangar_outside\n\
         table ip hangar_outside {{\n\
           chain leaving {{\n\
             type nat hook prerouting priority -90; policy accept;\n\
             iifname != \"{bridge}\" accept\n\
             ip daddr {{ {inside}, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/4 }} accept\n\
             fib daddr type local accept\n\
             meta l4proto tcp redirect to :{PORT}\n\
           }}\n\
         }}\n"
    );
    nft.apply(netns, &rules)?;
    let known: Option<ProcessIdentity> = json_file::read_if_whole(&record(directory))?;
    if known.is_some_and(|relay| relay.is_alive()) {
        return Ok(());
    }
    start(directory, netns, supervisor, lock)
}

fn start(directory: &Path, netns: &Netns, supervisor: &SupervisorCommand, lock: &Lock) -> Result<()> {
    let log = directory.join(LOG);
    let errors = OpenOptions::new().create(true).append(true).open(&log).doing(|| on("open", &log))?;
    let mut command = Command::new(&supervisor.program);
    command
        .args(&supervisor.arguments)
        .arg("relay")
        .args([directory, netns.path()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(lock.share()?))
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut relay = command.spawn().doing(|| format!("start {}", supervisor.program.display()))?;
    let report = relay.stdout.take().map(|output| report::read(output, report::PATIENCE));
    let _ = relay.kill();
    relay.wait().doing(|| "wait for the relay's starter")?;
    let message = match report.transpose()?.flatten().as_deref().map(str::trim) {
        Some(READY) => return Ok(()),
        Some("") => format!("it ended without a message; see {}", log.display()),
        Some(reason) => reason.to_owned(),
        None => format!("it was not up after {} s; see {}", report::PATIENCE.as_secs(), log.display()),
    };
    Err(Error::Program { program: "the relay".to_owned(), message })
}

/// Ends the relay of a network.
pub(super) fn close(directory: &Path) -> Result<()> {
    let known: Option<ProcessIdentity> = json_file::read_if_whole(&record(directory))?;
    if let Some(relay) = known
        && relay.kill()
    {
        relay.wait_gone(Duration::from_secs(5));
    }
    Ok(())
}

/// The relay itself.
pub(crate) fn run(directory: &Path, netns: &Path) -> Result<()> {
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"hangar-relay");
    raise_open_files();
    let netns = Netns::at(netns);
    let listener = netns.listen_tcp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)))?;
    let names = SocketAddr::from((Ipv4Addr::UNSPECIFIED, names::PORT));
    let (questions, callers) = (netns.bind_udp(names)?, netns.listen_tcp(names)?);
    let own = ProcessIdentity::of(std::process::id().cast_signed())
        .ok_or_else(|| Error::Invalid("the relay cannot find itself in /proc".to_owned()))?;
    json_file::write(&record(directory), &own)?;
    // The creator may be dead: the relay runs all the same.
    let _ = writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush());
    let null = File::options().read(true).write(true).open("/dev/null").doing(|| "open /dev/null")?;
    dup2_stdout(&null).doing(|| "detach the output")?;
    dup2_stdin(&null).doing(|| "release the lock")?;
    let (record, log) = (record(directory), directory.join(LOG));
    thread::spawn(move || serve(&listener));
    thread::spawn(move || names::serve_datagrams(&questions, is_outside));
    thread::spawn(move || names::serve_connections(&callers, is_outside));
    loop {
        thread::sleep(LOOK);
        keep_standard_error_small(&log);
        // Not being able to look (no descriptor left for it) says nothing.
        if json_file::read_if_whole::<ProcessIdentity>(&record)
            .is_ok_and(|known| known.as_ref() != Some(&own))
        {
            return Ok(());
        }
    }
}

fn serve(listener: &TcpListener) {
    static CONNECTIONS: Threads = Threads::new(MOST_CONNECTIONS);
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors, most likely: others have to end first.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        CONNECTIONS.start(move || {
            if let Err(error) = relay(&stream) {
                note(&error);
            }
        });
    }
}

fn relay(inside: &TcpStream) -> Result<()> {
    let target = ip_original_dst(inside).doing(|| "read where a connection was going")?;
    // Somebody called the relay itself, or another private network of this host: neither is outside.
    let is_own = inside.local_addr().ok() == Some(SocketAddr::V4(target));
    if is_own || is_private_network(*target.ip())? {
        return Ok(());
    }
    let outside =
        TcpStream::connect_timeout(&target.into(), CONNECT).doing(|| format!("connect to {target}"))?;
    for side in [inside, &outside] {
        notice_when_gone(side).doing(|| format!("watch the connection to {target}"))?;
    }
    thread::scope(|scope| {
        scope.spawn(|| pump(inside, &outside));
        pump(&outside, inside);
    });
    Ok(())
}

/// A machine that is deleted says no farewell, and neither does a lost outside: without questions of ours an idle
/// connection of theirs would hold its place without end.
fn notice_when_gone(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_tcp_keepidle(stream, Duration::from_mins(1))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15))?;
    sockopt::set_tcp_keepcnt(stream, 4)?;
    sockopt::set_socket_keepalive(stream, true)
}

/// A resolver on a private network of this host would ask us in turn.
fn is_outside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_network(address).is_ok_and(|is_ours| !is_ours),
        IpAddr::V6(_) => true,
    }
}

fn is_private_network(target: Ipv4Addr) -> Result<bool> {
    let mut network = Network::here()?;
    let links = network.links()?;
    let ours = |index: u32| {
        let alias = links.iter().find(|link| link.index == index).and_then(|link| link.alias.as_deref());
        alias.is_some_and(|alias| alias.starts_with(ALIAS))
    };
    Ok(network.addresses()?.iter().any(|(index, net)| ours(*index) && net.contains(&target)))
}

/// Copies one direction; its end closes the other side's, so that half-closed connections work.
fn pump(mut from: &TcpStream, mut to: &TcpStream) {
    if io::copy(&mut from, &mut to).is_err() {
        let _ = from.shutdown(Shutdown::Both);
    }
    let _ = to.shutdown(Shutdown::Write);
}
