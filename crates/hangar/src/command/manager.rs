//! `hangar manager`: its flags, each with the environment variable that Deployments set.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgAction, Args};
use hangar_operator::manager::{self, Options};
use hangar_operator::{
    LeaseSettings, Limits, LogFormat, LogLevel, MANAGER_NAME, ManagerSettings, Namespaces, OtlpSettings,
    Selection, TelemetrySettings, WebhookCertificateSource, WebhookTarget, controller_namespace,
};

use crate::configuration::ClusterArguments;
use crate::limits;

/// The Service that `hangar install` makes.
const WEBHOOK_SERVICE: (&str, u16) = ("hangar-webhook", 443);

/// Run the controllers, as the pod in the cluster does.
#[derive(Debug, Args)]
pub(crate) struct Manager {
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Controllers: `all` or names, separated by commas; `-name` excludes one
    #[arg(long, env = "CONTROLLERS", value_name = "LIST", default_value = "all")]
    controllers: Selection,
    /// Namespaces of the objects that it looks after, separated by commas; it reads nothing in others [default: all]
    #[arg(long, env = "NAMESPACES", value_name = "LIST")]
    namespaces: Option<Namespaces>,
    /// Namespace of the lease and the webhook certificate [default: the pod's]
    #[arg(long, env = "CONTROLLER_NAMESPACE", value_name = "NAME")]
    namespace: Option<String>,
    /// Acquire the lease before the first write
    #[arg(long, env = "LEADER_ELECTION", action = ArgAction::Set, default_value_t = true, value_name = "BOOL")]
    leader_election: bool,
    /// Duration of the lease: another manager takes over from a silent leader after it
    #[arg(long, env = "LEASE_DURATION", value_name = "SECONDS", default_value = "45", value_parser = seconds)]
    lease_duration: Duration,
    /// Time limit of a renewal: the leader stops leading after it
    #[arg(long, env = "LEASE_RENEW_DEADLINE", value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    lease_renew_deadline: Duration,
    /// Interval of attempts to acquire or renew the lease
    #[arg(long, env = "LEASE_RETRY_PERIOD", value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    lease_retry_period: Duration,
    /// Identity in the lease [default: the pod's or host's name with a random suffix]
    #[arg(long, env = "POD_NAME", value_name = "NAME", hide_env_values = true)]
    identity: Option<String>,
    /// File with what HostedControlPlanes may ask for beyond their namespace
    #[arg(long, env = "LIMITS", value_name = "FILE")]
    limits: Option<PathBuf>,
    /// Control planes get the priority classes that `hangar install` made
    #[arg(long, env = "PRIORITY_CLASSES")]
    priority_classes: bool,
    /// Image that this manager runs from, for the audit proxies of control planes
    #[arg(long, env = "HANGAR_IMAGE", value_name = "IMAGE")]
    image: Option<String>,
    /// Number of objects that one controller reconciles at once
    #[arg(long, env = "MAX_CONCURRENT_RECONCILES", value_name = "COUNT", default_value = "10")]
    max_concurrent_reconciles: NonZeroUsize,
    /// Address of /healthz and /readyz
    #[arg(long, env = "HEALTH_ADDRESS", value_name = "ADDRESS", default_value = "[::]:8081")]
    health_address: SocketAddr,
    /// Address of /metrics
    #[arg(long, env = "METRICS_ADDRESS", value_name = "ADDRESS", default_value = "[::]:8080")]
    metrics_address: SocketAddr,
    /// Address of the webhooks
    #[arg(long, env = "WEBHOOK_ADDRESS", value_name = "ADDRESS", default_value = "[::]:9443")]
    webhook_address: SocketAddr,
    /// URL at which the API server reaches the webhooks of a manager outside the cluster
    #[arg(long, env = "WEBHOOK_URL", value_name = "URL", value_parser = super::install::parse_url)]
    webhook_url: Option<String>,
    /// Directory with tls.crt and tls.key to use instead of an issued certificate
    #[arg(long, env = "WEBHOOK_CERT_DIR", value_name = "DIRECTORY")]
    webhook_cert_dir: Option<PathBuf>,
    /// Log level: error, warn, info, debug, trace, or directives such as info,hangar_kit=debug
    #[arg(long, env = "LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
    /// Log format: json or text
    #[arg(long, env = "LOG_FORMAT", value_name = "FORMAT", default_value = "json")]
    log_format: LogFormat,
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => Err("it must be a number of seconds".to_owned()),
    }
}

