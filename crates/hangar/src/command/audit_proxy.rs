//! `hangar audit-proxy`: sends the audit records of an API server to their receivers. A container beside the API server
//! runs it.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hangar_operator::{LogFormat, LogLevel, Metrics, OtlpSettings, Telemetry, TelemetrySettings};

/// Send the audit records of the API server in this pod to their receivers.
#[derive(Debug, Args)]
pub(crate) struct AuditProxy {
    /// File with sockets and receivers
    #[arg(long, value_name = "FILE")]
    configuration: PathBuf,
    /// Log level: error, warn, info, debug, trace
    #[arg(long, env = "LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
    /// Log format: json or text
    #[arg(long, env = "LOG_FORMAT", value_name = "FORMAT", default_value = "json")]
    log_format: LogFormat,
}

impl AuditProxy {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let settings = hangar_audit::Settings::read(&self.configuration)?;
        let telemetry = TelemetrySettings {
            level: self.log_level,
            format: self.log_format,
            otlp: OtlpSettings::default(),
        };
        let telemetry = Telemetry::start(&telemetry, &Metrics::new())?;
        // The tenant decides how many connections there are.
        hangar_operator::raise_limit_of_files();
        let stop = hangar_operator::stop_on_signal()?;
        hangar_audit::run(&settings, stop).await?;
        telemetry.shutdown(Duration::from_secs(1)).await;
        Ok(())
    }
}
