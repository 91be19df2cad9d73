//! What the tests share: objects, waiting, a connection that can be cut.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hangar_kit::{
    call::CallLog,
    client::{ClientOptions, client},
};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{Api, Client, Config, api::PostParams};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A fresh namespace, its name, and a client whose calls are counted.
pub(crate) fn namespace(prefix: &str) -> (String, Client, CallLog) {
    let bed = hangar_testbed::shared();
    let log = CallLog::default();
    let client = client(bed.config(), &ClientOptions::default().gate(log.clone())).unwrap();
    (bed.namespace(prefix), client, log)
}

/// A config map with one entry.
pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

/// The same with labels.
pub(crate) fn labelled(mut map: ConfigMap, labels: &[(&str, &str)]) -> ConfigMap {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    map.metadata.labels = Some(labels.collect());
    map
}

/// The same, managed by another.
pub(crate) fn owned(mut map: ConfigMap, owner: &ConfigMap) -> ConfigMap {
    map.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: owner.metadata.name.clone().unwrap(),
        uid: owner.metadata.uid.clone().unwrap(),
        controller: Some(true),
        block_owner_deletion: None,
    }]);
    map
}

/// Creates it, as somebody other than us would.
pub(crate) async fn create(api: &Api<ConfigMap>, map: &ConfigMap) -> ConfigMap {
    let parameters = PostParams { field_manager: Some("somebody".to_owned()), ..PostParams::default() };
    api.create(&parameters, map).await.unwrap()
}

/// Waits until a claim holds. The limit is only for a test that fails.
pub(crate) async fn eventually(what: &str, mut claim: impl AsyncFnMut() -> bool) {
    for _ in 0..9000 {
        if claim().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

/// A way to an API server that can be cut and mended.
pub(crate) struct Link {
    address: SocketAddr,
    connections: Arc<Mutex<Option<JoinSet<()>>>>,
}

impl Link {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Some(JoinSet::new())));
        let accepted = Arc::clone(&connections);
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                // While it is cut, a new connection is closed at once.
                if let Some(open) = &mut *accepted.lock().unwrap() {
                    open.spawn(async move {
                        if let Ok(mut far) = TcpStream::connect(("127.0.0.1", port)).await {
                            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                        }
                    });
                }
            }
        });
        Self { address, connections }
    }

    /// Ends all connections and allows no new ones.
    pub(crate) fn cut(&self) {
        *self.connections.lock().unwrap() = None;
    }

    pub(crate) fn mend(&self) {
        *self.connections.lock().unwrap() = Some(JoinSet::new());
    }

    /// The same server, by this way.
    pub(crate) fn through(&self, mut config: Config) -> Config {
        config.cluster_url = format!("https://{}", self.address).parse().unwrap();
        config
    }
}
