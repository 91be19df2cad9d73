//! Options for machines that boot with Ignition; both versions have the same type.

use hangar_wire::wire;

/// A Container Linux Config that is merged into the generated one.
#[wire]
pub struct ContainerLinuxConfig {
    /// More configuration, as YAML, merged with the generated configuration.
    #[schemars(length(min = 1, max = 32768))]
    pub additional_config: Option<String>,
    /// Refuse a configuration that is parsed with warnings.
    pub strict: Option<bool>,
}
