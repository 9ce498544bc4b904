//! Detects other hosts that use an IPv4 address of this host, as far as their ARP messages show it.
//!
//! The kernel silently ignores an ARP message whose sender has a local address (`arp_process`). An [`ArpWatch`]
//! receives such messages as long as it exists, and sends none. It misses hosts that send no ARP during this time, or
//! send it only to other hosts.
use std::collections::BTreeMap;

use netlink::prefix;
use sys::{ARP_ADDRESSES_MAX, ArpSocket, SysError};

/// Bound: senders of ARP that `doctor` keeps for a namespace. Beyond: later senders are left out; earlier ones are
/// findings. By: any host on the link.
const SENDERS_MAX: usize = 256;
/// Bound: ARP messages of a reading. Beyond: later messages are not read. By: any host on the link.
const MESSAGES_MAX: usize = 65_536;

/// Size of a claim in a recording.
const CLAIM: usize = 18;

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

/// Receives ARP messages whose sender has one of some addresses.
#[derive(Debug)]
pub struct ArpWatch {
    socket: ArpSocket,
    /// Number of addresses without room in the filter.
    over: u64,
}

impl ArpWatch {
    /// From now on receives ARP messages whose sender has one of `addresses`, on every interface of the calling
    /// thread's namespace. Needs CAP_NET_RAW. Packets other than ARP cost nothing.
    pub fn open(addresses: &[[u8; 4]]) -> Result<ArpWatch, SysError> {
        let heard = addresses.get(..ARP_ADDRESSES_MAX).unwrap_or(addresses);
        let over = (addresses.len() - heard.len()) as u64;
        Ok(ArpWatch { socket: ArpSocket::open(heard)?, over })
    }

    /// Number of addresses that are not watched: those beyond [`ARP_ADDRESSES_MAX`].
    pub fn over(&self) -> u64 {
        self.over
    }

    /// The claims received since the last call, at most 256. Hardware addresses of groups are left out.
    pub fn claims(&self) -> Result<Vec<ArpClaim>, SysError> {
        let mut claims: BTreeMap<(u32, [u8; 4], [u8; 6]), u32> = BTreeMap::new();
        for _ in 0..MESSAGES_MAX {
            let Some(sender) = self.socket.receive()? else { break };
            let key = (sender.ifindex, sender.addr, sender.hardware);
            let is_group = sender.hardware[0] & GROUP_BIT != 0;
            if !is_group && (claims.len() < SENDERS_MAX || claims.contains_key(&key)) {
                let count = claims.entry(key).or_default();
                *count = count.saturating_add(1);
            }
        }
        Ok(claims
            .into_iter()
            .map(|((ifindex, addr, hardware), count)| ArpClaim { ifindex, addr, hardware, count })
            .collect())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use testkit::netns::Lab;

    /// Sends an ARP message from `dev`: `sender` asks for 192.0.2.99, with this hardware address in the message.
    fn ask(lab: &Lab, dev: &str, hardware: &str, sender: &str) {
        let script = format!(
            "import socket\nmac, sender = bytes.fromhex('{hardware}'), socket.inet_aton('{sender}')\n\
             s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('{dev}', 0x806))\n\
             s.send(b'\\xff' * 6 + mac + bytes.fromhex('0806 0001 0800 06 04 0001') + mac + sender + bytes(6) + \
             socket.inet_aton('192.0.2.99') + bytes(18))"
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
        ask(&lab, "vb", "020000000005", "192.0.2.1");
        ask(&lab, "vb", "020000000005", "192.0.2.1");
        ask(&lab, "vb", "020000000006", "192.0.2.2");
        ask(&lab, "vb", "030000000006", "192.0.2.7");
        let index: u32 = lab.output("cat", &["/sys/class/net/va/ifindex"]).trim().parse().unwrap();
        let claim = ArpClaim { ifindex: index, addr: [192, 0, 2, 1], hardware: [2, 0, 0, 0, 0, 5], count: 2 };
        assert_eq!((watch.claims().unwrap(), watch.over()), (vec![claim], 0));
        assert_eq!(watch.claims().unwrap(), []);
        let mut bytes = Vec::new();
        claim.put(&mut bytes);
        assert_eq!((parse(&bytes), parse(&bytes[1..])), (vec![claim], Vec::new()));
    }
}
