//! Servers that wish us ill: API servers of tenants, and a cloud that never answers. All of them are on loopback.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hangar_pki::{Credentials, Kubeconfig, SecretText, Trust};
use hangar_testbed::strangers::serving;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

const MIB: usize = 1 << 20;

/// What a tenant's API server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Every answer has no end.
    Endless,
    /// A list of some MiB that becomes a hundred times as much once it is parsed.
    Fields,
    /// Nodes of the largest size that is kept, and always another page.
    Pages,
    /// A watch whose first line does not end.
    Line,
    /// A list that arrives byte by byte.
    Drip,
    /// Nodes that change all the time, in texts of a MiB.
    Restless,
    /// Reads are answered, writes never are: so does a webhook that leads nowhere.
    Hanging,
}

/// An API server of a tenant. Dropping it ends it.
pub(crate) struct Tenant {
    address: SocketAddr,
    /// Whom to trust, in PEM.
    authority: String,
    calls: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Tenant {
    /// One with so many Nodes, where the manner has Nodes.
    pub(crate) async fn start(manner: Manner, nodes: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, calls) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let (acceptor, authority) = serving(address);
        let counted = Arc::clone(&calls);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (accepted, calls) = (acceptor.accept(stream), Arc::clone(&counted));
                connections.spawn(async move {
                    let mut stream = accepted.await.ok()?;
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(stream.read_u8().await.ok()?);
                    }
                    let head = String::from_utf8(head).ok()?;
                    let mut words = head.split(' ');
                    let (method, path) = (words.next()?, words.next()?);
                    calls.fetch_add(1, Ordering::SeqCst);
                    answer(&mut stream, manner, nodes, method, path).await.ok()?;
                    stream.shutdown().await.ok()
                });
            }
        });
        Self { address, authority, calls, task }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn kubeconfig(&self) -> String {
        let kubeconfig = Kubeconfig {
            cluster: "tenant".to_owned(),
            user: "tenant".to_owned(),
            server: format!("https://{}", self.address),
            trust: Trust::Embedded(self.authority.clone()),
            tls_server_name: None,
            credentials: Credentials::Token(SecretText::new("token")),
            namespace: None,
        };
        kubeconfig.to_yaml().unwrap()
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Sent = std::io::Result<()>;

async fn answer<S: AsyncWrite + Unpin>(
    stream: &mut S,
    manner: Manner,
    nodes: usize,
    method: &str,
    path: &str,
) -> Sent {
    if method != "GET" {
        return std::future::pending().await;
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        .await?;
    if manner == Manner::Endless {
        stream.write_all(b"{\"kind\":\"").await?;
        let piece = vec![b'x'; 64 << 10];
        loop {
            stream.write_all(&piece).await?;
        }
    }
    if !path.starts_with("/api/v1/nodes") {
        let version = r#"{"major":"1","minor":"34","gitVersion":"v1.34.10","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}"#;
        return stream.write_all(version.as_bytes()).await;
    }
    if path.contains("watch=true") {
        return watch(stream, manner, nodes).await;
    }
    match manner {
        Manner::Fields => {
            let owners = "{},".repeat(15 * MIB / 3);
            let item = format!(r#"{{"metadata":{{"name":"n","ownerReferences":[{owners}{{}}]}}}}"#);
            stream.write_all(list("", &item).as_bytes()).await
        }
        Manner::Pages => {
            let limit = path.split(['?', '&']).find_map(|part| part.strip_prefix("limit=")?.parse().ok());
            let first: usize = path
                .split(['?', '&'])
                .find_map(|part| part.strip_prefix("continue=")?.parse().ok())
                .unwrap_or(0);
            let last = first + limit.unwrap_or(100);
            let items: Vec<String> = (first..last).map(large).collect();
            stream.write_all(list(&last.to_string(), &items.join(",")).as_bytes()).await
        }
        Manner::Drip => {
            stream.write_all(list("", "").replace("]}", "").as_bytes()).await?;
            stream.write_all(&vec![b' '; MIB]).await?;
            loop {
                stream.write_all(b" ").await?;
                stream.flush().await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Manner::Restless | Manner::Hanging => {
            let items: Vec<String> = (0..nodes).map(|number| node(number, 1, "os")).collect();
            stream.write_all(list("", &items.join(",")).as_bytes()).await
        }
        Manner::Line | Manner::Endless => stream.write_all(list("", "").as_bytes()).await,
    }
}

async fn watch<S: AsyncWrite + Unpin>(stream: &mut S, manner: Manner, nodes: usize) -> Sent {
    if manner == Manner::Line {
        let text = "x".repeat(7 * MIB);
        let line = format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"{text}"#);
        stream.write_all(line.as_bytes()).await?;
    }
    stream.flush().await?;
    if manner != Manner::Restless {
        return std::future::pending().await;
    }
    for version in 2_usize.. {
        let text = char::from(b'a' + u8::try_from(version % 26).unwrap_or(0)).to_string().repeat(MIB);
        for number in 0..nodes {
            let line = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", node(number, version, &text));
            stream.write_all(line.as_bytes()).await?;
            stream.flush().await?;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

fn list(next: &str, items: &str) -> String {
    format!(
        r#"{{"kind":"NodeList","apiVersion":"v1","metadata":{{"resourceVersion":"1","continue":"{next}"}},"items":[{items}]}}"#
    )
}

/// The id of the server behind a Node.
pub(crate) fn provider_id(number: usize) -> String {
    format!("stub:///node-{number}")
}

/// A Node that waits for its labels, and says this about itself.
fn node(number: usize, version: usize, text: &str) -> String {
    let taint = r#"{"key":"node.cluster.x-k8s.io/uninitialized","effect":"NoSchedule"}"#;
    let texts: Vec<String> = ["osImage", "kernelVersion", "machineID", "bootID"]
        .iter()
        .map(|field| format!(r#""{field}":"{}""#, if *field == "osImage" { text } else { "x" }))
        .collect();
    format!(
        r#"{{"metadata":{{"name":"node-{number}","uid":"u{number}","resourceVersion":"{version}"}},"spec":{{"providerID":"{}","taints":[{taint}]}},"status":{{"conditions":[{{"type":"Ready","status":"True","reason":"{version}"}}],"nodeInfo":{{{}}}}}}}"#,
        provider_id(number),
        texts.join(",")
    )
}

/// A Node of which as much is kept as of any.
fn large(number: usize) -> String {
    let taints: Vec<String> = (0..64)
        .map(|one| {
            format!(
                r#"{{"key":"{one}{}","value":"{}","effect":"NoSchedule"}}"#,
                "k".repeat(400),
                "v".repeat(400)
            )
        })
        .collect();
    let conditions: Vec<String> = (0..16)
        .map(|one| {
            format!(
                r#"{{"type":"{one}{}","status":"True","message":"{}"}}"#,
                "t".repeat(200),
                "m".repeat(1000)
            )
        })
        .collect();
    let mut labels = String::new();
    for one in 0..60 {
        let _ = write!(labels, r#""l{one}":"{}","#, "v".repeat(120));
    }
    format!(
        r#"{{"metadata":{{"name":"node-{number}","uid":"u{number}","resourceVersion":"1","labels":{{{labels}"z":""}},"annotations":{{{labels}"z":""}}}},"spec":{{"taints":[{}]}},"status":{{"conditions":[{}]}}}}"#,
        taints.join(","),
        conditions.join(",")
    )
}
