//! Gauges about objects, read from whoever knows them on every scrape. Nothing is kept in between: the series of an object
//! are gone with it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Takes one series: its labels and its value.
pub type Take<'a> = dyn FnMut(&[(&str, &str)], f64) + 'a;

/// A gauge with one series for each thing that there is.
pub struct Gauge {
    pub name: &'static str,
    pub help: &'static str,
    /// Gives all series. The number of each label's values has to have a bound for each object.
    pub series: Box<dyn Fn(&mut Take<'_>) + Send + Sync>,
}

/// Gauges about objects.
#[derive(Clone, Default)]
pub struct ObjectMetrics {
    gauges: Arc<RwLock<Vec<Gauge>>>,
}

impl fmt::Debug for ObjectMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ObjectMetrics").finish_non_exhaustive()
    }
}

impl ObjectMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    /// Shows these from now on. One of the same name takes the place of the other.
    pub fn add(&self, gauges: impl IntoIterator<Item = Gauge>) {
        let mut all = self.gauges.write().unwrap_or_else(PoisonError::into_inner);
        for gauge in gauges {
            all.retain(|present| present.name != gauge.name);
            all.push(gauge);
        }
    }
}

impl Collector for ObjectMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Gauge { name, help, series } in &*self.gauges.read().unwrap_or_else(PoisonError::into_inner) {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            let mut written = Ok(());
            series(&mut |labels, value| {
                let mut write = || ConstGauge::new(value).encode(family.encode_family(&labels)?);
                if written.is_ok() {
                    written = write();
                }
            });
            written?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn series_are_those_of_the_moment() {
        let (metrics, things) = (Metrics::new(), Arc::new(Mutex::new(vec!["one", "two\"\n"])));
        let shown = Arc::clone(&things);
        let gauge = |name, value| {
            let shown = Arc::clone(&shown);
            let series = move |take: &mut Take<'_>| {
                shown
                    .lock()
                    .unwrap()
                    .iter()
                    .for_each(|thing| take(&[("kind", "k"), ("thing", thing)], value));
            };
            Gauge { name, help: "Things", series: Box::new(series) }
        };
        metrics.objects.add([gauge("things", 7.0), gauge("sizes", 1.5)]);
        metrics.objects.add([gauge("things", 8.0)]);
        let lines = || -> Vec<String> {
            let text = metrics.encode();
            text.lines().filter(|line| line.contains("thing=")).map(str::to_owned).collect()
        };
        assert_eq!(
            lines(),
            [
                r#"hangar_sizes{kind="k",thing="one"} 1.5"#,
                r#"hangar_sizes{kind="k",thing="two\"\n"} 1.5"#,
                r#"hangar_things{kind="k",thing="one"} 8.0"#,
                r#"hangar_things{kind="k",thing="two\"\n"} 8.0"#,
            ]
        );
        things.lock().unwrap().clear();
        assert_eq!(lines(), Vec::<String>::new());
    }
}
