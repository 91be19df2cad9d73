//! Lists the fields of an OpenStackMachine that are not supported.

use hangar_api::infrastructure::v1beta1::{ImageParam, OpenStackMachineSpec};

use super::wanted::suffix;

/// Fields that cannot be honoured, by name.
pub(super) fn unsupported(spec: &OpenStackMachineSpec) -> Vec<String> {
    let mut fields = Vec::new();
    let mut refuse = |is_given: bool, field: String| {
        if is_given {
            fields.push(format!("{field} is not supported"));
        }
    };
    refuse(spec.root_volume.is_some(), "spec.rootVolume".to_owned());
    refuse(!spec.additional_block_devices.is_empty(), "spec.additionalBlockDevices".to_owned());
    refuse(spec.floating_ip_pool_ref.is_some(), "spec.floatingIPPoolRef".to_owned());
    refuse(spec.trunk == Some(true), "spec.trunk".to_owned());
    refuse(matches!(spec.image, ImageParam::ImageRef(_)), "spec.image.imageRef".to_owned());
    for (index, port) in spec.ports.iter().enumerate() {
        let field = |name: &str| format!("spec.ports[{index}].{name}");
        refuse(port.trunk == Some(true), field("trunk"));
        refuse(port.host_id.is_some(), field("hostID"));
        refuse(port.profile.is_some(), field("profile"));
        refuse(!port.value_specs.is_empty(), field("valueSpecs"));
        refuse(port.propagate_uplink_status.is_some(), field("propagateUplinkStatus"));
    }
    fields.extend(same_names(spec));
    fields
}

/// Ports are found again by their names: two of the same would be taken for one.
fn same_names(spec: &OpenStackMachineSpec) -> Vec<String> {
    let suffixes: Vec<String> =
        spec.ports.iter().enumerate().map(|(index, port)| suffix(index, port)).collect();
    let again = suffixes.iter().enumerate().filter(|(index, suffix)| suffixes[..*index].contains(suffix));
    again
        .map(|(index, suffix)| {
            format!("spec.ports[{index}].nameSuffix: another port is called {suffix:?} already")
        })
        .collect()
}
