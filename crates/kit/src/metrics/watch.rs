//! The metrics of watches, read from the watches themselves on every scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::watch::WatchStats;

type Source = Box<dyn Fn() -> WatchStats + Send + Sync>;

/// Watches of the API server, by name.
#[derive(Clone, Default)]
pub struct WatchMetrics {
    sources: Arc<RwLock<BTreeMap<String, Source>>>,
}

impl fmt::Debug for WatchMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WatchMetrics").finish_non_exhaustive()
    }
}

impl WatchMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    /// Shows what `source` says, under the watch's name. Another of the same name takes its place.
    pub fn add(&self, name: impl Into<String>, source: impl Fn() -> WatchStats + Send + Sync + 'static) {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.insert(name.into(), Box::new(source));
    }

    fn snapshot(&self) -> Vec<(String, WatchStats)> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        sources.iter().map(|(name, source)| (name.clone(), source())).collect()
    }
}

impl Collector for WatchMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let watches = self.snapshot();
        let mut family = |name: &str, help: &str, kind: MetricType, value: fn(&WatchStats) -> Value| {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (watch, stats) in &watches {
                let labels = [("watch", watch.as_str())];
                let metric = family.encode_family(&labels)?;
                match value(stats) {
                    Value::Count(count) => ConstCounter::new(count).encode(metric)?,
                    Value::Level(level) => ConstGauge::new(level).encode(metric)?,
                }
            }
            Ok::<(), fmt::Error>(())
        };
        // Nothing is said about nothing, as with every other family.
        if watches.is_empty() {
            return Ok(());
        }
        family("watch_objects", "Objects in the store", MetricType::Gauge, |stats| {
            Value::Level(i64::try_from(stats.objects).unwrap_or(i64::MAX))
        })?;
        let unreadable = "Objects in the store that cannot be read";
        family("watch_unreadable", unreadable, MetricType::Gauge, |stats| {
            Value::Level(i64::try_from(stats.unreadable).unwrap_or(i64::MAX))
        })?;
        family("watch_events", "Events taken from the watch", MetricType::Counter, |stats| {
            Value::Count(stats.events)
        })?;
        family("watch_restarts", "Lists after the first one", MetricType::Counter, |stats| {
            Value::Count(stats.lists.saturating_sub(1))
        })?;
        family("watch_vanished", "Objects whose deletion was missed", MetricType::Counter, |stats| {
            Value::Count(stats.vanished)
        })?;
        family("watch_errors", "Errors of the watch", MetricType::Counter, |stats| Value::Count(stats.errors))
    }
}

enum Value {
    Count(u64),
    Level(i64),
}
