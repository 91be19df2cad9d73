//! Turns a request into typed data: it adds the token, repeats reads, follows pages, and recognises absence.

use std::{collections::BTreeSet, future::Future, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::{Request, Session, transport::Response};
use crate::{Call, Error};

/// The wait before the first repetition; doubles.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The most pages of one list, and the most bytes of all of them: beyond it a list is an error, not a danger.
const MOST_PAGES: usize = 1000;
const MOST_BYTES: usize = 64 << 20;

/// How a service says that there is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paging {
    /// It never does.
    None,
    /// Nova and Neutron: `<collection>_links` with a `next`.
    Links,
    Next,
}

impl Session {
    /// Sends unless the session waits. Anything but success is an error.
    async fn send_once(&self, request: &Request) -> Result<Response, Error> {
        let permit = self.inner.pauses.admit(&request.call)?;
        let result = self.send_with_token(request).await;
        permit.settle(result.as_ref().err());
        result
    }

    /// Sends with a token, once more with a new one after a 401.
    async fn send_with_token(&self, request: &Request) -> Result<Response, Error> {
        let config = &self.inner.config;
        let mut login = self.login(None).await?;
        for is_last in [false, true] {
            let base =
                login.catalog.base(request.call.service, config.region.as_deref(), config.interface)?;
            let response = self.exchange(request, &base, Some(&login.token)).await?;
            if response.status.is_success() {
                return Ok(response);
            }
            let refused = || Err(self.refused(request, &response, Some(&login.token)));
            if is_last || response.status != http::StatusCode::UNAUTHORIZED {
                return refused();
            }
            // The service looked at the token first and did nothing: sending again is safe, also for a write.
            let newer = self.login(Some(login.generation)).await?;
            if newer.generation == login.generation {
                return refused();
            }
            login = newer;
        }
        Err(Error::Malformed { call: request.call.clone(), why: "two answers are no answer".to_owned() })
    }

    /// Repeats what changes nothing, while it fails in a way that passes by itself.
    pub(super) async fn repeated<F>(
        &self,
        call: &Call,
        mut attempt: impl FnMut() -> F,
    ) -> Result<Response, Error>
    where
        F: Future<Output = Result<Response, Error>>,
    {
        let options = &self.inner.options;
        let mut wait = FIRST_WAIT;
        for left in (0..options.read_attempts.max(1)).rev() {
            let error = match attempt().await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let asked = error.retry_after().unwrap_or(wait);
            if left == 0 || !is_worth_repeating(&error) || asked > options.patience {
                return Err(error);
            }
            tracing::debug!(%call, %error, ?asked, "cloud call is repeated");
            tokio::time::sleep(asked).await;
            wait = (wait * 2).min(options.patience);
        }
        Err(Error::Stopped { call: call.clone(), why: "no attempts left" })
    }

    async fn send_read(&self, request: &Request) -> Result<Response, Error> {
        self.repeated(&request.call, || self.send_once(request)).await
    }

    /// Reads one object under its key.
    async fn read<T: DeserializeOwned>(&self, request: Request, key: &str) -> Result<T, Error> {
        let response = self.send_read(&request).await?;
        typed(&request.call, keyed(&request.call, &response, key)?)
    }

    /// Reads one object under its key; `None` when the service says that there is none.
    pub(crate) async fn get_optional<T: DeserializeOwned>(
        &self,
        request: Request,
        key: &str,
    ) -> Result<Option<T>, Error> {
        match self.read(request, key).await {
            Err(error) if error.is_not_found() => Ok(None),
            result => result.map(Some),
        }
    }

    /// Reads one object that is the whole body; `None` when the service says that there is none.
    pub(crate) async fn get_optional_plain<T: DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<Option<T>, Error> {
        match self.send_read(&request).await {
            Err(error) if error.is_not_found() => Ok(None),
            result => typed(&request.call, json(&request.call, &result?)?).map(Some),
        }
    }

