//! `-N` selects only the namespace to read. netwren reaches receivers, resolves names and runs programs in the
//! namespace where it was started.

use crate::going::Going;
use crate::log::{logging, send, to_five};
use crate::run::clean;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::time::Duration;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Receivers in a namespace, on the same ports as in a second namespace.
struct Receivers {
    tcp: Vec<TcpListener>,
    udp: UdpSocket,
}

impl Receivers {
    /// Opens receivers in `lab` on these ports, or on free ports.
    fn new(lab: &Lab, ports: Option<[u16; 3]>) -> Receivers {
        let [first, second, datagrams] = ports.unwrap_or_default();
        lab.run_inside(|| Receivers {
            tcp: [first, second].map(|port| TcpListener::bind(("127.0.0.1", port)).unwrap()).into(),
            udp: datagram_socket(datagrams),
        })
    }

    fn ports(&self) -> [u16; 3] {
        let tcp = |index: usize| self.tcp[index].local_addr().unwrap().port();
        [tcp(0), tcp(1), self.udp.local_addr().unwrap().port()]
    }

    /// Asserts that no receiver got a connection or a datagram.
    fn got_nothing(&self) {
        for tcp in &self.tcp {
            tcp.set_nonblocking(true).unwrap();
            assert!(tcp.accept().is_err(), "a connection to {tcp:?}");
        }
        self.udp.set_nonblocking(true).unwrap();
        assert!(self.udp.recv(&mut [0; 9]).is_err(), "a datagram");
    }
}

