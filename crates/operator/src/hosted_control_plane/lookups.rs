//! Looks up the names of load balancers that have no address, and remembers the answers for a minute.
//!
//! The system's resolver says nothing about how long an answer holds. One that fails after one that did not leaves the
//! former in place for a while: a name server that restarts must not take the API server from the tenant's pods.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::exposure::is_target;
use tokio::time::Instant;

use super::remembered::{Due, Remembered};

const LOOK_EVERY: Duration = Duration::from_mins(1);
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// A former answer counts this long when there is no other.
const KEPT: Duration = Duration::from_mins(10);
/// No load balancer has more.
const MOST_ADDRESSES: usize = 16;

/// The last answer for each control plane.
pub(super) type Lookups = Remembered<Answer>;

#[derive(Clone)]
pub(super) struct Answer {
    name: String,
    at: Instant,
    /// When it was last answered with addresses.
    good_at: Option<Instant>,
    addresses: Read<IpAddr>,
}

impl Due for Answer {
    fn due_in(&self) -> Duration {
        LOOK_EVERY.saturating_sub(self.at.elapsed())
    }
}

impl Lookups {
    /// The addresses that a name leads to, or led to a moment ago.
    pub(super) async fn look(&self, key: &ObjectKey, name: &str) -> Read<IpAddr> {
        // Names of load balancers are whole: no domain of ours is to be tried behind them.
        self.look_by(key, name, tokio::net::lookup_host(format!("{name}.:0"))).await
    }

    async fn look_by<A: Iterator<Item = std::net::SocketAddr>>(
        &self,
        key: &ObjectKey,
        name: &str,
        lookup: impl Future<Output = io::Result<A>>,
    ) -> Read<IpAddr> {
        let known = self.all().get(key).filter(|known| known.name == name).cloned();
        if let Some(known) = known.as_ref().filter(|known| !known.due_in().is_zero()) {
            return known.addresses.clone();
        }
        let found = match tokio::time::timeout(LOOK_LIMIT, lookup).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(format!("{name} cannot be looked up: {error}")),
            Err(_) => Err(format!("{name} was not looked up within {LOOK_LIMIT:?}")),
        };
        let now = Instant::now();
        let answer = match (found, known) {
            (Ok(found), _) => {
                let addresses: BTreeSet<IpAddr> =
                    found.map(|found| found.ip()).filter(is_target).take(MOST_ADDRESSES).collect();
                let addresses = Read::found(addresses);
                Answer { name: name.to_owned(), at: now, good_at: Some(now), addresses }
            }
            (Err(_), Some(known)) if known.good_at.is_some_and(|at| at.elapsed() < KEPT) => {
                Answer { at: now, ..known }
            }
            (Err(why), _) => {
                Answer { name: name.to_owned(), at: now, good_at: None, addresses: Read::unknown(why) }
            }
        };
        self.all().insert(key.clone(), answer.clone());
        answer.addresses
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn found(addresses: &[&str]) -> std::vec::IntoIter<SocketAddr> {
        let addresses = addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0));
        addresses.collect::<Vec<_>>().into_iter()
    }

    fn failed() -> io::Result<std::vec::IntoIter<SocketAddr>> {
        Err(io::Error::other("no name server"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_looked_up_again_after_a_minute_and_its_last_answer_outlives_a_failure() {
        let (lookups, key) = (Lookups::default(), ObjectKey::namespaced("team", "demo"));
        let look = async |answer| lookups.look_by(&key, "lb.example.org", async { answer }).await;
        assert!(look(failed()).await.is_unknown());
        tokio::time::advance(LOOK_EVERY).await;
        let first =
            look(Ok(found(&["192.0.2.2", "192.0.2.1", "192.0.2.2", "127.0.0.1", "169.254.1.1"]))).await;
        let addresses = |read: &Read<IpAddr>| read.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            addresses(&first),
            ["192.0.2.1", "192.0.2.2"],
            "sorted, once, and none of the host itself"
        );
        assert_eq!(look(Ok(found(&["192.0.2.9"]))).await, first, "within the minute nobody is asked");
        assert!(lookups.due_in(&key).unwrap() <= LOOK_EVERY);
        tokio::time::advance(LOOK_EVERY).await;
        assert_eq!(look(failed()).await, first);
        tokio::time::advance(KEPT).await;
        assert!(look(failed()).await.is_unknown(), "not for ever");
        let other = lookups.look_by(&key, "other.example.org", async { Ok(found(&["192.0.2.3"])) }).await;
        assert_eq!(addresses(&other), ["192.0.2.3"], "another name is another question");
        lookups.forget(&key);
        assert_eq!(lookups.due_in(&key), None);
    }
}
