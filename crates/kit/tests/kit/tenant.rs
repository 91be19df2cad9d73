//! Tenant clients: a dead tenant is found out once and then costs nobody any time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::any};
use hangar_kit::{
    Error, Failure, ObjectKey, Result,
    backoff::Backoff,
    client::{Connection, Health, KubeconfigSource, TenantOptions, Tenants},
};
use hangar_testbed::Port;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Config};
use tokio::net::TcpListener;

/// Connection data by tenant name, with a revision that tests can raise.
#[derive(Clone, Default)]
struct Book {
    entries: Arc<Mutex<BTreeMap<String, (Config, u32)>>>,
}

impl Book {
    fn write(&self, tenant: &str, config: Config) {
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

fn key(name: &str) -> ObjectKey {
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

#[tokio::test]
async fn a_refusal_is_not_repeated_behind_our_back() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let answer = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { (StatusCode::SERVICE_UNAVAILABLE, "no healthy upstream") }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(any(answer))).await });
    let book = Book::default();
    book.write("behind-a-balancer", Config::new(url.parse().unwrap()));
    let mut patient = options();
    patient.call_limit = Duration::from_mins(2);
    let tenants = Tenants::new(book, patient);
    assert!(read(&tenants, "behind-a-balancer").await.is_err());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert!(matches!(tenants.health(&key("behind-a-balancer")), Health::Failing { failures: 1, .. }));
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
