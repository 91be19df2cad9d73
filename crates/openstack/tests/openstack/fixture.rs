//! A small cloud for tests: Keystone with real tokens, and one handler for everything else.
//!
//! A test writes a script of answers: the first line that fits a request answers it and is used up, unless it is
//! permanent. Requests are recorded, so that a test can check what was sent.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse as _, Response},
};
use hangar_openstack::{CloudConfig, Session, SessionOptions};
use serde_json::{Value, json};

pub(crate) const PASSWORD: &str = "correct horse battery";

/// Moves the clock of the runtime ahead; it goes on by itself, because sockets take real time.
pub(crate) async fn later(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

type Say = Arc<dyn Fn(&Seen) -> (u16, Vec<(&'static str, String)>, String) + Send + Sync>;

struct Line {
    starts_with: String,
    times: usize,
    say: Say,
}

#[derive(Default)]
struct Script {
    address: Option<SocketAddr>,
    seen: Vec<Seen>,
    lines: Vec<Line>,
    tokens: Vec<String>,
    logins: usize,
    token_life_seconds: i64,
    network_url: Option<String>,
}

/// The cloud. Ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Cloud {
    script: Arc<Mutex<Script>>,
}

impl Cloud {
    pub(crate) async fn start() -> Self {
        let script = Script { token_life_seconds: 3600, ..Script::default() };
        let cloud = Self { script: Arc::new(Mutex::new(script)) };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        cloud.script().address = Some(listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(cloud.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        cloud
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.script().address.unwrap())
    }

    /// Answers requests whose line (`GET /network/v2.0/ports?name=a`) begins like this.
    pub(crate) fn on(&self, starts_with: &str, times: usize, status: u16, body: &Value) {
        let body = body.to_string();
        self.say(starts_with, times, move |_| (status, Vec::new(), body.clone()));
    }

    pub(crate) fn say(
        &self,
        starts_with: &str,
        times: usize,
        say: impl Fn(&Seen) -> (u16, Vec<(&'static str, String)>, String) + Send + Sync + 'static,
    ) {
        let line = Line { starts_with: starts_with.to_owned(), times, say: Arc::new(say) };
        self.script().lines.push(line);
    }

    /// The lines of the requests so far, logins left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests().into_iter().map(|seen| seen.line).collect()
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        let is_login = |seen: &Seen| seen.line.contains("/auth/tokens");
        self.script().seen.iter().filter(|seen| !is_login(seen)).cloned().collect()
    }

    /// Requests to log in, whatever became of them.
    pub(crate) fn attempts(&self) -> usize {
        self.script().seen.iter().filter(|seen| seen.line.contains("/auth/tokens")).count()
    }

    pub(crate) fn logins(&self) -> usize {
        self.script().logins
    }

    /// Makes every token worthless.
    pub(crate) fn revoke(&self) {
        self.script().tokens.clear();
    }

    pub(crate) fn set_token_life(&self, seconds: i64) {
        self.script().token_life_seconds = seconds;
    }

    /// Neutron is somewhere else.
    pub(crate) fn set_network_url(&self, url: String) {
        self.script().network_url = Some(url);
    }

    pub(crate) fn config(&self, password: &str) -> CloudConfig {
        let yaml = json!({ "clouds": { "test": {
            "auth": { "auth_url": self.url(), "username": "u", "password": password, "project_name": "p" },
            "region_name": "here",
        } } });
        CloudConfig::from_yaml(yaml.to_string().as_bytes(), "test").unwrap()
    }

    pub(crate) fn session(&self) -> Session {
        self.session_with(SessionOptions::default())
    }

    pub(crate) fn session_with(&self, options: SessionOptions) -> Session {
        Session::new(self.config(PASSWORD), options).unwrap()
    }

    fn log_in(&self, seen: &Seen) -> Response {
        let mut script = self.script();
        script.logins += 1;
        if seen.json()["auth"]["identity"]["password"]["user"]["password"] != PASSWORD {
            let error = json!({ "error": {
                "code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication.",
            } });
            return (StatusCode::UNAUTHORIZED, error.to_string()).into_response();
        }
        let token = format!("token-{}-of-this-cloud", script.logins);
        script.tokens.push(token.clone());
        let url = format!("http://{}", script.address.unwrap());
        let issued: jiff::Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
        let expires = issued + jiff::SignedDuration::from_secs(script.token_life_seconds);
        let endpoint = |url: String| json!([{ "interface": "public", "region": "here", "region_id": "here", "url": url }]);
        let network = script.network_url.clone().unwrap_or_else(|| format!("{url}/network"));
        let body = json!({ "token": {
            "issued_at": issued.to_string(), "expires_at": expires.to_string(),
            "project": { "id": "project-1", "name": "p" },
            "catalog": [
                { "type": "compute", "endpoints": endpoint(format!("{url}/compute/v2.1")) },
                { "type": "network", "endpoints": endpoint(network) },
                { "type": "image", "endpoints": endpoint(format!("{url}/image")) },
            ],
        } });
        (StatusCode::CREATED, [("x-subject-token", token)], body.to_string()).into_response()
    }
}

async fn answer(
    State(cloud): State<Cloud>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let line = format!("{method} {uri}");
    let seen = Seen { line, headers, body: String::from_utf8_lossy(&body).into_owned() };
    cloud.script().seen.push(seen.clone());
    let scripted = {
        let mut script = cloud.script();
        let found =
            script.lines.iter_mut().find(|line| line.times > 0 && seen.line.starts_with(&line.starts_with));
        found.map(|line| {
            line.times -= 1;
            Arc::clone(&line.say)
        })
    };
    if seen.line == "POST /v3/auth/tokens" && scripted.is_none() {
        return cloud.log_in(&seen);
    }
    let token = seen.headers.get("x-auth-token").and_then(|token| token.to_str().ok()).unwrap_or_default();
    let is_known = cloud.script().tokens.iter().any(|known| known == token);
    if !is_known && seen.line != "POST /v3/auth/tokens" {
        return (StatusCode::UNAUTHORIZED, "Authentication required").into_response();
    }
    let Some(say) = scripted else {
        return (StatusCode::NOT_IMPLEMENTED, format!("nobody told me what to say to {}", seen.line))
            .into_response();
    };
    let (status, headers, body) = say(&seen);
    let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
    for (name, value) in headers {
        response.headers_mut().insert(name, value.parse().unwrap());
    }
    response
}
