//! Sends numbered packets into one end of a pair of interfaces; contestants capture at the other end. Alternatively,
//! and several times as fast, the kernel generates packets at that end as if they had been received.

use super::super::log::packets::{index_of, open};
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use sys::bpf;
use testkit::netns::Lab;

/// The interface that contestants capture from.
pub(super) const IFACE: &str = "to0";
/// First octet of every source address; the other three hold the packet's number.
const NETWORK: u8 = 45;
/// Length of the Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;
/// How long a sender sleeps when it is ahead of its rate.
const AHEAD: Duration = Duration::from_micros(100);

/// A namespace with the pair of interfaces. They have no addresses, so the kernel sends no neighbour requests and only
/// the bench sends packets.
pub(super) fn pair() -> Lab {
    let lab = Lab::new("benchcapture");
    lab.ip(&["link", "add", "from0", "type", "veth", "peer", "name", IFACE]);
    for iface in ["from0", IFACE] {
        lab.ip(&["link", "set", "dev", iface, "addrgenmode", "none"]);
        lab.ip(&["link", "set", iface, "up"]);
    }
    lab
}

/// `BPF_PROG_TYPE_XDP`
const XDP: u32 = 6;

/// `r6 = delay; do { bpf_ktime_get_ns(); } while (--r6); return XDP_PASS`. One system call makes the kernel generate
/// all frames, so the program itself has to add the delay between two of them.
fn pass(delay: u32) -> Vec<[u8; 8]> {
    let [a, b, c, d] = delay.to_le_bytes();
    let wait = [
        [0xb7, 6, 0, 0, a, b, c, d],
        [0x85, 0, 0, 0, 5, 0, 0, 0],
        [0x17, 6, 0, 0, 1, 0, 0, 0],
        [0x55, 6, 0xfd, 0xff, 0, 0, 0, 0],
    ];
    let pass = [[0xb7, 0, 0, 0, 2, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    if delay == 0 { pass.to_vec() } else { [&wait[..], &pass].concat() }
}

/// The source of the packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// A socket at the other end that sends them one by one.
    Socket,
    /// The kernel, on the receiving side. All packets are identical; `delay` is the number of clock readings between
    /// two of them.
    Kernel { delay: u32 },
}

/// The packets to send.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) source: Source,
    pub(super) packets: u32,
    /// Packets per second; `None` sends as fast as possible.
    pub(super) rate: Option<u32>,
    /// Bytes of a packet without the Ethernet checksum.
    pub(super) bytes: usize,
}

/// The result of sending.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    pub(super) took: Duration,
    /// CPU of the sending thread per packet; it includes the way to the other end and the cost of a packet socket
    /// there.
    pub(super) cpu_ns: f64,
}

