//! Metrics of this process, from the kernel, under the names that every Prometheus client uses.
//!
//! They are read from `/proc` at scrape time. If `/proc` cannot be read a metric is left out rather than reported as 0.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// `/proc` counts CPU time in these; the kernel's interface fixes the value at 100 for user space.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(super) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut write = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            let encoder = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
            metric.encode(encoder)
        };
        let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).ok();
        if let Some(seconds) = read("stat").as_deref().and_then(cpu_seconds) {
            write("process_cpu_seconds", "User and system CPU time spent", &ConstCounter::new(seconds))?;
        }
        if let Some(bytes) = read("status").as_deref().and_then(resident_bytes) {
            write("process_resident_memory_bytes", "Resident memory", &ConstGauge::new(bytes))?;
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            let count = i64::try_from(entries.count()).unwrap_or(i64::MAX);
            write("process_open_fds", "Open file descriptors", &ConstGauge::new(count))?;
        }
        if let Some(limit) = read("limits").as_deref().and_then(descriptor_limit) {
            write("process_max_fds", "Limit of open file descriptors", &ConstGauge::new(limit))?;
        }
        Ok(())
    }
}

/// Fields 14 and 15; the second field is a name in parentheses that may itself hold spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok().map(f64::from);
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn descriptor_limit(limits: &str) -> Option<i64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_a_name_with_spaces() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 1 1 1";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("garbage"), None);
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2 * 1024 * 1024));
        assert_eq!(
            descriptor_limit("Max open files            1024                 4096       files"),
            Some(1024)
        );
    }
}
