//! Answers requests to an overlay as an API server would.

use std::fmt;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

use super::request::{Place, Target};
use super::{Base, Overlay, fields, in_version};

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Why something is not done.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn malformed(why: impl fmt::Display) -> Self {
        Self { code: 400, reason: "BadRequest", message: why.to_string() }
    }

    pub(super) fn absent(place: &Place) -> Self {
        Self { code: 404, reason: "NotFound", message: format!("{place} not found") }
    }

    fn conflict(place: &Place, reason: &'static str) -> Self {
        Self { code: 409, reason, message: format!("{place} is not as expected") }
    }
}

impl Overlay {
    pub(super) async fn answer(&self, request: Request<Body>) -> Result<Answer, BoxError> {
        let Some(target) = Target::of(request.uri()) else {
            return answer(Err(Refusal::malformed(format!("{} is not known here", request.uri()))));
        };
        if target.is_watch {
            let silence = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, BoxError>>());
            return Ok(Response::new(silence.boxed_unsync()));
        }
        let (head, body) = request.into_parts();
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_metadata = text(header::ACCEPT).contains("as=PartialObjectMetadata");
        let content = text(header::CONTENT_TYPE).to_owned();
        let body = body.collect_bytes().await?;
        let body: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
        let result = match (&head.method, target.name.clone()) {
            (&Method::GET, None) => self.listed(&target).await,
            (&Method::GET, Some(name)) => self.found(&target, &name).await,
            (&Method::POST, None) => self.posted(&target, body).await,
            (&Method::PATCH, Some(name)) => self.patched(&target, &name, &content, &body).await,
            (&Method::DELETE, Some(name)) => self.removed(&target, &name, &body).await,
            (method, _) => Err(Refusal::malformed(format!("{method} is not known here"))),
        };
        answer(result.map(|object| if is_metadata { metadata_of(&object) } else { object }))
    }

    async fn listed(&self, target: &Target) -> Result<Value, Refusal> {
        let mut found: Vec<(Place, Value)> = match &self.inner.base {
            Base::Memory(present) => present.clone().into_iter().collect(),
            Base::Live(_) => {
                let list = self.base(&target.list()).await?.unwrap_or_default();
                let items = list["items"].as_array().cloned().unwrap_or_default();
                let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
                items.into_iter().filter_map(|item| placed(target, &kind, item)).collect()
            }
        };
        let (written, version) = {
            let state = self.state();
            (state.objects.values().cloned().collect::<Vec<_>>(), super::FIRST_VERSION + state.versions)
        };
        found.retain(|(place, _)| !written.iter().any(|written| written.place == *place));
        found.extend(written.into_iter().filter_map(|written| Some((written.place, written.after?))));
        found.retain(|(place, object)| target.shows(place, object));
        found.sort_by(|left, right| left.0.cmp(&right.0));
        let items: Result<Vec<Value>, Refusal> =
            found.into_iter().map(|(_, object)| in_version(object, &target.api_version)).collect();
        let metadata = json!({ "resourceVersion": version.to_string() });
        Ok(json!({ "apiVersion": target.api_version, "kind": "List", "metadata": metadata, "items": items? }))
    }

    async fn found(&self, target: &Target, name: &str) -> Result<Value, Refusal> {
        let place = target.place(name);
        self.current(&place, &target.api_version).await?.ok_or_else(|| Refusal::absent(&place))
    }

    async fn posted(&self, target: &Target, object: Value) -> Result<Value, Refusal> {
        // Events are told to nobody.
        if target.plural == "events" {
            return Ok(object);
        }
        let place = target.place(object["metadata"]["name"].as_str().unwrap_or_default());
        match self.current(&place, &target.api_version).await? {
            Some(_) => Err(Refusal::conflict(&place, "AlreadyExists")),
            None => self.create(&place, object).await,
        }
    }

    async fn patched(
        &self,
        target: &Target,
        name: &str,
        content: &str,
        body: &Value,
    ) -> Result<Value, Refusal> {
        let place = target.place(name);
        let is_apply = content.starts_with("application/apply-patch");
        let Some(present) = self.current(&place, &target.api_version).await? else {
            return match (is_apply, body["metadata"]["uid"].is_null()) {
                (true, true) => self.create(&place, fields::noted(body.clone(), body, &target.manager)).await,
                (true, false) => Err(Refusal::conflict(&place, "Conflict")),
                (false, _) => Err(Refusal::absent(&place)),
            };
        };
        let mut changed = present.clone();
        if is_apply {
            fields::apply(&mut changed, body, &fields::of_manager(&present, &target.manager));
            changed = fields::noted(changed, body, &target.manager);
        } else if content.starts_with("application/json-patch") {
            let patch: json_patch::Patch =
                serde_json::from_value(body.clone()).map_err(Refusal::malformed)?;
            json_patch::patch(&mut changed, &patch).map_err(Refusal::malformed)?;
        } else {
            json_patch::merge(&mut changed, body);
        }
        for field in ["uid", "resourceVersion"] {
            let expected = &changed["metadata"][field];
            if !expected.is_null() && *expected != present["metadata"][field] {
                return Err(Refusal::conflict(&place, "Conflict"));
            }
        }
        if target.is_status {
            let status = changed["status"].take();
            changed = present;
            changed["status"] = status;
        }
        self.put(&place, changed).await
    }

    async fn removed(&self, target: &Target, name: &str, body: &Value) -> Result<Value, Refusal> {
        let place = target.place(name);
        let present = self.found(target, name).await?;
        let expected = &body["preconditions"]["uid"];
        if !expected.is_null() && *expected != present["metadata"]["uid"] {
            return Err(Refusal::conflict(&place, "Conflict"));
        }
        self.delete(&place, &target.api_version, body["propagationPolicy"] == "Foreground").await
    }
}

/// An item of a live list with its kind, which lists leave out.
fn placed(target: &Target, kind: &str, mut item: Value) -> Option<(Place, Value)> {
    if item["kind"].is_null() {
        item["kind"] = json!(kind);
        item["apiVersion"] = json!(target.api_version);
    }
    let metadata = &item["metadata"];
    let place = Place {
        namespace: metadata["namespace"].as_str().map(str::to_owned),
        ..target.place(metadata["name"].as_str()?)
    };
    Some((place, item))
}

/// The metadata of an object, or of each item of a list.
fn metadata_of(object: &Value) -> Value {
    let one = |object: &Value| json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"] });
    match object["items"].as_array() {
        Some(items) => json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadataList",
            "metadata": object["metadata"],
            "items": items.iter().map(one).collect::<Vec<_>>(),
        }),
        None => one(object),
    }
}

fn answer(result: Result<Value, Refusal>) -> Result<Answer, BoxError> {
    let (code, body) = match result {
        Ok(object) => (200, object),
        Err(Refusal { code, reason, message }) => {
            let status = json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "metadata": {},
                "code": code, "reason": reason, "message": message,
            });
            (code, status)
        }
    };
    let body = Full::new(Bytes::from(serde_json::to_vec(&body)?)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code)?;
    Ok(response)
}
