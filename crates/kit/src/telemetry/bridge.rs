//! Exports the Prometheus registry as OTLP metrics.
//!
//! The input is the registry's text: what a scrape would show is exported, and no metric is counted twice. Each family
//! becomes instruments that are observed when the SDK collects. A histogram becomes the three series that a scrape
//! shows (`_count`, `_sum`, `_bucket`), because the SDK does not accept ready buckets.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use tokio::task::JoinHandle;

use crate::metrics::Metrics;

/// A family shows up in the text with its first sample; new ones are looked for this often.
const INTERVAL: Duration = Duration::from_secs(10);

/// Keeps the SDK's instruments in step with the registry.
#[derive(Debug)]
pub(super) struct Bridge {
    instruments: Arc<Instruments>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Instruments {
    meter: Meter,
    metrics: Metrics,
    known: Mutex<BTreeSet<String>>,
}

/// One line of the text.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

/// How a series behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    OnlyGrows,
    GoesUpAndDown,
}

impl Bridge {
    pub(super) fn start(provider: &SdkMeterProvider, metrics: Metrics) -> Self {
        let instruments =
            Arc::new(Instruments { meter: provider.meter("hangar"), metrics, known: Mutex::default() });
        let task = tokio::spawn({
            let instruments = instruments.clone();
            async move {
                loop {
                    instruments.refresh();
                    tokio::time::sleep(INTERVAL).await;
                }
            }
        });
        Self { instruments, task }
    }

    /// Makes instruments for families that are new.
    pub(super) fn refresh(&self) {
        self.instruments.refresh();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Instruments {
    fn refresh(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (series, behaviour) in series(&self.metrics.encode()) {
            if known.insert(series.clone()) {
                self.add(series, behaviour);
            }
        }
    }

    fn add(&self, series: String, behaviour: Behaviour) {
        let metrics = self.metrics.clone();
        // Collectors add `_total` to what only grows.
        let name = series.strip_suffix("_total").unwrap_or(&series).to_owned();
        let observe = move |observer: &dyn AsyncInstrument<f64>| {
            for sample in samples(&metrics.encode()).filter(|sample| sample.name == series) {
                let labels: Vec<_> =
                    sample.labels.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
                observer.observe(sample.value, &labels);
            }
        };
        // The SDK keeps the callback; the handle itself is of no use.
        match behaviour {
            Behaviour::OnlyGrows => {
                let _ = self.meter.f64_observable_counter(name).with_callback(observe).build();
            }
            Behaviour::GoesUpAndDown => {
                let _ = self.meter.f64_observable_gauge(name).with_callback(observe).build();
            }
        }
    }
}

/// The series that the families in `text` consist of.
fn series(text: &str) -> Vec<(String, Behaviour)> {
    let declarations = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    declarations
        .flat_map(|(family, kind)| match kind {
            "counter" => vec![(format!("{family}_total"), Behaviour::OnlyGrows)],
            "histogram" => ["count", "sum", "bucket"]
                .map(|part| (format!("{family}_{part}"), Behaviour::OnlyGrows))
                .to_vec(),
            _ => vec![(family.to_owned(), Behaviour::GoesUpAndDown)],
        })
        .collect()
}

fn samples(text: &str) -> impl Iterator<Item = Sample> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(sample)
}

/// Reads `name{key="value",…} number`.
fn sample(line: &str) -> Option<Sample> {
    let name_end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (key, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
            let (value, after) = unquote(quoted)?;
            labels.push((key.to_owned(), value));
            rest = after;
        }
        rest = &rest[1..];
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Reads up to the closing quote, and yields what follows it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[index + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_escapes_and_without_labels() {
        let read = |line: &str| sample(line).expect(line);
        assert_eq!(read("a 1.5"), Sample { name: "a".into(), labels: vec![], value: 1.5 });
        let quoted = read(r#"a_total{x="1",y="a\"b\\c\nd}"} 7"#);
        assert_eq!(quoted.labels, [("x".into(), "1".into()), ("y".into(), "a\"b\\c\nd}".into())]);
        assert_eq!(format!("{}", quoted.value), "7");
        assert_eq!(sample("# EOF"), None);
        assert_eq!(sample("a{x=\"1"), None);
    }

    #[test]
    fn every_sample_of_the_registry_belongs_to_a_series() {
        let metrics = Metrics::new();
        metrics.reconcile.observe("cluster", "done", Duration::from_millis(3));
        metrics.reconcile.observe_error("cluster", "Conflict");
        metrics.calls.observe("get", "secrets", "200");
        metrics.webhook.observe("/convert", "converted", Duration::from_millis(1));
        metrics.leader.leading.set(1);
        let text = metrics.encode();
        let known: BTreeSet<_> = series(&text).into_iter().map(|(name, _)| name).collect();
        let shown: Vec<_> = samples(&text).collect();
        assert!(shown.len() > 20, "{text}");
        for sample in shown {
            assert!(known.contains(&sample.name), "{} is not among {known:?}", sample.name);
        }
        // Every line that is not a comment is understood.
        assert_eq!(samples(&text).count(), text.lines().filter(|line| !line.starts_with('#')).count());
    }
}
