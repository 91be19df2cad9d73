//! Connects to a tenant as `system:masters`, to write Hangar's own rights there, which Hangar's user cannot write itself.
//!
//! Nobody in the tenant can take rights away from `system:masters`. The certificate is made in memory when it is needed,
//! lives for minutes and is never written; after a crash a new one is made. It is used for half of its life, so a tenant
//! that removes Hangar's rights again and again causes one certificate in five minutes.

use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_kit::error::{Error, Result};
use hangar_pki::{Credentials, Intent, Kubeconfig, Usage, issue};
use hangar_plan::hosted_control_plane::{Material, Observed};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::time::Instant;

use super::remembered::Remembered;
use super::{ControlPlanes, material, observe};
use crate::context::Context;

/// How long the certificate is valid.
const LIFETIME: Duration = Duration::from_mins(10);
/// How long it is used.
const USED_FOR: Duration = Duration::from_mins(5);
/// Who it is, in a tenant's audit log.
const USER: &str = "hangar:break-glass";

/// Clients that were made, with the revision of the kubeconfig that they go by.
pub(super) type Masters = Remembered<(Instant, String, Client)>;

impl Masters {
    /// Drops clients that are no longer used, with their connections.
    pub(super) fn drop_old(&self) {
        self.all().retain(|_, (made, _, _)| made.elapsed() < USED_FOR);
    }

    fn get(&self, cluster: &ObjectKey, revision: &str) -> Option<Client> {
        self.drop_old();
        let all = self.all();
        all.get(cluster).filter(|(_, known, _)| known == revision).map(|(_, _, client)| client.clone())
    }
}

impl ControlPlanes {
    /// A client to whom everything is allowed, to the server that our own access leads to.
    pub(super) async fn master(&self, context: &Context, observed: &Observed) -> Result<Client> {
        let cluster = observe::cluster_key(observed);
        let source = self.tenants.source();
        let (access, revision) = source.kubeconfig(&cluster).await?;
        if let Some(client) = self.masters.get(&cluster, &revision) {
            return Ok(client);
        }
        let name = observed.names().map(|names| names.secret(Material::ClusterAuthority)).unwrap_or_default();
        let key = ObjectKey { namespace: cluster.namespace.clone(), name };
        let api: Api<Secret> = Api::namespaced(context.client(), key.namespace_or_empty());
        let secret = api.get(&key.name).await;
        let secret = secret.map_err(|source| Error::api(format!("read Secret {key}"), source))?;
        let malformed = |problem: String| Error::Malformed { what: format!("Secret {key}"), problem };
        let authority = material::authority(&secret).map_err(malformed)?;
        tracing::info!(tenant = %cluster, "a certificate of system:masters is made to write Hangar's rights");
        let intent = Intent::new(USER, Usage::Client, LIFETIME).organizations(["system:masters"]);
        let pair =
            issue(&authority, &intent, Timestamp::now()).map_err(|error| malformed(error.to_string()))?;
        let kubeconfig = Kubeconfig { credentials: Credentials::Certificate(pair), ..access };
        let client = self.tenants.client_of(source.connect(&kubeconfig, &cluster)?)?;
        self.masters.all().insert(cluster, (Instant::now(), revision, client.clone()));
        Ok(client)
    }
}
