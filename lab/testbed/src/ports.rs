//! Reserves loopback ports.
//!
//! Another process may take a free port until a program listens on it, which takes an API server seconds, and again
//! between a stop and a start. So a socket of ours stays bound to it and does not listen. The kernel then no longer
//! assigns the port as a free one, but a program can still bind it by number: both sockets allow its reuse, as Go and
//! Rust do for every listener. A connection while no program listens is refused, as without our socket.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

use crate::Error;

/// A TCP port of 127.0.0.1, for one program, until this is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _held: TcpSocket,
}

impl Port {
    /// A free port.
    pub fn reserve() -> Result<Self, Error> {
        let reserve = || -> std::io::Result<Self> {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseaddr(true)?;
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            Ok(Self { number: socket.local_addr()?.port(), _held: socket })
        };
        reserve().map_err(Error::Port)
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}
