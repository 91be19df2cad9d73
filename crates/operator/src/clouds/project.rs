//! Reads the servers and ports of a project as two lists, which all objects in that project share.
//!
//! Every OpenStackMachine must know the state of its server and its ports for as long as it exists. Reading them one by
//! one would cost calls in proportion to the number of OpenStackMachines. Instead, at rest, each list is read every
//! [`REFRESH`]: the first pass that finds it older reads it, and all others use the result.
//!
//! An object that is missing from a list counts as absent only if that list was begun after the last write for its
//! owner. So every write is made under [`Project::writing`], after which older lists no longer count for that owner. A
//! pass that waits for a change, for example while its server is being built, asks for newer lists with
//! [`Project::has_newer_lists`], and is woken when they are there. Lists that are demanded come a few at once, then one
//! every [`BUILDING`]: a project in which a thousand servers are built is not called more often than one with ten.
//!
//! When a list cannot be read, the previous one counts for [`STALE`]; after that everything is unknown. Meanwhile one
//! caller at a time tries again, and the others get the error at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_openstack::{Error, Filter, PortQuery, ServerQuery, Session};
use hangar_plan::flow::{Read, Unknown};
use hangar_plan::openstack::{OWNER_METADATA_KEY, Port, Server, ServerId, carries_mark, mark};
use tokio::time::Instant;

use super::demands::{Demands, Listeners};
use super::{CloudId as _, convert, words};

/// At rest a list is read again after this time.
const REFRESH: Duration = Duration::from_secs(30);
/// Lists that somebody demands are this far apart on average, or [`REST`] times as long as they take.
const BUILDING: Duration = Duration::from_secs(1);
/// A project that is slow to list is not kept busy with it.
const REST: u32 = 4;
/// After a list that failed.
const FAILED: Duration = Duration::from_secs(5);
/// So many may come at once: one machine alone is not held up.
const BURST: u32 = 6;
/// A list that could not be renewed counts for this time.
pub(super) const STALE: Duration = Duration::from_secs(180);

/// A project. Shared by everything that its credentials are for.
pub(crate) struct Project {
    session: Session,
    servers: View<Server>,
    ports: View<Port>,
    /// By owner: when something was written for it last. Older than [`STALE`] it does not matter any more.
    written: Mutex<BTreeMap<String, Instant>>,
    demands: Demands,
    listeners: Arc<Listeners>,
}

impl Project {
    pub(super) fn new(session: Session, listeners: Arc<Listeners>) -> Self {
        let (servers, ports) = (View::new(), View::new());
        Self { session, servers, ports, written: Mutex::default(), demands: Demands::default(), listeners }
    }

    /// The way into it.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Its region and its id. Two projects differ in them, also those of two clouds.
    pub(crate) async fn place(&self) -> Result<String, Error> {
        let (region, id) = (self.session.region().await?, self.session.project_id().await?);
        Ok(format!("{region}/{id}"))
    }

    /// Whether there are lists that are newer than the moment when this was first asked for this owner; also where none
    /// can be had at present. If not, they are read beside, and the object is woken.
    pub(crate) fn has_newer_lists(self: &Arc<Self>, owner_id: &str, key: &ObjectKey) -> bool {
        let needed = self.needed(owner_id, Some(self.demands.since(owner_id)));
        if self.servers.is_settled(needed) && self.ports.is_settled(needed) {
            self.demands.met(owner_id);
            return true;
        }
        if self.demands.wait(key) {
            let project = Arc::clone(self);
            tokio::spawn(async move { project.read_for_those_who_wait().await });
        }
        false
    }

    async fn read_for_those_who_wait(&self) {
        let _reading = self.demands.reading();
        loop {
            let asked = Instant::now();
            // What went wrong is found by those who are woken.
            let _ = futures::join!(self.listed_servers(Some(asked)), self.listed_ports(Some(asked)));
            let (woken, is_awaited) = self.demands.read(asked);
            self.listeners.tell(&woken);
            if !is_awaited {
                return;
            }
        }
    }

