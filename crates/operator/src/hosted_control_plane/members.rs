//! Asks the members of etcd what they tell, and remembers it until the next look is due. At rest that is less than one
//! look per minute and control plane. It needs no certificate and no right: see `hangar_plan`'s `alarms`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use hangar_kit::ObjectKey;
use hangar_kit::client::{find_plain, get_plain};
use hangar_plan::flow::{Read, Unknown};
use hangar_plan::hosted_control_plane::{
    Alarm, DATABASE_PATH, DatabaseLines, DatabaseSize, MemberFacts, Observed, health_path, members_to_ask,
    told_alarm,
};
use tokio::time::Instant;

/// Nobody tells us of an alarm.
const LOOK_EVERY: Duration = Duration::from_secs(90);
/// Whoever disarms an alarm waits for the condition.
const LOOK_SOON: Duration = Duration::from_secs(20);

type Addresses = BTreeMap<String, SocketAddr>;

/// What members of each control plane told last.
#[derive(Default)]
pub(super) struct Members(Mutex<BTreeMap<ObjectKey, Look>>);

struct Look {
    at: Instant,
    asked: Addresses,
    /// How many members were ready.
    ready: i32,
    told: Read<MemberFacts>,
}

impl Look {
    fn due_in(&self) -> Duration {
        let has_alarm = self.told.iter().any(|member| !member.alarms.is_empty());
        let limit = if has_alarm { LOOK_SOON } else { LOOK_EVERY };
        limit.saturating_sub(self.at.elapsed())
    }
}

impl Members {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the function for each member that told how large its database is.
    pub(super) fn each(&self, mut call: impl FnMut(&ObjectKey, &str, &DatabaseSize)) {
        for (key, look) in &*self.all() {
            for member in look.told.iter() {
                if let Some(size) = &member.database {
                    call(key, &member.name, size);
                }
            }
        }
    }

    pub(super) fn forget(&self, control_plane: &ObjectKey) {
        self.all().remove(control_plane);
    }

    /// When to come back, if there was a look.
    pub(super) fn due_in(&self, control_plane: &ObjectKey) -> Option<Duration> {
        self.all().get(control_plane).map(Look::due_in)
    }

    /// What members tell, or told a while ago. They are asked at once when there are others, or others are ready.
    pub(super) async fn look(&self, control_plane: &ObjectKey, observed: &Observed) -> Read<MemberFacts> {
        let ready = observed.etcd.iter().map(|facts| facts.ready).sum();
        self.look_at(control_plane, members_to_ask(observed), ready).await
    }

    async fn look_at(&self, control_plane: &ObjectKey, asked: Addresses, ready: i32) -> Read<MemberFacts> {
        if let Some(look) = self.all().get(control_plane)
            && (look.ready, &look.asked) == (ready, &asked)
            && !look.due_in().is_zero()
        {
            return look.told.clone();
        }
        let told = ask_all(&asked).await;
        if let Read::Unknown(unknown) = &told {
            // Nothing else tells that alarms would not be noticed.
            tracing::warn!(%control_plane, %unknown, ready, "no member of etcd tells of alarms");
        }
        let look = Look { at: Instant::now(), asked, ready, told: told.clone() };
        self.all().insert(control_plane.clone(), look);
        told
    }
}

/// All at once. Those that do not answer are left out, if one does.
async fn ask_all(asked: &Addresses) -> Read<MemberFacts> {
    let answers = join_all(asked.iter().map(|(name, address)| ask(name, *address))).await;
    let (told, silent): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    match silent.into_iter().find_map(Result::err) {
        Some(unknown) if told.is_empty() => Read::Unknown(unknown),
        _ => Read::found(told.into_iter().flatten()),
    }
}

/// Asks for alarms, and how large the database is. A member that does not tell the latter is asked next time.
async fn ask(name: &str, address: SocketAddr) -> Result<MemberFacts, Unknown> {
    let mut lines = DatabaseLines::default();
    let size = find_plain(address, DATABASE_PATH, |line| lines.line(line));
    let (alarms, size) = tokio::join!(ask_for_alarms(address), size);
    Ok(MemberFacts { name: name.to_owned(), alarms: alarms?, database: size.ok().flatten() })
}

