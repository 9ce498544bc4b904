//! Detects other hosts that use an IPv4 address of this host, as far as their ARP messages show it, and hosts that ask
//! for such an address.
//!
//! The kernel silently ignores an ARP message whose sender has a local address (`arp_process`). An [`ArpWatch`]
//! receives such messages and requests as long as it exists, and sends none. It misses hosts that send no ARP during
//! this time, or send it only to other hosts.
use std::collections::{BTreeMap, BTreeSet};

use netlink::prefix;
use sys::{ARP_ADDRESSES_MAX, ArpSocket, SysError};

/// Bound: senders of ARP that `doctor` keeps for a namespace. Beyond: later senders are left out; earlier ones are
/// findings. By: any host on the link.
const SENDERS_MAX: usize = 256;
/// Bound: ARP messages of a reading. Beyond: later messages are not read. By: any host on the link.
const MESSAGES_MAX: usize = 65_536;

/// Size of a claim in a recording.
const CLAIM: usize = 18;
/// Size of a request in a recording.
const REQUEST: usize = 16;

/// The group bit of a hardware address: clusters share such an address on purpose.
const GROUP_BIT: u8 = 1;

/// ARP messages from one host that uses an address of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpClaim {
    /// The interface that received them.
    pub ifindex: u32,
    /// The claimed address.
    pub addr: [u8; 4],
    /// The hardware address of the other host.
    pub hardware: [u8; 6],
    /// Number of messages.
    pub count: u32,
}

/// ARP requests from one host for an address of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpRequest {
    /// The interface that received them.
    pub ifindex: u32,
    /// The address of this host.
    pub addr: [u8; 4],
    /// The address of the host that asks.
    pub sender: [u8; 4],
    /// Number of requests.
    pub count: u32,
}

/// ARP messages that concern addresses of this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArpHeard {
    /// Messages from hosts that use such an address, at most 256. Hardware addresses of groups are left out.
    pub claims: Vec<ArpClaim>,
    /// Requests for such an address, at most 256.
    pub requests: Vec<ArpRequest>,
}

/// Receives ARP messages whose sender has one of some addresses, or asks for one.
#[derive(Debug)]
pub struct ArpWatch {
    socket: ArpSocket,
    addresses: BTreeSet<[u8; 4]>,
    /// Number of addresses without room in the filter.
    over: u64,
}

impl ArpWatch {
    /// From now on receives ARP messages whose sender has or asks for one of `addresses`, on every interface of the
    /// calling thread's namespace. Needs CAP_NET_RAW. Packets other than ARP cost nothing.
    pub fn open(addresses: &[[u8; 4]]) -> Result<ArpWatch, SysError> {
        let heard = addresses.get(..ARP_ADDRESSES_MAX).unwrap_or(addresses);
        let over = (addresses.len() - heard.len()) as u64;
        Ok(ArpWatch { socket: ArpSocket::open(heard)?, addresses: heard.iter().copied().collect(), over })
    }

    /// Number of addresses that are not watched: those beyond [`ARP_ADDRESSES_MAX`].
    pub fn over(&self) -> u64 {
        self.over
    }

    /// The messages received since the last call.
    pub fn heard(&self) -> Result<ArpHeard, SysError> {
        let (mut claims, mut requests) = (BTreeMap::new(), BTreeMap::new());
        for _ in 0..MESSAGES_MAX {
            let Some(sender) = self.socket.receive()? else { break };
            let is_group = sender.hardware[0] & GROUP_BIT != 0;
            match sender.asks_for {
                _ if self.addresses.contains(&sender.addr) && !is_group => {
                    add_one(&mut claims, (sender.ifindex, sender.addr, sender.hardware));
                }
                Some(addr) if !self.addresses.contains(&sender.addr) => {
                    add_one(&mut requests, (sender.ifindex, addr, sender.addr));
                }
                _ => {}
            }
        }
        let claim = |((ifindex, addr, hardware), count)| ArpClaim { ifindex, addr, hardware, count };
        let request = |((ifindex, addr, sender), count)| ArpRequest { ifindex, addr, sender, count };
        Ok(ArpHeard {
            claims: claims.into_iter().map(claim).collect(),
            requests: requests.into_iter().map(request).collect(),
        })
    }
}

/// Counts one of at most [`SENDERS_MAX`] kinds.
fn add_one<K: Ord>(all: &mut BTreeMap<K, u32>, key: K) {
    if all.len() < SENDERS_MAX || all.contains_key(&key) {
        let count = all.entry(key).or_default();
        *count = count.saturating_add(1);
    }
}

