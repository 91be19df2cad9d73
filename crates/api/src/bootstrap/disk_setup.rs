//! Partitions and file systems made at first boot; both versions have the same types.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Partitions and file systems to make at first boot.
#[wire]
pub struct DiskSetup {
    /// File systems to make, in this order.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub filesystems: Option<Vec<Filesystem>>,
    /// Disks to partition, in this order.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub partitions: Option<Vec<Partition>>,
}

/// A file system to make on a device.
#[wire]
pub struct Filesystem {
    /// The device to format, such as `/dev/vdb`.
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// More options for the program that makes the file system.
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_opts: Option<Vec<String>>,
    /// Type of the file system, such as `ext4`.
    #[schemars(length(min = 1, max = 128))]
    pub filesystem: String,
    /// Label of the file system; mounts can refer to it.
    #[schemars(length(min = 1, max = 512))]
    pub label: Option<String>,
    /// Overwrite an existing file system. Can destroy data.
    pub overwrite: Option<bool>,
    /// Which partition to use: `auto`, `any`, `none` or a number.
    #[schemars(length(min = 1, max = 128))]
    pub partition: Option<String>,
    /// Replace a file system of this type if one is found; used by some cloud images only.
    #[serde(rename = "replaceFS")]
    #[schemars(length(min = 1, max = 128))]
    pub replace_fs: Option<String>,
}

/// A disk to partition.
#[wire]
pub struct Partition {
    /// The disk to partition, such as `/dev/vdb`.
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// True makes one partition over the whole disk; false leaves the disk unpartitioned.
    pub layout: bool,
    /// Skip the check for an existing partition table. Can destroy data.
    pub overwrite: Option<bool>,
    /// Kind of partition table; `mbr` when empty.
    pub table_type: Option<TableType>,
}

/// Kind of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TableType {
    /// Master boot record, for disks up to 2 TiB.
    Mbr,
    /// GUID partition table.
    Gpt,
}