    /// The servers with this owner's id. Where there is none, the recorded one, if no other owner's id is on it: people
    /// change what is written on servers. A list can lag, and lacks the servers of a part of Nova that is down: that the
    /// recorded one is gone is only believed when it is asked for by its id.
    pub(crate) async fn servers_of(&self, owner_id: &str, recorded_id: Option<&ServerId>) -> Read<Server> {
        let listed = match self.listed_servers(self.needed(owner_id, None)).await {
            Ok(listed) => listed,
            Err(unknown) => return Read::Unknown(unknown),
        };
        match listed.of(owner_id) {
            [] => match recorded_id {
                None => Read::Absent,
                Some(id) => match listed.nobodys.get(id.as_str()) {
                    Some(server) => Read::One(server.clone()),
                    None => self.server(owner_id, id).await,
                },
            },
            found => Read::found(found.iter().cloned()),
        }
    }

    async fn server(&self, owner_id: &str, id: &ServerId) -> Read<Server> {
        match self.session.compute().server(&id.to_cloud()).await {
            Ok(found) => {
                let is_ours = |server: &hangar_openstack::Server| {
                    server.metadata.get(OWNER_METADATA_KEY).is_none_or(|other| other == owner_id)
                };
                Read::found(found.filter(is_ours).map(convert::server))
            }
            Err(error) => Read::unknown(words(&error)),
        }
    }

    /// The ports with this owner's mark, by name.
    pub(crate) async fn ports_of(&self, owner_id: &str) -> Read<Port> {
        match self.listed_ports(self.needed(owner_id, None)).await {
            Ok(listed) => {
                let mut ports = listed.of(owner_id).to_vec();
                ports.sort_by(|one, other| (&one.name, &one.id).cmp(&(&other.name, &other.id)));
                Read::found(ports)
            }
            Err(unknown) => Read::Unknown(unknown),
        }
    }

    async fn listed_servers(&self, needed: Option<Instant>) -> ListRead<Server> {
        let list = async || {
            let servers = self.session.compute().servers(&ServerQuery::default()).await?;
            Ok(servers.into_iter().map(|mut server| {
                let owner_id = server.metadata.remove(OWNER_METADATA_KEY).unwrap_or_default();
                Entry { owner_id, id: server.id.to_string(), item: convert::server(server) }
            }))
        };
        self.servers.read(needed, list).await
    }

    async fn listed_ports(&self, needed: Option<Instant>) -> ListRead<Port> {
        let list = async || {
            let project_id = Some(self.session.project_id().await?.to_string());
            let query =
                PortQuery { filter: Filter { project_id, ..Filter::default() }, ..PortQuery::default() };
            let ports = self.session.network().list(&query).await?;
            Ok(ports.into_iter().filter_map(|port| {
                let owner_id = marked(&port.description)?;
                Some(Entry { owner_id, id: port.id.to_string(), item: convert::port(port) })
            }))
        };
        self.ports.read(needed, list).await
    }

    /// Something is written for this owner: what was read before the end of it does not count for it, whatever became of
    /// it, also where its answer is not awaited any more.
    pub(crate) fn writing<'a>(&'a self, owner_id: &'a str) -> Writing<'a> {
        Writing { project: self, owner_id }
    }

    fn invalidate(&self, owner_id: &str) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.retain(|_, at| at.elapsed() < STALE);
        written.insert(owner_id.to_owned(), Instant::now());
    }

    fn needed(&self, owner_id: &str, fresher_than: Option<Instant>) -> Option<Instant> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        fresher_than.max(written.get(owner_id).copied())
    }
}

/// A write that is under way.
pub(crate) struct Writing<'a> {
    project: &'a Project,
    owner_id: &'a str,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.project.invalidate(self.owner_id);
    }
}

/// The owner whose mark a description carries.
fn marked(description: &str) -> Option<String> {
    let (_, owner_id) = description.rsplit_once(&mark(""))?;
    carries_mark(description, owner_id).then(|| owner_id.to_owned())
}

/// One object of a list.
struct Entry<T> {
    /// Empty for nobody's.
    owner_id: String,
    id: String,
    item: T,
}

/// A list that was read to its end.
struct Listed<T> {
    begun: Instant,
    by_owner: BTreeMap<String, Vec<T>>,
    /// Without an owner's id, by their own.
    nobodys: BTreeMap<String, T>,
}

