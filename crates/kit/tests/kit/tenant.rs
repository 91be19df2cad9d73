//! Tenant clients: a dead tenant is detected once, and then costs no caller any time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Json, Router,
    body::Body,
    http::{
        StatusCode,
        header::{DATE, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
    routing::any,
};
use futures::{StreamExt as _, TryStreamExt as _};
use hangar_kit::{
    Error, Failure, ObjectKey, Result,
    backoff::Backoff,
    call::{ServerClock, Stopped},
    client::{Bounds, Connection, Health, KubeconfigSource, TenantOptions, Tenants, list_bounded},
};
use hangar_testbed::Port;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Config,
    api::{ListParams, Patch, PatchParams, WatchParams},
};
use serde_json::json;
use tokio::net::TcpListener;

/// Connection data by tenant name, with a revision that tests can raise.
#[derive(Clone, Default)]
pub(crate) struct Book {
    entries: Arc<Mutex<BTreeMap<String, (Config, u32)>>>,
}

impl Book {
    pub(crate) fn write(&self, tenant: &str, config: Config) {
        let mut entries = self.entries.lock().unwrap();
        let revision = entries.get(tenant).map_or(1, |(_, revision)| revision + 1);
        entries.insert(tenant.to_owned(), (config, revision));
    }
}

impl KubeconfigSource for Book {
    fn revision(&self, tenant: &ObjectKey) -> Option<String> {
        self.entries.lock().unwrap().get(&tenant.name).map(|(_, revision)| revision.to_string())
    }

    async fn connection(&self, tenant: &ObjectKey) -> Result<Connection> {
        let (config, revision) = self.entries.lock().unwrap()[&tenant.name].clone();
        Ok(Connection { config, revision: revision.to_string() })
    }
}

fn options() -> TenantOptions {
    TenantOptions {
        call_limit: Duration::from_millis(300),
        // Far away, so that no test depends on how long it takes.
        backoff: Backoff {
            first: Duration::from_hours(1),
            limit: Duration::from_hours(1),
            ..Backoff::default()
        },
        ..TenantOptions::default()
    }
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("tenants", name)
}

async fn read(tenants: &Tenants<Book>, name: &str) -> Result<(), String> {
    let client = tenants.client(&key(name)).await.map_err(|error| error.category().to_owned())?;
    match Api::<Namespace>::all(client).get("default").await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn a_silent_tenant_is_given_up_and_others_go_on() {
    let book = Book::default();
    // Accepts and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    book.write("silent", Config::new(url.parse().unwrap()));
    book.write("healthy", hangar_testbed::shared().config());
    let mut generous = options();
    generous.call_limit = Duration::from_mins(2);
    let (tenants, healthy) = (Tenants::new(book.clone(), options()), Tenants::new(book.clone(), generous));

    assert_eq!(read(&tenants, "unknown").await, Err("TenantUnavailable".to_owned()));
    for _ in 0..3 {
        let error = read(&tenants, "silent").await.unwrap_err();
        assert!(error.contains("get namespaces default: no answer within 300ms"), "{error}");
    }
    let given_up = tenants.client(&key("silent")).await;
    let Err(error @ Error::TenantUnavailable { .. }) = given_up else { panic!("still tried") };
    assert!(error.is_retryable() && error.retry_after().unwrap() > Duration::from_secs(2000));
    assert!(matches!(tenants.health(&key("silent")), Health::Failing { failures: 3, retry_at: Some(_), .. }));

    assert_eq!(read(&healthy, "healthy").await, Ok(()));
    assert_eq!(healthy.health(&key("healthy")), Health::Answering);

    // New connection data is a new chance.
    book.write("silent", hangar_testbed::shared().config());
    assert!(tenants.client(&key("silent")).await.is_ok());
    assert_eq!(tenants.health(&key("silent")), Health::Unknown);
}

/// A tenant behind a server that answers everything with this, and how often it was asked.
async fn tenant_that_answers(
    answer: impl Fn() -> Response + Clone + Send + Sync + 'static,
    options: TenantOptions,
) -> (Tenants<Book>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let handler = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let answer = answer();
        async move { answer }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(handler))).await });
    let book = Book::default();
    book.write("a", Config::new(url.parse().unwrap()));
    // No test here is about time.
    (Tenants::new(book, TenantOptions { call_limit: Duration::from_mins(2), ..options }), calls)
}

