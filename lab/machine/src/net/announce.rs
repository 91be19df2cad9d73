//! Makes neighbours forget the earlier owner of an address.

use std::net::{Ipv4Addr, UdpSocket};

use ipnet::Ipv4Net;

use super::Netns;

impl Netns {
    /// Makes the neighbours in `range` forget an earlier owner of `address`, which a link inside has.
    ///
    /// A packet to one of them makes the kernel ask for it, and everybody hears who asks. The kernel repeats the
    /// question, so it is heard although the bridge lets a new port talk only after a moment (which is why its own
    /// announcement, sent when a link comes up, is lost). Nobody has to be there, and nothing depends on it.
    pub fn announce(&self, address: Ipv4Addr, range: Ipv4Net) {
        let Some(neighbour) = range.hosts().find(|host| *host != address) else {
            return;
        };
        let _ = self.run(|| {
            let socket = UdpSocket::bind((address, 0));
            Ok(socket.and_then(|socket| socket.send_to(&[], (neighbour, 9))))
        });
    }
}