/// Asks until no other alarm is told of.
async fn ask_for_alarms(address: SocketAddr) -> Result<BTreeSet<Alarm>, Unknown> {
    let mut alarms = BTreeSet::new();
    loop {
        let told = get_plain(address, &health_path(&alarms)).await.and_then(|answer| told_alarm(&answer));
        match told {
            Ok(Some(alarm)) if alarms.insert(alarm) => {}
            Err(unknown) if alarms.is_empty() => return Err(unknown),
            _ => return Ok(alarms),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// No program listens at a port that low.
    const NOBODY: &str = "127.0.0.1:1";
    const PAGE: &str = "etcd_mvcc_db_total_size_in_bytes 2\netcd_mvcc_db_total_size_in_use_in_bytes 1\n\
        etcd_server_quota_backend_bytes 3\n";
    const SIZE: Option<DatabaseSize> = Some(DatabaseSize { allocated: 2, in_use: 1, quota: 3 });
    const HEALTHY: &str = r#"{"health":"true","reason":""}"#;

    /// A member that answers as etcd does with these alarms, and what it was asked for.
    async fn member(alarms: &'static [&'static str]) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 1024];
                let length = stream.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let path = request.split(' ').nth(1).unwrap().to_owned();
                if path == DATABASE_PATH {
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", PAGE.len());
                    stream.write_all(format!("{head}{PAGE}").as_bytes()).await.unwrap();
                    continue;
                }
                let alarm = alarms.iter().find(|alarm| !path.contains(*alarm));
                let told = |alarm| format!(r#"{{"health":"false","reason":"ALARM {alarm}"}}"#);
                let body = alarm.map_or_else(|| HEALTHY.to_owned(), told);
                seen.lock().unwrap().push(path);
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        (address, asked)
    }

    fn named(members: &[(&str, SocketAddr)]) -> Addresses {
        members.iter().map(|(name, address)| ((*name).to_owned(), *address)).collect()
    }

    #[tokio::test]
    async fn members_are_asked_less_than_once_a_minute_unless_something_changes() {
        let (members, key) = (Members::default(), ObjectKey::namespaced("team", "demo"));
        let (address, paths) = member(&[]).await;
        let alarms = BTreeSet::new();
        let healthy = Read::One(MemberFacts { name: "one".to_owned(), alarms, database: SIZE });
        for (ready, asked) in [(1, 1), (1, 1), (2, 2), (2, 2)] {
            assert_eq!(members.look_at(&key, named(&[("one", address)]), ready).await, healthy);
            assert_eq!(paths.lock().unwrap().len(), asked);
        }
        assert!(members.due_in(&key) > Some(Duration::from_secs(60)));
        // Nobody listens: that is remembered as well.
        let nobody = NOBODY.parse().unwrap();
        assert!(members.look_at(&key, named(&[("one", nobody)]), 2).await.is_unknown());
        assert!(members.due_in(&key) > Some(Duration::from_secs(60)));
        members.forget(&key);
        assert_eq!(members.due_in(&key), None);
    }

    #[tokio::test]
    async fn all_alarms_are_told_and_soon_asked_for_again() {
        let (members, key) = (Members::default(), ObjectKey::namespaced("team", "demo"));
        let (address, paths) = member(&["NOSPACE", "CORRUPT"]).await;
        let nobody = NOBODY.parse().unwrap();
        let told = members.look_at(&key, named(&[("one", nobody), ("two", address)]), 1).await;
        let alarms = [Alarm::Corrupt, Alarm::NoSpace].into();
        assert_eq!(told, Read::One(MemberFacts { name: "two".to_owned(), alarms, database: SIZE }));
        assert_eq!(
            *paths.lock().unwrap(),
            ["/health", "/health?exclude=NOSPACE", "/health?exclude=CORRUPT&exclude=NOSPACE"]
        );
        assert!(members.due_in(&key) < Some(Duration::from_secs(30)));
    }
}
