//! Settings of machines that boot with Ignition; both versions have the same type.

use hangar_wire::wire;
use schemars::Schema;

use super::container_linux_config::ContainerLinuxConfig;
use super::newer::refuse_empty;

/// Settings for machines that boot with Ignition.
#[wire]
pub struct Ignition {
    /// A Container Linux Config that is merged into the generated one.
    pub container_linux_config: Option<ContainerLinuxConfig>,
}

/// The bounds of the newer version.
pub(super) fn newer(schema: &mut Schema) {
    refuse_empty(schema, &["", "/properties/containerLinuxConfig"]);
}
