//! Conversion of how a joining machine finds and trusts the API server.

use crate::bootstrap::{
    BootstrapTokenDiscovery, FileDiscovery, FileDiscoveryKubeConfig, KubeConfigAuthExec, KubeConfigUser,
    v1beta1, v1beta2,
};
use crate::conversion::absence::{list, set};

/// The newer discovery, and the timeout that moves elsewhere.
pub(super) fn up(discovery: v1beta1::Discovery) -> (v1beta2::Discovery, Option<String>) {
    let v1beta1::Discovery { bootstrap_token, file, timeout, tls_bootstrap_token } = discovery;
    let discovery = v1beta2::Discovery {
        bootstrap_token: bootstrap_token.and_then(token),
        file: file.map(self::file),
        tls_bootstrap_token,
    };
    (discovery, timeout)
}

pub(super) fn down(discovery: v1beta2::Discovery) -> v1beta1::Discovery {
    let v1beta2::Discovery { bootstrap_token, file, tls_bootstrap_token } = discovery;
    v1beta1::Discovery {
        bootstrap_token: bootstrap_token.and_then(token),
        file: file.map(self::file),
        timeout: None,
        tls_bootstrap_token,
    }
}

fn token(token: BootstrapTokenDiscovery) -> Option<BootstrapTokenDiscovery> {
    set(BootstrapTokenDiscovery { ca_cert_hashes: list(token.ca_cert_hashes), ..token })
}

fn file(file: FileDiscovery) -> FileDiscovery {
    let kube_config = file.kube_config.map(|config| {
        let exec = config.user.exec.map(|exec| KubeConfigAuthExec {
            args: list(exec.args),
            env: list(exec.env),
            ..exec
        });
        let user = KubeConfigUser { exec, ..config.user };
        FileDiscoveryKubeConfig { cluster: config.cluster.and_then(set), user }
    });
    FileDiscovery { kube_config, ..file }
}