impl<T> Listed<T> {
    fn new(begun: Instant, entries: impl Iterator<Item = Entry<T>>) -> Self {
        let (mut by_owner, mut nobodys) = (BTreeMap::<String, Vec<T>>::new(), BTreeMap::new());
        for Entry { owner_id, id, item } in entries {
            if owner_id.is_empty() {
                nobodys.insert(id, item);
            } else {
                by_owner.entry(owner_id).or_default().push(item);
            }
        }
        Self { begun, by_owner, nobodys }
    }

    fn of(&self, owner_id: &str) -> &[T] {
        self.by_owner.get(owner_id).map_or(&[], Vec::as_slice)
    }
}

/// One list, read for all.
struct View<T> {
    state: Mutex<State<T>>,
    /// Held by who reads the list: until when the lists so far are paid for, one each [`BUILDING`].
    turn: tokio::sync::Mutex<Instant>,
}

struct State<T> {
    listed: Option<Arc<Listed<T>>>,
    failed: Option<Failed>,
}

/// The last attempt, if it failed.
struct Failed {
    unknown: Unknown,
    until: Instant,
}

type ListRead<T> = Result<Arc<Listed<T>>, Unknown>;

impl<T> View<T> {
    fn new() -> Self {
        let state = State { listed: None, failed: None };
        Self { state: Mutex::new(state), turn: tokio::sync::Mutex::new(Instant::now()) }
    }

    /// Whether nobody has to be asked.
    fn is_settled(&self, needed: Option<Instant>) -> bool {
        self.state().settled(needed).is_some()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A list that was begun after `needed`, and is not older than it may be at rest.
    async fn read<I: Iterator<Item = Entry<T>>>(
        &self,
        needed: Option<Instant>,
        list: impl AsyncFnOnce() -> Result<I, Error>,
    ) -> ListRead<T> {
        if let Some(answer) = self.state().settled(needed) {
            return answer;
        }
        let mut paid_until = if let Ok(turn) = self.turn.try_lock() {
            turn
        } else {
            // Somebody is at it; who can do with what there is does not wait.
            if let Some(answer) = self.state().usable(needed) {
                return answer;
            }
            self.turn.lock().await
        };
        if let Some(answer) = self.state().settled(needed) {
            return answer;
        }
        if let Some(earliest) = paid_until.checked_sub(BUILDING * BURST) {
            tokio::time::sleep_until(earliest).await;
        }
        let begun = Instant::now();
        let paid_before = begun.max(*paid_until);
        *paid_until = paid_before + BUILDING;
        let listed = list().await;
        *paid_until = paid_before + BUILDING.max(begun.elapsed() * REST);
        match listed {
            Ok(entries) => {
                let listed = Arc::new(Listed::new(begun, entries));
                *self.state() = State { listed: Some(Arc::clone(&listed)), failed: None };
                Ok(listed)
            }
            Err(error) => {
                let pause = error.retry_after().unwrap_or_default().max(FAILED);
                let unknown = Unknown::new(words(&error));
                let failed = Failed { unknown: unknown.clone(), until: Instant::now() + pause };
                let mut state = self.state();
                state.failed = Some(failed);
                state.usable(needed).unwrap_or(Err(unknown))
            }
        }
    }
}

impl<T> State<T> {
    /// The answer, if nobody has to be asked for it.
    fn settled(&self, needed: Option<Instant>) -> Option<ListRead<T>> {
        let is_failed = self.failed.as_ref().is_some_and(|failed| failed.until > Instant::now());
        if is_failed { self.usable(needed) } else { self.listed(needed, REFRESH).map(Ok) }
    }

    /// The answer while nobody can be asked for a better one.
    fn usable(&self, needed: Option<Instant>) -> Option<ListRead<T>> {
        let failed = || self.failed.as_ref().map(|failed| Err(failed.unknown.clone()));
        self.listed(needed, STALE).map(Ok).or_else(failed)
    }

    fn listed(&self, needed: Option<Instant>, longest: Duration) -> Option<Arc<Listed<T>>> {
        let listed = self.listed.as_ref()?;
        let is_enough = needed.is_none_or(|needed| listed.begun > needed);
        (is_enough && listed.begun.elapsed() < longest).then(|| Arc::clone(listed))
    }
}

#[cfg(test)]
mod tests;
