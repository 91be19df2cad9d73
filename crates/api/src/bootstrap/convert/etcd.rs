//! Conversion of the settings of a kubeadm control plane's etcd.

use super::arguments;
use crate::bootstrap::{v1beta1, v1beta2};
use crate::conversion::absence::{list, set};

pub(super) fn up(etcd: v1beta1::Etcd) -> v1beta2::Etcd {
    let v1beta1::Etcd { external, local } = etcd;
    v1beta2::Etcd { external, local: local.map(local_up).and_then(set) }
}

pub(super) fn down(etcd: v1beta2::Etcd) -> v1beta1::Etcd {
    let v1beta2::Etcd { external, local } = etcd;
    v1beta1::Etcd { external, local: local.map(local_down).and_then(set) }
}

fn local_up(local: v1beta1::LocalEtcd) -> v1beta2::LocalEtcd {
    let v1beta1::LocalEtcd {
        data_dir,
        extra_args,
        extra_envs,
        image_repository,
        image_tag,
        peer_cert_sans,
        server_cert_sans,
    } = local;
    v1beta2::LocalEtcd {
        data_dir,
        extra_args: arguments::up(extra_args),
        extra_envs: list(extra_envs),
        image_repository,
        image_tag,
        peer_cert_sans: list(peer_cert_sans),
        server_cert_sans: list(server_cert_sans),
    }
}

fn local_down(local: v1beta2::LocalEtcd) -> v1beta1::LocalEtcd {
    let v1beta2::LocalEtcd {
        data_dir,
        extra_args,
        extra_envs,
        image_repository,
        image_tag,
        peer_cert_sans,
        server_cert_sans,
    } = local;
    v1beta1::LocalEtcd {
        data_dir,
        extra_args: arguments::down(extra_args),
        extra_envs,
        image_repository,
        image_tag,
        peer_cert_sans,
        server_cert_sans,
    }
}
