//! Calls the embedded cloud by its own API, as a person would with curl.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::PATIENCE;

const SAMPLE: &str = include_str!("../../../host/src/sample/cluster.yaml");
const LOOK: Duration = Duration::from_millis(100);

/// The cloud of an environment, and a token for it.
pub(super) struct Cloud {
    listen: String,
    token: String,
    settings: Value,
}

impl Cloud {
    /// The cloud that is started with this file.
    pub(super) fn of(configuration: &Path) -> anyhow::Result<Self> {
        let settings = read(configuration)?;
        let listen = text_of(&settings["listen"])?.to_owned();
        let user = &settings["cloud"]["users"][0];
        let domain = json!({"id": "default"});
        let login = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {
                "name": user["name"], "password": user["password"], "domain": domain,
            }}},
            "scope": {"project": {"name": user["projects"][0], "domain": domain}},
        }});
        let mut cloud = Self { listen, token: String::new(), settings };
        let answer = cloud.exchange("POST", "/identity/v3/auth/tokens", Some(&login))?;
        let token = answer.head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("x-subject-token").then(|| value.trim().to_owned())
        });
        cloud.token = token.with_context(|| format!("the cloud gave no token: {}", answer.head))?;
        Ok(cloud)
    }

    /// The sample for this cloud.
    pub(super) fn sample(&self) -> anyhow::Result<String> {
        let cloud = &self.settings["cloud"];
        let image = &cloud["images"][0];
        let words = [
            ("NAME", super::CLUSTER),
            ("NAMESPACE", super::NAMESPACE),
            ("VERSION", version_of(&self.settings)?),
            ("USERNAME", text_of(&cloud["users"][0]["name"])?),
            ("PASSWORD", text_of(&cloud["users"][0]["password"])?),
            ("PROJECT", text_of(&cloud["users"][0]["projects"][0])?),
            ("REGION", text_of(&cloud["region"])?),
            ("EXTERNAL_NETWORK", text_of(&cloud["external_network"]["name"])?),
            ("FLAVOR", text_of(&cloud["flavors"][0]["name"])?),
            ("IMAGE", text_of(&image["name"])?),
            ("AUTH_URL", &format!("{}/identity/v3", text_of(&cloud["public_url"])?)),
        ];
        let mut text = SAMPLE.to_owned();
        for (word, value) in words {
            text = text.replace(&format!("${{{word}}}"), value);
        }
        if text.contains("${") {
            bail!("the sample has a word that the bench does not know");
        }
        Ok(text)
    }

    pub(super) fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.call("GET", path, None)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call("POST", path, Some(body))
    }

    pub(super) fn put(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.call("PUT", path, Some(body))
    }

    pub(super) fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.call("DELETE", path, None).map(drop)
    }

    /// Waits until there is no server, which takes its time after a deletion.
    pub(super) fn wait_until_without_servers(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let servers = self.get("/compute/v2.1/servers")?;
            if servers["servers"].as_array().is_some_and(Vec::is_empty) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                bail!("the cloud still has servers: {servers}");
            }
            thread::sleep(LOOK);
        }
    }

    fn call(&self, verb: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let answer = self.exchange(verb, path, body)?;
        let status = answer.head.split(' ').nth(1).unwrap_or_default();
        if !status.starts_with('2') {
            bail!("{verb} {path}: {status} {}", answer.body);
        }
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&answer.body).with_context(|| format!("{verb} {path}: {}", answer.body))
    }

    /// In the old version of HTTP an answer ends with its connection.
    fn exchange(&self, verb: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.listen)?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            let body = body.map(ToString::to_string).unwrap_or_default();
            let request = format!(
                "{verb} {path} HTTP/1.0\r\nHost: {}\r\nX-Auth-Token: {}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                self.listen,
                self.token,
                body.len()
            );
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().with_context(|| format!("{verb} {path}"))?;
        let (head, body) =
            answer.split_once("\r\n\r\n").context("the cloud's answer has no end of headers")?;
        Ok(Answer { head: head.to_owned(), body: body.to_owned() })
    }
}

struct Answer {
    head: String,
    body: String,
}

fn text_of(value: &Value) -> anyhow::Result<&str> {
    value.as_str().context("a text is missing in the cloud's configuration")
}

fn read(configuration: &Path) -> anyhow::Result<Value> {
    let text = fs::read(configuration).with_context(|| format!("read {}", configuration.display()))?;
    serde_json::from_slice(&text).context("the cloud's configuration")
}

/// The version of Kubernetes that the environment of a cloud has images of.
pub(crate) fn kubernetes_version(configuration: &Path) -> anyhow::Result<String> {
    read(configuration).and_then(|settings| version_of(&settings).map(str::to_owned))
}

fn version_of(settings: &Value) -> anyhow::Result<&str> {
    let properties = settings["cloud"]["images"][0]["properties"].as_object();
    let versions = properties.context("the image has no properties")?;
    versions.values().find_map(Value::as_str).context("the image has no version")
}
