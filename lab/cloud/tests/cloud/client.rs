//! A cloud on loopback, and a client that shows everything: status, headers, body.

use std::net::TcpListener;
use std::time::Duration;

use hangar_cloud::driver::{Driver, RecordingDriver};
use hangar_cloud::{Cloud, Config, Handle};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The body, after checking the status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A cloud, and a token of the project `demo`.
pub(crate) struct Bed {
    pub(crate) cloud: Handle,
    pub(crate) token: String,
}

pub(crate) async fn start() -> Bed {
    start_with(Config::for_tests(), RecordingDriver::new()).await
}

pub(crate) async fn start_with<D: Driver>(config: Config, driver: D) -> Bed {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let cloud = Cloud::serve(listener, config, driver).await.unwrap();
    let token = log_in(&cloud, "demo").await;
    Bed { cloud, token }
}

pub(crate) fn password(user: &str) -> Value {
    let domain = json!({"id": "default"});
    json!({"auth": {
        "identity": {
            "methods": ["password"],
            "password": {"user": {"name": user, "domain": domain, "password": "secret"}},
        },
        "scope": {"project": {"name": user, "domain": domain}},
    }})
}

pub(crate) async fn log_in(cloud: &Handle, user: &str) -> String {
    let answer = send(cloud, "POST", "/identity/v3/auth/tokens", &[], Some(&password(user))).await.unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.header("x-subject-token").to_owned()
}

/// One call on a connection of its own; an error is a connection that was cut.
pub(crate) async fn send(
    cloud: &Handle,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Result<Answer, hyper::Error> {
    let stream = tokio::net::TcpStream::connect(cloud.address()).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = http::Request::builder().method(method).uri(path).header("Host", "cloud");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = body.map(ToString::to_string).unwrap_or_default();
    let response = sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await?;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await?.to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, text })
}

impl Bed {
    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.call_as(&self.token, method, path, body).await
    }

    pub(crate) async fn call_as(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        let headers = [("X-Auth-Token", token), ("X-OpenStack-Nova-API-Version", "2.60")];
        send(&self.cloud, method, path, &headers, body.as_ref()).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.call("GET", path, None).await.expect(200)
    }

    /// Creates an object of Neutron and returns it.
    pub(crate) async fn make(&self, collection: &str, one: &str, attributes: Value) -> Value {
        let path = format!("/network/v2.0/{collection}");
        self.call("POST", &path, Some(json!({one: attributes}))).await.expect(201)[one].take()
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, None).await
    }

    /// A network with one subnet: their ids.
    pub(crate) async fn network(&self, name: &str, cidr: &str) -> (String, String) {
        let network = self.make("networks", "network", json!({"name": name})).await;
        let subnet = json!({"network_id": network["id"], "cidr": cidr, "ip_version": 4, "name": name});
        let subnet = self.make("subnets", "subnet", subnet).await;
        (id(&network), id(&subnet))
    }

    pub(crate) async fn external(&self) -> String {
        id(&self.get("/network/v2.0/networks?router:external=true").await["networks"][0])
    }

    /// A server's body with the image and flavor of the test cloud, merged with more.
    pub(crate) async fn server_body(&self, name: &str, more: Value) -> Value {
        let image = self.get("/image/v2/images").await["images"][0]["id"].take();
        let flavor = self.get("/compute/v2.1/flavors").await["flavors"][0]["id"].take();
        let mut body = json!({"name": name, "imageRef": image, "flavorRef": flavor});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"server": body})
    }

    pub(crate) async fn server(&self, name: &str, more: Value) -> String {
        let body = self.server_body(name, more).await;
        id(&self.call("POST", "/compute/v2.1/servers", Some(body)).await.expect(202)["server"])
    }

    /// Waits until a server has a status. The test's own time limit ends a wait that is in vain.
    pub(crate) async fn wait_status(&self, server: &str, status: &str) -> Value {
        loop {
            let view = self.get(&format!("/compute/v2.1/servers/{server}")).await["server"].take();
            if view["status"] == status {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn wait_gone(&self, path: &str) {
        while self.call("GET", path, None).await.status != 404 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// A call to `/hangar/`.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let headers = [("X-Hangar-Admin-Token", "hangar-admin")];
        send(&self.cloud, method, &format!("/hangar/{path}"), &headers, body.as_ref()).await.unwrap()
    }
}

pub(crate) fn id(view: &Value) -> String {
    view["id"].as_str().unwrap().to_owned()
}

/// Neutron's name of a refusal.
#[track_caller]
pub(crate) fn neutron_error(answer: Answer, status: u16) -> String {
    answer.expect(status)["NeutronError"]["type"].as_str().unwrap().to_owned()
}

/// Ends in an error rather than never.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(5), future).await.expect("within five minutes")
}
