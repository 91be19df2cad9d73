//! Lists in pages, followed by their links.

use serde_json::{Value, json};

use crate::client::{Bed, id, start};

/// Follows the links of a list and returns the ids, page by page.
async fn follow(bed: &Bed, path: &str, key: &str) -> Vec<Vec<String>> {
    let (mut pages, mut next) = (vec![], path.to_owned());
    loop {
        let page = bed.get(&next).await;
        pages.push(page[key].as_array().unwrap().iter().map(id).collect());
        let links = page[format!("{key}_links")].as_array().cloned().unwrap_or_default();
        let Some(link) = links.iter().find(|link| link["rel"] == "next") else { return pages };
        let href = link["href"].as_str().unwrap();
        next = href.strip_prefix(bed.cloud.url()).unwrap().to_owned();
    }
}

#[tokio::test]
async fn every_network_is_in_exactly_one_page() {
    let bed = start().await;
    for _ in 0..5 {
        bed.make("networks", "network", json!({"name": "n"})).await;
    }
    let pages = follow(&bed, "/network/v2.0/networks?limit=2&name=n", "networks").await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    let mut all: Vec<String> = pages.concat();
    all.dedup();
    assert_eq!(all.len(), 5);
    let names = bed.get("/network/v2.0/networks?fields=id&limit=1").await;
    assert_eq!(names["networks"][0].as_object().unwrap().len(), 1);
    let sorted = bed.get("/network/v2.0/networks?sort_key=name&sort_dir=desc").await["networks"].take();
    assert_eq!(sorted[0]["name"], "public");
    bed.call("GET", "/network/v2.0/networks?marker=none", None).await.expect(404);
    bed.call("GET", "/compute/v2.1/servers?marker=none", None).await.expect(400);
}

#[tokio::test]
async fn servers_come_newest_first() {
    let bed = start().await;
    let mut servers = vec![];
    for name in ["a", "b", "c"] {
        servers.insert(0, bed.server(name, json!({"networks": "none"})).await);
    }
    let pages = follow(&bed, "/compute/v2.1/servers/detail?limit=2", "servers").await;
    assert_eq!(pages.concat(), servers);
    assert_eq!(bed.get("/compute/v2.1/servers").await["servers_links"], Value::Null);
}
