//! Turns a process of the host into the first process of a machine.

use std::{
    os::{fd::AsFd, unix::process::CommandExt},
    path::Path,
};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::again;
use crate::{
    cgroup::{Group, Hierarchies},
    error::{Doing, Result},
    json_file,
    net::Netns,
    process::ProcessIdentity,
    record::Files,
};

pub(super) fn run(directory: &Path) -> Result<()> {
    // Away from the creator's terminal. Fails for a group leader, which then is alone already.
    let _ = rustix::process::setsid();
    let files = Files::new(directory);
    let record = files.expect_record()?;
    let group = Group::new(Hierarchies::discover()?, &record.cgroup);
    // First of all: from here on a deleter finds us and whatever we start.
    group.enter()?;
    let network = Netns::at(&record.netns).open()?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .doing(|| "enter the network namespace")?;
    unshare()?;
    group.settle()?;

    // The mount namespace is the child's own to make: were we in it, its change of the root directory would be ours
    // too, and whoever is late here could find neither the child in /proc nor the place for its record.
    let mut child = again("init", 2);
    child.arg0(format!("hangar-supervisor {}/{}", record.environment, record.spec.name));
    let child = child.spawn().doing(|| "start the first process")?;
    // One that has ended already has said why.
    match ProcessIdentity::of(child.id().cast_signed()) {
        Some(identity) => json_file::write(&files.running(), &identity),
        None => Ok(()),
    }
}

fn unshare() -> Result<()> {
    let flags = UnshareFlags::NEWUTS | UnshareFlags::NEWIPC | UnshareFlags::NEWCGROUP | UnshareFlags::NEWPID;
    // SAFETY: no other thread exists yet, so no thread can hold a view of the file system or of descriptors that
    // this would silently change; neither descriptors nor memory are unshared.
    #[allow(unsafe_code)]
    unsafe { unshare_unsafe(flags) }.doing(|| "make the machine's namespaces")
}
