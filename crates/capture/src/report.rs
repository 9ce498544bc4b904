//! The report of a capture.
use std::fmt;

use crate::latency::LatencyCounts;

/// Counts of the packets so far: received, dropped, handed out.
#[derive(Debug, Clone, Default)]
pub struct CaptureReport {
    /// Packets that passed the kernel's filter, including dropped ones.
    pub received: u64,
    /// Packets dropped because the ring was full.
    pub dropped_by_ring: u64,
    /// Packets taken out of the ring so far.
    pub handed: u64,
    /// Packets that interfaces dropped during the capture, before a packet socket could see them.
    pub dropped_by_ifaces: Vec<IfaceDrops>,
    /// Packets with time stamps of an adapter's clock.
    pub adapter_stamps: u64,
    /// Packets cut short by lack of room, although all of it was requested.
    pub truncated: u64,
    /// Size of all rings in bytes.
    pub ring_bytes: u64,
    /// Time from the kernel's time stamp to the row writer.
    pub latency: LatencyCounts,
}

/// Packets that an interface has dropped since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfaceDrops {
    /// Its name, escaped.
    pub iface: Box<str>,
    /// `rx_dropped` and `rx_missed_errors` of its counters.
    pub packets: u64,
}

impl fmt::Display for CaptureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.received == 1 { "" } else { "s" };
        let of_ifaces: u64 = self.dropped_by_ifaces.iter().map(|drops| drops.packets).sum();
        write!(f, "{} packet{plural} received, {} dropped by the ring", self.received, self.dropped_by_ring)?;
        write!(f, ", {of_ifaces} by interfaces")?;
        for (nth, drops) in self.dropped_by_ifaces.iter().enumerate() {
            write!(f, "{}{} {}", if nth == 0 { " (" } else { ", " }, drops.iface, drops.packets)?;
        }
        if !self.dropped_by_ifaces.is_empty() {
            f.write_str(")")?;
        }
        if self.truncated > 0 {
            write!(f, "; {} truncated for lack of room (raise with --buffer)", self.truncated)?;
        }
        if self.adapter_stamps > 0 {
            write!(f, "; {} with timestamps of network cards", self.adapter_stamps)?;
        }
        Ok(())
    }
}

impl CaptureReport {
    /// Describes the time from the kernel's timestamp to the row writer; `None` if no packet was measured.
    pub fn latency_in_words(&self) -> Option<String> {
        let (half, most) = (self.latency.at(500)?, self.latency.at(990)?);
        Some(format!("from the kernel to netwren: median {}, 99th percentile {}", Ns(half), Ns(most)))
    }
}

/// A duration for people.
struct Ns(u64);

impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ns @ 0..1_000_000 => write!(f, "{} µs", ns.div_ceil(1000)),
            ns @ 1_000_000..10_000_000_000 => write!(f, "{}.{} ms", ns / 1_000_000, ns / 100_000 % 10),
            ns => write!(f, "{} s", ns / 1_000_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_it_all() {
        let mut report = CaptureReport { received: 1, ..CaptureReport::default() };
        assert_eq!(report.to_string(), "1 packet received, 0 dropped by the ring, 0 by interfaces");
        report.adapter_stamps = 1;
        assert!(report.to_string().ends_with(", 0 by interfaces; 1 with timestamps of network cards"));
        report.adapter_stamps = 0;
        report.received = 100;
        report.dropped_by_ring = 7;
        let drops = |iface: &str, packets| IfaceDrops { iface: iface.into(), packets };
        report.dropped_by_ifaces = vec![drops("eth0", 2), drops("eth1", 3)];
        report.latency.add(50_000);
        report.latency.add(2_500_000);
        assert_eq!(report.to_string(), "100 packets received, 7 dropped by the ring, 5 by interfaces (eth0 2, eth1 3)");
        assert_eq!(
            report.latency_in_words().as_deref(),
            Some("from the kernel to netwren: median 54 µs, 99th percentile 2.6 ms")
        );
    }
}
