//! The part of TLSRoute that we write: all versions of it have the same shape.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use super::facts::RouteVersion;

/// The group of Gateways and routes.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";
/// The kind of our routes: by the name that a client asks for, without opening what it encrypts.
pub const ROUTE_KIND: &str = "TLSRoute";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TlsRoute {
    api_version: String,
    kind: &'static str,
    metadata: ObjectMeta,
    spec: TlsRouteSpec,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TlsRouteSpec {
    parent_refs: [ParentReference; 1],
    hostnames: Vec<String>,
    rules: [Rule; 1],
}

/// A listener of a Gateway.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParentReference {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) section_name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    backend_refs: [Backend; 1],
}

/// A Service in the route's namespace.
#[derive(Serialize)]
pub(super) struct Backend {
    pub(super) name: String,
    pub(super) port: u16,
}

impl TlsRoute {
    pub(super) fn new(
        version: RouteVersion,
        metadata: ObjectMeta,
        parent: ParentReference,
        hostnames: Vec<String>,
        backend: Backend,
    ) -> Self {
        Self {
            api_version: api_version(version),
            kind: ROUTE_KIND,
            metadata,
            spec: TlsRouteSpec {
                parent_refs: [parent],
                hostnames,
                rules: [Rule { backend_refs: [backend] }],
            },
        }
    }
}

pub(super) fn api_version(version: RouteVersion) -> String {
    format!("{GATEWAY_GROUP}/{}", version.as_str())
}
