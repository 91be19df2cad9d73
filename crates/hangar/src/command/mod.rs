//! The subcommands: argument structs and what they call.

mod audit_proxy;
mod backup;
mod backup_restore;
mod cloud;
mod completions;
mod describe;
mod down;
pub(crate) mod environment;
mod install;
mod manager;
mod node;
mod plan;
mod provision;
mod restore_member;
mod status;
mod up;

use clap::Subcommand;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the controllers, as the pod in the cluster does
    Manager(Box<manager::Manager>),
    /// Start or repair everything on this host: management cluster, cloud, Hangar, a first cluster; needs root
    Up(up::Up),
    /// Remove what `hangar up` made on this host
    Down(down::Down),
    /// Show the state of the environment on this host
    Status(status::Status),
    /// Stop or start a node of the management cluster on this host, to try what happens then
    Node(node::Node),
    /// Collect logs and objects for a bug report
    Logs(status::Logs),
    /// Show a cluster: what is ready, what is waited for, since when, and who must act
    Describe(describe::Describe),
    /// List the backups of a cluster's etcd, or make one now
    Backup(backup::Backup),
    /// Show what Hangar would do with the objects of some files, without doing it
    Plan(plan::Plan),
    /// Install Hangar in the cluster: CRDs, RBAC, webhooks and the manager
    Install(install::Install),
    /// The embedded cloud, which `hangar up` starts
    #[command(hide = true)]
    Cloud(cloud::Cloud),
    /// Send the audit records of the API server in this pod to their receivers
    #[command(hide = true)]
    AuditProxy(audit_proxy::AuditProxy),
    /// Restore a member of etcd from a backup
    #[command(hide = true)]
    RestoreMember(restore_member::RestoreMember),
    /// Provision volumes as directories of this machine
    #[command(hide = true)]
    Provision(provision::Provision),
    /// Print the version
    Version,
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Manager(manager) => runtime()?.block_on(manager.run()),
            Self::Describe(describe) => runtime()?.block_on(describe.run()),
            Self::Backup(backup) => runtime()?.block_on(backup.run()),
            Self::Plan(plan) => runtime()?.block_on(plan.run()),
            Self::Install(install) => runtime()?.block_on(install.run()),
            Self::Up(up) => runtime()?.block_on(up.run()),
            Self::Down(down) => runtime()?.block_on(down.run()),
            Self::Status(status) => runtime()?.block_on(status.run()),
            Self::Node(node) => runtime()?.block_on(node.run()),
            Self::Logs(logs) => runtime()?.block_on(logs.run()),
            Self::Cloud(cloud) => runtime()?.block_on(cloud.run()),
            Self::AuditProxy(proxy) => runtime()?.block_on(proxy.run()),
            Self::RestoreMember(restore) => runtime()?.block_on(restore.run()),
            Self::Provision(provision) => runtime()?.block_on(provision.run()),
            Self::Version => {
                println!("hangar v{}", env!("CARGO_PKG_VERSION"));
                Ok(())
            }
            Self::Completions(completions) => {
                completions.run();
                Ok(())
            }
        }
    }
}

/// Two workers: the manager waits for others most of the time, and each worker keeps memory of its own.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
