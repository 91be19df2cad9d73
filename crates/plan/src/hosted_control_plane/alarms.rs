//! Alarms of etcd. A member that is full, or whose data differs from that of the others, raises one; from then on all
//! members refuse writes, but a member that is only full stays ready. So members are asked, on the plain HTTP port that
//! serves metrics and probes: it needs no certificate and gives no access to data.
//!
//! Every member knows the alarms of all: one that answers speaks for the cluster. Which member raised an alarm is not in
//! the answer. If none answers, nothing follows, and what was said stays while a quorum is ready.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use hangar_api::conditions::{Bad, Finding, Waiting};
use serde::Deserialize;

use super::conditions::etcd_cluster_healthy;
use super::etcd::METRICS_PORT;
use super::membership::MOST_MEMBERS;
use super::observed::{Observed, WorkloadFacts};
use super::{Draft, restore};
use crate::conditions::who::OPERATOR;
use crate::flow::Unknown;

/// An alarm of etcd, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// Members have different data.
    Corrupt,
    /// The database of a member has reached its quota.
    NoSpace,
}

impl Alarm {
    const ALL: [Self; 2] = [Self::Corrupt, Self::NoSpace];

    /// As etcd names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Corrupt => "CORRUPT",
            Self::NoSpace => "NOSPACE",
        }
    }

    fn reason(self) -> Bad {
        match self {
            Self::Corrupt => etcd_cluster_healthy::CORRUPT,
            Self::NoSpace => etcd_cluster_healthy::NO_SPACE,
        }
    }

    fn finding(self, members: &[&str], remedy: Waiting) -> Finding {
        let (meaning, waiting) = match self {
            Self::Corrupt => (
                "members have different data",
                Waiting::new(
                    OPERATOR,
                    "the member with the wrong data to be replaced, then `etcdctl alarm disarm`",
                ),
            ),
            Self::NoSpace => ("the database of a member has reached its quota", remedy),
        };
        let (alarm, members) = (self.as_str(), members.join(", "));
        let why = format!("etcd refuses writes: {meaning} (alarm {alarm}, reported by {members})");
        let detail = [Some(why), waiting.detail.clone()].into_iter().flatten().collect::<Vec<_>>();
        self.reason().waiting(waiting.because(detail.join("; ")))
    }
}

/// The members to ask, by the names of their pods. Also those that are not ready: with the alarm CORRUPT none is. Before
/// the first start there is nothing to ask about.
pub fn members_to_ask(observed: &Observed) -> BTreeMap<String, SocketAddr> {
    let is_asked =
        |facts: &&WorkloadFacts| !facts.is_deleting && (facts.ready > 0 || observed.is_bootstrapped());
    let (Some(facts), Some(names)) = (observed.etcd.iter().find(is_asked), observed.names()) else {
        return BTreeMap::new();
    };
    let members = facts.desired.min(MOST_MEMBERS);
    let names: BTreeSet<String> = (0..members).map(|ordinal| names.etcd_pod(ordinal)).collect();
    let pods = observed.etcd_pods.iter().filter(|pod| !pod.is_deleting && !restore::is_pod(pod));
    let pods = pods.filter(|pod| names.contains(&pod.name));
    pods.filter_map(|pod| Some((pod.name.clone(), SocketAddr::new(pod.address?, METRICS_PORT)))).collect()
}

/// What to ask a member for that has told of these alarms: an answer tells of one only, and of any.
pub fn health_path(told: &BTreeSet<Alarm>) -> String {
    let excluded: Vec<String> = told.iter().map(|alarm| format!("exclude={}", alarm.as_str())).collect();
    if excluded.is_empty() { "/health".to_owned() } else { format!("/health?{}", excluded.join("&")) }
}

/// The answer to that.
#[derive(Deserialize)]
struct Health {
    health: String,
    #[serde(default)]
    reason: String,
}

/// The alarm that an answer tells of, if any. One about something else, such as a leader that is missing, tells nothing
/// about alarms.
pub fn told_alarm(answer: &[u8]) -> Result<Option<Alarm>, Unknown> {
    let Health { health, reason } =
        serde_json::from_slice(answer).map_err(|_| Unknown::new("the answer is not that of etcd"))?;
    if health == "true" {
        return Ok(None);
    }
    let alarm = reason.strip_prefix("ALARM ");
    let alarm = alarm.and_then(|name| Alarm::ALL.into_iter().find(|alarm| alarm.as_str() == name));
    alarm.map(Some).ok_or_else(|| Unknown::new("the member is not healthy, for no alarm that is known"))
}

/// Whether an error that a member tells of itself is that alarm, of whichever member.
pub(super) fn is_no_space(error: &str) -> bool {
    error.contains(Alarm::NoSpace.as_str())
}

/// The worst alarm, as a finding; `remedy` is what the alarm NOSPACE waits for.
pub(super) fn raised(observed: &Observed, remedy: Waiting) -> Option<Finding> {
    let worst = observed.etcd_members.iter().flat_map(|member| &member.alarms).min()?;
    let told = observed.etcd_members.iter().filter(|member| member.alarms.contains(worst));
    Some(worst.finding(&told.map(|member| member.name.as_str()).collect::<Vec<_>>(), remedy))
}

/// Whether an alarm was said that nobody could be asked about since.
pub(super) fn is_kept(draft: &Draft<'_>) -> bool {
    draft.observed.etcd_members.is_unknown() && is_said(draft)
}

/// Whether etcd's condition tells of an alarm.
pub(super) fn is_said(draft: &Draft<'_>) -> bool {
    let said = draft.condition(etcd_cluster_healthy::TYPE).map(|condition| condition.reason);
    Alarm::ALL.into_iter().any(|alarm| said.as_deref() == Some(alarm.reason().reason().name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_of_an_alarm_of_none_or_nothing() {
        let told = |text: &str| told_alarm(text.as_bytes()).map_err(drop);
        assert_eq!(told(r#"{"health":"true","reason":""}"#), Ok(None));
        assert_eq!(told("{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}\n"), Ok(Some(Alarm::NoSpace)));
        assert_eq!(told(r#"{"health":"false","reason":"ALARM CORRUPT"}"#), Ok(Some(Alarm::Corrupt)));
        for nothing in [
            r#"{"health":"false","reason":"RAFT NO LEADER"}"#,
            r#"{"health":"false","reason":"ALARM UNKNOWN"}"#,
            r#"{"health":"false"}"#,
            r#"{"health":true}"#,
            "{}",
            "",
            "<html>",
            &"[".repeat(4096),
        ] {
            assert_eq!(told(nothing), Err(()), "{nothing}");
        }
    }

    #[test]
    fn told_alarms_are_not_asked_for_again() {
        assert_eq!(health_path(&BTreeSet::new()), "/health");
        assert_eq!(health_path(&[Alarm::NoSpace].into()), "/health?exclude=NOSPACE");
        assert_eq!(health_path(&Alarm::ALL.into()), "/health?exclude=CORRUPT&exclude=NOSPACE");
    }
}
