//! Asks the members of etcd what they tell, and remembers it until the next look is due. It needs no certificate and no
//! right: see `hangar_plan`'s `alarms`.
//!
//! Every member tells the alarms of all. So while no database is more than half full, one member is asked every five
//! minutes, for alarms alone, and all of them every half an hour.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
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

use super::remembered::{Due, Remembered};

/// Nobody tells us of an alarm. It is the limit of the time until one is noticed.
const LOOK_EVERY: Duration = Duration::from_mins(5);
/// The same where a database is more than half full, or nobody knows.
const LOOK_OFTEN: Duration = Duration::from_secs(90);
/// Whoever disarms an alarm waits for the condition.
const LOOK_SOON: Duration = Duration::from_secs(20);
/// How old the sizes of databases that are less than half full may be.
const SIZES_EVERY: Duration = Duration::from_mins(30);

type Addresses = BTreeMap<String, SocketAddr>;

/// What members of each control plane told last.
pub(super) type Members = Remembered<Look>;

pub(super) struct Look {
    at: Instant,
    /// When all members were asked.
    sized_at: Instant,
    /// Which of them is asked alone next.
    turn: usize,
    asked: Addresses,
    /// How many members were ready.
    ready: i32,
    told: Read<MemberFacts>,
}

impl Look {
    fn has_alarm(&self) -> bool {
        self.told.iter().any(|member| !member.alarms.is_empty())
    }

    /// Whether all members told that their databases are at most half full.
    fn is_roomy(&self) -> bool {
        let is_roomy = |size: &DatabaseSize| size.allocated <= size.quota / 2;
        self.told.iter().count() == self.asked.len()
            && self.told.iter().all(|member| member.database.as_ref().is_some_and(is_roomy))
    }

    /// Which member to ask alone, where that is enough.
    fn turn(&self) -> Option<SocketAddr> {
        let is_enough = !self.has_alarm() && self.is_roomy() && self.sized_at.elapsed() < SIZES_EVERY;
        self.asked.values().copied().cycle().nth(self.turn).filter(|_| is_enough)
    }
}

impl Due for Look {
    fn due_in(&self) -> Duration {
        let limit = match (self.has_alarm(), self.is_roomy()) {
            (true, _) => LOOK_SOON,
            (false, true) => LOOK_EVERY,
            (false, false) => LOOK_OFTEN,
        };
        limit.saturating_sub(self.at.elapsed())
    }
}

impl Members {
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

    /// What members tell, or told a while ago. They are asked at once when there are others, or others are ready.
    pub(super) async fn look(&self, control_plane: &ObjectKey, observed: &Observed) -> Read<MemberFacts> {
        let ready = observed.etcd.iter().map(|facts| facts.ready).sum();
        self.look_at(control_plane, members_to_ask(observed), ready).await
    }

