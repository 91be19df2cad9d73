//! Plays what members of etcd tell of themselves: that all is well, and that the first one leads.

use std::net::{IpAddr, Ipv4Addr};

use hangar_plan::hosted_control_plane::DATABASE_PATH;
use hangar_testbed::Port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::super::actor::Actor;

/// Where every member tells of itself.
const PORT: u16 = 2381;

/// The members of one control plane. Dropping them ends them.
pub(super) struct Members {
    _tasks: JoinSet<()>,
    /// Makes their addresses theirs alone.
    _port: Port,
}

impl Members {
    /// Three of them, at the addresses that their pods get.
    pub(super) async fn start(actor: &Actor) -> Self {
        let port = Port::reserve().unwrap();
        let [high, low] = port.number().to_be_bytes();
        let mut tasks = JoinSet::new();
        for ordinal in 0..3 {
            let address = IpAddr::V4(Ipv4Addr::new(127, high, low, ordinal + 1));
            let listener = TcpListener::bind((address, PORT)).await.unwrap();
            actor.place(&format!("demo-etcd-{ordinal}"), address);
            tasks.spawn(tell(listener, ordinal == 0));
        }
        Self { _tasks: tasks, _port: port }
    }
}

async fn tell(listener: TcpListener, leads: bool) {
    let page = format!(
        "etcd_server_is_leader {}\netcd_mvcc_db_total_size_in_bytes 2\n\
        etcd_mvcc_db_total_size_in_use_in_bytes 1\netcd_server_quota_backend_bytes 30\n",
        u8::from(leads)
    );
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = [0; 1024];
        let Ok(length) = stream.read(&mut request).await else { continue };
        let request = String::from_utf8_lossy(&request[..length]);
        let is_page = request.split(' ').nth(1) == Some(DATABASE_PATH);
        let body = if is_page { page.as_str() } else { r#"{"health":"true","reason":""}"# };
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        // Whoever has heard enough hangs up.
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}
