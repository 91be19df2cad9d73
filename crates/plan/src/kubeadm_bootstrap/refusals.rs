//! Lists the fields of a configuration that are not supported, each with the reason.

use hangar_api::bootstrap::Format;

use super::Observed;

/// The first minor version whose kubeadm reads the configuration we write.
const FIRST_MINOR: u32 = 31;

/// Fields that are refused, each with why.
pub(super) fn refusals(observed: &Observed) -> Vec<String> {
    let spec = &observed.config.spec;
    let mut refused = Vec::new();
    let mut refuse = |is_refused: bool, field: &str, why: &str| {
        if is_refused {
            refused.push(format!("{field}: {why}"));
        }
    };
    refuse(spec.format == Some(Format::Ignition), "spec.format", "ignition is not supported");
    refuse(spec.ignition.is_some(), "spec.ignition", "ignition is not supported");
    let join = spec.join_configuration.as_ref();
    refuse(
        join.is_some_and(|join| join.control_plane.is_some()),
        "spec.joinConfiguration.controlPlane",
        "control planes run as pods here, machines join as workers",
    );
    let file = join.and_then(|join| join.discovery.as_ref()).and_then(|discovery| discovery.file.as_ref());
    refuse(
        file.is_some_and(|file| file.kube_config.is_some()),
        "spec.joinConfiguration.discovery.file.kubeConfig",
        "write the file with spec.files and name it in kubeConfigPath",
    );
    for machine in observed.machine.iter() {
        refuse(
            machine.is_control_plane,
            "Machine",
            "control planes run as pods here, machines join as workers",
        );
        match machine.version.as_deref().map(minor) {
            None => {
                refuse(true, "Machine spec.version", "it is needed to choose kubeadm's configuration format");
            }
            Some(None) => refuse(true, "Machine spec.version", "it is no Kubernetes version"),
            Some(Some(minor)) => {
                refuse(
                    minor < FIRST_MINOR,
                    "Machine spec.version",
                    "Kubernetes before 1.31 is not supported",
                );
            }
        }
    }
    refused
}

fn minor(version: &str) -> Option<u32> {
    let mut parts = version.trim_start_matches('v').split('.');
    match (parts.next(), parts.next()) {
        (Some("1"), Some(minor)) => minor.parse().ok(),
        _ => None,
    }
}
