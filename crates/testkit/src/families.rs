//! Sockets of less common families, created inside a [`Lab`] and kept open by it: raw, UDP-Lite, packet, netlink,
//! MPTCP.

use crate::attach_filter;
use crate::netns::Lab;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use sys::{Fd, socket};

/// include/uapi/linux/in.h
const IPPROTO_MPTCP: i32 = 262;
/// include/linux/socket.h
const SOL_PACKET: i32 = 263;
/// Options of packet sockets, include/uapi/linux/if_packet.h.
const PACKET_ADD_MEMBERSHIP: i32 = 1;
const PACKET_RX_RING: i32 = 5;
const PACKET_AUXDATA: i32 = 8;
const PACKET_VERSION: i32 = 10;
const PACKET_TX_RING: i32 = 13;
const PACKET_FANOUT: i32 = 18;
/// Promiscuous mode in `struct packet_mreq`.
const PACKET_MR_PROMISC: u16 = 1;
/// Index of the loopback interface in every namespace.
const LO: u32 = 1;

/// Ethernet protocols: every frame, IPv4, LLDP (include/uapi/linux/if_ether.h).
const ETH_P_ALL: u16 = 3;
const ETH_P_IP: u16 = 0x0800;
const ETH_P_LLDP: u16 = 0x88cc;

impl Lab {
    /// Raw sockets: ICMP, ICMPv6, OSPF between 127.0.0.1 and 127.0.0.2, and one that only sends.
    pub fn raw_sockets(&self) {
        let any4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let any6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        for (protocol, at) in [(1, any4), (58, any6), (255, any4)] {
            let family = if at.is_ipv4() { socket::AF_INET } else { socket::AF_INET6 };
            let raw = self.open_socket(family, socket::SOCK_RAW, protocol);
            socket::bind(&raw, &at).expect("the wildcard is there");
            self.keep_open(raw);
        }
        let ospf = self.open_socket(socket::AF_INET, socket::SOCK_RAW, 89);
        socket::bind(&ospf, &([127, 0, 0, 1], 0).into()).expect("loopback is there");
        socket::connect(&ospf, &([127, 0, 0, 2], 0).into()).expect("raw sockets connect at once");
        self.keep_open(ospf);
    }

