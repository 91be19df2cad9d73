//! Tests of pages, repetition and absence.

use std::time::Duration;

use hangar_openstack::{
    Error, Filter, ImageQuery, NetworkCreate, NetworkId, NetworkQuery, PortQuery, RefusalKind, ServerQuery,
};
use serde_json::{Value, json};

use crate::fixture::{Cloud, later};

fn server(name: &str, owner: &str) -> Value {
    json!({ "id": name, "name": name, "status": "ACTIVE", "metadata": { "owner": owner } })
}

#[tokio::test]
async fn neutron_pages_are_followed_whatever_host_their_links_name() {
    let cloud = Cloud::start().await;
    let page = |ids: &[&str], next: Option<&str>| {
        let networks: Vec<_> = ids.iter().map(|id| json!({ "id": id, "name": null, "description": if *id == "d" { "foreign" } else { "owned by 1" } })).collect();
        let links: Vec<_> = next
            .map(|marker| json!({ "rel": "next", "href": format!("http://internal:9696/v2.0/networks?limit=2&marker={marker}") }))
            .into_iter()
            .collect();
        json!({ "networks": networks, "networks_links": links })
    };
    cloud.on("GET /network/v2.0/networks?limit=2&marker=b", 1, 200, &page(&["c", "d"], Some("d")));
    cloud.on("GET /network/v2.0/networks?limit=2&marker=d", 1, 200, &page(&["e"], None));
    cloud.on("GET /network/v2.0/networks", 1, 200, &page(&["a", "b"], Some("b")));
    let query = NetworkQuery {
        filter: Filter {
            tags: vec!["x".to_owned(), "y".to_owned()],
            not_tags_any: vec!["z".to_owned()],
            ..Filter::described("owned by 1")
        },
        is_external: Some(true),
    };
    let networks = cloud.session().network().list(&query).await.unwrap();
    assert_eq!(
        networks.iter().map(|network| network.id.as_str()).collect::<String>(),
        "abce",
        "the foreign one slipped through a filter"
    );
    assert_eq!(
        cloud.lines()[0],
        "GET /network/v2.0/networks?description=owned%20by%201&tags=x%2Cy&not-tags-any=z&router%3Aexternal=true"
    );
}

#[tokio::test]
async fn servers_are_paged_and_filtered_by_what_is_written_on_them() {
    let cloud = Cloud::start().await;
    let next = json!([{ "rel": "next", "href": "http://nova/v2.1/servers/detail?marker=w-1" }]);
    cloud.on(
        "GET /compute/v2.1/servers/detail?marker=w-1",
        1,
        200,
        &json!({ "servers": [server("w-2", "me")] }),
    );
    cloud.on(
        "GET /compute/v2.1/servers/detail",
        1,
        200,
        &json!({ "servers": [server("w-0", "me"), server("w-1", "you")], "servers_links": next }),
    );
    let query =
        ServerQuery { metadata: [("owner".to_owned(), "me".to_owned())].into(), ..ServerQuery::default() };
    let servers = cloud.session().compute().servers(&query).await.unwrap();
    assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["w-0", "w-2"]);
    let first = &cloud.requests()[0];
    assert_eq!(first.headers["x-openstack-nova-api-version"], "2.53");
    assert_eq!(first.headers["openstack-api-version"], "compute 2.53");
}

#[tokio::test]
async fn images_are_paged_by_next() {
    let cloud = Cloud::start().await;
    let image = |id: &str| json!({ "id": id, "name": "Debian", "status": "active", "os_distro": "debian", "size": null });
    cloud.on("GET /image/v2/images?marker=a", 1, 200, &json!({ "images": [image("b")] }));
    cloud.on(
        "GET /image/v2/images?name=Debian&tag=x&tag=y",
        1,
        200,
        &json!({ "images": [image("a")], "next": "/v2/images?marker=a", "first": "/v2/images" }),
    );
    let query = ImageQuery {
        name: Some("Debian".to_owned()),
        tags: vec!["x".to_owned(), "y".to_owned()],
        ..ImageQuery::default()
    };
    let images = cloud.session().image().images(&query).await.unwrap();
    assert_eq!(images.iter().map(|image| image.id.as_str()).collect::<String>(), "ab");
}