    /// Writes, and reads the object that comes back under its key.
    pub(crate) async fn write<T: DeserializeOwned>(&self, request: Request, key: &str) -> Result<T, Error> {
        let response = self.send_once(&request).await?;
        typed(&request.call, keyed(&request.call, &response, key)?)
    }

    /// Writes, and looks at nothing that comes back.
    pub(crate) async fn write_only(&self, request: Request) -> Result<(), Error> {
        self.send_once(&request).await.map(drop)
    }

    /// Deletes; that it is gone already is fine.
    pub(crate) async fn delete(&self, request: Request) -> Result<(), Error> {
        match self.send_once(&request).await {
            Err(error) if error.is_not_found() => Ok(()),
            result => result.map(drop),
        }
    }

    /// Reads a collection to its end.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        request: Request,
        key: &str,
        paging: Paging,
    ) -> Result<Vec<T>, Error> {
        self.list_where(request, key, paging, |_| true).await
    }

    /// Reads a collection to its end, and keeps what fits.
    pub(crate) async fn list_where<T: DeserializeOwned>(
        &self,
        mut request: Request,
        key: &str,
        paging: Paging,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        let mut seen = BTreeSet::new();
        let mut bytes = 0;
        let (started, limit) = (Instant::now(), self.inner.options.limits.list);
        loop {
            let response = self.send_read(&request).await?;
            bytes += response.body.len();
            let mut page = json(&request.call, &response)?;
            let next = next_query(&page, key, paging);
            // Not by index: a body that is no object at all would end us.
            let Some(Value::Array(found)) = page.get_mut(key).map(Value::take) else {
                let why = format!("no list {key:?} in it");
                return Err(Error::Malformed { call: request.call, why });
            };
            let is_empty = found.is_empty();
            for item in found.into_iter().filter(&fits) {
                items.push(typed(&request.call, item)?);
            }
            match next {
                // Some versions of Neutron point on from an empty page.
                Some(query) if !is_empty => {
                    if !seen.insert(query.clone()) {
                        let why = "its pages go round in a circle".to_owned();
                        return Err(Error::Malformed { call: request.call, why });
                    }
                    if seen.len() >= MOST_PAGES || bytes > MOST_BYTES {
                        let why = format!("more than {MOST_PAGES} pages or {} MiB", MOST_BYTES >> 20);
                        return Err(Error::Malformed { call: request.call, why });
                    }
                    if started.elapsed() > limit {
                        return Err(Error::TimedOut { call: request.call, limit });
                    }
                    request.query = query;
                }
                _ => return Ok(items),
            }
        }
    }
}

/// A read that timed out has taken its time already.
fn is_worth_repeating(error: &Error) -> bool {
    match error {
        Error::Unreached { .. } | Error::Lost { .. } => true,
        Error::Refused(refusal) => refusal.kind.is_transient(),
        _ => false,
    }
}

/// Only the query of the link counts: behind a proxy its scheme and host are often wrong.
fn next_query(page: &Value, key: &str, paging: Paging) -> Option<String> {
    let link = match paging {
        Paging::None => None,
        Paging::Next => page.get("next")?.as_str(),
        Paging::Links => page
            .get(format!("{key}_links"))?
            .as_array()?
            .iter()
            .find(|link| link["rel"] == "next")
            .and_then(|link| link["href"].as_str()),
    }?;
    let (_, query) = link.split_once('?')?;
    Some(query.to_owned())
}

fn json(call: &Call, response: &Response) -> Result<Value, Error> {
    serde_json::from_slice(&response.body).map_err(|error| Error::Malformed {
        call: call.clone(),
        why: format!("not JSON at line {}", error.line()),
    })
}

fn keyed(call: &Call, response: &Response, key: &str) -> Result<Value, Error> {
    let mut body = json(call, response)?;
    match body.get_mut(key) {
        Some(value) => Ok(value.take()),
        None => Err(Error::Malformed { call: call.clone(), why: format!("no {key:?} in it") }),
    }
}

/// Names the place of what is not understood, never its value.
fn typed<T: DeserializeOwned>(call: &Call, value: Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let why = format!("{} is not as expected", error.path());
        Error::Malformed { call: call.clone(), why }
    })
}
