//! The programs of a control plane that users can set something on.

use hangar_api::controlplane::v1alpha1::{Container, HostedControlPlaneSettings};

use super::flags::accepted;
use super::{etcd_settings, kube_proxy_settings};
use crate::admission::FieldError;

/// A program, and which of its flags are not users' to set: those that the control plane sets, those that would move
/// it to another address, data or authority, and those with which it would not start. `*` at the end of a name stands
/// for the rest of it.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Of its image, in the default registry.
    pub(crate) repository: &'static str,
    owned: &'static [&'static str],
    /// Whether it can have a flag with this value.
    check: Check,
}

/// Why a program cannot have a flag with this value.
type Check = fn(&Program, &str, &str) -> Result<(), String>;

/// A flag of the command line.
const FLAG: Check = |program, name, value| accepted(program, name, value).map(drop);

impl Program {
    pub(super) fn owns(&self, flag: &str) -> bool {
        self.owned.iter().any(|owned| match owned.strip_suffix('*') {
            Some(beginning) => flag.starts_with(beginning),
            None => *owned == flag,
        })
    }
}

pub(super) const API_SERVER: Program = Program {
    name: "kube-apiserver",
    repository: "kube-apiserver",
    owned: &[
        // The older way to choose plugins, without any of ours.
        "admission-control",
        "advertise-address",
        "allow-privileged",
        // Probes, and workers that join, have no credentials.
        "anonymous-auth",
        // `spec.deployment.apiServer.audit` sets them. How records are collected is users' to set.
        "audit-log-format",
        "audit-log-max*",
        "audit-log-mode",
        "audit-log-path",
        "audit-log-version",
        "audit-policy-file",
        "audit-webhook-config-file",
        "audit-webhook-mode",
        "audit-webhook-version",
        // `spec.oidcProviders` sets it; beside it the API server takes none of the older flags.
        "authentication-config",
        "authorization-*",
        "bind-address",
        "cert-dir",
        "client-ca-file",
        "egress-selector-config-file",
        "enable-aggregator-routing",
        "enable-bootstrap-token-auth",
        "encryption-provider-config*",
        "endpoint-reconciler-type",
        "etcd-cafile",
        "etcd-certfile",
        "etcd-keyfile",
        "etcd-prefix",
        "etcd-servers*",
        "help",
        "kubelet-client-*",
        "oidc-*",
        "proxy-client-*",
        "requestheader-*",
        "secure-port",
        "service-account-issuer",
        "service-account-jwks-uri",
        "service-account-key-file",
        "service-account-signing-*",
        "service-cluster-ip-range",
        "shutdown-*",
        "storage-backend",
        "tls-cert-file",
        "tls-private-key-file",
        "version",
    ],
    check: FLAG,
};

pub(super) const CONTROLLER_MANAGER: Program = Program {
    name: "kube-controller-manager",
    repository: "kube-controller-manager",
    owned: &[
        "allocate-node-cidrs",
        "authentication-*",
        // Probes are among the paths that are always allowed.
        "authorization-*",
        "bind-address",
        "cert-dir",
        "client-ca-file",
        "cluster-cidr",
        "cluster-name",
        "cluster-signing-cert-file",
        "cluster-signing-key-file",
        "cluster-signing-kube*",
        "cluster-signing-legacy-unknown-*",
        "help",
        "kubeconfig",
        "leader-elect",
        "leader-elect-resource-*",
        "master",
        "requestheader-*",
        "root-ca-file",
        "secure-port",
        "service-account-private-key-file",
        "service-cluster-ip-range",
        "tls-cert-file",
        "tls-private-key-file",
        "use-service-account-credentials",
        "version",
    ],
    check: FLAG,
};

pub(super) const SCHEDULER: Program = Program {
    name: "kube-scheduler",
    repository: "kube-scheduler",
    owned: &[
        "authentication-*",
        "authorization-*",
        "bind-address",
        "cert-dir",
        "client-ca-file",
        // Nothing can be mounted into its pods, and a file of its own would replace what is set here.
        "config",
        "help",
        "kubeconfig",
        "leader-elect",
        "leader-elect-resource-*",
        "master",
        "requestheader-*",
        "secure-port",
        "tls-cert-file",
        "tls-private-key-file",
        "version",
        "write-config-to",
    ],
    check: FLAG,
};

/// Its flags are keys of a file.
pub(super) const ETCD: Program = Program {
    name: "etcd",
    repository: "etcd",
    owned: &[
        "advertise-client-urls",
        "auto-tls",
        "cert-file",
        "client-*",
        "config-file",
        "data-dir",
        "discovery*",
        "feature-gates",
        "force-new-cluster",
        "initial-advertise-peer-urls",
        "initial-cluster*",
        "key-file",
        "listen-*",
        "name",
        "peer-*",
        "quota-backend-bytes",
        "trusted-ca-file",
        // It loses what it has acknowledged.
        "unsafe-no-fsync",
        "wal-dir",
    ],
    check: |_, name, value| etcd_settings::setting(name, value).map(drop),
};

