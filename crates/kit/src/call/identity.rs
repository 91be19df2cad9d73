//! What a request to a Kubernetes API server means, read from its method, path, query and body.

use std::fmt;

use http::{Method, Request, header::CONTENT_TYPE};
use kube::client::Body;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    /// Changes an object by a merge or JSON patch.
    Patch,
    Apply,
    Delete,
    DeleteCollection,
    /// Anything that is not about objects: health, version, discovery.
    Other,
}

impl Verb {
    /// True when the call can change something.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch | Self::Other)
    }

    /// As in roles and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        }
    }
}

/// One call, named so that the same call has the same name in every run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    pub verb: Verb,
    /// To which resource: `configmaps`, `deployments.apps`, `deployments.apps/status`. The path for [`Verb::Other`].
    pub resource: String,
    pub namespace: Option<String>,
    /// To which object; the body's name for a create, none for collections.
    pub name: Option<String>,
    /// True for a dry run, which changes nothing.
    pub is_dry_run: bool,
}

impl Call {
    /// Reads a request.
    pub fn of(request: &Request<Body>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let has = |wanted: &[&str]| query.split('&').any(|pair| wanted.contains(&pair));
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let Some(path) = ObjectPath::parse(request.uri().path()) else {
            return Self {
                verb: Verb::Other,
                resource: request.uri().path().to_owned(),
                namespace: None,
                name: None,
                is_dry_run: false,
            };
        };
        let is_named = path.name.is_some();
        let verb = match *request.method() {
            Method::GET if has(&["watch=true", "watch=1"]) => Verb::Watch,
            Method::GET if is_named => Verb::Get,
            Method::GET => Verb::List,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH if content_type.is_some_and(|kind| kind.contains("apply-patch")) => Verb::Apply,
            Method::PATCH => Verb::Patch,
            Method::DELETE if is_named => Verb::Delete,
            Method::DELETE => Verb::DeleteCollection,
            _ => Verb::Other,
        };
        Self {
            verb,
            resource: path.resource(),
            namespace: path.namespace.map(str::to_owned),
            name: path.name.map(str::to_owned),
            is_dry_run: has(&["dryRun=All"]),
        }
    }

    /// Takes a create's name from its body. `generateName` is no stable name and shows as such.
    pub(super) fn named_by(&mut self, body: &[u8]) {
        if self.verb != Verb::Create || self.name.is_some() {
            return;
        }
        let Ok(object) = serde_json::from_slice::<serde_json::Value>(body) else {
            return;
        };
        let text = |pointer: &str| object.pointer(pointer).and_then(|value| value.as_str());
        self.name = text("/metadata/name")
            .map(str::to_owned)
            .or_else(|| text("/metadata/generateName").map(|prefix| format!("{prefix}*")));
    }
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.verb.as_str(), self.resource)?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(formatter, " {namespace}/{name}"),
            (Some(namespace), None) => write!(formatter, " {namespace}/"),
            (None, Some(name)) => write!(formatter, " {name}"),
            (None, None) => Ok(()),
        }
    }
}

/// The parts of `/api/v1/…` and `/apis/GROUP/VERSION/…`.
struct ObjectPath<'a> {
    group: Option<&'a str>,
    namespace: Option<&'a str>,
    plural: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> ObjectPath<'a> {
    fn parse(path: &'a str) -> Option<Self> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let group = match parts.next()? {
            "api" => None,
            "apis" => Some(parts.next()?),
            _ => return None,
        };
        parts.next()?;
        let rest: Vec<&str> = parts.collect();
        // `/api/v1/namespaces/NAME` is the namespace itself, not something in it.
        let (namespace, rest) = match rest[..] {
            ["namespaces", namespace, ref inner @ ..]
                if !(inner.is_empty() || group.is_none() && matches!(inner, ["status" | "finalize"])) =>
            {
                (Some(namespace), inner)
            }
            ref outer => (None, outer),
        };
        let (plural, rest) = rest.split_first()?;
        Some(Self {
            group,
            namespace,
            plural,
            name: rest.first().copied(),
            subresource: rest.get(1).copied(),
        })
    }

    fn resource(&self) -> String {
        let mut resource = self.plural.to_owned();
        if let Some(group) = self.group {
            resource = format!("{resource}.{group}");
        }
        if let Some(subresource) = self.subresource {
            resource = format!("{resource}/{subresource}");
        }
        resource
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, uri: &str, content_type: &str, body: &str) -> String {
        let request = Request::builder().method(method).uri(uri).header(CONTENT_TYPE, content_type);
        let mut call = Call::of(&request.body(Body::empty()).unwrap());
        call.named_by(body.as_bytes());
        call.to_string()
    }

    #[test]
    fn requests_have_stable_names() {
        let json = "application/json";
        let maps = "/api/v1/namespaces/blue/configmaps";
        let deployments = "/apis/apps/v1/namespaces/blue/deployments";
        let cases = [
            (Method::GET, format!("{maps}?"), json, "", "list configmaps blue/"),
            (Method::GET, format!("{maps}?watch=true&resourceVersion=5"), json, "", "watch configmaps blue/"),
            (Method::GET, format!("{maps}/a"), json, "", "get configmaps blue/a"),
            (Method::POST, maps.to_owned(), json, r#"{"metadata":{"name":"a"}}"#, "create configmaps blue/a"),
            (
                Method::POST,
                maps.to_owned(),
                json,
                r#"{"metadata":{"generateName":"a-"}}"#,
                "create configmaps blue/a-*",
            ),
            (
                Method::PATCH,
                format!("{deployments}/a"),
                "application/apply-patch+yaml",
                "",
                "apply deployments.apps blue/a",
            ),
            (
                Method::PATCH,
                format!("{deployments}/a/status"),
                "application/merge-patch+json",
                "",
                "patch deployments.apps/status blue/a",
            ),
            (Method::DELETE, format!("{maps}/a"), json, "", "delete configmaps blue/a"),
            (Method::DELETE, maps.to_owned(), json, "", "deletecollection configmaps blue/"),
            (
                Method::PUT,
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/a".to_owned(),
                json,
                "",
                "update clusterroles.rbac.authorization.k8s.io a",
            ),
            (Method::GET, "/api/v1/namespaces/blue".to_owned(), json, "", "get namespaces blue"),
            (
                Method::PUT,
                "/api/v1/namespaces/blue/finalize".to_owned(),
                json,
                "",
                "update namespaces/finalize blue",
            ),
            (Method::GET, "/api/v1/namespaces".to_owned(), json, "", "list namespaces"),
            (Method::GET, "/version".to_owned(), json, "", "other /version"),
            (Method::GET, "/apis".to_owned(), json, "", "other /apis"),
        ];
        for (method, uri, content_type, body, expected) in cases {
            assert_eq!(call(method, &uri, content_type, body), expected, "{uri}");
        }
    }

    #[test]
    fn dry_runs_are_seen() {
        let request = Request::builder()
            .method(Method::PATCH)
            .uri("/api/v1/namespaces/a/pods/b?fieldManager=x&dryRun=All");
        assert!(Call::of(&request.body(Body::empty()).unwrap()).is_dry_run);
    }
}
