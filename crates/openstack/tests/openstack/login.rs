//! One login serves all callers.

use std::time::Duration;

use futures::future::join_all;
use hangar_openstack::{NetworkCreate, NetworkQuery, RefusalKind, Session, SessionOptions};
use serde_json::json;

use crate::fixture::{Cloud, later};

const FOR_EVER: usize = usize::MAX;

#[tokio::test]
async fn many_who_wait_share_one_login() {
    let cloud = Cloud::start().await;
    cloud.on("GET /network/v2.0/networks", FOR_EVER, 200, &json!({ "networks": [] }));
    let session = cloud.session();
    let network = session.network();
    let query = NetworkQuery::default();
    for result in join_all((0..20).map(|_| network.list(&query))).await {
        assert_eq!(result.unwrap(), []);
    }
    assert_eq!(cloud.logins(), 1);
    assert_eq!(session.project_id().await.unwrap().as_str(), "project-1");
    assert_eq!(cloud.logins(), 1);
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_for_all_who_wait() {
    let cloud = Cloud::start().await;
    let session = Session::new(cloud.config("wrong"), SessionOptions::default()).unwrap();
    let errors = join_all((0..20).map(|_| session.authenticate())).await;
    for error in errors {
        let error = error.unwrap_err();
        assert!(error.is_unauthorized() && error.is_user_fault() && !error.is_retryable(), "{error}");
        assert_eq!(
            error.to_string(),
            "authenticate identity token: The request you have made requires authentication. (401)"
        );
    }
    assert_eq!(cloud.logins(), 1);
}

/// A day of reconciles is a few logins: accounts get locked for more.
#[tokio::test]
async fn a_wrong_password_is_tried_rarely_however_often_it_is_asked_for() {
    let cloud = Cloud::start().await;
    let session = Session::new(cloud.config("wrong"), SessionOptions::default()).unwrap();
    for _ in 0..720 {
        for error in join_all((0..100).map(|_| session.authenticate())).await {
            let error = error.unwrap_err();
            assert!(error.is_unauthorized() && error.is_user_fault() && !error.is_lost(), "{error}");
            assert!(error.retry_after() <= Some(Duration::from_secs(600)) && error.retry_after().is_some());
        }
        later(20).await;
    }
    // After 1, 2, 4, 8 minutes, then every ten.
    assert!((20..=30).contains(&cloud.logins()), "{} logins in four hours", cloud.logins());
}

#[tokio::test]
async fn a_keystone_that_is_away_is_asked_again_soon_and_found_when_it_is_back() {
    let cloud = Cloud::start().await;
    cloud.on("POST /v3/auth/tokens", 3, 503, &json!({}));
    let session = cloud.session();
    for _ in 0..10 {
        let error = session.authenticate().await.unwrap_err();
        assert!(error.is_retryable() && error.retry_after() <= Some(Duration::from_secs(2)), "{error}");
        assert_eq!(error.category(), "CloudUnavailable");
    }
    assert_eq!(cloud.attempts(), 3, "one login, tried three times");
    later(2).await;
    session.authenticate().await.unwrap();
}

#[tokio::test]
async fn a_service_that_refuses_fresh_tokens_causes_no_logins() {
    let cloud = Cloud::start().await;
    cloud.on("GET /network", FOR_EVER, 401, &json!({}));
    let session = cloud.session();
    for _ in 0..50 {
        let error = session.network().list(&NetworkQuery::default()).await.unwrap_err();
        assert!(error.is_unauthorized(), "{error}");
    }
    assert_eq!((cloud.logins(), cloud.lines().len()), (2, 51));
}

#[tokio::test]
async fn a_revoked_token_is_replaced_once_and_no_write_is_done_twice() {
    let cloud = Cloud::start().await;
    let network = json!({ "network": { "id": "n" } });
    cloud.on("POST /network/v2.0/networks", FOR_EVER, 201, &network);
    let session = cloud.session();
    session.authenticate().await.unwrap();
    cloud.revoke();
    let client = session.network();
    let bodies: Vec<_> = (0..10)
        .map(|index| NetworkCreate { name: format!("n{index}"), ..NetworkCreate::default() })
        .collect();
    for result in join_all(bodies.iter().map(|body| client.create(body))).await {
        assert_eq!(result.unwrap().id.as_str(), "n");
    }
    assert_eq!(cloud.logins(), 2);
    let accepted = cloud
        .requests()
        .into_iter()
        .filter(|seen| seen.headers["x-auth-token"] == "token-2-of-this-cloud")
        .count();
    assert_eq!(accepted, 10);
}

#[tokio::test]
async fn a_token_that_no_login_mends_is_an_error() {
    let cloud = Cloud::start().await;
    cloud.on("GET /network", FOR_EVER, 401, &json!({}));
    let error = cloud.session().network().list(&NetworkQuery::default()).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().kind, RefusalKind::Unauthorized);
    assert_eq!((cloud.logins(), cloud.lines().len()), (2, 2));
}

/// The cloud's clock is years behind: only the span between the token's two times counts.
#[tokio::test]
async fn a_token_is_renewed_before_its_end() {
    let cloud = Cloud::start().await;
    cloud.on("GET /network/v2.0/networks", FOR_EVER, 200, &json!({ "networks": [] }));
    cloud.set_token_life(0);
    let session = cloud.session();
    session.authenticate().await.unwrap();
    cloud.set_token_life(3600);
    session.network().list(&NetworkQuery::default()).await.unwrap();
    session.network().list(&NetworkQuery::default()).await.unwrap();
    assert_eq!(cloud.logins(), 2);
    assert_eq!(cloud.lines().len(), 2, "no request was spent on an old token");
}

#[tokio::test]
async fn a_keystone_that_is_away_for_a_moment_is_asked_again() {
    let cloud = Cloud::start().await;
    cloud.on("POST /v3/auth/tokens", 2, 503, &json!({}));
    cloud.session().authenticate().await.unwrap();
    assert_eq!(cloud.logins(), 1);
}

#[tokio::test]
async fn a_missing_service_fails_only_who_needs_it() {
    let cloud = Cloud::start().await;
    cloud.on("GET /network/v2.0/networks", FOR_EVER, 200, &json!({ "networks": [] }));
    let config = cloud.config(crate::fixture::PASSWORD).with_region("elsewhere");
    let session = Session::new(config, SessionOptions::default()).unwrap();
    session.authenticate().await.unwrap();
    let error = session.compute().flavors().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the catalogue has no public endpoint of compute in region \"elsewhere\"; it has public in \"here\""
    );
}