impl Manager {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let namespace = controller_namespace(self.namespace.as_deref())?;
        let host = self.identity.clone().or_else(host_name).unwrap_or_else(|| "hangar".to_owned());
        let lease = LeaseSettings {
            duration: self.lease_duration,
            renew_deadline: self.lease_renew_deadline,
            retry_period: self.lease_retry_period,
            ..LeaseSettings::new(&namespace, MANAGER_NAME, LeaseSettings::unique_identity(&host))
        };
        let target = match &self.webhook_url {
            Some(url) => WebhookTarget::Url(url.clone()),
            None => WebhookTarget::Service {
                name: WEBHOOK_SERVICE.0.to_owned(),
                namespace: namespace.clone(),
                port: WEBHOOK_SERVICE.1,
            },
        };
        let has_ipv6 = TcpListener::bind("[::]:0").is_ok();
        let settings = ManagerSettings {
            leader_election: self.leader_election,
            webhook_certificate: WebhookCertificateSource::choose(self.webhook_cert_dir.as_deref()),
            max_concurrent_reconciles: self.max_concurrent_reconciles,
            telemetry: TelemetrySettings {
                level: self.log_level,
                format: self.log_format,
                otlp: OtlpSettings::from_environment()?,
            },
            health_address: everywhere(self.health_address, has_ipv6),
            metrics_address: everywhere(self.metrics_address, has_ipv6),
            webhook_address: everywhere(self.webhook_address, has_ipv6),
            ..ManagerSettings::new(namespace)
        };
        let limits = limits::or_default(self.limits.as_deref(), self.priority_classes)?;
        let config = self.cluster.load().await?;
        let api_servers = api_servers(config.cluster_url.host().unwrap_or_default()).await;
        let limits = Arc::new(Limits { api_servers, ..limits });
        let options = Options {
            settings,
            controllers: self.controllers,
            namespaces: self.namespaces.unwrap_or_default(),
            limits,
            image: self.image.filter(|image| !image.is_empty()),
            lease,
            target,
        };
        manager::run(config, options).await?;
        Ok(())
    }
}

/// The addresses of the API server, by the name that the manager uses and by what each pod is told.
async fn api_servers(host: &str) -> Vec<IpAddr> {
    let told = std::env::var("KUBERNETES_SERVICE_HOST").ok();
    let mut found = Vec::new();
    for host in [Some(host.trim_matches(['[', ']'])), told.as_deref()].into_iter().flatten() {
        // The port means nothing here. A name that cannot be resolved now leads to no address that could be refused.
        found
            .extend(tokio::net::lookup_host((host, 443)).await.into_iter().flatten().map(|found| found.ip()));
    }
    found
}

/// "Everywhere" is every address of both families, and of the one there is where the kernel has no IPv6.
fn everywhere(address: SocketAddr, has_ipv6: bool) -> SocketAddr {
    if address.is_ipv6() && address.ip().is_unspecified() && !has_ipv6 {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port());
    }
    address
}

fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everywhere_means_what_the_kernel_has() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(everywhere(address("[::]:8081"), true), address("[::]:8081"));
        assert_eq!(everywhere(address("[::]:8081"), false), address("0.0.0.0:8081"));
        // Somebody asked for exactly this one.
        assert_eq!(everywhere(address("[::1]:8081"), false), address("[::1]:8081"));
        assert_eq!(everywhere(address("127.0.0.1:0"), false), address("127.0.0.1:0"));
    }
}
