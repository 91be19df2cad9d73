//! Logs in, once for all callers.
//!
//! Every caller that needs a token takes the one lock; the first logs in, the others find the result. That holds for
//! failures too: a wrong password is tried once, not once per OpenStackMachine (that would lock the account), then
//! again after pauses that grow to ten minutes. In the meantime a caller gets the same error at once, also while the
//! next try is under way: a Keystone that hangs holds up one caller, not all. New credentials are another session.
//!
//! A service that refuses new tokens would cause a login with every call. So a login that followed a refusal is not
//! replaced because of another refusal for a while.
//!
//! The life of a token is counted from its arrival on our own monotonic clock, by the span between the two times in it:
//! the cloud's clock and ours need not agree.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::HeaderValue;
use serde::Deserialize;
use tokio::time::Instant;

use super::{Request, Session, catalog::Catalog, transport::Response};
use crate::{Error, ProjectId, Service, Verb};

/// A token is renewed this long before its end, or after three quarters of its life if that is later.
const MARGIN: Duration = Duration::from_secs(120);

/// The pause after a login that was refused, and the longest; doubles.
const REFUSED: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(600));
/// The pause after a login that failed, and the longest; doubles.
const FAILED: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// How long a login that replaced a refused one is kept whatever is said about it.
const REPLACED: Duration = Duration::from_secs(30);

/// What a login gives.
pub(super) struct Login {
    /// Counts logins of this session: tells a token that was refused from a newer one.
    pub(super) generation: u64,
    pub(super) token: HeaderValue,
    pub(super) catalog: Catalog,
    pub(super) project: Option<ProjectId>,
    renew_at: Instant,
    /// Until when a refusal of its token does not lead to another login.
    kept_until: Option<Instant>,
}

#[derive(Default)]
pub(super) struct Logins {
    /// Held during a login.
    state: tokio::sync::Mutex<State>,
    failure: Mutex<Option<Failure>>,
}

#[derive(Default)]
struct State {
    login: Option<Arc<Login>>,
    generation: u64,
}

/// The last login, if it failed.
struct Failure {
    error: Error,
    tries: u32,
    until: Instant,
}

impl Logins {
    fn failure(&self) -> MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The failure of an earlier login, while it counts; also when its time is over, if another try is under way.
    fn remembered(&self, is_being_tried: bool) -> Option<Error> {
        let (failure, now) = (self.failure(), Instant::now());
        let known = failure.as_ref().filter(|known| is_being_tried || known.until > now)?;
        Some(known.told(now))
    }

    fn failed(&self, error: Error) -> Error {
        let (mut failure, now) = (self.failure(), Instant::now());
        let tries = failure.as_ref().map_or(0, |known| known.tries);
        let (first, longest) = if error.is_user_fault() { REFUSED } else { FAILED };
        let asked = error.retry_after().unwrap_or_default().min(REFUSED.1);
        let pause = first.saturating_mul(1 << tries.min(16)).min(longest).max(asked);
        failure.insert(Failure { error, tries: tries + 1, until: now + pause }).told(now)
    }
}

impl Failure {
    fn told(&self, now: Instant) -> Error {
        let retry_after = self.until.saturating_duration_since(now).max(FAILED.0);
        Error::Paused { cause: Box::new(self.error.clone()), retry_after }
    }
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
        let mut state = match logins.state.try_lock() {
            Ok(state) => state,
            Err(_) => match logins.remembered(true) {
                Some(error) => return Err(error),
                None => logins.state.lock().await,
            },
        };
        let now = Instant::now();
        if let Some(login) = &state.login
            && now < login.renew_at
            && refused.is_none_or(|refused| {
                login.generation > refused || login.kept_until.is_some_and(|until| now < until)
            })
        {
            return Ok(Arc::clone(login));
        }
        if let Some(error) = logins.remembered(false) {
            return Err(error);
        }
        state.login = None;
        let mut login = self.log_in(state.generation + 1).await.map_err(|error| logins.failed(error))?;
        *logins.failure() = None;
        login.kept_until = refused.map(|_| Instant::now() + REPLACED);
        let login = Arc::new(login);
        state.generation = login.generation;
        state.login = Some(Arc::clone(&login));
        Ok(login)
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

/// Keystone's ids have 32 characters, and 64 at most.
const LONGEST_PROJECT: usize = 255;

fn read(response: &Response, generation: u64) -> Result<Login, String> {
    let mut token =
        response.headers.get("x-subject-token").cloned().ok_or("no token in the answer to a login")?;
    token.set_sensitive(true);
    let body: Body = serde_json::from_slice(&response.body)
        .map_err(|error| format!("not as expected at line {}, column {}", error.line(), error.column()))?;
    let project = body.token.project.map(|project| project.id);
    // It is kept, in an annotation.
    if project.as_ref().is_some_and(|id| id.as_str().len() > LONGEST_PROJECT) {
        return Err(format!("the project has an id of more than {LONGEST_PROJECT} characters"));
    }
    let life = life(body.token.issued_at.as_deref(), body.token.expires_at.as_deref());
    let margin = MARGIN.min(life / 4);
    Ok(Login {
        generation,
        token,
        catalog: body.token.catalog,
        project,
        renew_at: Instant::now() + life.saturating_sub(margin),
        kept_until: None,
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

    #[test]
    fn what_is_kept_of_a_login_is_short() {
        let answer = |length: usize| Response {
            status: http::StatusCode::CREATED,
            headers: [(http::HeaderName::from_static("x-subject-token"), "t".parse().unwrap())]
                .into_iter()
                .collect(),
            body: format!(r#"{{"token":{{"project":{{"id":"{}"}}}}}}"#, "p".repeat(length)).into(),
        };
        assert!(read(&answer(LONGEST_PROJECT), 1).is_ok());
        let refused = read(&answer(1 << 20), 1).err().unwrap_or_default();
        assert!(refused.contains("more than 255 characters"), "{refused}");
    }
}