#[tokio::test]
async fn pages_that_go_in_a_circle_end() {
    let cloud = Cloud::start().await;
    let links = json!([{ "rel": "next", "href": "http://x/v2.0/ports?marker=a" }]);
    cloud.on(
        "GET /network",
        usize::MAX,
        200,
        &json!({ "ports": [{ "id": "a", "network_id": "n" }], "ports_links": links }),
    );
    let error = cloud.session().network().list(&PortQuery::default()).await.unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
    assert_eq!(cloud.lines().len(), 2);
}

/// What a proxy or a wrong address may say with a 200.
#[tokio::test]
async fn a_body_that_is_no_list_is_an_error() {
    for body in [json!([]), json!("ok"), json!(null), json!({ "networks": null }), json!({ "ports": {} })] {
        let cloud = Cloud::start().await;
        cloud.on("GET /network", 1, 200, &body);
        let error = cloud.session().network().list(&PortQuery::default()).await.unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{body}: {error}");
    }
}

/// A list with one page missing would make the rest look absent.
#[tokio::test]
async fn a_list_is_whole_or_an_error() {
    let cloud = Cloud::start().await;
    let links = json!([{ "rel": "next", "href": "http://x/v2.0/ports?marker=a" }]);
    cloud.on("GET /network/v2.0/ports?marker=a", usize::MAX, 500, &json!({}));
    cloud.on(
        "GET /network",
        1,
        200,
        &json!({ "ports": [{ "id": "a", "network_id": "n" }], "ports_links": links }),
    );
    cloud.session().network().list(&PortQuery::default()).await.unwrap_err();
}

#[tokio::test]
async fn a_read_is_repeated_when_asked_to_come_back_soon() {
    let cloud = Cloud::start().await;
    cloud.say("GET /network", 2, |_| (429, vec![("retry-after", "0".to_owned())], String::new()));
    cloud.on("GET /network", 1, 200, &json!({ "networks": [] }));
    cloud.session().network().list(&NetworkQuery::default()).await.unwrap();
    assert_eq!(cloud.lines().len(), 3);
}