pub(super) const KONNECTIVITY_SERVER: Program = Program {
    name: "konnectivity-server",
    repository: "kas-network-proxy/proxy-server",
    owned: &[
        "admin-bind-address",
        "admin-port",
        "agent-bind-address",
        "agent-namespace",
        "agent-port",
        "agent-service-account",
        "authentication-audience",
        "cluster-ca-cert",
        "cluster-cert",
        "cluster-key",
        "delete-existing-uds-file",
        // Whoever may read its metrics could read its memory.
        "enable-contention-profiling",
        "enable-lease-controller",
        "enable-profiling",
        "health-bind-address",
        "health-port",
        "help",
        "kubeconfig",
        "lease-*",
        "mode",
        "server-*",
        "uds-name",
    ],
    check: FLAG,
};

/// The proxy of audit records, a command of this very program. All that it needs is in its file.
pub(super) const AUDIT_PROXY: Program = Program {
    name: super::names::AUDIT_PROXY,
    repository: "hangar",
    owned: &["*"],
    check: |_, _, _| Err("the audit proxy has no flags to set".to_owned()),
};

/// It runs on the nodes of the tenant.
pub(super) const KONNECTIVITY_AGENT: Program = Program {
    name: "konnectivity-agent",
    repository: "kas-network-proxy/proxy-agent",
    owned: &[
        "admin-server-port",
        "agent-id",
        "ca-cert",
        "count-server-leases",
        "health-server-port",
        "help",
        "kubeconfig",
        "proxy-server-host",
        "proxy-server-port",
        "server-count-source",
        "service-account-token-path",
    ],
    check: FLAG,
};

/// Its flags are fields of a file. It runs on the nodes of the tenant.
pub(super) const KUBE_PROXY: Program = Program {
    name: "kube-proxy",
    repository: "kube-proxy",
    owned: &[
        "cleanup",
        "cluster-cidr",
        "config",
        "healthz-bind-address",
        "help",
        "hostname-override",
        "init-only",
        "kubeconfig",
        "master",
        "metrics-bind-address",
        "version",
        "write-config-to",
    ],
    check: |_, name, value| kube_proxy_settings::setting(name, value).map(drop),
};

/// It runs on the nodes of the tenant.
pub(super) const CORE_DNS: Program = Program {
    name: "coredns",
    repository: "coredns/coredns",
    owned: &["conf", "dns.port", "help", "p", "plugins", "version"],
    check: FLAG,
};

/// The programs in the management cluster.
pub(crate) const HOSTED: [&Program; 5] =
    [&API_SERVER, &KONNECTIVITY_SERVER, &CONTROLLER_MANAGER, &SCHEDULER, &ETCD];

type Given<'settings> = (String, &'static Program, &'settings Container);

/// What users set on the programs in the management cluster, with the path of the field.
pub(crate) fn hosted_programs(settings: &HostedControlPlaneSettings) -> Vec<Given<'_>> {
    let deployment = settings.deployment.as_ref();
    let api_server = deployment.and_then(|given| given.api_server.as_ref());
    let given = [
        ("deployment.apiServer", &API_SERVER, api_server.map(|given| &given.pod.container)),
        (
            "deployment.apiServer.konnectivity",
            &KONNECTIVITY_SERVER,
            api_server.and_then(|given| given.konnectivity.as_ref()),
        ),
        (
            "deployment.apiServer.audit.webhook",
            &AUDIT_PROXY,
            api_server.and_then(|given| Some(&given.audit.as_ref()?.webhook.as_ref()?.container)),
        ),
        (
            "deployment.controllerManager",
            &CONTROLLER_MANAGER,
            deployment.and_then(|given| Some(&given.controller_manager.as_ref()?.pod.container)),
        ),
        (
            "deployment.scheduler",
            &SCHEDULER,
            deployment.and_then(|given| Some(&given.scheduler.as_ref()?.pod.container)),
        ),
        ("etcd", &ETCD, settings.etcd.as_ref().map(|given| &given.container)),
    ];
    given
        .into_iter()
        .filter_map(|(path, program, container)| Some((format!("spec.{path}"), program, container?)))
        .collect()
}

/// The flags that users set and that are not theirs.
pub(crate) fn refused_flags(settings: &HostedControlPlaneSettings) -> Vec<FieldError> {
    let tenant = [
        (
            "konnectivityClient",
            &KONNECTIVITY_AGENT,
            settings.konnectivity_client.as_ref().map(|given| &given.pod.container),
        ),
        ("kubeProxy", &KUBE_PROXY, settings.kube_proxy.as_ref().map(|given| &given.pod.container)),
        ("coredns", &CORE_DNS, settings.coredns.as_ref().map(|given| &given.pod.pod.container)),
    ];
    let tenant = tenant
        .into_iter()
        .filter_map(|(path, program, container)| Some((format!("spec.{path}"), program, container?)));
    let mut errors = Vec::new();
    for (path, program, container) in hosted_programs(settings).into_iter().chain(tenant) {
        for (name, value) in &container.args {
            if let Err(why) = (program.check)(program, name, value) {
                errors.push(FieldError::invalid(format!("{path}.args[{name}]"), value.as_str(), why));
            }
        }
    }
    errors
}