impl ArpClaim {
    /// Appends the claim in the format of [`parse`].
    pub fn put(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.ifindex.to_ne_bytes());
        into.extend_from_slice(&self.addr);
        into.extend_from_slice(&self.hardware);
        into.extend_from_slice(&self.count.to_ne_bytes());
    }
}

/// Decodes claims written by [`ArpClaim::put`].
pub fn parse(bytes: &[u8]) -> Vec<ArpClaim> {
    let claim = |bytes: &[u8]| {
        Some(ArpClaim {
            ifindex: prefix::u32_at(bytes, 0)?,
            addr: prefix::array_at(bytes, 4)?,
            hardware: prefix::array_at(bytes, 8)?,
            count: prefix::u32_at(bytes, 14)?,
        })
    };
    bytes.chunks_exact(CLAIM).filter_map(claim).collect()
}

impl ArpRequest {
    /// Appends the request in the format of [`parse_requests`].
    pub fn put(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.ifindex.to_ne_bytes());
        into.extend_from_slice(&self.addr);
        into.extend_from_slice(&self.sender);
        into.extend_from_slice(&self.count.to_ne_bytes());
    }
}

/// Decodes requests written by [`ArpRequest::put`].
pub fn parse_requests(bytes: &[u8]) -> Vec<ArpRequest> {
    let request = |bytes: &[u8]| {
        Some(ArpRequest {
            ifindex: prefix::u32_at(bytes, 0)?,
            addr: prefix::array_at(bytes, 4)?,
            sender: prefix::array_at(bytes, 8)?,
            count: prefix::u32_at(bytes, 12)?,
        })
    };
    bytes.chunks_exact(REQUEST).filter_map(request).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use testkit::netns::Lab;

    /// Sends an ARP message from `dev`: `sender` asks for `target`, with this hardware address in the message.
    fn ask(lab: &Lab, dev: &str, hardware: &str, [sender, target]: [&str; 2]) {
        let script = format!(
            "import socket\nmac, sender = bytes.fromhex('{hardware}'), socket.inet_aton('{sender}')\n\
             s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('{dev}', 0x806))\n\
             s.send(b'\\xff' * 6 + mac + bytes.fromhex('0806 0001 0800 06 04 0001') + mac + sender + bytes(6) + \
             socket.inet_aton('{target}') + bytes(18))"
        );
        lab.output("python3", &["-c", &script]);
    }

    #[test]
    fn root_senders_with_our_addresses_are_heard() {
        testkit::require_root!();
        let lab = Lab::new("arpclaims");
        lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
        lab.ip(&["link", "set", "va", "up"]);
        lab.ip(&["link", "set", "vb", "up"]);
        let watch = lab.run_inside(|| ArpWatch::open(&[[192, 0, 2, 1], [192, 0, 2, 7]])).unwrap();
        ask(&lab, "vb", "020000000005", ["192.0.2.1", "192.0.2.99"]);
        ask(&lab, "vb", "020000000005", ["192.0.2.1", "192.0.2.99"]);
        ask(&lab, "vb", "020000000006", ["192.0.2.2", "192.0.2.99"]);
        ask(&lab, "vb", "030000000006", ["192.0.2.7", "192.0.2.99"]);
        ask(&lab, "vb", "020000000008", ["192.0.2.8", "192.0.2.7"]);
        let index: u32 = lab.output("cat", &["/sys/class/net/va/ifindex"]).trim().parse().unwrap();
        let claim = ArpClaim { ifindex: index, addr: [192, 0, 2, 1], hardware: [2, 0, 0, 0, 0, 5], count: 2 };
        let request = ArpRequest { ifindex: index, addr: [192, 0, 2, 7], sender: [192, 0, 2, 8], count: 1 };
        let heard = watch.heard().unwrap();
        assert_eq!((heard.claims, heard.requests, watch.over()), (vec![claim], vec![request], 0));
        assert_eq!(watch.heard().unwrap(), ArpHeard::default());
        let mut bytes = Vec::new();
        claim.put(&mut bytes);
        assert_eq!((parse(&bytes), parse(&bytes[1..])), (vec![claim], Vec::new()));
        bytes.clear();
        request.put(&mut bytes);
        assert_eq!((parse_requests(&bytes), parse_requests(&bytes[1..])), (vec![request], Vec::new()));
    }
}