/// Opens a socket whose receive call fails if nothing arrives within a minute.
fn datagram_socket(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// Starts `netwren` in a namespace.
fn started_in(lab: &Lab, args: &[&str]) -> Going<String> {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    Going::spawn(command, |line| line)
}

/// Reads a line from the next connection.
fn line_of(listener: &TcpListener) -> String {
    listener.set_nonblocking(true).unwrap();
    let (mut stream, mut line) = (None, String::new());
    testkit::wait_until("a connection", || {
        stream = stream.take().or_else(|| listener.accept().ok());
        stream.is_some()
    });
    let (stream, _) = stream.unwrap();
    stream.set_nonblocking(false).unwrap();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

/// netwren ships a namespace's records from the namespace where it was started: at first, after the connection broke,
/// and when SIGHUP adds a receiver.
#[test]
fn root_receivers_are_reached_from_the_namespace_of_the_start() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (start, inner) = (Lab::new("outstart"), logging("outinner"));
    let receivers = Receivers::new(&start, None);
    let wrong = Receivers::new(&inner, Some(receivers.ports()));
    let [first, second, datagrams] = receivers.ports();
    let config = start.dir().join("log.toml");
    let write = |targets: &[&str]| {
        let text = format!("group = 5\nlatency = '10ms'\ncolumns = ['seq']\nto = {targets:?}\n");
        std::fs::write(&config, text).unwrap();
    };
    let (tcp, udp) = (format!("json+tcp://127.0.0.1:{first}"), format!("syslog+udp://127.0.0.1:{datagrams}"));
    let added = format!("json+tcp://localhost:{second}");
    write(&[&tcp, &udp]);
    let going = started_in(&start, &["log", "-N", inner.name(), "--config", &config.display().to_string()]);
    testkit::wait_until("the group is bound", || !inner.log_groups().is_empty());
    send(&inner, to_five(), 1);
    assert_eq!(line_of(&receivers.tcp[0]), "{\"seq\":0}\n");
    assert!(receivers.udp.recv(&mut [0; 2048]).unwrap() > 9);
    // That closed the connection, so the next records need a new connection.
    let again = std::thread::scope(|scope| {
        let again = scope.spawn(|| line_of(&receivers.tcp[0]));
        testkit::wait_until("another connection", || {
            send(&inner, to_five(), 1);
            again.is_finished()
        });
        again.join().unwrap()
    });
    assert!(again.starts_with("{\"seq\":"), "{again}");
    write(&[&tcp, &udp, &added]);
    going.signal("-HUP");
    let line = std::thread::scope(|scope| {
        let line = scope.spawn(|| line_of(&receivers.tcp[1]));
        testkit::wait_until("the receiver that was added", || {
            send(&inner, to_five(), 1);
            line.is_finished()
        });
        line.join().unwrap()
    });
    assert!(line.starts_with("{\"seq\":"), "{line}");
    let (_, ran) = going.end();
    assert!(ran.stderr.contains(&format!("begun: {added}")), "{}", ran.stderr);
    wrong.got_nothing();
}

/// A capture drops its privileges before it ships, and runs programs in the namespace where it was started.
#[test]
fn root_a_capture_ships_and_runs_programs_in_the_namespace_of_the_start() {
    testkit::require_root!();
    let (start, inner) = (Lab::new("capstart"), Lab::new("capinner"));
    let receivers = Receivers::new(&start, None);
    let wrong = Receivers::new(&inner, Some(receivers.ports()));
    let to: SocketAddr = "127.0.0.1:7009".parse().unwrap();
    let target = format!("json+tcp://127.0.0.1:{}", receivers.ports()[0]);
    let filter = "proto = udp and dport = 7009";
    let going = started_in(&start, &["capture", "-N", inner.name(), "-c", "dport", "--to", &target, filter]);
    std::thread::scope(|scope| {
        let line = scope.spawn(|| line_of(&receivers.tcp[0]));
        testkit::wait_until("a packet", || {
            send(&inner, to, 1);
            line.is_finished()
        });
        assert_eq!(line.join().unwrap(), "{\"dport\":7009}\n");
    });
    drop(going);
    wrong.got_nothing();
    let (command, file) = (start.dir().join("command"), start.dir().join("all.pcap"));
    testkit::program::install_script(&command, "#!/bin/sh\nreadlink /proc/self/ns/net > \"$1.netns\"\n");
    let words = ["-w", &file.display().to_string(), "--rotate-packets", "1", "--rotate-command"];
    let command = command.display().to_string();
    let going = started_in(&start, &[&["capture", "-N", inner.name()], &words[..], &[&command, filter]].concat());
    let told = || {
        let files = std::fs::read_dir(start.dir()).unwrap().map(|entry| entry.unwrap().path());
        let told = files.filter(|path| path.extension().is_some_and(|word| word == "netns"));
        told.map(|path| std::fs::read_to_string(path).unwrap()).find(|text| text.ends_with('\n'))
    };
    testkit::wait_until("the program", || {
        send(&inner, to, 1);
        told().is_some()
    });
    let own = start.run_inside(|| sys::netns::current_inode().unwrap());
    assert_eq!(told().unwrap(), format!("net:[{own}]\n"));
    drop(going);
}

/// `ss -N` queries the name servers in the namespace where it was started.
#[test]
fn root_ss_asks_for_names_in_the_namespace_of_the_start() {
    testkit::require_root!();
    let (start, inner) = (Lab::new("namestart"), Lab::new("nameinner"));
    let servers = [&start, &inner].map(|lab| lab.run_inside(|| datagram_socket(53)));
    inner.ip(&["addr", "add", "192.0.2.77/32", "dev", "lo"]);
    let _listener = inner.run_inside(|| TcpListener::bind("192.0.2.77:0").unwrap());
    let resolv = start.dir().join("resolv.conf");
    std::fs::write(&resolv, "nameserver 127.0.0.1\n").unwrap();
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["ss", "-N", inner.name(), "-tlr"]);
    let cover = Limit::Cover { with: resolv, place: "/etc/resolv.conf".into() };
    confine(&mut command, &[Limit::Network(start.path()), cover]).unwrap();
    let going = Going::spawn(command, |line| line);
    let [right, wrong] = servers;
    let mut question = [0; 512];
    let bytes = right.recv(&mut question).unwrap();
    assert!(question[..bytes].windows(11).any(|part| part == b"\x0277\x012\x010\x03192"), "{:?}", &question[..bytes]);
    drop(going);
    wrong.set_nonblocking(true).unwrap();
    assert!(wrong.recv(&mut question).is_err(), "a question");
}
