//! Disks, placement and metadata of a server.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OpenStackId;
use crate::crd::one_of::exactly_one_property;

/// A volume the server boots from instead of local disk.
#[wire]
pub struct RootVolume {
    /// Size in GiB.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1))]
    pub size_gib: i64,
    /// Volume type; the cloud's default when empty.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// Where the volume is; the volume service decides when empty.
    pub availability_zone: Option<VolumeAvailabilityZone>,
}

/// Where a volume is.
#[wire]
#[serde(default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.from) || self.from == 'Name' ? has(self.name) : !has(self.name)",
    "message": "name is needed when from is Name, and not allowed otherwise",
}]))]
pub struct VolumeAvailabilityZone {
    /// Source of the zone: `Name` is the name given here, `Machine` is the machine's zone.
    pub from: VolumeAvailabilityZoneSource,
    /// Name of the zone.
    #[schemars(length(min = 1), extend("pattern" = "^[^ ]+$"))]
    pub name: Option<String>,
}

/// Where the name of a volume's availability zone comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VolumeAvailabilityZoneSource {
    /// From the `name` beside this field.
    #[default]
    Name,
    /// From the failure domain of the Machine.
    Machine,
}

/// A further disk of the server.
#[wire]
pub struct AdditionalBlockDevice {
    /// Name of the disk, unique in the server; also its tag, by which the guest finds it. `root` is not allowed.
    pub name: String,
    /// Size in GiB.
    #[serde(rename = "sizeGiB")]
    #[schemars(range(min = 1))]
    pub size_gib: i64,
    /// Storage of the disk.
    pub storage: BlockDeviceStorage,
}

/// Storage of a further disk.
#[wire]
pub struct BlockDeviceStorage {
    /// `Volume` for a volume, `Local` for disk of the hypervisor.
    #[serde(rename = "type")]
    pub type_: String,
    /// Details of the volume.
    pub volume: Option<BlockDeviceVolume>,
}

/// Details of a volume that is attached as a further disk.
#[wire]
#[serde(default)]
pub struct BlockDeviceVolume {
    /// Volume type; the cloud's default when empty.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// Where the volume is; the volume service decides when empty.
    pub availability_zone: Option<VolumeAvailabilityZone>,
}

/// An existing server group, by id or by filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = exactly_one_property)]
pub enum ServerGroupParam {
    /// UUID of the server group.
    Id(OpenStackId),
    /// Properties that match exactly one server group.
    Filter(ServerGroupFilter),
}

/// Properties by which one server group is found.
#[wire]
#[serde(default)]
#[schemars(extend("minProperties" = 1))]
pub struct ServerGroupFilter {
    /// Exact name.
    pub name: Option<String>,
}

/// One entry of the server's metadata.
#[wire]
pub struct ServerMetadata {
    /// Name of the entry.
    #[schemars(length(max = 255))]
    pub key: String,
    /// Value of the entry.
    #[schemars(length(max = 255))]
    pub value: String,
}

/// A further hint for Nova's scheduler.
#[wire(without_default)]
pub struct SchedulerHint {
    /// Name of the hint.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Value of the hint.
    pub value: SchedulerHintValue,
}

/// Value of a scheduler hint: its type, and the field of that type.
#[wire(without_default)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.type) && self.type == 'Bool' ? has(self.bool) : !has(self.bool)",
        "message": "bool is needed when type is Bool, and not allowed otherwise",
    },
    {
        "rule": "has(self.type) && self.type == 'Number' ? has(self.number) : !has(self.number)",
        "message": "number is needed when type is Number, and not allowed otherwise",
    },
    {
        "rule": "has(self.type) && self.type == 'String' ? has(self.string) : !has(self.string)",
        "message": "string is needed when type is String, and not allowed otherwise",
    },
]))]
pub struct SchedulerHintValue {
    /// Which of the other fields is set.
    #[serde(rename = "type")]
    pub type_: SchedulerHintType,
    /// The value, if `type` is `Bool`.
    pub bool: Option<bool>,
    /// The value, if `type` is `Number`.
    pub number: Option<i64>,
    /// The value, if `type` is `String`.
    #[schemars(length(min = 1, max = 255))]
    pub string: Option<String>,
}

/// Type of a scheduler hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SchedulerHintType {
    /// True or false.
    Bool,
    /// Text.
    String,
    /// A number.
    Number,
}
