//! Logging in, once for everybody.
//!
//! Whoever needs a token takes the one lock; the first logs in, the others find the result. That holds for failures
//! too: those who waited while a login failed get its error, so that a wrong password is tried once, not once per machine
//! (accounts get locked for less). The next call tries again.
//!
//! A token's life is counted from its arrival on our own monotonic clock, by the span between the two times in it: the
//! cloud's clock and ours need not agree.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::HeaderValue;
use serde::Deserialize;
use tokio::{sync::Mutex, time::Instant};

use super::{Request, Session, catalog::Catalog, transport::Response};
use crate::{Error, ProjectId, Service, Verb};

/// A token is renewed this long before its end, or after three quarters of its life if that is later.
const MARGIN: Duration = Duration::from_secs(120);

/// What a login gives.
pub(super) struct Login {
    /// Counts logins of this session: tells a token that was refused from a newer one.
    pub(super) generation: u64,
    pub(super) token: HeaderValue,
    pub(super) catalog: Catalog,
    pub(super) project: Option<ProjectId>,
    renew_at: Instant,
}

#[derive(Default)]
pub(super) struct Logins {
    state: Mutex<State>,
    failures: AtomicU64,
}

#[derive(Default)]
struct State {
    login: Option<Arc<Login>>,
    generation: u64,
    failure: Option<Error>,
}

#[derive(Deserialize)]
struct Body {
    token: Token,
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    catalog: Catalog,
    #[serde(default)]
    project: Option<Project>,
    #[serde(default)]
    expires_at: Option<String>,
    #[serde(default)]
    issued_at: Option<String>,
}

#[derive(Deserialize)]
struct Project {
    id: ProjectId,
}

impl Session {
    /// A login that is good now. `refused` is the generation of one that a service did not accept.
    pub(super) async fn login(&self, refused: Option<u64>) -> Result<Arc<Login>, Error> {
        let logins = &self.inner.logins;
        let failures = logins.failures.load(Ordering::Acquire);
        let mut state = logins.state.lock().await;
        if let Some(login) = &state.login
            && Instant::now() < login.renew_at
            && refused.is_none_or(|refused| login.generation > refused)
        {
            return Ok(Arc::clone(login));
        }
        if logins.failures.load(Ordering::Acquire) != failures
            && let Some(error) = &state.failure
        {
            return Err(error.clone());
        }
        state.login = None;
        match self.log_in(state.generation + 1).await {
            Ok(login) => {
                let login = Arc::new(login);
                state.generation = login.generation;
                state.login = Some(Arc::clone(&login));
                Ok(login)
            }
            Err(error) => {
                state.failure = Some(error.clone());
                logins.failures.fetch_add(1, Ordering::AcqRel);
                Err(error)
            }
        }
    }

    async fn log_in(&self, generation: u64) -> Result<Login, Error> {
        let request = Request::new(Verb::Authenticate, Service::Identity, "token", "auth/tokens".to_owned())
            .body(&self.inner.config.login());
        let response = self
            .repeated(&request.call, || async {
                let response = self.exchange(&request, &self.inner.config.auth_url, None).await?;
                if response.status.is_success() {
                    Ok(response)
                } else {
                    Err(self.refused(&request, &response, None))
                }
            })
            .await?;
        read(&response, generation).map_err(|why| Error::Malformed { call: request.call.clone(), why })
    }
}

fn read(response: &Response, generation: u64) -> Result<Login, String> {
    let mut token =
        response.headers.get("x-subject-token").cloned().ok_or("no token in the answer to a login")?;
    token.set_sensitive(true);
    let body: Body = serde_json::from_slice(&response.body)
        .map_err(|error| format!("not as expected at line {}, column {}", error.line(), error.column()))?;
    let life = life(body.token.issued_at.as_deref(), body.token.expires_at.as_deref());
    let margin = MARGIN.min(life / 4);
    Ok(Login {
        generation,
        token,
        catalog: body.token.catalog,
        project: body.token.project.map(|project| project.id),
        renew_at: Instant::now() + life.saturating_sub(margin),
    })
}

/// From issue to end; an hour, Keystone's default, when the answer does not say.
fn life(issued_at: Option<&str>, expires_at: Option<&str>) -> Duration {
    let time = |text: Option<&str>| text.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let issued = time(issued_at).unwrap_or_else(jiff::Timestamp::now);
    time(expires_at).map_or(Duration::from_secs(3600), |expires| {
        Duration::try_from(expires.duration_since(issued)).unwrap_or(Duration::ZERO)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lives_for_the_span_it_says() {
        let life = |issued, expires| life(Some(issued), Some(expires)).as_secs();
        assert_eq!(life("2015-01-01T00:00:00.000000Z", "2015-01-01T01:00:00.000000Z"), 3600);
        assert_eq!(life("2015-01-01T01:00:00.000000Z", "2015-01-01T00:00:00.000000Z"), 0);
        assert_eq!(super::life(None, None).as_secs(), 3600);
    }
}
