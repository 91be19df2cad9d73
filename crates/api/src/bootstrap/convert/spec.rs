//! Conversion of the spec of a `KubeadmConfig`, which templates contain too.

use super::timeouts::{NewerTimeouts, OlderTimeouts};
use super::{cluster_configuration, init_configuration, join_configuration, timeouts};
use crate::bootstrap::{Ignition, v1beta1, v1beta2};
use crate::conversion::absence::{list, set};

pub(super) fn up(spec: v1beta1::KubeadmConfigSpec) -> v1beta2::KubeadmConfigSpec {
    let v1beta1::KubeadmConfigSpec {
        boot_commands,
        cluster_configuration,
        disk_setup,
        files,
        format,
        ignition,
        init_configuration,
        join_configuration,
        mounts,
        ntp,
        post_kubeadm_commands,
        pre_kubeadm_commands,
        use_experimental_retry_join: _,
        users,
        verbosity,
    } = spec;
    let (cluster_configuration, control_plane) =
        cluster_configuration::up(cluster_configuration.unwrap_or_default());
    let (mut join_configuration, discovery) = join_configuration::up(join_configuration.unwrap_or_default());
    let NewerTimeouts { init, join } = timeouts::up(&OlderTimeouts { control_plane, discovery });
    join_configuration.timeouts = join;
    v1beta2::KubeadmConfigSpec {
        boot_commands: list(boot_commands),
        cluster_configuration: set(cluster_configuration),
        disk_setup: disk_setup.and_then(set),
        files: list(files),
        format,
        ignition: ignition.and_then(ignition_filled),
        init_configuration: set(init_configuration::up(init_configuration.unwrap_or_default(), init)),
        join_configuration: set(join_configuration),
        mounts: list(mounts.map(|mounts| mounts.into_iter().filter(|mount| !mount.is_empty()).collect())),
        ntp: ntp.and_then(set),
        post_kubeadm_commands: list(post_kubeadm_commands),
        pre_kubeadm_commands: list(pre_kubeadm_commands),
        users: list(users),
        verbosity,
    }
}

pub(super) fn down(spec: v1beta2::KubeadmConfigSpec) -> v1beta1::KubeadmConfigSpec {
    let v1beta2::KubeadmConfigSpec {
        boot_commands,
        cluster_configuration,
        disk_setup,
        files,
        format,
        ignition,
        init_configuration,
        join_configuration,
        mounts,
        ntp,
        post_kubeadm_commands,
        pre_kubeadm_commands,
        users,
        verbosity,
    } = spec;
    let (init_configuration, init) = init_configuration::down(init_configuration.unwrap_or_default());
    let (mut join_configuration, join) = join_configuration::down(join_configuration.unwrap_or_default());
    let OlderTimeouts { control_plane, discovery } = timeouts::down(NewerTimeouts { init, join });
    if discovery.is_some() {
        join_configuration.discovery.get_or_insert_default().timeout = discovery;
    }
    v1beta1::KubeadmConfigSpec {
        boot_commands,
        cluster_configuration: set(cluster_configuration::down(
            cluster_configuration.unwrap_or_default(),
            control_plane,
        )),
        disk_setup: disk_setup.and_then(set),
        files,
        format,
        ignition: ignition.and_then(ignition_filled),
        init_configuration: set(init_configuration),
        join_configuration: set(join_configuration),
        mounts,
        ntp: ntp.and_then(set),
        post_kubeadm_commands,
        pre_kubeadm_commands,
        use_experimental_retry_join: None,
        users,
        verbosity,
    }
}

fn ignition_filled(ignition: Ignition) -> Option<Ignition> {
    set(Ignition { container_linux_config: ignition.container_linux_config.and_then(set) })
}
