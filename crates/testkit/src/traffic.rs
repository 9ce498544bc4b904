//! Sockets of every type and state, created inside a [`Lab`] and kept open by it.

use crate::netns::Lab;
use crate::wait::{wait_or_panic, wait_until};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use sys::socket;

/// The interface that [`Lab::link_local`] makes.
const LINK: &str = "nwl0";

/// A listening socket that the lab keeps open.
#[derive(Debug)]
pub struct Listener {
    /// Its bound address.
    pub addr: SocketAddr,
    socket: TcpListener,
}

/// The two ends of a connection, each as it sees itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The side that connected.
    pub client: SocketAddr,
    /// The side that listened.
    pub server: SocketAddr,
}

impl Lab {
    /// Keeps a socket open until the lab is dropped.
    pub(crate) fn keep_open(&self, socket: impl Into<OwnedFd>) {
        self.held.lock().expect("no holder panicked").sockets.push(socket.into());
    }

    /// Opens `n` listeners on 0.0.0.0; returns their ports in ascending order.
    pub fn listen_tcp(&self, n: usize) -> Vec<u16> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut ports: Vec<u16> = (0..n).map(|_| self.listen(any).addr.port()).collect();
        ports.sort_unstable();
        ports
    }

    /// Listens on `addr` (port 0 for any). `[::]` also accepts IPv4, as is the default.
    ///
    /// # Panics
    /// If the address cannot be bound.
    pub fn listen(&self, addr: SocketAddr) -> Listener {
        let socket =
            self.run_inside(|| TcpListener::bind(addr)).unwrap_or_else(|e| panic!("cannot listen on {addr}: {e}"));
        self.keep_open(socket.try_clone().expect("a listener can be cloned"));
        Listener { addr: socket.local_addr().expect("a listener has an address"), socket }
    }

    /// Connects `n` times to `listener` at the address `to` and accepts; both ends stay open.
    pub fn connect(&self, listener: &Listener, to: IpAddr, n: usize) -> Vec<Pair> {
        (0..n).map(|_| self.add_pair(connect_one(self, listener, to))).collect()
    }

    /// `n` IPv4 connections over 127.0.0.1, to one new listener.
    pub fn connect_v4(&self, n: usize) -> Vec<Pair> {
        let listener = self.listen((Ipv4Addr::LOCALHOST, 0).into());
        self.connect(&listener, Ipv4Addr::LOCALHOST.into(), n)
    }

    /// `n` IPv6 connections over ::1, to one new listener.
    pub fn connect_v6(&self, n: usize) -> Vec<Pair> {
        let listener = self.listen((Ipv6Addr::LOCALHOST, 0).into());
        self.connect(&listener, Ipv6Addr::LOCALHOST.into(), n)
    }

    /// `n` IPv4 connections to a dual-stack listener: the server's ends are AF_INET6 sockets with v4-mapped addresses,
    /// the clients' ends are AF_INET.
    pub fn connect_mapped(&self, n: usize) -> Vec<Pair> {
        let listener = self.listen((Ipv6Addr::UNSPECIFIED, 0).into());
        self.connect(&listener, Ipv4Addr::LOCALHOST.into(), n)
    }

    /// `n` connections between link-local addresses with their scope: creates an interface once, and binds the
    /// listener to `fe80::1%nwl0`.
    pub fn connect_link_local(&self, n: usize) -> Vec<Pair> {
        let listener = self.listen(self.link_local().into());
        self.connect(&listener, listener.addr.ip(), n)
    }

    /// fe80::1 on the interface `nwl0`, which is created if necessary; port 0, scope set.
    pub fn link_local(&self) -> SocketAddrV6 {
        // sysfs shows the namespace of the process that mounted it; `ip netns exec` mounts it again.
        let ask = || self.command("cat").arg(format!("/sys/class/net/{LINK}/ifindex")).output();
        let known = |out: std::io::Result<std::process::Output>| {
            let out = out.ok().filter(|out| out.status.success())?;
            String::from_utf8(out.stdout).ok()?.trim().parse::<u32>().ok()
        };
        if known(ask()).is_none() {
            self.ip(&["link", "add", LINK, "type", "veth", "peer", "name", "nwl1"]);
            self.ip(&["addr", "add", "fe80::1/64", "dev", LINK, "nodad"]);
            self.ip(&["link", "set", LINK, "up"]);
            self.ip(&["link", "set", "nwl1", "up"]);
        }
        let scope = known(ask()).expect("the interface has an index");
        SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), 0, 0, scope)
    }

    /// `n` connections whose client ends are in TIME_WAIT, without a descriptor.
    pub fn time_wait(&self, n: usize) -> Vec<Pair> {
        let listener = self.listen((Ipv4Addr::LOCALHOST, 0).into());
        let pairs = (0..n).map(|_| {
            let (client, mut server) = connect_one(self, &listener, Ipv4Addr::LOCALHOST.into());
            let pair = pair_of(&client, &server);
            // The end that closes first enters TIME_WAIT.
            drop(client);
            assert_eq!(server.read(&mut [0]).expect("the end of the stream arrives"), 0);
            pair
        });
        let pairs = pairs.collect();
        self.wait_for_connections("time-wait", "dst", &listener, n);
        pairs
    }

    /// Waits until `n` sockets whose `end` (`src` or `dst`) is this listener's address are in ss(8)'s `state`, because
    /// the last packet may still be on its way when our calls have returned.
    ///
    /// The address matters: the kernel gives an ephemeral port again if the other socket has another address.
    fn wait_for_connections(&self, state: &str, end: &str, listener: &Listener, n: usize) {
        let show = || self.output("ss", &["-Htan", "state", state, end, &listener.addr.to_string()]);
        let told = || format!("; ss shows:\n{}", self.output("ss", &["-tan"]));
        wait_or_panic(&format!("{n} of {} in {state}", listener.addr), told, || show().lines().count() == n);
    }

    /// `n` connections shut down by the client only: client FIN_WAIT2, server CLOSE_WAIT.
    pub fn half_closed(&self, n: usize) -> Vec<Pair> {
        let listener = self.listen((Ipv4Addr::LOCALHOST, 0).into());
        let pairs = (0..n).map(|_| {
            let (client, mut server) = connect_one(self, &listener, Ipv4Addr::LOCALHOST.into());
            client.shutdown(Shutdown::Write).expect("an open stream can be shut down");
            assert_eq!(server.read(&mut [0]).expect("the end of the stream arrives"), 0);
            self.add_pair((client, server))
        });
        let pairs = pairs.collect();
        self.wait_for_connections("fin-wait-2", "dst", &listener, n);
        pairs
    }

    /// `n` connections that were not accepted: the server's ends have inode 0 and are in the listener's queue. Returns
    /// the clients and the listener's address.
    pub fn make_unaccepted(&self, n: usize) -> (Vec<SocketAddr>, SocketAddr) {
        let listener = self.listen((Ipv4Addr::LOCALHOST, 0).into());
        let clients = (0..n).map(|_| {
            let client = self.run_inside(|| TcpStream::connect(listener.addr)).expect("the queue has room");
            let addr = client.local_addr().expect("a stream has an address");
            self.keep_open(client);
            addr
        });
        let clients: Vec<SocketAddr> = clients.collect();
        // The third packet of the handshake creates the server's end; its address is the listener's.
        self.wait_for_connections("established", "src", &listener, n);
        (clients, listener.addr)
    }

    /// A connection that never gets a reply (SYN_SENT), kept open by a child. The packets end at an interface of the
    /// lab. Returns the peer and the child's pid.
    pub fn syn_sent(&self) -> (SocketAddr, u32) {
        let _ = self.link_local();
        self.ip(&["addr", "replace", "192.0.2.1/24", "dev", LINK]);
        self.ip(&["neigh", "replace", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", LINK]);
        let pid = self.spawn("bash", &["-c", "exec 3<>/dev/tcp/192.0.2.9/7"]);
        let there = || self.output("ss", &["-Htan", "state", "syn-sent"]).contains("192.0.2.9:7");
        wait_until("a socket in SYN_SENT", there);
        (SocketAddr::from(([192, 0, 2, 9], 7)), pid)
    }

    /// An unconnected UDP socket bound to `addr` (port 0 for any).
    ///
    /// # Panics
    /// If the address cannot be bound.
    pub fn udp(&self, addr: SocketAddr) -> SocketAddr {
        let socket = self.run_inside(|| UdpSocket::bind(addr)).unwrap_or_else(|e| panic!("cannot bind {addr}: {e}"));
        let addr = socket.local_addr().expect("a bound socket has an address");
        self.keep_open(socket);
        addr
    }

    /// `n` sockets that share `addr` (SO_REUSEPORT): listeners, or UDP sockets. Raises the limit on open files.
    ///
    /// # Panics
    /// If the address cannot be bound that often.
    pub fn share(&self, kind: i32, addr: SocketAddr, n: usize) {
        crate::sandbox::raise_open_files(n as u64 + 4096).expect("a limit can be raised");
        let family = if addr.is_ipv4() { socket::AF_INET } else { socket::AF_INET6 };
        self.run_inside(|| {
            for _ in 0..n {
                let one = socket::open(family, kind, 0).expect("a socket");
                socket::set_number(&one, socket::SOL_SOCKET, socket::SO_REUSEPORT, 1).expect("any socket may share");
                socket::bind(&one, &addr).unwrap_or_else(|e| panic!("cannot share {addr}: {e}"));
                if kind == socket::SOCK_STREAM {
                    socket::listen(&one, 1).expect("a bound socket listens");
                }
                self.keep_open(one);
            }
        });
    }

    /// Two UDP sockets on 127.0.0.1, connected to each other.
    pub fn udp_pair(&self) -> Pair {
        let bind = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
        let (client, server) = self.run_inside(|| (bind().expect("a free port"), bind().expect("a free port")));
        let addr = |socket: &UdpSocket| socket.local_addr().expect("a bound socket has an address");
        let pair = Pair { client: addr(&client), server: addr(&server) };
        client.connect(pair.server).expect("UDP connects at once");
        server.connect(pair.client).expect("UDP connects at once");
        self.keep_open(client);
        self.keep_open(server);
        pair
    }

    /// A listening unix stream socket in the lab's folder with `n` connections.
    pub fn unix_stream(&self, name: &str, n: usize) -> PathBuf {
        let path = self.dir().join(name);
        let addr = UnixAddr::from_pathname(&path).expect("the path is short enough");
        self.unix_connected(&addr, n);
        path
    }

    /// Like [`Lab::unix_stream`], with an abstract name (`@NAME`), which belongs to the namespace.
    pub fn unix_abstract(&self, name: &str, n: usize) {
        let addr = UnixAddr::from_abstract_name(name).expect("the name is short enough");
        self.unix_connected(&addr, n);
    }

    fn unix_connected(&self, addr: &UnixAddr, n: usize) {
        self.run_inside(|| {
            let listener = UnixListener::bind_addr(addr).expect("the name is free");
            for _ in 0..n {
                self.keep_open(UnixStream::connect_addr(addr).expect("a listener is there"));
                self.keep_open(listener.accept().expect("somebody connects").0);
            }
            self.keep_open(listener);
        });
    }

    /// A unix datagram socket in the lab's folder.
    pub fn unix_datagram(&self, name: &str) -> PathBuf {
        let path = self.dir().join(name);
        self.keep_open(self.run_inside(|| UnixDatagram::bind(&path)).expect("the name is free"));
        path
    }

    /// Two connected unix stream sockets without names.
    pub fn unix_pair(&self) {
        let (one, other) = self.run_inside(UnixStream::pair).expect("a pair can be made");
        self.keep_open(one);
        self.keep_open(other);
    }

    /// A listening unix SOCK_SEQPACKET socket in the lab's folder.
    pub fn unix_seqpacket(&self, name: &str) -> PathBuf {
        let path = self.dir().join(name);
        // sockaddr_un: family, then the path with its terminating zero.
        let mut address = (socket::AF_UNIX as u16).to_ne_bytes().to_vec();
        address.extend_from_slice(path.as_os_str().as_encoded_bytes());
        address.push(0);
        let listener = self.run_inside(|| socket::open(socket::AF_UNIX, socket::SOCK_SEQPACKET, 0));
        let listener = listener.expect("the kernel has unix sockets");
        socket::bind_bytes(&listener, &address).expect("the name is free");
        socket::listen(&listener, 5).expect("a bound socket can listen");
        self.keep_open(listener);
        path
    }

    fn add_pair(&self, (client, server): (TcpStream, TcpStream)) -> Pair {
        let pair = pair_of(&client, &server);
        self.keep_open(client);
        self.keep_open(server);
        pair
    }
}

fn pair_of(client: &TcpStream, server: &TcpStream) -> Pair {
    let addr = |stream: &TcpStream| stream.local_addr().expect("a stream has an address");
    Pair { client: addr(client), server: addr(server) }
}

fn connect_one(lab: &Lab, listener: &Listener, to: IpAddr) -> (TcpStream, TcpStream) {
    let mut at = listener.addr;
    match (&mut at, to) {
        // `set_ip` keeps the scope.
        (SocketAddr::V6(at), IpAddr::V6(to)) => at.set_ip(to),
        (at, to) => at.set_ip(to),
    }
    let client = lab.run_inside(|| TcpStream::connect(at)).unwrap_or_else(|e| panic!("cannot connect to {at}: {e}"));
    let (server, _) = listener.socket.accept().expect("the connection waits");
    (client, server)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(lab: &Lab, args: &[&str]) -> usize {
        lab.output("ss", &[&["-Hna"], args].concat()).lines().count()
    }

    #[test]
    fn root_tcp_in_every_state() {
        crate::require_root!();
        crate::require_tool!("ss");
        let lab = Lab::new("tcp");
        let ports = lab.listen_tcp(20);
        assert_eq!(ports.len(), 20);
        assert_eq!(count(&lab, &["-t", "state", "listening"]), 20);
        let v4 = lab.connect_v4(3);
        assert!(v4.iter().all(|pair| pair.client.is_ipv4() && pair.server.is_ipv4()));
        let mapped = lab.connect_mapped(2);
        assert!(mapped.iter().all(|pair| pair.client.is_ipv4() && pair.server.is_ipv6()));
        let _ = lab.connect_v6(1);
        assert_eq!(count(&lab, &["-t", "state", "established"]), 12);
        lab.half_closed(2);
        assert_eq!(count(&lab, &["-t", "state", "close-wait"]), 2);
        assert_eq!(count(&lab, &["-t", "state", "fin-wait-2"]), 2);
        lab.time_wait(5);
        assert_eq!(count(&lab, &["-t", "state", "time-wait"]), 5);
        let (clients, _) = lab.make_unaccepted(3);
        assert_eq!(clients.len(), 3);
        lab.syn_sent();
        assert_eq!(count(&lab, &["-t", "state", "syn-sent"]), 1);
        lab.close_all();
        assert_eq!(count(&lab, &["-t", "state", "listening"]), 0);
    }

    #[test]
    fn root_link_local_keeps_its_scope() {
        crate::require_root!();
        crate::require_tool!("ss");
        let lab = Lab::new("scope");
        let pairs = lab.connect_link_local(2);
        assert!(matches!(pairs[0].server, SocketAddr::V6(addr) if addr.scope_id() != 0));
        assert!(lab.output("ss", &["-Htan"]).contains("[fe80::1]%nwl0"));
    }

    #[test]
    fn root_connections_of_two_families_may_share_their_ports() {
        crate::require_root!();
        crate::require_tool!("ss");
        let lab = Lab::new("ports");
        lab.run_inside(|| std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40001")).unwrap();
        let server = lab.connect_v6(1)[0].server;
        let (_, listener) = lab.make_unaccepted(1);
        assert_eq!(listener.port(), server.port());
    }

    #[test]
    fn root_udp_and_unix() {
        crate::require_root!();
        crate::require_tool!("ss");
        let lab = Lab::new("other");
        lab.udp((Ipv4Addr::UNSPECIFIED, 0).into());
        lab.udp((Ipv6Addr::UNSPECIFIED, 0).into());
        lab.udp_pair();
        assert_eq!(count(&lab, &["-u"]), 4);
        assert_eq!(count(&lab, &["-u", "state", "established"]), 2);
        lab.unix_stream("stream", 2);
        lab.unix_abstract("abstract", 1);
        lab.unix_datagram("datagram");
        lab.unix_pair();
        lab.unix_seqpacket("seqpacket");
        assert_eq!(count(&lab, &["-x"]), 5 + 3 + 1 + 2 + 1);
        assert!(lab.output("ss", &["-Hxan"]).contains("@abstract"));
    }
}
