//! The calls, one by one.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use http_body_util::Full;
use jiff::Timestamp;

use super::Bucket;
use super::answer::{
    BegunAnswer, CompletedAnswer, ErrorAnswer, ListAnswer, Object, Unfinished, UploadsAnswer, read,
};
use super::refusal::{StoreRefusal, StoreRefusalKind};
use super::sign::{Signed, encode_path, encode_query};
use super::transport::{Body, Response};
use crate::{Call, Error, Verb};

const USER_AGENT: &str = concat!("hangar/", env!("CARGO_PKG_VERSION"));

/// The longest list of keys that is read, in pages of a thousand.
const MOST_PAGES: usize = 500;

/// A request that is not signed yet.
struct Draft<'a> {
    method: Method,
    /// Empty for the bucket itself.
    key: &'a str,
    query: &'a [(&'a str, &'a str)],
    body: Bytes,
}

impl Bucket {
    /// Reads an object; none if there is no such key. A missing bucket is an error.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Body>, Error> {
        let call = named(Verb::GetObject, key);
        let draft = Draft { method: Method::GET, key, query: &[], body: Bytes::new() };
        match self.gates.pass(&call, self.limits.call, self.send(&call, draft)).await {
            Ok(response) => Ok(Some(response.into_body(call, self.limits.idle))),
            Err(error) if is_kind(&error, StoreRefusalKind::NoSuchKey) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a small object whole.
    pub(crate) async fn put(&self, key: &str, body: Bytes) -> Result<(), Error> {
        let draft = Draft { method: Method::PUT, key, query: &[], body };
        self.answered(Verb::PutObject, draft).await.map(drop)
    }

    /// Succeeds if it does not exist.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), Error> {
        let draft = Draft { method: Method::DELETE, key, query: &[], body: Bytes::new() };
        match self.answered(Verb::DeleteObject, draft).await {
            Err(error) if is_kind(&error, StoreRefusalKind::NoSuchKey) => Ok(()),
            result => result.map(drop),
        }
    }

