//! The client of Nova.
//!
//! Every call names the microversion whose format it expects, so that a newer Nova answers as the old one did. 2.53 is
//! the lowest that takes a server's tags in its create call (2.52) and shows them (2.26), and other providers use it
//! too.

mod flavor;
mod place;
mod server;
mod user_data;

use serde_json::Value;

pub use flavor::Flavor;
pub use place::{AvailabilityZone, ServerGroup};
pub use server::{Address, AddressKind, Fault, Server, ServerCreate, ServerNetwork, ServerQuery};
pub use user_data::{MAX_USER_DATA_BYTES, UserData, UserDataTooLong};

use crate::{
    Error, FlavorId, ServerId, Service, Session, Verb,
    session::{Paging, Request, segment},
};

/// For everything about servers.
const SERVERS: &str = "2.53";
/// Flavors with the fields they always had.
const FLAVORS: &str = "2.1";
/// What the others need: nothing newer than the beginning.
const PLAIN: &str = "2.1";

/// Calls to Nova.
#[derive(Clone, Debug)]
pub struct ComputeClient {
    session: Session,
    about: Option<String>,
}

impl ComputeClient {
    pub(crate) fn new(session: Session) -> Self {
        Self { session, about: None }
    }

    /// Names the object that the next calls are about, for gates: an id is random, a name is the same in every run.
    #[must_use]
    pub fn about(mut self, name: impl Into<String>) -> Self {
        self.about = Some(name.into());
        self
    }

    /// Makes a server. Nova answers with its id and builds it afterwards.
    pub async fn create_server(&self, server: &ServerCreate) -> Result<ServerId, Error> {
        #[derive(serde::Deserialize)]
        struct Created {
            id: ServerId,
        }
        let mut request = self.request(Verb::Create, "server", "servers".to_owned(), SERVERS);
        if self.about.is_none() {
            request = request.name(Some(&server.name));
        }
        if let Some(user_data) = &server.user_data {
            request = request.secret(user_data.encoded());
        }
        let created: Created = self.session.write(request.body(&server.body()), "server").await?;
        Ok(created.id)
    }

    /// One server; `None` when Nova says that there is none.
    pub async fn server(&self, id: &ServerId) -> Result<Option<Server>, Error> {
        let path = format!("servers/{}", segment(id.as_ref()));
        let request = self.request(Verb::Get, "server", path, SERVERS).id(id.as_ref());
        self.session.get_optional(request, "server").await
    }

    /// All servers that match, whole.
    pub async fn servers(&self, query: &ServerQuery) -> Result<Vec<Server>, Error> {
        let request =
            self.request(Verb::List, "server", "servers/detail".to_owned(), SERVERS).query(query.pairs());
        let servers: Vec<Server> = self.session.list(request, "servers", Paging::Links).await?;
        Ok(servers.into_iter().filter(|server| query.matches(server)).collect())
    }

    /// Asks for a server's end; that it is gone already is fine. It stays visible until it is gone.
    pub async fn delete_server(&self, id: &ServerId) -> Result<(), Error> {
        let path = format!("servers/{}", segment(id.as_ref()));
        self.session.delete(self.request(Verb::Delete, "server", path, SERVERS).id(id.as_ref())).await
    }

    /// One flavor; `None` when Nova says that there is none.
    pub async fn flavor(&self, id: &FlavorId) -> Result<Option<Flavor>, Error> {
        let path = format!("flavors/{}", segment(id.as_ref()));
        let request = self.request(Verb::Get, "flavor", path, FLAVORS).id(id.as_ref());
        self.session.get_optional(request, "flavor").await
    }

    /// All flavors the project can use.
    pub async fn flavors(&self) -> Result<Vec<Flavor>, Error> {
        let request = self.request(Verb::List, "flavor", "flavors/detail".to_owned(), FLAVORS);
        self.session.list(request, "flavors", Paging::Links).await
    }

    /// The zones servers can be put into.
    pub async fn availability_zones(&self) -> Result<Vec<AvailabilityZone>, Error> {
        let request = self.request(Verb::List, "availability-zone", "os-availability-zone".to_owned(), PLAIN);
        self.session.list(request, "availabilityZoneInfo", Paging::None).await
    }

    /// The project's server groups.
    pub async fn server_groups(&self) -> Result<Vec<ServerGroup>, Error> {
        let request = self.request(Verb::List, "server-group", "os-server-groups".to_owned(), PLAIN);
        self.session.list(request, "server_groups", Paging::None).await
    }

    /// True when the user has a key of that name.
    pub async fn has_key_pair(&self, name: &str) -> Result<bool, Error> {
        let path = format!("os-keypairs/{}", segment(name));
        let request = self.request(Verb::Get, "key-pair", path, PLAIN).id(name);
        let found: Option<Value> = self.session.get_optional(request, "keypair").await?;
        Ok(found.is_some())
    }

    fn request(&self, verb: Verb, kind: &'static str, path: String, microversion: &'static str) -> Request {
        Request::new(verb, Service::Compute, kind, path)
            .name(self.about.as_deref())
            .microversion(microversion)
    }
}
