//! Glance: filters, and errors that are HTML pages.

use serde_json::json;

use crate::client::{send, start};

#[tokio::test]
async fn images_are_found_by_name_and_tag() {
    let bed = start().await;
    let all = bed.get("/image/v2/images").await;
    let image = &all["images"][0];
    assert_eq!(image["kubernetes_version"], "v1.34.10", "properties are attributes");
    assert_eq!(image["status"], "active");
    for (query, count) in [
        ("name=node-v1.34.10", 1),
        ("name=node", 0),
        ("tag=node", 1),
        ("tag=node&tag=other", 0),
        ("name=in:a,node-v1.34.10", 1),
        ("visibility=public&status=active", 1),
        ("kubernetes_version=v1.34.10", 1),
    ] {
        let found = bed.get(&format!("/image/v2/images?{query}")).await;
        assert_eq!(found["images"].as_array().unwrap().len(), count, "{query}");
    }
    let page = bed.get("/image/v2/images?limit=1").await;
    let next = page["next"].as_str().unwrap();
    assert_eq!(bed.get(&format!("/image{next}")).await["images"], json!([]));
}

#[tokio::test]
async fn refusals_are_pages_or_json() {
    let bed = start().await;
    let path = "/image/v2/images/0b6a3dd1-9fe4-4bd7-9df2-7b8ff9b8d0d0";
    let answer = bed.call("GET", path, None).await;
    assert_eq!(answer.status, 404);
    assert!(answer.header("content-type").starts_with("text/html"));
    assert!(answer.text.contains("<h1>404 Not Found</h1>"));
    let headers = [("X-Auth-Token", bed.token.as_str()), ("Accept", "application/json")];
    let answer = send(&bed.cloud, "GET", path, &headers, None).await.unwrap();
    assert_eq!(answer.expect(404)["code"], "404 Not Found");
    bed.call("POST", "/image/v2/images", Some(json!({"name": "mine"}))).await.expect(403);
}

#[tokio::test]
async fn versions_are_several_choices() {
    let bed = start().await;
    let answer = send(&bed.cloud, "GET", "/image/", &[], None).await.unwrap();
    assert_eq!(answer.expect(300)["versions"][0]["status"], "CURRENT");
}
