//! The identity files of a machine: host name, hosts, resolver, machine id; and files that the caller adds.

use std::{
    fmt::Write as _,
    fs, io,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use ipnet::IpNet;

use crate::{
    error::{Doing, Result, on},
    record::Record,
    spec::FileContent,
};

/// Writes the files once. Later changes, such as cloud-init's, are the machine's own.
pub(super) fn write(record: &Record) -> Result<()> {
    let hostname = record.spec.hostname();
    replace(Path::new("/etc/hostname"), &format!("{hostname}\n"))?;
    replace(Path::new("/etc/hosts"), &hosts(record))?;
    let mut resolvers = String::new();
    for server in &record.spec.nameservers {
        let _ = writeln!(resolvers, "nameserver {server}");
    }
    replace(Path::new("/etc/resolv.conf"), &resolvers)?;
    replace(Path::new("/etc/fstab"), "")?;
    // Last: its presence says that all of this was done.
    replace(Path::new("/etc/machine-id"), &format!("{}\n", record.machine_id))
}

fn hosts(record: &Record) -> String {
    let hostname = record.spec.hostname();
    let short = hostname.split('.').next().unwrap_or(hostname);
    let names = if short == hostname { hostname.to_owned() } else { format!("{hostname} {short}") };
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n");
    let first = record.spec.nics.first().and_then(|nic| nic.addresses.first()).map(IpNet::addr);
    // Debian's way for a system without a fixed address.
    let own = first.unwrap_or(IpAddr::V4(Ipv4Addr::new(127, 0, 1, 1)));
    let _ = writeln!(text, "{own} {names}");
    for line in &record.spec.hosts {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The host's file may be a link to somewhere that does not exist here, so it is removed first.
fn replace(path: &Path, content: &str) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).doing(|| on("remove", path));
        }
        _ => {}
    }
    fs::write(path, content).doing(|| on("write", path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).doing(|| on("set the permissions of", path))
}

pub(super) fn write_files(files: &[FileContent]) -> Result<()> {
    use std::io::Write;
    for file in files {
        let path = &file.path;
        if file.only_if_missing && path.exists() {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).doing(|| on("create", parent))?;
        }
        let opened =
            fs::OpenOptions::new().create(true).truncate(true).write(true).mode(file.mode).open(path);
        let mut open = opened.doing(|| on("open", path))?;
        open.set_permissions(fs::Permissions::from_mode(file.mode))
            .doing(|| on("set the permissions of", path))?;
        open.write_all(file.content.as_bytes()).doing(|| on("write", path))?;
    }
    Ok(())
}
