//! What was called: by the manager's own metrics, which name every call to the management API, and by the actor, which
//! answers for tenants and etcd.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

const METRIC: &str = "hangar_api_calls_total{";
/// The leader renews its lease whether there is a control plane or not.
const LEASE: &str = " leases.";

/// Calls by whom, verb and resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// Of the manager's page of metrics and the actor's tally.
    pub(super) fn of(metrics: &str, tally: &Value) -> anyhow::Result<Self> {
        let mut counts = Self::default();
        for line in metrics.lines().filter_map(|line| line.strip_prefix(METRIC)) {
            let (labels, count) = line.split_once("} ").context("a metric without a value")?;
            let label = |name: &str| {
                let given = labels.split(',').find_map(|label| label.strip_prefix(name)?.strip_prefix("=\""));
                given.map(|value| value.trim_end_matches('"')).with_context(|| format!("no label {name}"))
            };
            let call = format!("management: {} {}", label("verb")?, label("resource")?);
            *counts.0.entry(call).or_default() += count.trim().parse::<u64>()?;
        }
        for (call, count) in tally["calls"].as_object().into_iter().flatten() {
            counts.0.insert(call.clone(), count.as_u64().context("a count")?);
        }
        Ok(counts)
    }

    /// What came after an earlier count.
    pub(super) fn since(&self, before: &Self) -> Self {
        let earlier = |call: &str| before.0.get(call).copied().unwrap_or_default();
        let later = self.0.iter().map(|(call, count)| (call.clone(), count.saturating_sub(earlier(call))));
        Self(later.filter(|(_, count)| *count > 0).collect())
    }

    /// Calls to somebody that write, or do not, without the lease.
    pub(super) fn sum(&self, whom: &str, is_write: bool) -> u64 {
        let asked = self.0.iter().filter(|(call, _)| {
            let verb = call.strip_prefix(whom).and_then(|call| call.strip_prefix(": ")).unwrap_or_default();
            let reads = ["get ", "list ", "watch "].iter().any(|read| verb.starts_with(read));
            !verb.is_empty() && !verb.contains(LEASE) && reads != is_write
        });
        asked.map(|(_, count)| count).sum()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(call, count)| (call.as_str(), *count))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_told_apart_by_whom_and_whether_they_write() {
        let page = "# HELP hangar_api_calls Calls\n\
            hangar_api_calls_total{verb=\"watch\",resource=\"pods\",code=\"200\"} 3\n\
            hangar_api_calls_total{verb=\"patch\",resource=\"pods\",code=\"200\"} 2\n\
            hangar_api_calls_total{verb=\"patch\",resource=\"pods\",code=\"409\"} 1\n\
            hangar_api_calls_total{verb=\"update\",resource=\"leases.coordination.k8s.io\",code=\"200\"} 9\n";
        let tally = json!({"calls": {"tenant: get /version": 5, "etcd: get /health": 4}});
        let counts = Counts::of(page, &tally).unwrap();
        assert_eq!((counts.sum("management", false), counts.sum("management", true)), (3, 3));
        assert_eq!((counts.sum("tenant", false), counts.sum("etcd", false)), (5, 4));
        assert_eq!(counts.since(&counts), Counts::default());
        assert_eq!(counts.since(&Counts::default()), counts);
    }
}
