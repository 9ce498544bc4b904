//! Notifications about destroyed sockets.
use record::rows::TcpInfo;
use record::{Next, Proto, State, StreamState};
use sockets::Destroyed;
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use sys::Host;
use testkit::netns::Lab;

/// Both ends of a connection are reported with their bytes, and so is a listener. A replay returns the same.
#[test]
fn root_closed_sockets_are_reported_with_their_bytes() {
    testkit::require_root!();
    let lab = Lab::new("destroyed");
    let tape = lab.dir().join("tape");
    let seen = lab.run_inside(|| {
        let host = Host::live().recording(&tape).unwrap();
        let stop = Cell::new(false);
        let stop_asked = || stop.get();
        let mut destroyed = Destroyed::open(&host, 7, &[Proto::Tcp], 20, &stop_asked).unwrap();
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"five!").unwrap();
        let mut server = listener.accept().unwrap().0;
        drop(client);
        // On a busy host the kernel delivers the bytes and the FIN later; a server closed before that counts fewer.
        assert_eq!(server.read_to_end(&mut Vec::new()).unwrap(), 5);
        drop((server, listener));
        let mut seen = Vec::new();
        testkit::wait_until("three sockets are gone", || {
            assert_eq!(read(&mut destroyed, port, &mut seen), StreamState::Open);
            seen.len() >= 3
        });
        stop.set(true);
        while read(&mut destroyed, port, &mut seen) == StreamState::Open {}
        let stats = destroyed.close();
        assert!(stats.balances() || stats.seen >= 3, "{stats:?}");
        assert_eq!((stats.failed, stats.incomplete), (0, false), "{stats:?}");
        host.finish().unwrap();
        (seen, port)
    });
    let (mut seen, port) = seen;
    let host = Host::open_replay(&tape).unwrap();
    let mut again = Vec::new();
    let never = || false;
    let mut destroyed = Destroyed::open(&host, 7, &[Proto::Tcp], 20, &never).unwrap();
    while read(&mut destroyed, port, &mut again) == StreamState::Open {}
    assert_eq!(again, seen);
    seen.sort_unstable();
    assert_eq!(seen, [(false, 0), (false, 0), (true, 5)]);
}

/// Appends (whether this is the server's end of a connection, bytes that it received) for sockets of this port.
fn read(destroyed: &mut Destroyed<'_>, port: u16, seen: &mut Vec<(bool, u64)>) -> StreamState {
    let next = destroyed.next(&mut |row| {
        assert_eq!((row.proto, row.family, row.state), (Proto::Tcp, 10, State::CLOSE));
        let bytes = row.tcp_info.as_ref().and_then(TcpInfo::bytes_received).unwrap_or(0);
        if row.local.port == port {
            // The kernel counts the FIN as a byte; a listener receives none.
            seen.push((row.peer.port != 0, bytes.saturating_sub(u64::from(row.peer.port != 0))));
        } else if row.peer.port == port {
            seen.push((false, 0));
        }
        Next::More
    });
    next.unwrap()
}
