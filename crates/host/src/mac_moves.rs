//! Detects hardware addresses that move between the ports of a bridge, from the kernel's notifications.
//!
//! The table of a bridge shows only the last port of an address, and each frame refreshes it. A [`MoveWatch`] receives
//! a message whenever the kernel learns an address, or learns it again at another port.
use std::collections::BTreeMap;

use netlink::{Attrs, Messages, prefix};
use sys::{Errno, NetlinkSocket, SysError};

/// NETLINK_ROUTE, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 0;
/// RTNLGRP_NEIGH (3), as a bit: include/uapi/linux/rtnetlink.h
const NEIGHBOURS: u32 = 1 << 2;
const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;

// include/uapi/linux/neighbour.h
const NDA_LLADDR: u16 = 2;
const NDA_VLAN: u16 = 5;
const NDA_MASTER: u16 = 9;
/// `NUD_PERMANENT`: an address of the bridge itself, or one that an administrator entered.
const NUD_PERMANENT: u16 = 0x80;
/// `struct ndmsg`: family u8, three bytes, ifindex s32, state u16, flags u8, type u8.
const NDMSG: usize = 12;
const AF_BRIDGE: u8 = 7;

/// A notification has about 100 bytes; with the kernel's own costs the buffer holds some 2000.
const BUFFER_BYTES: i32 = 1 << 20;
/// Bound: hardware addresses that `doctor` follows in a namespace with a bridge. Beyond: addresses that appear later
/// are not followed, counted (exit code 3). By: any host on the bridge.
const ADDRESSES_MAX: usize = 4096;
/// Bound: notifications of a reading. Beyond: later ones are not read. By: any host on the bridge.
const MESSAGES_MAX: usize = 65_536;

/// Size of a move in a recording.
const MOVE: usize = 22;

/// A hardware address that a bridge learned at one port after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacMove {
    /// The hardware address.
    pub hardware: [u8; 6],
    /// Interface index of the bridge.
    pub bridge: u32,
    /// Interface indexes of the last two ports.
    pub ports: [u32; 2],
    /// Number of moves from one port to another.
    pub count: u32,
}

/// Receives notifications about the addresses of bridges in one network namespace.
#[derive(Debug)]
pub struct MoveWatch {
    socket: NetlinkSocket,
}

/// A hardware address of a bridge, in a VLAN; 0 without one.
type LearnedAddress = (u32, u16, [u8; 6]);

impl MoveWatch {
    /// From now on receives notifications in the calling thread's namespace. Needs no privilege.
    pub fn open() -> Result<MoveWatch, SysError> {
        let socket = NetlinkSocket::open(PROTOCOL)?;
        socket.make_room(BUFFER_BYTES);
        socket.join(NEIGHBOURS)?;
        // A lost message is one move less.
        socket.report_no_losses()?;
        Ok(MoveWatch { socket })
    }

