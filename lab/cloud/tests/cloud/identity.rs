//! Keystone: versions, logging in, the catalogue, tokens that expire.

use serde_json::json;

use crate::client::{log_in, password, send, start};

#[tokio::test]
async fn versions_are_told_without_a_token() {
    let bed = start().await;
    let answer = send(&bed.cloud, "GET", "/identity", &[], None).await.unwrap();
    let values = answer.expect(300)["versions"]["values"].take();
    assert_eq!(values[0]["id"], "v3.14");
    let link = values[0]["links"][0]["href"].as_str().unwrap();
    assert_eq!(link, format!("{}/identity/v3/", bed.cloud.url()));
    let answer = send(&bed.cloud, "GET", "/identity/v3/", &[], None).await.unwrap();
    assert_eq!(answer.expect(200)["version"]["status"], "stable");
}

#[tokio::test]
async fn a_token_tells_project_roles_and_catalogue() {
    let bed = start().await;
    let headers = [("X-Auth-Token", bed.token.as_str()), ("X-Subject-Token", bed.token.as_str())];
    let answer = send(&bed.cloud, "GET", "/identity/v3/auth/tokens", &headers, None).await.unwrap();
    assert_eq!(answer.header("x-subject-token"), bed.token);
    assert!(answer.header("x-openstack-request-id").starts_with("req-"));
    let token = answer.expect(200)["token"].take();
    assert_eq!(token["project"]["name"], "demo");
    assert_eq!(token["methods"], json!(["password"]));
    let catalogue = token["catalog"].as_array().unwrap();
    let url = |kind: &str| {
        let service = catalogue.iter().find(|service| service["type"] == kind).unwrap();
        let public = service["endpoints"].as_array().unwrap().iter().find(|it| it["interface"] == "public");
        let public = public.unwrap();
        assert_eq!(public["region"], public["region_id"]);
        public["url"].as_str().unwrap().to_owned()
    };
    assert_eq!(url("compute"), format!("{}/compute/v2.1", bed.cloud.url()));
    assert_eq!(url("network"), format!("{}/network", bed.cloud.url()));
    assert!(catalogue.iter().all(|service| service["type"] != "volumev3"), "what is not there is not listed");
}

#[tokio::test]
async fn application_credentials_by_id_and_by_name() {
    let bed = start().await;
    let domain = json!({"name": "Default"});
    let credential = bed.cloud.model().application_credentials.into_values().next().unwrap();
    let forms = [
        json!({"id": credential.id, "secret": "robot-secret"}),
        json!({"name": "robot", "secret": "robot-secret", "user": {"name": "demo", "domain": domain}}),
    ];
    for form in forms {
        let identity = json!({"methods": ["application_credential"], "application_credential": form});
        let body = json!({"auth": {"identity": identity}});
        let answer = send(&bed.cloud, "POST", "/identity/v3/auth/tokens", &[], Some(&body)).await.unwrap();
        assert_eq!(answer.expect(201)["token"]["project"]["name"], "demo");
        let mut scoped = body.clone();
        scoped["auth"]["scope"] = json!({"project": {"name": "demo", "domain": domain}});
        let answer = send(&bed.cloud, "POST", "/identity/v3/auth/tokens", &[], Some(&scoped)).await.unwrap();
        answer.expect(401);
    }
}

#[tokio::test]
async fn what_is_wrong_is_not_told() {
    let bed = start().await;
    let mut wrong_password = password("demo");
    wrong_password["auth"]["identity"]["password"]["user"]["password"] = json!("wrong");
    let mut foreign_project = password("demo");
    foreign_project["auth"]["scope"]["project"]["name"] = json!("other");
    for body in [wrong_password, foreign_project] {
        let answer = send(&bed.cloud, "POST", "/identity/v3/auth/tokens", &[], Some(&body)).await.unwrap();
        assert!(answer.header("www-authenticate").starts_with("Keystone uri="));
        let error = answer.expect(401)["error"].take();
        assert_eq!(error["title"], "Unauthorized");
        assert_eq!(error["message"], "The request you have made requires authentication.");
    }
    // What makes no sense at all is told.
    let mut no_domain = password("demo");
    no_domain["auth"]["identity"]["password"]["user"]["domain"] = json!(null);
    let magic = json!({"auth": {"identity": {"methods": ["magic"]}}});
    for (body, words) in [(no_domain, "find domain in user."), (magic, "find magic in identity.")] {
        let answer = send(&bed.cloud, "POST", "/identity/v3/auth/tokens", &[], Some(&body)).await.unwrap();
        assert!(answer.text.contains(words), "{}", answer.text);
        answer.expect(400);
    }
}

#[tokio::test]
async fn a_token_ends_and_a_new_one_is_had() {
    let bed = start().await;
    bed.get("/network/v2.0/networks").await;
    bed.admin("POST", "clock", Some(json!({"advance_seconds": 3601}))).await.expect(204);
    for path in
        ["/network/v2.0/networks", "/compute/v2.1/servers", "/image/v2/images", "/identity/v3/auth/catalog"]
    {
        let error = bed.call("GET", path, None).await.expect(401);
        assert_eq!(error["error"]["code"], 401, "{path}");
    }
    let token = log_in(&bed.cloud, "demo").await;
    bed.call_as(&token, "GET", "/network/v2.0/networks", None).await.expect(200);
}

#[tokio::test]
async fn a_token_from_a_token_lives_no_longer() {
    let bed = start().await;
    bed.admin("POST", "clock", Some(json!({"advance_seconds": 3000}))).await.expect(204);
    let body = json!({"auth": {"identity": {"methods": ["token"], "token": {"id": bed.token}}}});
    let answer = send(&bed.cloud, "POST", "/identity/v3/auth/tokens", &[], Some(&body)).await.unwrap();
    let second = answer.header("x-subject-token").to_owned();
    answer.expect(201);
    bed.admin("POST", "clock", Some(json!({"advance_seconds": 700}))).await.expect(204);
    bed.call_as(&second, "GET", "/compute/v2.1/servers", None).await.expect(401);
}

#[tokio::test]
async fn a_revoked_token_is_no_token() {
    let bed = start().await;
    let headers = [("X-Auth-Token", bed.token.as_str()), ("X-Subject-Token", bed.token.as_str())];
    send(&bed.cloud, "DELETE", "/identity/v3/auth/tokens", &headers, None).await.unwrap().expect(204);
    bed.call("GET", "/compute/v2.1/servers", None).await.expect(401);
}

#[tokio::test]
async fn a_connection_too_many_waits_until_another_ends() {
    let bed = start().await;
    let address = bed.cloud.url().trim_start_matches("http://").to_owned();
    let mut open = Vec::new();
    for _ in 0..256 {
        open.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    let ask = async || {
        let limit = std::time::Duration::from_secs(1);
        tokio::time::timeout(limit, send(&bed.cloud, "GET", "/identity", &[], None)).await
    };
    assert!(ask().await.is_err(), "there is no place left");
    open.clear();
    let mut answers = 0;
    while answers == 0 {
        answers += usize::from(ask().await.is_ok());
    }
}

#[tokio::test]
async fn a_stranger_writes_nothing() {
    let bed = start().await;
    for path in ["/compute/v2.1/servers", "/network/v2.0/networks", "/compute", "/network/v2.0/ports/x"] {
        let answer = send(&bed.cloud, "POST", path, &[], Some(&json!({}))).await.unwrap();
        answer.expect(401);
    }
}
