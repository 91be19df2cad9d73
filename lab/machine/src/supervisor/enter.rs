//! Runs one command inside a running machine.
//!
//! The process that enters stays outside the machine's process namespace (only its children can be inside), waits for
//! the command and ends with its code. If it is killed, the kernel kills the command.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::AsFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Command, ExitCode},
};

use rustix::{
    process::{Signal, set_parent_process_death_signal},
    thread::{ThreadNameSpaceType, move_into_thread_name_spaces},
};

use super::report::note;
use crate::{
    cgroup::{Group, Hierarchies},
    error::{Doing, Error, Result, on},
    record::Files,
};

/// Exit code for "the machine could not be entered", as other tools of this kind use it.
pub(crate) const OUR_FAULT: u8 = 125;
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

pub(super) fn run(directory: &Path, working_directory: &Path, command: &[OsString]) -> ExitCode {
    if let Err(error) = enter(directory, working_directory) {
        note(&error);
        return ExitCode::from(OUR_FAULT);
    }
    let Some((program, arguments)) = command.split_first() else {
        return ExitCode::from(OUR_FAULT);
    };
    let mut inside = Command::new(program);
    inside.args(arguments);
    // SAFETY: between fork and exec the closure makes one system call and touches no memory of the parent.
    #[allow(unsafe_code)]
    unsafe {
        inside.pre_exec(|| set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from));
    }
    let status = inside.spawn().and_then(|mut child| child.wait());
    match status {
        Ok(status) => {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
            ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
        }
        Err(error) => {
            note(format_args!("{}: {error}", program.to_string_lossy()));
            let missing = error.kind() == io::ErrorKind::NotFound;
            ExitCode::from(if missing { NOT_FOUND } else { CANNOT_RUN })
        }
    }
}

fn enter(directory: &Path, working_directory: &Path) -> Result<()> {
    let files = Files::new(directory);
    let record = files.expect_record()?;
    let not_running = || Error::NotRunning(record.spec.name.to_string());
    let first = files.first_process()?.ok_or_else(not_running)?;
    let pidfd = first.pin().ok_or_else(not_running)?;
    // First, so that a deleter finds us.
    Group::new(Hierarchies::discover()?, &record.cgroup).visit()?;
    let all = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::CONTROL_GROUP
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::NETWORK;
    move_into_thread_name_spaces(pidfd.as_fd(), all).doing(|| "enter the machine")?;
    rustix::process::chdir(working_directory).doing(|| on("enter", working_directory))
}
