//! Free loopback ports.
//!
//! A port is free when the kernel just handed it out. Another process may take it before ours listens; then our
//! process fails to start and [`crate::Testbed::start`] tries again with new ports.

use std::net::{Ipv4Addr, TcpListener};

use crate::Error;

/// `N` different free ports. All listeners are open at the same time, so the kernel cannot give one port twice.
pub(crate) fn free<const N: usize>() -> Result<[u16; N], Error> {
    let mut listeners = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::Port)?;
        *port = listener.local_addr().map_err(Error::Port)?.port();
        listeners.push(listener);
    }
    Ok(ports)
}
