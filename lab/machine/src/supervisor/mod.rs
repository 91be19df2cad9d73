//! The processes that this crate starts by running its own program again, through [`supervise_main`].
//!
//! - `launch DIRECTORY` enters the machine's control groups and namespaces, starts `init` as the first process of a new
//!   process namespace, records it and ends.
//! - `init DIRECTORY` builds the root directory and then supervises the services. It is process 1 inside: it adopts and
//!   reaps what loses its parent, and when it ends the kernel ends everything else.
//! - `enter DIRECTORY WORKING-DIRECTORY COMMAND…` runs one command inside and ends with its exit code.
//! - `systemctl WORD…`, run inside, sends systemctl's commands to the supervisor.
//! - `relay DIRECTORY NETNS` is a private network's way out (see `net::outside`).
//!
//! `launch`, `init` and `relay` report on their standard output: `ready`, or one line with the reason of a failure.
//! Their standard input is the lock of their machine or network, which is thus held until it is up, whatever happens to
//! the creator.

pub(crate) mod control;
mod enter;
mod init;
mod launch;
mod logs;
mod members;
mod reaper;
pub(crate) mod report;
mod systemctl;
mod unit;
mod units;

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, ExitCode},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub(crate) use self::enter::OUR_FAULT;
use crate::{
    error::{Doing, Error},
    net::outside,
};

/// Runs one of this crate's own processes with the arguments after the (hidden) subcommand. Must be called before
/// the program starts any thread.
pub fn supervise_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let verb = arguments.first().and_then(|verb| verb.to_str()).unwrap_or_default();
    match (verb, &arguments[..]) {
        ("launch", [_, directory]) => report::end(launch::run(Path::new(directory))),
        ("init", [_, directory]) => report::end(init::run(Path::new(directory))),
        ("enter", [_, directory, working_directory, command @ ..]) if !command.is_empty() => {
            enter::run(Path::new(directory), Path::new(working_directory), command)
        }
        ("systemctl", [_, words @ ..]) => systemctl::run(words),
        ("relay", [_, _, _]) => {
            report::end(again("relay-serve", 3).spawn().map(drop).doing(|| "start the relay"))
        }
        ("relay-serve", [_, directory, netns]) => {
            report::end(outside::run(Path::new(directory), Path::new(netns)))
        }
        _ => {
            let usage = "launch, init, enter or relay, with a directory";
            report::end(Err(Error::Invalid(format!("the supervisor is started by its own program: {usage}"))))
        }
    }
}

/// This very program with another verb in front of its last arguments, `length` with the verb. The child outlives us
/// and so becomes a child of the host's first process, which collects it; the creator may live long and never would.
fn again(verb: &str, length: usize) -> Command {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let place = arguments.len().saturating_sub(length);
    if let Some(old) = arguments.get_mut(place) {
        *old = OsString::from(verb);
    }
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments);
    command
}

/// containerd and kubelet want many open files, and so do many connections through a relay; the hard limit is what may
/// be used without privileges.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