impl Load {
    /// Sends the packets from the calling thread, which is in the namespace. `sent_ns` receives the time of each
    /// packet in ns since `begin`.
    pub(super) fn send(&self, begin: Instant, sent_ns: &[AtomicU64]) -> Result<Sent> {
        if let Source::Kernel { delay } = self.source {
            return self.inject(delay);
        }
        ensure!(self.packets < 1 << 24, "a packet's number has 24 bits");
        let socket = open()?;
        let mut packet = packet(self.bytes);
        let (start, cpu) = (Instant::now(), own_cpu_ns());
        for number in 0..self.packets {
            put_number(&mut packet, number);
            if let Some(rate) = self.rate {
                wait_for_turn(start, number, rate);
            }
            if let Some(place) = sent_ns.get(number as usize) {
                place.store(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
            while socket.send(&packet).is_err() {
                // The queue is full for a moment.
                std::thread::yield_now();
            }
        }
        let cpu_ns = (own_cpu_ns() - cpu) as f64 / f64::from(self.packets.max(1));
        Ok(Sent { took: start.elapsed(), cpu_ns })
    }
}

impl Load {
    fn inject(&self, delay: u32) -> Result<Sent> {
        let instructions = pass(delay);
        let shape = bpf::ProgramShape {
            name: "nw_pass",
            kind: XDP,
            attach: 0,
            flags: 0,
            target: 0,
            instructions: instructions.as_flattened(),
            licence: c"Dual BSD/GPL",
        };
        let program = bpf::load_program(&shape, &mut [])?;
        let (packet, index) = (packet(self.bytes), index_of(IFACE)?);
        let (start, cpu) = (Instant::now(), own_cpu_ns());
        bpf::inject(&program, &packet, index, self.packets).map_err(|errno| anyhow::anyhow!("frames: {errno}"))?;
        let cpu_ns = (own_cpu_ns() - cpu) as f64 / f64::from(self.packets.max(1));
        Ok(Sent { took: start.elapsed(), cpu_ns })
    }
}

fn wait_for_turn(start: Instant, number: u32, rate: u32) {
    // At high rates packets are sent in groups of 16, as the shortest sleep is longer than the gap between two
    // packets.
    if rate > 20_000 && number % 16 > 0 {
        return;
    }
    let due = Duration::from_secs_f64(f64::from(number) / f64::from(rate));
    while let Some(left) = due.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        std::thread::sleep(if rate > 20_000 { left.min(AHEAD) } else { left });
    }
}

/// CPU time of the calling thread so far; the scheduler counts nanoseconds.
fn own_cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// A datagram for another host, which the receiving machine drops immediately.
fn packet(bytes: usize) -> Vec<u8> {
    let mut packet = vec![2, 0, 0, 0, 0, 99, 2, 0, 0, 0, 0, 1, 8, 0];
    let length = (bytes - 14) as u16;
    packet.extend([0x45, 0]);
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 57, 17, 0, 0, NETWORK, 0, 0, 0, 192, 0, 2, 1]);
    packet.extend(40_000_u16.to_be_bytes());
    packet.extend(7_u16.to_be_bytes());
    packet.extend((length - 20).to_be_bytes());
    packet.resize(bytes.max(HEADERS), 0);
    packet
}

fn put_number(packet: &mut [u8], number: u32) {
    let [_, octets @ ..] = number.to_be_bytes();
    packet[27..30].copy_from_slice(&octets);
    packet[24..26].fill(0);
    let words = packet[14..34].chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
}

/// The number of the packet that a line describes. A timestamp may also contain the first octet.
pub(super) fn number_in(line: &[u8]) -> Option<u32> {
    let word = [NETWORK / 10 + b'0', NETWORK % 10 + b'0', b'.'];
    let is_inner = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let is_start = |at: usize| !line.get(at.wrapping_sub(1)).is_some_and(is_inner);
    let starts = line.windows(3).enumerate().filter(|(at, window)| *window == word && is_start(*at));
    starts.into_iter().find_map(|(at, _)| octets(line.get(at + 3..)?))
}

fn octets(text: &[u8]) -> Option<u32> {
    let mut octets = text.split(|byte| !byte.is_ascii_digit());
    let mut octet = || std::str::from_utf8(octets.next()?).ok()?.parse::<u8>().ok();
    Some(u32::from_be_bytes([0, octet()?, octet()?, octet()?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_lines() {
        for (line, number) in [
            ("12:45.1 IP 45.0.1.2.40000 > 192.0.2.1.7: UDP, length 18", Some(258)),
            ("2026-01-01T00:00:45.123456Z\tto0\tudp\t45.1.0.0\t40000", Some(65_536)),
            ("145.0.0.1", None),
            ("45.0.0", None),
        ] {
            assert_eq!(number_in(line.as_bytes()), number, "{line}");
        }
        let mut packet = packet(60);
        put_number(&mut packet, 0x01_02_03);
        assert_eq!((packet.len(), &packet[26..30]), (60, &[45, 1, 2, 3][..]));
        let words = packet[14..34].chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "the header's sum");
    }
}
