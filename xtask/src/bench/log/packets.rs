//! Packets that a rule logs; each has its number in its source address.

use anyhow::{Context, Result, ensure};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use sys::socket;
use testkit::netns::Lab;

/// First octet of every source address; the other three hold the packet's number.
pub(crate) const NETWORK: u8 = 45;
/// The group that the rule logs to.
pub(crate) const GROUP: u16 = 2;
/// Length of an Ethernet header.
const ETHERNET: usize = 14;
/// How long a sender sleeps when it is ahead of its rate.
const AHEAD: Duration = Duration::from_micros(200);

/// A namespace with a pair of interfaces: packets sent into one end reach a rule at the other that logs and drops
/// them.
pub(crate) fn logging(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.ip(&["link", "set", "lo", "up"]);
    lab.ip(&["link", "add", "from0", "type", "veth", "peer", "name", "to0"]);
    lab.ip(&["link", "set", "from0", "up"]);
    lab.ip(&["link", "set", "to0", "up"]);
    lab.nft(&format!(
        "table inet bench {{ chain pre {{ type filter hook prerouting priority -300
           iifname \"to0\" counter log prefix \"fw-drop: \" group {GROUP} snaplen 128
           iifname \"to0\" drop
         }}
         }}"
    ));
    lab
}

/// Sends packets `0..count` in the calling thread's namespace, at most `rate` per second; returns the time it took.
pub(crate) fn send(count: u32, rate: Option<u32>) -> Result<Duration> {
    ensure!(count < 1 << 24, "a packet's number has 24 bits");
    let sender = open()?;
    let packets: Vec<Vec<u8>> = (0..count).map(packet).collect();
    let begun = Instant::now();
    for (sent, packet) in packets.iter().enumerate() {
        while sender.send(packet).is_err() {
            // The queue is full for a moment.
            std::thread::yield_now();
        }
        let Some(rate) = rate.filter(|_| sent % 16 == 0) else { continue };
        while sent as f64 > begun.elapsed().as_secs_f64() * f64::from(rate) {
            std::thread::sleep(AHEAD);
        }
    }
    Ok(begun.elapsed())
}

/// A packet socket at one end of the pair, which sends in the usual way.
pub(crate) fn open() -> Result<UdpSocket> {
    let index = index_of("from0")?;
    let fd = socket::open(socket::AF_PACKET, socket::SOCK_RAW, 0)?;
    let mut address = [0u8; 20];
    address[..2].copy_from_slice(&(socket::AF_PACKET as u16).to_ne_bytes());
    address[4..8].copy_from_slice(&index.to_ne_bytes());
    socket::bind_bytes(&fd, &address).map_err(|errno| anyhow::anyhow!("bind: {}", errno))?;
    Ok(UdpSocket::from(OwnedFd::from(fd)))
}

/// The index of an interface in the calling thread's namespace.
pub(crate) fn index_of(iface: &str) -> Result<u32> {
    // /sys shows the namespace in which it was mounted; if that is a different one, ask the kernel.
    let index = std::fs::read_to_string(format!("/sys/class/net/{iface}/ifindex"));
    index.ok().and_then(|text| text.trim().parse().ok()).map_or_else(|| by_name(iface), Ok)
}

fn by_name(iface: &str) -> Result<u32> {
    let out = std::process::Command::new("ip").args(["-o", "link", "show", iface]).output()?;
    let text = String::from_utf8(out.stdout)?;
    let index = text.split(':').next().and_then(|index| index.trim().parse().ok());
    index.with_context(|| format!("ip shows no index of {iface}"))
}

