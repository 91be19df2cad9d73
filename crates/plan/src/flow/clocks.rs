//! One moment by two clocks: ours, and that of the management cluster's API server.

use jiff::{SignedDuration, Timestamp, Unit};

/// Certificates begin some minutes before they are minted, so that clocks may differ by that; no healthy clock is off by
/// more.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// One moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    pub ours: Timestamp,
    /// None while the server has not said.
    pub servers: Option<Timestamp>,
}

impl Clocks {
    /// With nobody to disagree with.
    pub fn alone(now: Timestamp) -> Self {
        Self { ours: now, servers: None }
    }

    /// What is wrong if they differ by more than clocks may: then nothing may be minted.
    pub fn disagreement(&self) -> Option<String> {
        let servers = self.servers.filter(|servers| servers.duration_since(self.ours).abs() > TOLERANCE)?;
        // Whole minutes: the text must not change with every look.
        let shown = |time: Timestamp| time.round(Unit::Minute).unwrap_or(time);
        Some(format!(
            "the clock of Hangar's host says {}, that of the management cluster's API server {}: nothing is minted or \
             renewed until they agree",
            shown(self.ours),
            shown(servers)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_forgiven_and_more_is_named_with_both_times() {
        let ours: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let by = |seconds| Clocks { ours, servers: Some(ours + SignedDuration::from_secs(seconds)) };
        for seconds in [0, 300, -300] {
            assert_eq!(by(seconds).disagreement(), None);
        }
        for (seconds, said) in [(301, "2026-11-16T12:05:00Z"), (-86_400, "2026-11-15T12:00:00Z")] {
            let text = by(seconds).disagreement().unwrap();
            assert!(text.contains("2026-11-16T12:00:00Z") && text.contains(said), "{text}");
        }
        assert_eq!(Clocks::alone(ours).disagreement(), None);
    }
}
