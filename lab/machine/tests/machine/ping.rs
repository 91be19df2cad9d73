//! An ICMP echo, since `ping` is not everywhere.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use hangar_machine::net::Netns;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket,
    sockopt::{Timeout, set_socket_timeout},
};

/// Whether `target` answers an echo sent from inside `netns`, with a few repetitions for the first ARP look-up.
pub(crate) fn answers(netns: &Netns, target: Ipv4Addr) -> bool {
    netns.run(|| Ok(answers_here(target))).unwrap()
}

/// The same from the host.
pub(crate) fn answers_here(target: Ipv4Addr) -> bool {
    (0..10).any(|sequence| echo(target, sequence))
}

fn echo(target: Ipv4Addr, sequence: u8) -> bool {
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).unwrap();
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_millis(300))).unwrap();
    let mut packet = [8, 0, 0, 0, 0x48, 0x47, 0, sequence];
    let sum = checksum(&packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    if sendto(&socket, &packet, SendFlags::empty(), &SocketAddrV4::new(target, 0)).is_err() {
        return false;
    }
    let mut buffer = [0; 1500];
    while let Ok((length, _)) = recv(&socket, &mut buffer, RecvFlags::empty()) {
        let header = usize::from(buffer[0] & 0x0f) * 4;
        let Some(answer) = buffer[..length].get(header..header + 8) else {
            continue;
        };
        let source = Ipv4Addr::new(buffer[12], buffer[13], buffer[14], buffer[15]);
        if source == target && answer[0] == 0 && answer[4..] == packet[4..] {
            return true;
        }
    }
    false
}

fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(folded & 0xffff).unwrap()
}
