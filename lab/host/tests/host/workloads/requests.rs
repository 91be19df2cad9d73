//! Requests from the host.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use hangar_host::addons::gateway;
use hangar_pki::Authority;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

fn connect(address: Ipv4Addr, port: u16) -> std::io::Result<TcpStream> {
    let address = SocketAddr::from((address, port));
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(stream)
}

/// The last line of the page, which is the pod's name.
pub(super) fn get(address: Ipv4Addr, port: u16) -> Option<String> {
    let mut stream = connect(address, port).ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    page.lines().next()?.contains(" 200 ").then(|| page.lines().last().unwrap_or_default().to_owned())
}

/// The page at /health of a server whose certificate the authority signed for the name.
pub(super) fn get_tls(address: Ipv4Addr, name: &str, authority: &Authority) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from(authority.certificate().der().to_vec());
    roots.add(certificate).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
    let connection = ClientConnection::new(Arc::new(config), server).map_err(|error| error.to_string())?;
    let stream = connect(address, gateway::PORT).map_err(|error| error.to_string())?;
    let mut stream = StreamOwned::new(connection, stream);
    let request = format!("GET /health HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut page = Vec::new();
    // A server may close without saying so in TLS; what was read until then counts.
    let _ = stream.read_to_end(&mut page);
    Ok(String::from_utf8_lossy(&page).into_owned())
}
