//! Where the manager looks after objects. Every watch of the management cluster's namespaced kinds begins here, so that
//! none is opened beyond.

use hangar_plan::namespaces::Namespaces;
use k8s_openapi::NamespaceResourceScope;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Resource};

/// A client, and the namespaces that it is used for.
#[derive(Clone)]
pub(crate) struct Reach {
    client: Client,
    namespaces: Namespaces,
}

impl Reach {
    pub(super) fn new(client: Client, namespaces: Namespaces) -> Self {
        Self { client, namespaces }
    }

    /// The handles through which all objects of a kind are seen: one, or one for each namespace.
    pub(super) fn typed<K>(&self) -> Vec<Api<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.handles(Api::all, Api::namespaced)
    }

    /// The same of a kind without a Rust type.
    pub(super) fn dynamic(&self, resource: &ApiResource) -> Vec<Api<DynamicObject>> {
        self.handles(
            |client| Api::all_with(client, resource),
            |client, namespace| Api::namespaced_with(client, namespace, resource),
        )
    }

    /// The client, for what has no namespace; nothing where only some namespaces are looked after.
    pub(super) fn everywhere(&self) -> Option<Client> {
        (self.namespaces == Namespaces::All).then(|| self.client.clone())
    }

    fn handles<A>(&self, all: impl Fn(Client) -> A, one: impl Fn(Client, &str) -> A) -> Vec<A> {
        match &self.namespaces {
            Namespaces::All => vec![all(self.client.clone())],
            Namespaces::Only(names) => names.iter().map(|name| one(self.client.clone(), name)).collect(),
        }
    }
}