    async fn look_at(&self, control_plane: &ObjectKey, asked: Addresses, ready: i32) -> Read<MemberFacts> {
        let turn = match self.all().get(control_plane) {
            Some(look) if (look.ready, &look.asked) != (ready, &asked) => None,
            Some(look) if !look.due_in().is_zero() => return look.told.clone(),
            Some(look) => look.turn(),
            None => None,
        };
        if let Some(member) = turn
            && ask_for_alarms(member).await.is_ok_and(|alarms| alarms.is_empty())
            && let Some(look) = self.all().get_mut(control_plane)
        {
            (look.at, look.turn) = (Instant::now(), look.turn.wrapping_add(1) % asked.len().max(1));
            return look.told.clone();
        }
        let told = ask_all(&asked).await;
        if let Read::Unknown(unknown) = &told {
            // Nothing else tells that alarms would not be noticed.
            tracing::warn!(%control_plane, %unknown, ready, "no member of etcd tells of alarms");
        }
        let now = Instant::now();
        let look = Look { at: now, sized_at: now, turn: 0, asked, ready, told: told.clone() };
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
    let database = size.ok().flatten();
    Ok(MemberFacts { name: name.to_owned(), alarms: alarms?, is_leader: lines.is_leader(), database })
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
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// No program listens at a port that low.
    const NOBODY: &str = "127.0.0.1:1";
    const PAGE: &str = "etcd_mvcc_db_total_size_in_bytes 2\netcd_mvcc_db_total_size_in_use_in_bytes 1\n\
        etcd_server_quota_backend_bytes 3\n";
    const ROOMY: &str = "etcd_mvcc_db_total_size_in_bytes 2\netcd_mvcc_db_total_size_in_use_in_bytes 1\n\
        etcd_server_quota_backend_bytes 30\n";
    const SIZE: Option<DatabaseSize> = Some(DatabaseSize { allocated: 2, in_use: 1, quota: 3 });
    const HEALTHY: &str = r#"{"health":"true","reason":""}"#;

    /// A member that answers as etcd does with these alarms, and what it was asked for.
    async fn member(
        alarms: &'static [&'static str],
        page: &'static str,
    ) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
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
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
                    stream.write_all(format!("{head}{page}").as_bytes()).await.unwrap();
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
    async fn members_are_asked_rarely_unless_something_changes() {
        let (members, key) = (Members::default(), ObjectKey::namespaced("team", "demo"));
        let (address, paths) = member(&[], PAGE).await;
        let alarms = BTreeSet::new();
        let healthy =
            Read::One(MemberFacts { name: "one".to_owned(), alarms, is_leader: false, database: SIZE });
        for (ready, asked) in [(1, 1), (1, 1), (2, 2), (2, 2)] {
            assert_eq!(members.look_at(&key, named(&[("one", address)]), ready).await, healthy);
            assert_eq!(paths.lock().unwrap().len(), asked);
        }
        assert!(members.due_in(&key) > Some(Duration::from_secs(60)));
        assert!(members.due_in(&key) <= Some(LOOK_OFTEN), "its database is more than half full");
        // Nobody listens: that is remembered as well.
        let nobody = NOBODY.parse().unwrap();
        assert!(members.look_at(&key, named(&[("one", nobody)]), 2).await.is_unknown());
        assert!(members.due_in(&key) > Some(Duration::from_secs(60)));
        members.forget(&key);
        assert_eq!(members.due_in(&key), None);
    }

    #[tokio::test]
    async fn while_there_is_room_one_member_is_asked_for_alarms_in_turn() {
        let (members, key) = (Members::default(), ObjectKey::namespaced("team", "demo"));
        let (first, of_first) = member(&[], ROOMY).await;
        let (second, of_second) = member(&[], ROOMY).await;
        let asked = || (of_first.lock().unwrap().len(), of_second.lock().unwrap().len());
        let look = async |age: Duration| {
            if let Some(look) = members.all().get_mut(&key) {
                look.at = look.at.checked_sub(age).unwrap();
                look.sized_at = look.sized_at.checked_sub(age).unwrap();
            }
            members.look_at(&key, named(&[("one", first), ("two", second)]), 2).await
        };
        let told = look(Duration::ZERO).await;
        assert_eq!(asked(), (1, 1));
        assert!(members.due_in(&key) > Some(LOOK_OFTEN));
        for expected in [(2, 1), (2, 2), (3, 2)] {
            assert_eq!(look(LOOK_EVERY).await, told);
            assert_eq!(asked(), expected);
        }
        look(SIZES_EVERY).await;
        assert_eq!(asked(), (4, 3), "all of them for their sizes");
    }

    #[tokio::test]
    async fn all_alarms_are_told_and_soon_asked_for_again() {
        let (members, key) = (Members::default(), ObjectKey::namespaced("team", "demo"));
        let (address, paths) = member(&["NOSPACE", "CORRUPT"], PAGE).await;
        let nobody = NOBODY.parse().unwrap();
        let told = members.look_at(&key, named(&[("one", nobody), ("two", address)]), 1).await;
        let alarms = [Alarm::Corrupt, Alarm::NoSpace].into();
        assert_eq!(
            told,
            Read::One(MemberFacts { name: "two".to_owned(), alarms, is_leader: false, database: SIZE })
        );
        assert_eq!(
            *paths.lock().unwrap(),
            ["/health", "/health?exclude=NOSPACE", "/health?exclude=CORRUPT&exclude=NOSPACE"]
        );
        assert!(members.due_in(&key) < Some(Duration::from_secs(30)));
    }
}