    /// Calls `take` for all objects with a prefix, in the order of their keys.
    pub(crate) async fn list(&self, prefix: &str, mut take: impl FnMut(Object)) -> Result<(), Error> {
        let call = named(Verb::ListObjects, prefix);
        let mut token: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let mut query = vec![("list-type", "2"), ("prefix", prefix)];
            query.extend(token.as_deref().map(|token| ("continuation-token", token)));
            let draft = Draft { method: Method::GET, key: "", query: &query, body: Bytes::new() };
            let answer: ListAnswer = read(&call, &self.answered_as(&call, draft).await?)?;
            // A key elsewhere would be read, or deleted, in the name of this control plane.
            answer.contents.into_iter().filter(|object| object.key.starts_with(prefix)).for_each(&mut take);
            token = answer.next_continuation_token.filter(|_| answer.is_truncated);
            if token.is_none() {
                return Ok(());
            }
        }
        Err(Error::Malformed { call, why: format!("more than {MOST_PAGES} pages") })
    }

    /// The uploads that were begun under a prefix and not ended.
    pub(crate) async fn unfinished(&self, prefix: &str) -> Result<Vec<Unfinished>, Error> {
        let call = named(Verb::ListUploads, prefix);
        let mut found = Vec::new();
        let mut marker: Option<(String, String)> = None;
        // Leftovers are few. A store that never ends its list is asked again next time.
        for _ in 0..10 {
            let mut query = vec![("uploads", ""), ("prefix", prefix)];
            if let Some((key, upload)) = &marker {
                query.extend([("key-marker", key.as_str()), ("upload-id-marker", upload.as_str())]);
            }
            let draft = Draft { method: Method::GET, key: "", query: &query, body: Bytes::new() };
            let answer: UploadsAnswer = read(&call, &self.answered_as(&call, draft).await?)?;
            found.extend(answer.uploads.into_iter().filter(|upload| upload.key.starts_with(prefix)));
            marker = answer
                .next_key_marker
                .filter(|_| answer.is_truncated)
                .map(|key| (key, answer.next_upload_id_marker.unwrap_or_default()));
            if marker.is_none() {
                break;
            }
        }
        Ok(found)
    }

    pub(super) async fn begin(&self, key: &str) -> Result<String, Error> {
        let call = named(Verb::BeginUpload, key);
        let draft = Draft { method: Method::POST, key, query: &[("uploads", "")], body: Bytes::new() };
        let answer: BegunAnswer = read(&call, &self.answered_as(&call, draft).await?)?;
        Ok(answer.upload_id)
    }

    /// The part's tag, which completing needs.
    pub(super) async fn part(
        &self,
        key: &str,
        upload: &str,
        number: usize,
        body: Bytes,
    ) -> Result<String, Error> {
        let number = number.to_string();
        let call = named(Verb::UploadPart, format!("{key} part {number}"));
        let query = [("partNumber", number.as_str()), ("uploadId", upload)];
        let draft = Draft { method: Method::PUT, key, query: &query, body };
        let work = async {
            let response = self.send(&call, draft).await?;
            let tag = response.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
            response.whole(&call).await?;
            tag.filter(|tag| tag.len() < 200).ok_or_else(|| Error::Malformed {
                call: call.clone(),
                why: "a part without a tag".to_owned(),
            })
        };
        self.gates.pass(&call, self.limits.part, work).await
    }

    pub(super) async fn complete(&self, key: &str, upload: &str, tags: &[String]) -> Result<(), Error> {
        let call = named(Verb::CompleteUpload, key);
        let mut body = String::from("<CompleteMultipartUpload>");
        for (number, tag) in (1..).zip(tags) {
            let tag = quick_xml::escape::escape(tag.as_str());
            body.extend([
                "<Part><PartNumber>",
                &number.to_string(),
                "</PartNumber><ETag>",
                &tag,
                "</ETag></Part>",
            ]);
        }
        body.push_str("</CompleteMultipartUpload>");
        let draft = Draft { method: Method::POST, key, query: &[("uploadId", upload)], body: body.into() };
        // Putting many parts together takes a while; the store may answer 200 first and say later that it failed.
        let work = async {
            let response = self.send(&call, draft).await?;
            let status = response.status;
            let body = response.whole(&call).await?;
            if ErrorAnswer::read(&body).is_some() {
                return Err(Error::StoreRefused(Box::new(StoreRefusal::read(&call, status, &body))));
            }
            read::<CompletedAnswer>(&call, &body).map(|answer| drop(answer.entity_tag))
        };
        self.gates.pass(&call, self.limits.part, work).await
    }

    /// Removes the parts. Succeeds if there is no such upload.
    pub(crate) async fn abort(&self, key: &str, upload: &str) -> Result<(), Error> {
        let draft = Draft { method: Method::DELETE, key, query: &[("uploadId", upload)], body: Bytes::new() };
        match self.answered(Verb::AbortUpload, draft).await {
            Err(error) if is_kind(&error, StoreRefusalKind::NoSuchUpload) => Ok(()),
            result => result.map(drop),
        }
    }

    async fn answered(&self, verb: Verb, draft: Draft<'_>) -> Result<Bytes, Error> {
        let call = named(verb, draft.key);
        self.answered_as(&call, draft).await
    }

    async fn answered_as(&self, call: &Call, draft: Draft<'_>) -> Result<Bytes, Error> {
        let work = async { self.send(call, draft).await?.whole(call).await };
        self.gates.pass(call, self.limits.call, work).await
    }

    /// Signs and sends. An answer that is no success is an error.
    async fn send(&self, call: &Call, draft: Draft<'_>) -> Result<Response, Error> {
        let unsent = |why: &str| Error::Unreached { call: call.clone(), why: why.to_owned() };
        let path = encode_path(&format!("{}{}", self.root, draft.key));
        let query = encode_query(draft.query);
        let signed =
            Signed { method: &draft.method, host: &self.host, path: &path, query: &query, body: &draft.body };
        let mut headers = HeaderMap::new();
        self.signer.sign(&signed, &mut headers, Timestamp::now()).ok_or_else(|| {
            Error::unusable("the credentials of the store", "they have characters that no header can have")
        })?;
        headers.insert(header::USER_AGENT, header::HeaderValue::from_static(USER_AGENT));
        let separator = if query.is_empty() { "" } else { "?" };
        let mut request = Request::new(Full::new(draft.body));
        *request.method_mut() = draft.method;
        *request.uri_mut() = format!("{}{path}{separator}{query}", self.origin)
            .parse()
            .map_err(|_| unsent("no such address"))?;
        *request.headers_mut() = headers;
        let response = self.transport.send(call, request).await?;
        if response.status.is_success() {
            return Ok(response);
        }
        let status = response.status;
        let body = response.whole(call).await?;
        let mut refusal = StoreRefusal::read(call, status, &body);
        // A store in between may leave the body out: then it is about the key if a key was asked for.
        if refusal.kind == StoreRefusalKind::Other && status.as_u16() == 404 && body.is_empty() {
            refusal.kind = StoreRefusalKind::NoSuchBucket;
        }
        Err(Error::StoreRefused(Box::new(refusal)))
    }
}

fn named(verb: Verb, about: impl Into<String>) -> Call {
    Call { verb, about: about.into() }
}

fn is_kind(error: &Error, kind: StoreRefusalKind) -> bool {
    error.store_refusal().is_some_and(|refusal| refusal.kind == kind)
}
