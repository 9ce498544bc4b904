//! How late packet sockets announce packets to their readers (`c/packet_delays.bpf.c`).
//!
//! Needs Linux 6.12 (the tracepoint `sk_data_ready`), BTF, CAP_BPF and CAP_PERFMON. Measuring ends when the value is
//! dropped or the process ends.
use sys::Host;

use crate::error::BpfError;
use crate::link::Link;
use crate::load::{LoadSpec, LoadedObject, load};
use crate::time_parts::quantile;

const OBJECT: &[u8] = include_bytes!("../objects/packet_delays.o");

/// Offsets in `struct delays`.
const WAKEUPS: usize = 0;
const MEASURED: usize = 8;
const MAX: usize = 16;
const TIME_PARTS: usize = 24;
/// `PARTS` of the program.
const PARTS_COUNT: usize = 168;

/// The attached program, and the measurements of the selected sockets.
#[derive(Debug)]
pub struct PacketDelays {
    loaded: LoadedObject,
    _link: Link,
}

/// The delays with which one socket announced its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketDelay {
    /// Number of times that the reader was woken.
    pub wakeups: u64,
    /// The median over all wake-ups of the delay of the oldest announced packet, in ns, accurate to a quarter; `None`
    /// without a ring of version 2 or 3, or without a packet.
    pub median_ns: Option<u64>,
    /// The maximum of this delay in ns.
    pub longest_ns: Option<u64>,
}

impl PacketDelays {
    /// Loads the program and attaches it: takes 3 to 6 ms. Sockets are selected by their cookies, with one system call
    /// each; other sockets are not measured.
    pub fn open(host: &Host, cookies: &[u64]) -> Result<PacketDelays, BpfError> {
        let tai_offset_ns = sys::clock::tai_offset_ns().to_ne_bytes();
        let entries = u32::try_from(cookies.len()).unwrap_or(u32::MAX).max(1);
        let spec = LoadSpec {
            object: OBJECT,
            programs: &["on_ready"],
            constants: &[("tai_offset_ns", &tai_offset_ns)],
            entries: &[("delays", entries)],
        };
        let loaded = load(host, &spec)?;
        let map = loaded.map("delays")?;
        let empty = vec![0; map.value_bytes()];
        for cookie in cookies {
            map.put(&cookie.to_ne_bytes(), &empty)?;
        }
        let link = loaded.program("on_ready")?.attach()?;
        Ok(PacketDelays { loaded, _link: link })
    }

    /// The measurements of each socket so far, by its cookie. One system call per thousand.
    pub fn for_each(&self, mut each: impl FnMut(u64, PacketDelay)) -> Result<(), BpfError> {
        self.loaded.map("delays")?.for_each(|key, value| {
            if let Some(cookie) = key.first_chunk() {
                each(u64::from_ne_bytes(*cookie), decode(value));
            }
        })
    }
}

fn decode(value: &[u8]) -> PacketDelay {
    let number = |at: usize| value.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
    let count = |part: usize| value.get(TIME_PARTS + part * 4..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
    let measured = number(MEASURED).filter(|measured| *measured > 0);
    let counts = (0..PARTS_COUNT).map_while(count).map(u64::from);
    let longest_ns = measured.and_then(|_| number(MAX));
    PacketDelay {
        wakeups: number(WAKEUPS).unwrap_or(0),
        // The middle of a histogram part may exceed all delays in it.
        median_ns: longest_ns.and_then(|longest| Some(quantile(counts, 50)?.min(longest))),
        longest_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_its_part() {
        let longest = crate::time_parts::bounds(PARTS_COUNT as u32 - 1);
        assert!(longest.1 > 3600 * 1_000_000_000, "{longest:?}");
    }

    #[test]
    fn a_value_of_any_length_is_decoded() {
        let mut value = vec![0; TIME_PARTS + 4 * PARTS_COUNT];
        assert_eq!(decode(&value), PacketDelay::default());
        value[..8].copy_from_slice(&5_u64.to_ne_bytes());
        value[8..16].copy_from_slice(&3_u64.to_ne_bytes());
        value[16..24].copy_from_slice(&13_u64.to_ne_bytes());
        for part in [8, 9, 10] {
            value[TIME_PARTS + 4 * part..][..4].copy_from_slice(&1_u32.to_ne_bytes());
        }
        assert_eq!(decode(&value), PacketDelay { wakeups: 5, median_ns: Some(11), longest_ns: Some(13) });
        value[16..24].copy_from_slice(&10_u64.to_ne_bytes());
        assert_eq!(decode(&value), PacketDelay { wakeups: 5, median_ns: Some(10), longest_ns: Some(10) });
        assert_eq!(decode(&value[..20]), PacketDelay { wakeups: 5, median_ns: None, longest_ns: None });
    }
}
