//! How a joining machine finds and trusts the API server.

use super::emptiness::{filled, non_empty};
use crate::bootstrap::{v1beta1, v1beta2};

/// The newer discovery, and the timeout that moves elsewhere.
pub(super) fn up(discovery: v1beta1::Discovery) -> (v1beta2::Discovery, Option<String>) {
    let v1beta1::Discovery { bootstrap_token, file, timeout, tls_bootstrap_token } = discovery;
    let discovery = v1beta2::Discovery {
        bootstrap_token: bootstrap_token.map(token_up).and_then(filled),
        file: file.map(file_up),
        tls_bootstrap_token,
    };
    (discovery, timeout)
}

pub(super) fn down(discovery: v1beta2::Discovery) -> v1beta1::Discovery {
    let v1beta2::Discovery { bootstrap_token, file, tls_bootstrap_token } = discovery;
    v1beta1::Discovery {
        bootstrap_token: bootstrap_token.map(token_down).and_then(filled),
        file: file.map(file_down),
        timeout: None,
        tls_bootstrap_token,
    }
}

fn token_up(token: v1beta1::BootstrapTokenDiscovery) -> v1beta2::BootstrapTokenDiscovery {
    let v1beta1::BootstrapTokenDiscovery {
        api_server_endpoint,
        ca_cert_hashes,
        token,
        unsafe_skip_ca_verification,
    } = token;
    let ca_cert_hashes = non_empty(ca_cert_hashes);
    v1beta2::BootstrapTokenDiscovery {
        api_server_endpoint,
        ca_cert_hashes,
        token,
        unsafe_skip_ca_verification,
    }
}

fn token_down(token: v1beta2::BootstrapTokenDiscovery) -> v1beta1::BootstrapTokenDiscovery {
    let v1beta2::BootstrapTokenDiscovery {
        api_server_endpoint,
        ca_cert_hashes,
        token,
        unsafe_skip_ca_verification,
    } = token;
    v1beta1::BootstrapTokenDiscovery {
        api_server_endpoint,
        ca_cert_hashes,
        token,
        unsafe_skip_ca_verification,
    }
}

fn file_up(file: v1beta1::FileDiscovery) -> v1beta2::FileDiscovery {
    let v1beta1::FileDiscovery { kube_config, kube_config_path } = file;
    v1beta2::FileDiscovery { kube_config: kube_config.map(kube_config_up), kube_config_path }
}

fn file_down(file: v1beta2::FileDiscovery) -> v1beta1::FileDiscovery {
    let v1beta2::FileDiscovery { kube_config, kube_config_path } = file;
    v1beta1::FileDiscovery { kube_config: kube_config.map(kube_config_down), kube_config_path }
}

fn kube_config_up(config: v1beta1::FileDiscoveryKubeConfig) -> v1beta2::FileDiscoveryKubeConfig {
    let v1beta1::FileDiscoveryKubeConfig { cluster, user } = config;
    let v1beta1::KubeConfigUser { auth_provider, exec } = user;
    let user =
        v1beta2::KubeConfigUser { auth_provider: auth_provider.map(provider_up), exec: exec.map(exec_up) };
    v1beta2::FileDiscoveryKubeConfig { cluster: cluster.and_then(filled), user }
}

fn kube_config_down(config: v1beta2::FileDiscoveryKubeConfig) -> v1beta1::FileDiscoveryKubeConfig {
    let v1beta2::FileDiscoveryKubeConfig { cluster, user } = config;
    let v1beta2::KubeConfigUser { auth_provider, exec } = user;
    let user = v1beta1::KubeConfigUser {
        auth_provider: auth_provider.map(provider_down),
        exec: exec.map(exec_down),
    };
    v1beta1::FileDiscoveryKubeConfig { cluster: cluster.and_then(filled), user }
}

fn provider_up(provider: v1beta1::KubeConfigAuthProvider) -> v1beta2::KubeConfigAuthProvider {
    let v1beta1::KubeConfigAuthProvider { config, name } = provider;
    v1beta2::KubeConfigAuthProvider { config, name }
}

fn provider_down(provider: v1beta2::KubeConfigAuthProvider) -> v1beta1::KubeConfigAuthProvider {
    let v1beta2::KubeConfigAuthProvider { config, name } = provider;
    v1beta1::KubeConfigAuthProvider { config, name }
}

fn exec_up(exec: v1beta1::KubeConfigAuthExec) -> v1beta2::KubeConfigAuthExec {
    let v1beta1::KubeConfigAuthExec { api_version, args, command, env, provide_cluster_info } = exec;
    let variable = |variable| {
        let v1beta1::KubeConfigAuthExecEnv { name, value } = variable;
        v1beta2::KubeConfigAuthExecEnv { name, value }
    };
    v1beta2::KubeConfigAuthExec {
        api_version,
        args: non_empty(args),
        command,
        env: non_empty(env.map(|env| env.into_iter().map(variable).collect())),
        provide_cluster_info,
    }
}

fn exec_down(exec: v1beta2::KubeConfigAuthExec) -> v1beta1::KubeConfigAuthExec {
    let v1beta2::KubeConfigAuthExec { api_version, args, command, env, provide_cluster_info } = exec;
    let variable = |variable| {
        let v1beta2::KubeConfigAuthExecEnv { name, value } = variable;
        v1beta1::KubeConfigAuthExecEnv { name, value }
    };
    v1beta1::KubeConfigAuthExec {
        api_version,
        args,
        command,
        env: env.map(|env| env.into_iter().map(variable).collect()),
        provide_cluster_info,
    }
}
