//! Resolves outside names for a private network that has a way out.
//!
//! UDP does not leave a private network, and a host's resolver often listens on a loopback address or uses UDP alone.
//! So the relay, which is a process of the host, answers DNS queries on the network's gateway by asking the host's
//! resolver. It parses no query and caches no answer: caching and own names are left to a resolver inside.

use std::{
    fs,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use super::threads::Threads;

/// Where questions are answered on the gateway, by UDP and TCP.
pub(super) const PORT: u16 = 3153;
/// Where the host says whom it asks.
const CONFIGURATION: &str = "/etc/resolv.conf";
/// As many as the C library tries.
const MOST_SERVERS: usize = 3;
/// Who is asked does not answer any more after this long; who asks us waits a little longer.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Questions at a time; each costs a thread.
const MOST_QUESTIONS: usize = 256;
/// The largest message there can be.
const LARGEST: usize = 65_535;
const HEADER: usize = 12;

/// Answers queries that arrive by UDP, until the process ends.
pub(super) fn serve_datagrams(socket: &UdpSocket, may_ask: fn(IpAddr) -> bool) {
    static QUESTIONS: Threads = Threads::new(MOST_QUESTIONS);
    let mut buffer = vec![0; LARGEST];
    loop {
        let Ok((length, client)) = socket.recv_from(&mut buffer) else {
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let Some(question) = buffer.get(..length).map(<[u8]>::to_vec) else { continue };
        let Ok(socket) = socket.try_clone() else { continue };
        QUESTIONS.start(move || {
            let _ = socket.send_to(&answer(&question, &servers(may_ask)), client);
        });
    }
}

/// Answers queries that arrive by TCP, until the process ends.
pub(super) fn serve_connections(listener: &TcpListener, may_ask: fn(IpAddr) -> bool) {
    static CONNECTIONS: Threads = Threads::new(MOST_QUESTIONS);
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else {
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        CONNECTIONS.start(move || {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
            while let Ok(question) = read_message(&mut stream) {
                let reply = whole_answer(&question, &servers(may_ask));
                if write_message(&mut stream, &reply).is_err() {
                    break;
                }
            }
        });
    }
}

/// Whom the host asks now.
fn servers(may_ask: fn(IpAddr) -> bool) -> Vec<SocketAddr> {
    let text = fs::read_to_string(CONFIGURATION).unwrap_or_default();
    let addresses = nameservers(&text).into_iter().filter(|address| may_ask(*address));
    addresses.take(MOST_SERVERS).map(|address| SocketAddr::from((address, 53))).collect()
}

/// The resolvers that a `resolv.conf` names; as the C library does, the one on this host if it names none.
fn nameservers(text: &str) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("nameserver") {
            continue;
        }
        // A link-local one (`fe80::1%eth0`) is left out: it would need its link.
        let address = words.next().and_then(|word| word.parse().ok());
        found.extend(address.filter(|address| !found.contains(address)));
    }
    if found.is_empty() {
        found.push(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    found
}

/// The first answer of a server by UDP, else by TCP, else a failure. May be cut short by the server, and says so then.
fn answer(question: &[u8], servers: &[SocketAddr]) -> Vec<u8> {
    let by_datagram = servers.iter().find_map(|server| ask_by_datagram(question, *server).ok());
    by_datagram.unwrap_or_else(|| by_connection(question, servers))
}

/// The first answer that is not cut short.
fn whole_answer(question: &[u8], servers: &[SocketAddr]) -> Vec<u8> {
    let answer = answer(question, servers);
    let is_cut = answer.get(2).is_some_and(|flags| flags & 0x02 != 0);
    if is_cut { by_connection(question, servers) } else { answer }
}

fn by_connection(question: &[u8], servers: &[SocketAddr]) -> Vec<u8> {
    let found = servers.iter().find_map(|server| ask_by_connection(question, *server).ok());
    found.unwrap_or_else(|| failure(question))
}

fn ask_by_datagram(question: &[u8], server: SocketAddr) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(question)?;
    let mut buffer = vec![0; LARGEST];
    let length = socket.recv(&mut buffer)?;
    buffer.truncate(length);
    checked(question, buffer)
}

fn ask_by_connection(question: &[u8], server: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write_message(&mut stream, question)?;
    let answer = read_message(&mut stream)?;
    checked(question, answer)
}

/// An answer belongs to the question whose number it carries.
fn checked(question: &[u8], answer: Vec<u8>) -> io::Result<Vec<u8>> {
    if answer.len() >= HEADER && answer.get(..2) == question.get(..2) {
        Ok(answer)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// The question with the mark of an answer (QR, RA) and the code of a server that failed.
fn failure(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    if let [_, _, flags, code, ..] = answer.as_mut_slice() {
        *flags |= 0x80;
        *code = 0x82;
    }
    answer
}

fn read_message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message)?;
    Ok(message)
}

fn write_message(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    // In one piece: some servers want the length and the message together.
    stream.write_all(&[&length.to_be_bytes(), message].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: [u8; 17] = [7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];

    /// The question, answered with one more byte that says who did.
    fn reply(question: &[u8], who: u8, flags: u8) -> Vec<u8> {
        let mut answer = question.to_vec();
        answer[2] |= 0x80 | flags;
        answer.push(who);
        answer
    }

    fn by_udp(socket: UdpSocket, who: u8, flags: u8) -> SocketAddr {
        let address = socket.local_addr().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                socket.send_to(&reply(&buffer[..length], who, flags), client).unwrap();
            }
        });
        address
    }

    fn by_tcp(listener: TcpListener, who: u8) -> SocketAddr {
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let question = read_message(&mut stream).unwrap();
                write_message(&mut stream, &reply(&question, who, 0)).unwrap();
            }
        });
        address
    }

    fn udp() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").unwrap()
    }

    /// One port of both kinds. A port that is free for one may be taken for the other.
    fn both() -> (UdpSocket, TcpListener) {
        let both = || {
            let socket = udp();
            TcpListener::bind(socket.local_addr().unwrap()).ok().map(|listener| (socket, listener))
        };
        (0..100).find_map(|_| both()).unwrap()
    }

    fn nobody() -> SocketAddr {
        udp().local_addr().unwrap()
    }

    #[test]
    fn the_first_server_that_answers() {
        let silent = udp();
        let servers = [nobody(), silent.local_addr().unwrap(), by_udp(udp(), 1, 0), by_udp(udp(), 2, 0)];
        assert_eq!(answer(&QUESTION, &servers), reply(&QUESTION, 1, 0));
    }

    #[test]
    fn a_server_that_speaks_tcp_alone() {
        let server = by_tcp(TcpListener::bind("127.0.0.1:0").unwrap(), 3);
        assert_eq!(answer(&QUESTION, &[server]), reply(&QUESTION, 3, 0));
    }

    #[test]
    fn what_was_cut_short_is_asked_again_for_those_who_can_take_it() {
        let (socket, listener) = both();
        let server = by_udp(socket, 4, 0x02);
        by_tcp(listener, 5);
        assert_eq!(answer(&QUESTION, &[server]), reply(&QUESTION, 4, 0x02));
        assert_eq!(whole_answer(&QUESTION, &[server]), reply(&QUESTION, 5, 0));
    }

    #[test]
    fn nobody_answers_is_an_answer() {
        for servers in [vec![], vec![nobody()]] {
            let failed = answer(&QUESTION, &servers);
            assert_eq!((failed[2], failed[3]), (0x81, 0x82));
            assert_eq!((&failed[..2], failed.len()), (&QUESTION[..2], QUESTION.len()));
        }
        assert_eq!(failure(&[1]), [1]);
    }

    #[test]
    fn resolvers_of_a_host() {
        let text = "# a comment\nsearch example\nnameserver 127.0.0.53\n\tnameserver\t2001:db8::53\nnameserver 192.0.2.53\n\
                    nameserver fe80::1%eth0\nnameserver 192.0.2.53\nnameserver\noptions edns0\n";
        let expected: [IpAddr; 3] =
            ["127.0.0.53", "2001:db8::53", "192.0.2.53"].map(|text| text.parse().unwrap());
        assert_eq!(nameservers(text), expected);
        assert_eq!(nameservers("search example\n"), [IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    }
}