/// Five of ten packets are TCP, three are UDP and two are ICMP.
fn packet(number: u32) -> Vec<u8> {
    let [_, a, b, c] = number.to_be_bytes();
    let (proto, rest) = match number % 10 {
        0..5 => (6, tcp(number)),
        5..8 => (17, [&40_000_u16.to_be_bytes()[..], &53_u16.to_be_bytes(), &16_u16.to_be_bytes(), &[0; 10]].concat()),
        _ => (1, [&[8, 0, 0, 0][..], &7_u16.to_be_bytes(), &(number as u16).to_be_bytes(), &[0; 8]].concat()),
    };
    let mut bytes = vec![0xff; 6];
    bytes.extend([2, 0, 0, 0, 0, 1, 8, 0]);
    bytes.extend([0x45, 0]);
    bytes.extend(((20 + rest.len()) as u16).to_be_bytes());
    bytes.extend((number as u16).to_be_bytes());
    bytes.extend([0x40, 0, 57, proto, 0, 0, NETWORK, a, b, c, 192, 0, 2, 1]);
    let sum = checksum(&bytes[ETHERNET..]);
    bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(rest);
    bytes
}

fn tcp(number: u32) -> Vec<u8> {
    let mut bytes = Vec::from(40_000_u16.to_be_bytes());
    bytes.extend(443_u16.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 0x50, 2, 0xfa, 0xf0, 0, 0, 0, 0]);
    bytes
}

/// Checksum of an IPv4 header (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// The packets found in an output, and the total number of records.
pub(crate) struct Found {
    seen: Vec<bool>,
    /// Number of records, including repeated ones.
    pub(crate) records: u64,
}

impl Found {
    pub(crate) fn none(count: u32) -> Found {
        Found { seen: vec![false; count as usize], records: 0 }
    }

    /// Number of distinct packets.
    pub(crate) fn packets(&self) -> u64 {
        self.seen.iter().filter(|seen| **seen).count() as u64
    }

    fn add(&mut self, [a, b, c]: [u8; 3]) {
        let number = u32::from_be_bytes([0, a, b, c]) as usize;
        if let Some(seen) = self.seen.get_mut(number) {
            *seen = true;
            self.records += 1;
        }
    }

    /// Searches text for source addresses: `45.A.B.C` after `label`, or after any character except a digit or a dot.
    pub(crate) fn in_text(mut self, text: &[u8], label: &str) -> Found {
        let word = format!("{label}{NETWORK}.");
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| position(rest, word.as_bytes())) {
            let start = at + found;
            at = start + word.len();
            let before = start.checked_sub(1).and_then(|before| text.get(before)).copied().unwrap_or(b' ');
            if label.is_empty() && (before.is_ascii_digit() || before == b'.') {
                continue;
            }
            if let Some(octets) = text.get(at..).and_then(octets) {
                self.add(octets);
            }
        }
        self
    }

    /// Searches for packets by the source address in their IPv4 header.
    pub(crate) fn in_packets(mut self, bytes: &[u8]) -> Found {
        for (at, window) in bytes.windows(20).enumerate() {
            let is_ours =
                window[0] == 0x45 && window[8] == 57 && window[12] == NETWORK && window[16..] == [192, 0, 2, 1];
            if is_ours && at > 0 {
                self.add([window[13], window[14], window[15]]);
            }
        }
        self
    }
}

fn position(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window == word)
}

/// Three numbers separated by dots at the beginning of the text.
fn octets(text: &[u8]) -> Option<[u8; 3]> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let text = std::str::from_utf8(text.get(..end)?).ok()?;
    let numbers: Vec<u8> = text.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_again() {
        let text: String = [0, 70_000, 5]
            .iter()
            .map(|n: &u32| {
                let [_, a, b, c] = n.to_be_bytes();
                format!("SRC={NETWORK}.{a}.{b}.{c} DST=192.0.2.1 ID=145.1 \n")
            })
            .collect();
        let found = Found::none(100_000).in_text(text.as_bytes(), "");
        assert_eq!((found.packets(), found.records), (3, 3));
        let bytes: Vec<u8> = (0..50).flat_map(packet).collect();
        let found = Found::none(100).in_packets(&bytes);
        assert_eq!((found.packets(), found.records), (50, 50));
        assert_eq!(checksum(&packet(77)[ETHERNET..ETHERNET + 20]), 0);
    }
}
