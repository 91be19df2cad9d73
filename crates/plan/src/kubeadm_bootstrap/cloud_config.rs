//! Renders the cloud-init configuration that a worker boots with.
//!
//! cloud-init first renders the whole text as a jinja template and then reads it as YAML. So texts are written without
//! escapes wherever YAML allows it: an escaped quote inside `{{ }}` would be a syntax error for jinja. Lines are never
//! folded for the same reason.

use std::collections::BTreeMap;

use hangar_api::bootstrap::v1beta2::KubeadmConfigSpec;
use hangar_api::bootstrap::{DiskSetup, Encoding, File, Ntp, Partition, TableType, User};
use serde::Serialize;

use super::KeyOfSecret;
use crate::flow::Read;

const JOIN_PATH: &str = "/run/kubeadm/kubeadm-join-config.yaml";
/// The contract's sign that the machine has bootstrapped.
const SENTINEL_PATH: &str = "/run/cluster-api/bootstrap-success.complete";

#[derive(Serialize)]
struct CloudConfig<'a> {
    write_files: Vec<WriteFile<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootcmd: Option<&'a [String]>,
    runcmd: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ntp: Option<&'a Ntp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    users: Vec<Account<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    disk_setup: BTreeMap<&'a str, Disk>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fs_setup: Vec<FileSystem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mounts: Option<&'a [Vec<String>]>,
}

#[derive(Serialize)]
struct WriteFile<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permissions: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    append: bool,
    content: &'a str,
}

#[derive(Serialize)]
struct Account<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gecos: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    homedir: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inactive: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shell: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_passwd: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sudo: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssh_authorized_keys: Option<&'a [String]>,
}

#[derive(Serialize)]
struct Disk {
    table_type: &'static str,
    layout: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    overwrite: Option<bool>,
}

#[derive(Serialize)]
struct FileSystem<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    filesystem: &'a str,
    device: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overwrite: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replace_fs: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_opts: Option<&'a [String]>,
}

/// The whole text.
pub(super) fn render(
    spec: &KubeadmConfigSpec,
    join: &str,
    contents: &BTreeMap<KeyOfSecret, Read<String>>,
) -> Result<String, String> {
    let mut write_files: Vec<WriteFile<'_>> =
        spec.files.iter().flatten().map(|file| write_file(file, contents)).collect();
    write_files.push(own_file(JOIN_PATH, join));
    // Makes the directory for the sentinel.
    write_files.push(own_file(
        "/run/cluster-api/placeholder",
        "This directory says how far the bootstrap has come.\n",
    ));
    let disks = spec.disk_setup.as_ref();
    let config = CloudConfig {
        write_files,
        bootcmd: spec.boot_commands.as_deref(),
        runcmd: commands(spec),
        ntp: spec.ntp.as_ref(),
        users: spec.users.iter().flatten().map(|user| account(user, contents)).collect(),
        disk_setup: disks.map(partitions).unwrap_or_default(),
        fs_setup: disks.map(file_systems).unwrap_or_default(),
        mounts: spec.mounts.as_deref(),
    };
    Ok(format!("## template: jinja\n#cloud-config\n{}", to_yaml(&config)?))
}

/// YAML whose lines are not folded.
pub(super) fn to_yaml(value: &impl Serialize) -> Result<String, String> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let mut text = String::new();
    serde_saphyr::to_fmt_writer_with_options(&mut text, value, options).map_err(|error| error.to_string())?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn own_file<'a>(path: &'a str, content: &'a str) -> WriteFile<'a> {
    WriteFile {
        path,
        encoding: None,
        owner: Some("root:root"),
        permissions: Some("0640"),
        append: false,
        content,
    }
}

fn write_file<'a>(file: &'a File, contents: &'a BTreeMap<KeyOfSecret, Read<String>>) -> WriteFile<'a> {
    let from = file.content_from.as_ref().map(|source| KeyOfSecret::from(&source.secret));
    WriteFile {
        path: &file.path,
        encoding: file.encoding.map(|encoding| match encoding {
            Encoding::Base64 => "base64",
            Encoding::Gzip => "gzip",
            Encoding::GzipBase64 => "gzip+base64",
        }),
        owner: file.owner.as_deref(),
        permissions: file.permissions.as_deref(),
        append: file.append.unwrap_or_default(),
        content: from.and_then(|key| content(&key, contents)).or(file.content.as_deref()).unwrap_or_default(),
    }
}

fn content<'a>(key: &KeyOfSecret, contents: &'a BTreeMap<KeyOfSecret, Read<String>>) -> Option<&'a str> {
    contents.get(key).and_then(|read| read.iter().next()).map(String::as_str)
}

fn commands(spec: &KubeadmConfigSpec) -> Vec<String> {
    let verbosity = spec.verbosity.map(|level| format!(" --v {level}")).unwrap_or_default();
    let join = format!("kubeadm join --config {JOIN_PATH}{verbosity} && echo success > {SENTINEL_PATH}");
    let before = spec.pre_kubeadm_commands.iter().flatten().cloned();
    let after = spec.post_kubeadm_commands.iter().flatten().cloned();
    before.chain([join]).chain(after).collect()
}

fn account<'a>(user: &'a User, contents: &'a BTreeMap<KeyOfSecret, Read<String>>) -> Account<'a> {
    let from = user.passwd_from.as_ref().map(|source| KeyOfSecret::from(&source.secret));
    Account {
        name: &user.name,
        gecos: user.gecos.as_deref(),
        groups: user.groups.as_deref(),
        homedir: user.home_dir.as_deref(),
        inactive: user.inactive,
        shell: user.shell.as_deref(),
        passwd: from.and_then(|key| content(&key, contents)).or(user.passwd.as_deref()),
        primary_group: user.primary_group.as_deref(),
        lock_passwd: user.lock_password,
        sudo: user.sudo.as_deref(),
        ssh_authorized_keys: user.ssh_authorized_keys.as_deref(),
    }
}

fn partitions(setup: &DiskSetup) -> BTreeMap<&str, Disk> {
    let disk = |partition: &Partition| Disk {
        table_type: match partition.table_type {
            Some(TableType::Gpt) => "gpt",
            Some(TableType::Mbr) | None => "mbr",
        },
        layout: partition.layout,
        overwrite: partition.overwrite,
    };
    setup.partitions.iter().flatten().map(|partition| (partition.device.as_str(), disk(partition))).collect()
}

fn file_systems(setup: &DiskSetup) -> Vec<FileSystem<'_>> {
    let systems = setup.filesystems.iter().flatten();
    systems
        .map(|system| FileSystem {
            label: system.label.as_deref(),
            filesystem: &system.filesystem,
            device: &system.device,
            partition: system.partition.as_deref(),
            overwrite: system.overwrite,
            replace_fs: system.replace_fs.as_deref(),
            extra_opts: system.extra_opts.as_deref(),
        })
        .collect()
}
