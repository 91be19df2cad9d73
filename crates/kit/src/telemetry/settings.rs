//! The settings of logs and export, from the environment.

use std::fmt;
use std::str::FromStr;

use http::Uri;

/// A value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable has a value that we cannot use.
    #[error("{variable}={value:?}: {reason}")]
    Variable {
        variable: &'static str,
        value: String,
        /// What would be right.
        reason: String,
    },
    /// The exporter refused its settings.
    #[error("the export of {signal} cannot start: {reason}")]
    Exporter {
        signal: &'static str,
        /// What the SDK said, which names the variable.
        reason: String,
    },
    /// Telemetry was started before in this process.
    #[error("telemetry was started twice")]
    AlreadyStarted,
}

/// Logs and export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetrySettings {
    pub level: LogLevel,
    pub format: LogFormat,
    /// The `OTEL_*` variables.
    pub otlp: OtlpSettings,
}

/// `LOG_LEVEL`: a level (`debug`, `INFO`, `warning`), or directives such as `info,hangar_kit=debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLevel(String);

/// At a plain level, what these say is about bytes and frames; below `info` it would drown ours.
const NOISY: &str = "h2=info,hyper=info,hyper_util=info,rustls=info,tonic=info,tower=info";

impl LogLevel {
    /// The directives, as the filter reads them.
    pub(super) fn directives(&self) -> &str {
        &self.0
    }
}

impl Default for LogLevel {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for LogLevel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |reason: &str| Error::Variable {
            variable: "LOG_LEVEL",
            value: text.to_owned(),
            reason: reason.to_owned(),
        };
        // A lone unknown word would count as the name of a module and silence everything else.
        if !text.contains(['=', ',']) {
            let level = match text.trim().to_ascii_lowercase().as_str() {
                "warning" => "warn",
                "off" | "error" | "warn" | "info" => return Ok(Self(text.trim().to_ascii_lowercase())),
                "debug" => "debug",
                "trace" => "trace",
                _ => return Err(refuse("use error, warn, info, debug or trace")),
            };
            return Ok(Self(if level == "warn" { level.to_owned() } else { format!("{level},{NOISY}") }));
        }
        tracing_subscriber::EnvFilter::builder()
            .parse(text)
            .map(|_| Self(text.to_owned()))
            .map_err(|error| refuse(&error.to_string()))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    #[default]
    Json,
    Text,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Json => "json",
            Self::Text => "text",
        })
    }
}

impl FromStr for LogFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.to_ascii_lowercase().as_str() {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err(Error::Variable {
                variable: "LOG_FORMAT",
                value: text.to_owned(),
                reason: "use json or text".to_owned(),
            }),
        }
    }
}

/// Where traces and metrics are exported to; nothing where they are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtlpSettings {
    pub traces: Option<String>,
    pub metrics: Option<String>,
}

/// The variables of one signal.
struct Signal {
    exporter: &'static str,
    endpoint: &'static str,
    protocol: &'static str,
}

const TRACES: Signal = Signal {
    exporter: "OTEL_TRACES_EXPORTER",
    endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    protocol: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
};

const METRICS: Signal = Signal {
    exporter: "OTEL_METRICS_EXPORTER",
    endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    protocol: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
};

const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

impl OtlpSettings {
    /// Reads the process's environment.
    pub fn from_environment() -> Result<Self, Error> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// Reads variables through `variable`. Empty ones count as unset, as the specification has it.
    pub fn read(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, Error> {
        let variable = |name: &'static str| variable(name).filter(|value| !value.trim().is_empty());
        let refuse = |variable: &'static str, value: &str, reason: &str| Error::Variable {
            variable,
            value: value.to_owned(),
            reason: reason.to_owned(),
        };
        match variable("OTEL_SDK_DISABLED").map(|value| (value.to_ascii_lowercase(), value)) {
            Some((lower, _)) if lower == "true" => return Ok(Self::default()),
            Some((lower, value)) if lower != "false" => {
                return Err(refuse("OTEL_SDK_DISABLED", &value, "use true or false"));
            }
            _ => {}
        }
        let endpoint = |signal: &Signal| {
            if let Some(exporter) = variable(signal.exporter) {
                match exporter.as_str() {
                    "none" => return Ok(None),
                    "otlp" => {}
                    _ => return Err(refuse(signal.exporter, &exporter, "use otlp or none")),
                }
            }
            let Some((name, value)) = [signal.endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT"]
                .into_iter()
                .find_map(|name| Some((name, variable(name)?)))
            else {
                return Ok(None);
            };
            for name in [signal.protocol, "OTEL_EXPORTER_OTLP_PROTOCOL"] {
                if let Some(protocol) = variable(name) {
                    if protocol != "grpc" {
                        return Err(refuse(
                            name,
                            &protocol,
                            "only grpc is supported, by default at port 4317",
                        ));
                    }
                    break;
                }
            }
            let is_url = value
                .parse::<Uri>()
                .is_ok_and(|uri| uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https")));
            if is_url {
                Ok(Some(value))
            } else {
                Err(refuse(name, &value, "use a URL such as http://collector:4317"))
            }
        };
        let settings = Self { traces: endpoint(&TRACES)?, metrics: endpoint(&METRICS)? };
        if settings.traces.is_some() {
            check_sampler(&variable)?;
        }
        if settings != Self::default()
            && let Some(attributes) = variable("OTEL_RESOURCE_ATTRIBUTES")
            && attributes.split_terminator(',').any(|pair| !pair.contains('='))
        {
            return Err(refuse("OTEL_RESOURCE_ATTRIBUTES", &attributes, "use key=value,key=value"));
        }
        Ok(settings)
    }
}

/// The SDK falls back to sampling everything with a warning; a typo would then cost money.
fn check_sampler(variable: &impl Fn(&'static str) -> Option<String>) -> Result<(), Error> {
    let refuse = |variable, value: &str, reason: String| {
        Err(Error::Variable { variable, value: value.to_owned(), reason })
    };
    let Some(sampler) = variable("OTEL_TRACES_SAMPLER") else {
        return Ok(());
    };
    if !SAMPLERS.contains(&sampler.as_str()) {
        return refuse("OTEL_TRACES_SAMPLER", &sampler, format!("use one of {}", SAMPLERS.join(", ")));
    }
    if sampler.ends_with("traceidratio") {
        let ratio = variable("OTEL_TRACES_SAMPLER_ARG").unwrap_or_default();
        if !ratio.parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio)) {
            return refuse("OTEL_TRACES_SAMPLER_ARG", &ratio, "use a number from 0 to 1".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
