//! Runs the distribution's own cloud-init in a machine without systemd: its settings, where it finds its data, and the
//! service that calls its four stages.
//!
//! The data is a config drive that is a directory, because not every kernel has the file system of a real one.
//! cloud-init itself remembers what it did for an instance, so the stages run at each start and do each thing once.

use hangar_machine::{FileContent, KillMode, Name, Restart, Service};

/// Where the config drive's files lie in the machine.
pub const SEED: &str = "/var/lib/cloud/seed/config_drive/openstack/latest";
/// Exists once they are complete.
pub const READY: &str = "/var/lib/cloud/seed/ready";
/// The service, and what its log is called.
pub const SERVICE: &str = "cloud-init";
const LOG: &str = "cloud-init-output.log";

/// Left out: what changes disks, boot loader, locale and package sources of a machine that shares the host's /usr, and
/// what ends it. Users may name further modules in their user data.
const SETTINGS: &str = "\
# Written at each start of the machine.
datasource_list: [ConfigDrive, None]
network: {config: disabled}
disable_root: false
preserve_hostname: false
manage_etc_hosts: false
users: []
cloud_init_modules:
  - seed_random
  - bootcmd
  - write_files
  - disk_setup
  - mounts
  - set_hostname
  - update_hostname
  - update_etc_hosts
  - ca_certs
  - users_groups
cloud_config_modules:
  - timezone
  - runcmd
cloud_final_modules:
  - write_files_deferred
  - scripts_vendor
  - scripts_per_once
  - scripts_per_boot
  - scripts_per_instance
  - scripts_user
  - final_message
system_info:
  distro: debian
  paths: {cloud_dir: /var/lib/cloud, templates_dir: /etc/cloud/templates}
";

/// Handlers for cloud-init's own log; what it and its commands print is the service's log.
const LOGGING: &str = "\
log_cfgs:
  - |
    [loggers]
    keys=root,cloudinit
    [handlers]
    keys=file
    [formatters]
    keys=line
    [logger_root]
    level=WARNING
    handlers=file
    [logger_cloudinit]
    level=DEBUG
    qualname=cloudinit
    handlers=file
    propagate=0
    [handler_file]
    class=FileHandler
    level=DEBUG
    formatter=line
    args=('/var/log/hangar/cloud-init.log', 'a', 'UTF-8')
    [formatter_line]
    format=%(asctime)s - %(filename)s[%(levelname)s]: %(message)s
";

/// As systemd would: a stage that fails does not keep the next from running, and the last one's word counts.
const STAGES: &str = "\
cloud-init init --local
cloud-init init
cloud-init modules --mode=config
exec cloud-init modules --mode=final
";

pub fn files() -> Vec<FileContent> {
    let file = |path: &str, content: &str| FileContent {
        path: path.into(),
        content: content.to_owned(),
        mode: 0o644,
        only_if_missing: false,
    };
    vec![file("/etc/cloud/cloud.cfg", SETTINGS), file("/etc/cloud/cloud.cfg.d/05_logging.cfg", LOGGING)]
}

/// The `systemctl` of machines: it asks the supervisor. `program` is the program whose words `arguments` lead to
/// [`hangar_machine::supervise_main`], as the machine sees it.
pub fn systemctl(program: &str, arguments: &[&str]) -> FileContent {
    let words = arguments.join(" ");
    FileContent {
        path: "/usr/local/bin/systemctl".into(),
        content: format!("#!/bin/sh\nexec {program} {words} systemctl \"$@\"\n"),
        mode: 0o755,
        only_if_missing: false,
    }
}

/// The stages, one after the other, once per start, after these services were started.
pub fn service(after: Vec<Name>) -> hangar_machine::Result<Service> {
    Ok(Service {
        when_exists: Some(READY.into()),
        after,
        restart: Restart::Never,
        // As its own unit says: what users' scripts left running is theirs.
        kill_mode: KillMode::Process,
        log: Some(LOG.to_owned()),
        ..Service::new(Name::new(SERVICE)?, ["/bin/sh", "-c", STAGES])
    })
}