    /// The addresses that have moved since the watch was opened, and the number of notifications about further ones.
    pub fn moves(&self) -> Result<(Vec<MacMove>, u64), SysError> {
        let (mut seen, mut over, mut place) = (BTreeMap::new(), 0, vec![0; 64 << 10]);
        for _ in 0..MESSAGES_MAX {
            match self.socket.try_recv(&mut place) {
                Ok(None) => break,
                Ok(Some(received)) => over += add(&mut seen, place.get(..received.bytes).unwrap_or_default()),
                Err(error) if matches!(error.errno, Errno::NOBUFS | Errno::MSGSIZE) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((seen.into_values().filter(|one| one.count > 0).collect(), over))
    }
}

/// Adds the notifications of a datagram; returns how many of them are about addresses beyond the bound.
fn add(seen: &mut BTreeMap<LearnedAddress, MacMove>, datagram: &[u8]) -> u64 {
    let mut over = 0;
    for message in Messages::new(datagram).flatten() {
        let Some((key, port)) = learned(message.payload) else { continue };
        match message.kind {
            RTM_NEWNEIGH => {}
            // A guest that is started again has its address at another port, and has not moved.
            RTM_DELNEIGH => {
                seen.entry(key).and_modify(|one| one.ports[1] = 0);
                continue;
            }
            _ => continue,
        }
        if seen.len() >= ADDRESSES_MAX && !seen.contains_key(&key) {
            over += 1;
            continue;
        }
        let (bridge, _, hardware) = key;
        let one = seen.entry(key).or_insert(MacMove { hardware, bridge, ports: [port; 2], count: 0 });
        match one.ports[1] {
            0 => one.ports[1] = port,
            before if before != port => {
                one.ports = [before, port];
                one.count = one.count.saturating_add(1);
            }
            _ => {}
        }
    }
    over
}

/// The address that a notification is about, and its port; `None` for other messages.
fn learned(payload: &[u8]) -> Option<(LearnedAddress, u32)> {
    let (port, state) = (prefix::u32_at(payload, 4)?, prefix::u16_at(payload, 8)?);
    if prefix::u8_at(payload, 0)? != AF_BRIDGE || state & NUD_PERMANENT != 0 {
        return None;
    }
    let (mut hardware, mut bridge, mut vlan) = (None, None, 0);
    for attr in Attrs::new(payload.get(NDMSG..)?).flatten() {
        match attr.kind {
            NDA_LLADDR => hardware = attr.array().ok(),
            NDA_MASTER => bridge = attr.u32().ok(),
            NDA_VLAN => vlan = attr.u16().unwrap_or(0),
            _ => {}
        }
    }
    Some(((bridge?, vlan, hardware?), port))
}

impl MacMove {
    /// Appends the move in the format of [`parse`].
    pub fn put(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.hardware);
        let numbers = [self.bridge, self.ports[0], self.ports[1], self.count];
        numbers.iter().for_each(|number| into.extend_from_slice(&number.to_ne_bytes()));
    }
}

/// Decodes moves written by [`MacMove::put`].
pub fn parse(bytes: &[u8]) -> Vec<MacMove> {
    let one = |bytes: &[u8]| {
        let number = |at| prefix::u32_at(bytes, at);
        let ports = [number(10)?, number(14)?];
        Some(MacMove { hardware: prefix::array_at(bytes, 0)?, bridge: number(6)?, ports, count: number(18)? })
    };
    bytes.chunks_exact(MOVE).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use testkit::netns::Lab;

    #[test]
    fn root_an_address_at_two_ports() {
        testkit::require_root!();
        let lab = Lab::new("macmoves");
        lab.ip(&["link", "add", "br0", "type", "bridge"]);
        lab.ip(&["link", "set", "br0", "up"]);
        for [near, far] in [["a0", "a1"], ["b0", "b1"]] {
            lab.ip(&["link", "add", near, "type", "veth", "peer", "name", far]);
            lab.ip(&["link", "set", far, "master", "br0"]);
            [near, far].iter().for_each(|name| lab.ip(&["link", "set", name, "up"]));
        }
        let watch = lab.run_inside(|| MoveWatch::open().unwrap());
        let send = |dev: &str, mac: &str| {
            let script = format!(
                "import socket\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('{dev}', 0))\n\
                 s.send(b'\\xff' * 6 + bytes.fromhex('{mac}') + b'\\x88\\xb5' + bytes(46))"
            );
            lab.output("python3", &["-c", &script]);
        };
        for (dev, mac) in
            [("a0", "020000000005"), ("b0", "020000000005"), ("a0", "020000000005"), ("b0", "020000000006")]
        {
            send(dev, mac);
        }
        // The bridge forgets the address; then it appears elsewhere.
        lab.output("bridge", &["fdb", "del", "02:00:00:00:00:06", "dev", "b1", "master"]);
        send("a0", "020000000006");
        let index = |name: &str| -> u32 {
            lab.output("cat", &[&format!("/sys/class/net/{name}/ifindex")]).trim().parse().unwrap()
        };
        let (hardware, ports) = ([2, 0, 0, 0, 0, 5], [index("b1"), index("a1")]);
        let (moves, _) = watch.moves().unwrap();
        assert_eq!(moves, [MacMove { hardware, bridge: index("br0"), ports, count: 2 }]);
        let mut bytes = Vec::new();
        moves[0].put(&mut bytes);
        assert_eq!((parse(&bytes), parse(&bytes[1..])), (moves, Vec::new()));
    }
}