#[tokio::test]
async fn a_refusal_is_not_repeated_behind_our_back() {
    let answer = || (StatusCode::SERVICE_UNAVAILABLE, "no healthy upstream").into_response();
    let (tenants, calls) = tenant_that_answers(answer, options()).await;
    assert!(read(&tenants, "a").await.is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert!(matches!(tenants.health(&key("a")), Health::Failing { failures: 1, .. }));
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_cut_off_and_counts_as_a_failure() {
    let endless = || {
        let chunks = futures::stream::repeat(vec![b'x'; 1 << 16]).map(Ok::<_, std::io::Error>);
        Body::from_stream(chunks).into_response()
    };
    let small = TenantOptions { answer_limit: 1 << 20, ..options() };
    let (tenants, _) = tenant_that_answers(endless, small).await;
    let error = read(&tenants, "a").await.unwrap_err();
    assert!(error.ends_with("get namespaces default: the answer is larger than 1 MiB"), "{error}");
    assert!(matches!(tenants.health(&key("a")), Health::Failing { failures: 1, .. }));
    // A watch has no end, but a line of it has.
    let api: Api<Namespace> = Api::all(tenants.client(&key("a")).await.unwrap());
    let watched = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let error = format!("{:?}", watched.try_collect::<Vec<_>>().await.unwrap_err());
    assert!(error.contains("TooLarge") && error.contains("1048576"), "{error}");
}

#[tokio::test]
async fn a_refusal_of_any_length_is_no_message() {
    let endless = || {
        let chunks = futures::stream::repeat(vec![b'x'; 1 << 16]).map(Ok::<_, std::io::Error>);
        (StatusCode::FORBIDDEN, Body::from_stream(chunks)).into_response()
    };
    let (tenants, _) = tenant_that_answers(endless, options()).await;
    let error = read(&tenants, "a").await.unwrap_err();
    assert!(error.ends_with("get namespaces default: the answer is larger than 1 MiB"), "{error}");
}

#[tokio::test]
async fn a_clock_that_disagrees_with_the_servers_is_noticed_with_each_answer() {
    let dates =
        [("Wed, 01 Jan 2020 00:00:00 GMT", true), ("", false), ("Mon, 01 Jan 2120 00:00:00 GMT", true)];
    for (date, is_wrong) in dates {
        let answer = move || {
            let answer = Json(json!({"metadata": {"name": "default"}})).into_response();
            // Without one the server writes the time by itself.
            if date.is_empty() { answer } else { ([(DATE, date)], answer).into_response() }
        };
        let clock = ServerClock::default();
        let options = TenantOptions { gates: vec![Arc::new(clock.clone())], ..options() };
        let (tenants, _) = tenant_that_answers(answer, options).await;
        assert_eq!(clock.at(Timestamp::now()).disagreement(), None, "nobody has said anything yet");
        read(&tenants, "a").await.unwrap();
        assert_eq!(clock.at(Timestamp::now()).disagreement().is_some(), is_wrong, "{date}");
    }
}

#[tokio::test]
async fn lists_end_though_the_server_always_has_more() {
    let more = || {
        let item = json!({"metadata": {"name": "again"}});
        let metadata = json!({"continue": "more", "resourceVersion": "1"});
        Json(json!({"kind": "NamespaceList", "apiVersion": "v1", "metadata": metadata, "items": [item]}))
            .into_response()
    };
    let (tenants, calls) = tenant_that_answers(more, options()).await;
    let api: Api<Namespace> = Api::all(tenants.client(&key("a")).await.unwrap());
    for (bounds, why) in [
        (Bounds { pages: 4, items: 100 }, "the list has more than 4 pages"),
        (Bounds { pages: 100, items: 3 }, "the list has more than 3 objects"),
    ] {
        calls.store(0, Ordering::SeqCst);
        let error = list_bounded(&api, &ListParams::default(), bounds).await.unwrap_err();
        assert!(error.to_string().ends_with(why), "{error}");
        assert_eq!(calls.load(Ordering::SeqCst), 4);
    }
}

#[tokio::test]
async fn a_tenant_that_asks_for_rest_gets_it_and_nothing_is_sent_meanwhile() {
    let busy = || (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "90")], "busy").into_response();
    let (tenants, calls) = tenant_that_answers(busy, options()).await;
    let held = tenants.client(&key("a")).await.unwrap();
    assert!(read(&tenants, "a").await.is_err());
    let Err(error) = tenants.client(&key("a")).await else { panic!("still tried") };
    let wait = error.retry_after().unwrap();
    assert!(wait > Duration::from_mins(1) && wait <= Duration::from_secs(90), "{wait:?}");
    // A client from before is held back too, and knows that nothing was sent.
    let api: Api<Namespace> = Api::all(held);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let error = api.patch("default", &PatchParams::default(), &patch).await.unwrap_err();
    assert!(Stopped::of(&error).is_some_and(|stopped| !stopped.was_sent), "{error}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_address_that_refuses_is_lost_at_once() {
    // Nobody listens on it, and nobody else can.
    let closed = Port::reserve().unwrap();
    let url = format!("http://127.0.0.1:{}", closed.number());
    let book = Book::default();
    book.write("gone", Config::new(url.parse().unwrap()));
    let tenants = Tenants::new(book, options());
    for _ in 0..3 {
        assert!(read(&tenants, "gone").await.is_err());
    }
    assert_eq!(read(&tenants, "gone").await, Err("TenantUnavailable".to_owned()));
}

#[tokio::test]
async fn late_failures_of_an_old_client_do_not_count_against_the_new_one() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let book = Book::default();
    book.write("moved", Config::new(url.parse().unwrap()));
    let mut slower = options();
    slower.call_limit = Duration::from_secs(2);
    let tenants = Tenants::new(book.clone(), slower);
    let old = tenants.client(&key("moved")).await.unwrap();
    let late: Vec<_> = (0..3)
        .map(|_| {
            let api = Api::<Namespace>::all(old.clone());
            tokio::spawn(async move { api.get("default").await.map(drop) })
        })
        .collect();
    // All three are under way: the server has seen them come.
    for _ in 0..3 {
        std::mem::forget(silent.accept().await.unwrap());
    }
    book.write("moved", hangar_testbed::shared().config());
    assert!(tenants.client(&key("moved")).await.is_ok());
    for call in late {
        assert!(call.await.unwrap().is_err());
    }
    assert_eq!(tenants.health(&key("moved")), Health::Unknown);
    assert!(tenants.client(&key("moved")).await.is_ok());
}