    /// A UDP-Lite socket of each family. False if the kernel does not support it.
    pub fn udplite_sockets(&self) -> bool {
        let sockets = [
            (socket::AF_INET, SocketAddr::from((Ipv4Addr::LOCALHOST, 5001))),
            (socket::AF_INET6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, 5002))),
        ];
        for (family, at) in sockets {
            let open = || socket::open(family, socket::SOCK_DGRAM, socket::IPPROTO_UDPLITE);
            let Ok(lite) = self.run_inside(open) else { return false };
            socket::bind(&lite, &at).expect("the port is free");
            self.keep_open(lite);
        }
        true
    }

    /// Packet sockets: one for everything, one for IPv4 on lo without link headers, one with a TPACKET_V3 ring in a
    /// fanout group and promiscuous, one with a TPACKET_V2 ring for sending, one with a filter of four instructions.
    pub fn packet_sockets(&self) {
        self.keep_open(self.packet(socket::SOCK_RAW, ETH_P_ALL, 0));
        self.keep_open(self.packet(socket::SOCK_DGRAM, ETH_P_IP, LO));
        let ring = self.packet(socket::SOCK_RAW, 0, 0);
        set_words(&ring, PACKET_VERSION, &[2]);
        // tpacket_req3: block size, blocks, frame size, frames, retire_tmo, private size, features.
        set_words(&ring, PACKET_RX_RING, &[16384, 4, 2048, 32, 60, 0, 0]);
        bind_packet(&ring, ETH_P_ALL, LO);
        set_words(&ring, PACKET_FANOUT, &[7 | 1 << 16]);
        set_words(&ring, PACKET_AUXDATA, &[1]);
        let promiscuous = [&LO.to_ne_bytes()[..], &PACKET_MR_PROMISC.to_ne_bytes(), &[0; 10]].concat();
        socket::set_bytes(&ring, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous).expect("lo takes members");
        self.keep_open(ring);
        let sender = self.packet(socket::SOCK_RAW, 0, 0);
        set_words(&sender, PACKET_VERSION, &[1]);
        set_words(&sender, PACKET_TX_RING, &[4096, 2, 2048, 4]);
        self.keep_open(sender);
        let filtered = self.packet(socket::SOCK_RAW, ETH_P_LLDP, 0);
        attach_filter(&filtered, &[(0x28, 0, 0, 12), (0x15, 0, 1, 0x800), (6, 0, 0, 65535), (6, 0, 0, 0)])
            .expect("the program is sound");
        self.keep_open(filtered);
    }

    /// Netlink sockets: one that listens to the groups 1, 5 and 33 of rtnetlink, one of nfnetlink, and a connected one
    /// for the kernel's events.
    pub fn netlink_sockets(&self) {
        const SOL_NETLINK: i32 = 270;
        const NETLINK_ADD_MEMBERSHIP: i32 = 1;
        let route = self.open_socket(socket::AF_NETLINK, socket::SOCK_RAW, 0);
        socket::bind_bytes(&route, &netlink_address(0, 0x11)).expect("groups are free to join");
        socket::set_bytes(&route, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &33u32.to_ne_bytes())
            .expect("there is a group 33");
        let filter = self.open_socket(socket::AF_NETLINK, socket::SOCK_RAW, 12);
        socket::bind_bytes(&filter, &netlink_address(0, 0)).expect("an address is free");
        let events = self.open_socket(socket::AF_NETLINK, socket::SOCK_RAW, 15);
        socket::bind_bytes(&events, &netlink_address(0, 1)).expect("groups are free to join");
        socket::connect_bytes(&events, &netlink_address(0, 2)).expect("netlink connects at once");
        [route, filter, events].into_iter().for_each(|fd| self.keep_open(fd));
    }

    /// An MPTCP listener with one connection over 127.0.0.1; all three sockets stay open. False if the kernel does not
    /// support it.
    pub fn mptcp_connection(&self) -> bool {
        let open = || socket::open(socket::AF_INET, socket::SOCK_STREAM, IPPROTO_MPTCP);
        let (Ok(listener), Ok(client)) = (self.run_inside(open), self.run_inside(open)) else { return false };
        socket::bind(&listener, &(Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        socket::listen(&listener, 5).expect("a bound socket can listen");
        let listener = TcpListener::from(OwnedFd::from(listener));
        let at = listener.local_addr().expect("a listener has an address");
        socket::connect(&client, &at).expect("a listener is there");
        self.keep_open(listener.accept().expect("somebody connects").0);
        self.keep_open(listener);
        self.keep_open(client);
        true
    }

    fn open_socket(&self, family: i32, kind: i32, protocol: i32) -> Fd {
        let open = || socket::open(family, kind, protocol);
        self.run_inside(open).unwrap_or_else(|e| panic!("no socket of family {family}, protocol {protocol}: {e}"))
    }

    fn packet(&self, kind: i32, ethertype: u16, ifindex: u32) -> Fd {
        let packet = self.open_socket(socket::AF_PACKET, kind, 0);
        if ethertype != 0 {
            bind_packet(&packet, ethertype, ifindex);
        }
        packet
    }
}

/// `struct sockaddr_ll`: family, protocol (network order), interface, and fields that bind(2) ignores.
fn bind_packet(packet: &Fd, ethertype: u16, ifindex: u32) {
    let mut address = (socket::AF_PACKET as u16).to_ne_bytes().to_vec();
    address.extend_from_slice(&ethertype.to_be_bytes());
    address.extend_from_slice(&ifindex.to_ne_bytes());
    address.resize(20, 0);
    socket::bind_bytes(packet, &address).expect("the interface is there");
}

/// `struct sockaddr_nl`: family, padding, address, groups.
fn netlink_address(portid: u32, groups: u32) -> Vec<u8> {
    let mut address = (socket::AF_NETLINK as u16).to_ne_bytes().to_vec();
    address.extend_from_slice(&[0; 2]);
    address.extend_from_slice(&portid.to_ne_bytes());
    address.extend_from_slice(&groups.to_ne_bytes());
    address
}

fn set_words(packet: &Fd, option: i32, words: &[u32]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    socket::set_bytes(packet, SOL_PACKET, option, &bytes).unwrap_or_else(|e| panic!("packet option {option}: {e}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_sockets_of_every_family() {
        crate::require_root!();
        crate::require_tool!("ss");
        let lab = Lab::new("families");
        lab.ip(&["link", "set", "lo", "up"]);
        lab.raw_sockets();
        lab.packet_sockets();
        lab.netlink_sockets();
        let count = |args: &[&str]| lab.output("ss", &[&["-Hna"], args].concat()).lines().count();
        assert_eq!(count(&["-w"]), 4);
        assert_eq!(count(&["-0"]), 5);
        assert!(lab.output("ss", &["-0aeb"]).contains("ring_tx(blk_size:4096"));
        if lab.mptcp_connection() {
            assert_eq!(count(&["-M"]), 3);
        }
        let _ = lab.udplite_sockets();
    }
}
