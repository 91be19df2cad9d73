//! Log lines.

use tracing_subscriber::fmt::{MakeWriter, layer as lines};
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::{LogFormat, LogLevel};

/// The layer that writes log lines.
pub(super) fn layer<W>(
    level: &LogLevel,
    format: LogFormat,
    writer: W,
) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // The directives were parsed when the level was: what is lossy here is not lost.
    let mut filter = EnvFilter::builder().parse_lossy(level.directives());
    // The client calls every failed call an error. Whether it is one its caller knows, and says: a tenant that is not
    // up yet is none.
    if let Ok(quiet) = "kube_client::client::builder=off".parse() {
        filter = filter.add_directive(quiet);
    }
    match format {
        LogFormat::Json => lines()
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .with_writer(writer)
            .with_filter(filter)
            .boxed(),
        LogFormat::Text => lines().with_ansi(false).with_writer(writer).with_filter(filter).boxed(),
    }
}
