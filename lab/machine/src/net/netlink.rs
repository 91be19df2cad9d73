//! Synchronous netlink requests about links, addresses and routes.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// A socket that belongs to the network namespace of the thread that opened it.
pub(super) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Changes something and waits for the kernel's word on it.
    pub(super) fn change(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(message, NLM_F_REQUEST | NLM_F_ACK | flags, false).map(drop)
    }

    /// Asks for one thing.
    pub(super) fn get(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.exchange(message, NLM_F_REQUEST | NLM_F_ACK, false)
    }

    /// Asks for everything of a kind.
    pub(super) fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.exchange(message, NLM_F_REQUEST | NLM_F_DUMP, true)
    }

    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        until_done: bool,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;

        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while let Some(length) = message_length(rest) {
                let (one, after) = rest.split_at(length);
                // Padding to four bytes belongs to the message in front of it.
                rest = after.get(length.next_multiple_of(4) - length..).unwrap_or_default();
                // A message that this library cannot read is news about a link of somebody else: skip it.
                let Ok(answer) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(one) else {
                    continue;
                };
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::Done(_) if until_done => return Ok(answers),
                    NetlinkPayload::Error(error) => match error.code {
                        None => return Ok(answers),
                        Some(code) => return Err(io::Error::from_raw_os_error(code.get().abs())),
                    },
                    NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                    _ => {}
                }
            }
        }
    }
}

/// Length of the message at the start of `bytes`, if a whole one is there.
fn message_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    (length >= 16 && length <= bytes.len()).then_some(length)
}
