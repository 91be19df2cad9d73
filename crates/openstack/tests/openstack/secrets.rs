//! No secret appears in errors or logs, even when a service echoes it.

use std::{
    io,
    sync::{Arc, Mutex},
};

use hangar_openstack::{
    CloudConfig, Error, ImageId, NetworkCreate, ServerCreate, Session, SessionOptions, UserData,
};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;

use crate::fixture::{Cloud, PASSWORD};

/// Answers with everything it was given, in each of the ways services do.
fn echo(cloud: &Cloud, starts_with: &str, times: usize) {
    cloud.say(starts_with, times, |seen| {
        let token = seen.headers.get("x-auth-token").map(|token| token.to_str().unwrap().to_owned());
        let words = format!("cannot do {} with {token:?}", seen.body);
        (400, Vec::new(), json!({ "badRequest": { "code": 400, "message": words } }).to_string())
    });
}

fn shown(error: &Error) -> String {
    format!("{error} {error:?} {error:#?}")
}

#[tokio::test]
async fn an_echo_of_user_data_or_token_is_taken_out() {
    let cloud = Cloud::start().await;
    echo(&cloud, "POST /compute", usize::MAX);
    echo(&cloud, "POST /network", usize::MAX);
    let session = cloud.session();
    let mut server = ServerCreate::new("w", "small".into(), ImageId::from("i"));
    let user_data = UserData::new(b"join with abcdef.0123456789abcdef").unwrap();
    server.user_data = Some(user_data);
    let error = session.compute().create_server(&server).await.unwrap_err();
    let sent = cloud.requests()[0].json()["server"]["user_data"].as_str().unwrap().to_owned();
    assert!(shown(&error).contains("[redacted]"), "{error}");
    assert!(!shown(&error).contains(&sent) && !shown(&error).contains("token-1"), "{error}");
    let error = session.network().create(&NetworkCreate::default()).await.unwrap_err();
    assert!(shown(&error).contains("[redacted]") && !shown(&error).contains("token-1"), "{error}");
    assert!(!format!("{session:?} {:#?}", session.network()).contains(PASSWORD));
}

#[test]
fn no_password_that_keystone_echoes_gets_through() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cloud = runtime.block_on(Cloud::start());
    echo(&cloud, "POST /v3/auth/tokens", usize::MAX);
    let mut runner = TestRunner::new(ProptestConfig { cases: 64, ..ProptestConfig::default() });
    // Everything that can be typed, quotes and backslashes too.
    let passwords = "[ -~äß€]{10,40}";
    runner
        .run(&passwords.prop_map(|text| text), |password| {
            let yaml = json!({ "clouds": { "c": { "auth": {
                "auth_url": cloud.url(), "username": "u", "password": password, "project_name": "p",
            } } } });
            let config = CloudConfig::from_yaml(yaml.to_string().as_bytes(), "c").unwrap();
            let session = Session::new(config, SessionOptions::default()).unwrap();
            let error = runtime.block_on(session.authenticate()).unwrap_err();
            prop_assert!(shown(&error).contains("[redacted]"), "the echo was there: {}", error);
            let text = format!("{} {session:?}", shown(&error));
            prop_assert!(!text.contains(&password), "{}", text);
            Ok(())
        })
        .unwrap();
}

/// Everything that anybody logs, down to the last detail.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn nothing_secret_is_logged() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // For all threads: a subscriber of one thread misses what another thread's test made uninteresting.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let cloud = Cloud::start().await;
    echo(&cloud, "POST /compute", 1);
    cloud.on("GET /compute", 1, 503, &json!({}));
    cloud.on("GET /compute", 1, 200, &json!({ "flavors": [] }));
    let compute = cloud.session().compute();
    let mut server = ServerCreate::new("watched", "small".into(), ImageId::from("i"));
    server.user_data = Some(UserData::new(b"join with a token").unwrap());
    compute.create_server(&server).await.unwrap_err();
    compute.about("watched").flavors().await.unwrap();
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(
        text.contains("create compute server w") && text.contains("is repeated"),
        "the log was watched: {text}"
    );
    for secret in [PASSWORD, "token-1-of-this-cloud", "am9pbiB3aXRoIGEgdG9rZW4="] {
        assert!(!text.contains(secret), "{secret}");
    }
}
