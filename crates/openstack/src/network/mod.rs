//! The client of Neutron.
//!
//! All kinds have the same five calls, so each call is one function, and the type of the id, the query or the body says
//! which kind is meant: `network.get(&port_id)` is a [`Port`], `network.list(&SubnetQuery { .. })` are [`Subnet`]s.
//!
//! Neutron's list filters are exact, also on `description`. That is why the owner id is there: it is part of the create
//! call, while tags need a second call.

mod filter;
mod net;
mod port;
mod resource;
mod router;
mod security_group;
mod subnet;

use serde_json::json;

pub use filter::Filter;
pub use net::{Network, NetworkCreate, NetworkQuery};
pub use port::{AddressPair, FixedIp, FixedIpRequest, Port, PortCreate, PortQuery};
pub use resource::{Creation, NetworkResource, Query, Update};
pub use router::{ExternalGateway, GatewayAddress, Router, RouterCreate, RouterQuery};
pub use security_group::{
    SecurityGroup, SecurityGroupCreate, SecurityGroupQuery, SecurityGroupRule, SecurityGroupRuleCreate,
};
pub use subnet::{AllocationPool, Subnet, SubnetCreate, SubnetQuery, SubnetUpdate};

use crate::{
    Error, RouterId, Service, Session, SubnetId, Verb,
    session::{Paging, Request},
};

/// Calls to Neutron.
#[derive(Clone, Debug)]
pub struct NetworkClient {
    session: Session,
    about: Option<String>,
}

impl NetworkClient {
    pub(crate) fn new(session: Session) -> Self {
        Self { session, about: None }
    }

    /// Names the object that the next calls are about, for gates: an id is random, a name is the same in every run.
    #[must_use]
    pub fn about(mut self, name: impl Into<String>) -> Self {
        self.about = Some(name.into());
        self
    }

    /// One object; `None` when Neutron says that there is none.
    pub async fn get<R: NetworkResource>(&self, id: &R) -> Result<Option<R::Item>, Error> {
        let request = self.request(Verb::Get, R::KIND, item_path::<R>(id)).id(id.as_ref());
        self.session.get_optional(request, R::SINGULAR).await
    }

    /// All that match, whole.
    pub async fn list<Q: Query>(&self, query: &Q) -> Result<Vec<<Q::Id as NetworkResource>::Item>, Error> {
        let request = self
            .request(
                Verb::List,
                <Q::Id as NetworkResource>::KIND,
                <Q::Id as NetworkResource>::PATH.to_owned(),
            )
            .query(query.pairs());
        let wanted = query.pairs();
        let plural = <Q::Id as NetworkResource>::PLURAL;
        self.session.list_where(request, plural, Paging::Links, |item| filter::fits(&wanted, item)).await
    }

    pub async fn create<C: Creation>(&self, body: &C) -> Result<<C::Id as NetworkResource>::Item, Error> {
        let mut request = self.request(
            Verb::Create,
            <C::Id as NetworkResource>::KIND,
            <C::Id as NetworkResource>::PATH.to_owned(),
        );
        if self.about.is_none() {
            request = request.name(body.name());
        }
        let singular = <C::Id as NetworkResource>::SINGULAR;
        self.session.write(request.body(&json!({ singular: body })), singular).await
    }

    pub async fn update<U: Update>(
        &self,
        id: &U::Id,
        body: &U,
    ) -> Result<<U::Id as NetworkResource>::Item, Error> {
        let singular = <U::Id as NetworkResource>::SINGULAR;
        let request = self
            .request(Verb::Update, <U::Id as NetworkResource>::KIND, item_path::<U::Id>(id))
            .id(id.as_ref())
            .body(&json!({ singular: body }));
        self.session.write(request, singular).await
    }

    /// Deletes one; that it is gone already is fine.
    pub async fn delete<R: NetworkResource>(&self, id: &R) -> Result<(), Error> {
        self.session.delete(self.request(Verb::Delete, R::KIND, item_path::<R>(id)).id(id.as_ref())).await
    }

    /// Replaces all tags of one. Rules of security groups have none.
    pub async fn set_tags<R: NetworkResource>(&self, id: &R, tags: &[String]) -> Result<(), Error> {
        let request = self
            .request(Verb::Update, R::TAGS_KIND, format!("{}/tags", item_path::<R>(id)))
            .id(id.as_ref())
            .body(&json!({ "tags": tags }));
        self.session.write_only(request).await
    }

    /// Connects a router to a subnet, with the subnet's gateway address. Refused as invalid when it is connected already.
    pub async fn add_router_interface(&self, router: &RouterId, subnet: &SubnetId) -> Result<(), Error> {
        self.router_interface(router, subnet, "add_router_interface").await
    }

    /// Takes a router off a subnet; that it is off already is fine.
    pub async fn remove_router_interface(&self, router: &RouterId, subnet: &SubnetId) -> Result<(), Error> {
        match self.router_interface(router, subnet, "remove_router_interface").await {
            Err(error) if error.is_not_found() => Ok(()),
            result => result,
        }
    }

    async fn router_interface(
        &self,
        router: &RouterId,
        subnet: &SubnetId,
        action: &str,
    ) -> Result<(), Error> {
        let request = self
            .request(Verb::Update, "router/interface", format!("{}/{action}", item_path::<RouterId>(router)))
            .id(router.as_ref())
            .body(&json!({ "subnet_id": subnet }));
        self.session.write_only(request).await
    }

    fn request(&self, verb: Verb, kind: &'static str, path: String) -> Request {
        Request::new(verb, Service::Network, kind, path).name(self.about.as_deref())
    }
}

fn item_path<R: NetworkResource>(id: &R) -> String {
    format!("{}/{}", R::PATH, crate::session::segment(id.as_ref()))
}
