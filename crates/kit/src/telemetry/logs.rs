//! Log lines.

use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::fmt::{MakeWriter, layer as lines};
use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::{CLIENT, LogFormat, LogLevel};

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
    let filter = EnvFilter::builder().parse_lossy(level.directives());
    let filter = filter.and(filter_fn(|metadata| !metadata.target().starts_with(CLIENT)));
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