#[tokio::test]
async fn a_long_wait_is_told_and_not_waited() {
    let cloud = Cloud::start().await;
    cloud.say("GET /network", usize::MAX, |_| (503, vec![("retry-after", "30".to_owned())], String::new()));
    let error = cloud.session().network().list(&NetworkQuery::default()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert!(error.is_retryable() && !error.is_user_fault());
    assert_eq!(cloud.lines().len(), 1);
}

/// 429 and 503 of any call, read or write, are for everybody with these credentials.
#[tokio::test]
async fn a_cloud_that_asks_to_be_left_alone_is_left_alone() {
    for (status, category) in [(429, "RateLimited"), (503, "CloudUnavailable"), (413, "RateLimited")] {
        let cloud = Cloud::start().await;
        cloud.say("DELETE /network", 1, move |_| {
            let headers =
                vec![("retry-after", "30".to_owned()), ("x-openstack-request-id", "req-7".to_owned())];
            (status, headers, "req-7 is one too many".to_owned())
        });
        cloud.on("GET /compute", usize::MAX, 200, &json!({ "flavors": [] }));
        let session = cloud.session();
        let error = session.network().delete(&NetworkId::from("n")).await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
        assert_eq!(error.to_string(), format!("delete network network (n): … is one too many ({status})"));
        assert_eq!((error.request_id(), error.is_lost()), (Some("req-7"), false));
        for _ in 0..20 {
            let error = session.compute().flavors().await.unwrap_err();
            assert!(matches!(error, Error::Paused { .. }), "{error}");
            assert_eq!((error.category(), error.is_retryable(), error.is_lost()), (category, true, false));
            assert!(error.retry_after().unwrap() <= Duration::from_secs(30));
        }
        assert_eq!(cloud.lines(), ["DELETE /network/v2.0/networks/n"]);
        later(30).await;
        session.compute().flavors().await.unwrap();
    }
}

/// A tenant's cloud can say what it likes; it must not fill the manager's memory.
#[tokio::test]
async fn answers_and_lists_are_bounded() {
    let cloud = Cloud::start().await;
    let whole = |mib: usize| json!({ "network": { "id": "n", "name": "x".repeat(mib << 20) } });
    cloud.on("GET /network/v2.0/networks/n", usize::MAX, 200, &whole(3));
    let session = cloud.session();
    let error = session.network().get(&NetworkId::from("n")).await.unwrap_err();
    assert_eq!(error.to_string(), "get network network (n): unexpected answer: longer than 2 MiB");
    assert_eq!(cloud.lines().len(), 1, "not repeated");
    let next = std::sync::atomic::AtomicUsize::new(0);
    let page = format!(r#""ports":[{{"id":"p","network_id":"n","name":"{}"}}]"#, "x".repeat(1 << 20));
    cloud.say("GET /network/v2.0/ports", usize::MAX, move |_| {
        let marker = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let links =
            format!(r#""ports_links":[{{"rel":"next","href":"http://x/v2.0/ports?marker={marker}"}}]"#);
        (200, Vec::new(), format!("{{{page},{links}}}"))
    });
    let error = session.network().list(&PortQuery::default()).await.unwrap_err();
    assert!(error.to_string().contains("more than 1000 pages or 64 MiB"), "{error}");
    assert_eq!(cloud.lines().len(), 1 + 64);
}

#[tokio::test]
async fn a_write_is_sent_once_whatever_is_said() {
    for (status, is_lost) in [(429, false), (500, true), (502, true), (503, false), (504, true)] {
        let cloud = Cloud::start().await;
        cloud.say("POST /network", usize::MAX, move |_| {
            (
                status,
                vec![("retry-after", "0".to_owned()), ("x-openstack-request-id", "req-7".to_owned())],
                String::new(),
            )
        });
        let body = NetworkCreate { name: "n".to_owned(), ..NetworkCreate::default() };
        let error = cloud.session().network().create(&body).await.unwrap_err();
        assert_eq!(cloud.lines().len(), 1, "{status}");
        assert_eq!((error.is_lost(), error.is_retryable()), (is_lost, true), "{status}");
        assert_eq!(error.refusal().unwrap().request_id.as_deref(), Some("req-7"));
    }
}

#[tokio::test]
async fn only_the_service_itself_can_say_that_something_is_absent() {
    let cloud = Cloud::start().await;
    let said = json!({ "NeutronError": { "type": "PortNotFound", "message": "Port p could not be found.", "detail": "" } });
    cloud.on("GET /network/v2.0/ports/p", 1, 404, &said);
    cloud.on("DELETE /network/v2.0/ports/p", 1, 404, &said);
    cloud
        .say("GET /network", usize::MAX, |_| (404, Vec::new(), "<html>404 page not found</html>".to_owned()));
    cloud.say("DELETE /network", usize::MAX, |_| {
        (404, Vec::new(), "<html>404 page not found</html>".to_owned())
    });
    let network = cloud.session().network();
    let port = "p".into();
    let get = |port| network.get::<hangar_openstack::PortId>(port);
    assert_eq!(get(&port).await.unwrap(), None);
    network.delete(&port).await.unwrap();
    assert_eq!(get(&port).await.unwrap_err().refusal().unwrap().kind, RefusalKind::NoSuchPath);
    assert!(network.delete(&port).await.is_err());
}
