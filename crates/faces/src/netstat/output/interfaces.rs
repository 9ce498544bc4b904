//! `netstat -i`: one line for each interface, or with `-e` the paragraph that ifconfig prints.

use super::address::mask;
use super::hardware::{hardware, put_address};
use crate::pieces::{Hex, Left, Outside, Right, list, put, when};
use record::Addr;
use record::rows::{Link, LinkAddr, LinkAddr6, LinkStats, iff};

/// A line of `netstat -i`: an interface, or an alias from the label of an IPv4 address.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Its name, or the alias (`eth0:1`).
    pub name: &'a [u8],
    /// The interface.
    pub link: &'a Link,
    /// True for an alias, which has no counters.
    pub alias: bool,
    /// Its first IPv4 address with that name.
    pub addr: Option<&'a LinkAddr>,
    /// IPv6 addresses of the namespace; only those of this interface are printed.
    pub addrs6: &'a [LinkAddr6],
}

/// Title of the whole listing; printed once per run.
pub const INTERFACES_TITLE: &[u8] = b"Kernel Interface table\n";
/// Heading of the short form; printed once per round.
pub const INTERFACES_HEADING: &[u8] =
    b"Iface             MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\n";

/// Flags with their words in the order of the long form, and their letters with their places in the short form.
/// PROMISC and POINTOPOINT have the same letter: 2.10 does not distinguish them.
#[rustfmt::skip]
const FLAGS: [(u32, &str, u8, usize); 14] = [
    (iff::UP, "UP", b'U', 13), (iff::BROADCAST, "BROADCAST", b'B', 1), (iff::DEBUG, "DEBUG", b'D', 2),
    (iff::LOOPBACK, "LOOPBACK", b'L', 3), (iff::POINTOPOINT, "POINTOPOINT", b'P', 9),
    (iff::NOTRAILERS, "NOTRAILERS", b'N', 7), (iff::RUNNING, "RUNNING", b'R', 12), (iff::NOARP, "NOARP", b'O', 8),
    (iff::PROMISC, "PROMISC", b'P', 6), (iff::ALLMULTI, "ALLMULTI", b'A', 0), (iff::SLAVE, "SLAVE", b's', 10),
    (iff::MASTER, "MASTER", b'm', 11), (iff::MULTICAST, "MULTICAST", b'M', 4), (iff::DYNAMIC, "DYNAMIC", b'd', 5),
];

impl Interface<'_> {
    /// True if the interface is up: without `-a` only such interfaces are listed.
    pub fn is_up(&self) -> bool {
        self.flags() & iff::UP != 0
    }

    // The ioctl that netstat uses returns only 16 bits.
    fn flags(&self) -> u32 {
        self.link.flags & 0xffff
    }

    /// Appends the line of the short form.
    pub fn put_short(&self, out: &mut Vec<u8>, bug_compatible: bool) {
        put!(out, Left(Outside(self.name, bug_compatible), 15), " ", Right(self.link.mtu as i32, 5), " ");
        match self.stats() {
            Some(stats) => put_short_counters(out, &stats),
            None => put!(out, Left("     - no statistics available -", 56)),
        }
        put!(out, when(self.flags() == 0, "[NO FLAGS]"));
        let mut letters = FLAGS.map(|(flag, _, letter, place)| (place, letter, self.flags() & flag != 0));
        letters.sort_unstable();
        out.extend(letters.iter().filter(|(.., is_set)| *is_set).map(|(_, letter, _)| letter));
        put!(out, "\n");
    }

    fn stats(&self) -> Option<DevCounters> {
        if self.alias { None } else { self.link.stats.map(DevCounters::new) }
    }

    /// Appends the paragraph of the long form.
    pub fn put_long(&self, out: &mut Vec<u8>, bug_compatible: bool) {
        // A signed short, which is negative if DYNAMIC is set.
        put!(out, Outside(self.name, bug_compatible), ": flags=", self.flags() as i16);
        put_flag_words(out, self.flags());
        put!(out, "  mtu ", self.link.mtu as i32, "\n");
        self.put_addresses(out);
        self.put_hardware(out);
        if let Some(counters) = self.stats() {
            put_long_counters(out, &counters);
        }
        self.put_places(out);
        put!(out, "\n");
    }

    fn put_addresses(&self, out: &mut Vec<u8>) {
        if let Some(addr) = self.addr {
            put!(out, "        inet ", Addr::V4(addr.local), "  netmask ", Addr::V4(mask(addr.prefix_len)));
            if self.flags() & iff::BROADCAST != 0 {
                put!(out, "  broadcast ", Addr::V4(addr.broadcast));
            }
            if self.flags() & iff::POINTOPOINT != 0 {
                put!(out, "  destination ", Addr::V4(addr.peer));
            }
            put!(out, "\n");
        }
        for addr in self.addrs6.iter().filter(|addr| *addr.iface == *self.name) {
            put!(out, "        inet6 ", Addr::V6(addr.addr).unmapped(), "  prefixlen ", addr.prefix_len);
            put!(out, "  scopeid 0x", Hex(addr.scope));
            put_scope_words(out, addr.scope);
            put!(out, "\n");
        }
    }

    fn put_hardware(&self, out: &mut Vec<u8>) {
        let kind = hardware(self.link.hardware);
        put!(out, "        ", kind.name);
        put_address(out, kind, &self.link.address);
        put!(out, "  txqueuelen ", self.link.tx_queue as i32, "  (", kind.title, ")\n");
        if self.flags() & iff::PORTSEL != 0 {
            const PORTS: [&str; 7] = ["unknown", "10base2", "10baseT", "AUI", "100baseT", "100baseTX", "100baseFX"];
            let port = PORTS.get(usize::from(self.link.map.port)).copied().unwrap_or("unknown");
            put!(out, "        media ", port, when(self.flags() & iff::AUTOMEDIA != 0, "autoselect"), "\n");
        }
    }

    // The ioctl's numbers are narrower than rtnetlink's.
    fn put_places(&self, out: &mut Vec<u8>) {
        let map = self.link.map;
        let (irq, base) = (map.irq as u8, map.base_addr as u16);
        if irq == 0 && map.mem_start == 0 && map.dma == 0 && base < 0x100 {
            return;
        }
        put!(out, "        device ", (irq != 0).then_some(list!("interrupt ", irq, "  ")));
        put!(out, (base >= 0x100).then_some(list!("base 0x", Hex(base), "  ")));
        put!(out, (map.mem_start != 0).then_some(list!("memory 0x", Hex(map.mem_start), "-", Hex(map.mem_end), "  ")));
        put!(out, (map.dma != 0).then_some(("  dma 0x", Hex(map.dma))), "\n");
    }
}

/// Appends `<UP,LOOPBACK>`.
fn put_flag_words(out: &mut Vec<u8>, flags: u32) {
    if flags == 0 {
        // Instead of the last comma, netstat removes the closing bracket.
        return put!(out, "<");
    }
    put_listed(out, FLAGS.iter().filter(|(flag, ..)| flags & flag != 0).map(|(_, word, ..)| *word));
}

fn put_scope_words(out: &mut Vec<u8>, scope: u8) {
    const COMPAT: u8 = 0x80;
    let bare = scope & !COMPAT;
    let words = [
        (scope & COMPAT != 0, "compat"),
        (bare == 0, "global"),
        (bare & 0x20 != 0, "link"),
        (bare & 0x40 != 0, "site"),
        (bare & 0x10 != 0, "host"),
    ];
    put_listed(out, words.iter().filter(|(on, _)| *on).map(|(_, word)| *word));
}

/// Appends `<A,B>`, or nothing without words.
fn put_listed<'w>(out: &mut Vec<u8>, words: impl Iterator<Item = &'w str>) {
    let mut before = "<";
    for word in words {
        put!(out, before, word);
        before = ",";
    }
    put!(out, when(before == ",", ">"));
}

/// The counters in the form in which /proc/net/dev adds them up (net/core/net-procfs.c, `dev_seq_printf_stats`), which
/// netstat reads.
struct DevCounters {
    stats: LinkStats,
    rx_dropped: u64,
    frame: u64,
    carrier: u64,
}

impl DevCounters {
    fn new(stats: LinkStats) -> DevCounters {
        let sum = |parts: &[u64]| parts.iter().fold(0u64, |sum, &part| sum.wrapping_add(part));
        DevCounters {
            stats,
            rx_dropped: sum(&[stats.rx_dropped, stats.rx_missed_errors]),
            frame: sum(&[stats.rx_length_errors, stats.rx_over_errors, stats.rx_crc_errors, stats.rx_frame_errors]),
            carrier: sum(&[
                stats.tx_carrier_errors,
                stats.tx_aborted_errors,
                stats.tx_window_errors,
                stats.tx_heartbeat_errors,
            ]),
        }
    }
}

fn put_short_counters(out: &mut Vec<u8>, counters: &DevCounters) {
    let (stats, six) = (&counters.stats, |number: u64| Right(number, 6));
    put!(out, Right(stats.rx_packets, 8), " ", six(stats.rx_errors), " ", six(counters.rx_dropped), " ");
    put!(out, Left(stats.rx_fifo_errors, 6), " ", Right(stats.tx_packets, 8), " ", six(stats.tx_errors), " ");
    put!(out, six(stats.tx_dropped), " ", six(stats.tx_fifo_errors), " ");
}

fn put_long_counters(out: &mut Vec<u8>, counters: &DevCounters) {
    let stats = &counters.stats;
    put_packets(out, "RX", stats.rx_packets, stats.rx_bytes);
    put!(out, "        RX errors ", stats.rx_errors, "  dropped ", counters.rx_dropped);
    put!(out, "  overruns ", stats.rx_fifo_errors, "  frame ", counters.frame, "\n");
    put_packets(out, "TX", stats.tx_packets, stats.tx_bytes);
    put!(out, "        TX errors ", stats.tx_errors, "  dropped ", stats.tx_dropped);
    put!(out, " overruns ", stats.tx_fifo_errors, "  carrier ", counters.carrier, "  collisions ", stats.collisions);
    put!(out, "\n");
}

fn put_packets(out: &mut Vec<u8>, direction: &str, packets: u64, bytes: u64) {
    let (tenths, unit) = human(bytes);
    put!(out, "        ", direction, " packets ", packets, "  bytes ", bytes);
    put!(out, " (", tenths / 10, ".", tenths % 10, " ", unit, ")\n");
}

/// Returns the number in tenths of the largest unit that it exceeds, and the unit.
fn human(bytes: u64) -> (u64, &'static str) {
    const EIB: u64 = 1 << 60;
    if bytes > EIB {
        return (bytes / (EIB / 10), "EiB");
    }
    let units = [(1u64 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (size, unit) = units.into_iter().find(|(size, _)| bytes > *size).unwrap_or((1, "B"));
    (bytes.wrapping_mul(10) / size, unit)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text_of(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn link() -> Link {
        Link {
            index: 2,
            name: b"eth0".as_slice().into(),
            flags: 0x11043,
            hardware: 1,
            mtu: 1400,
            tx_queue: 1000,
            address: [2, 0xfc, 0, 0, 0, 1].as_slice().into(),
            stats: Some(LinkStats {
                rx_packets: 63335,
                rx_bytes: 2_177_716_558,
                rx_dropped: 3,
                rx_missed_errors: 4,
                rx_crc_errors: 5,
                rx_over_errors: 6,
                rx_fifo_errors: 7,
                tx_packets: 42393,
                tx_bytes: 3_436_835,
                tx_carrier_errors: 1,
                tx_aborted_errors: 1,
                ..LinkStats::default()
            }),
            ..Link::default()
        }
    }

    use record::rows::LinkMap;

    #[test]
    fn short_by_example() {
        let link = link();
        let row = Interface { name: b"eth0", link: &link, alias: false, addr: None, addrs6: &[] };
        assert_eq!(
            text_of(|o| row.put_short(o, false)),
            "eth0             1400    63335      0      7 7         42393      0      0      0 BMRU\n"
        );
        let alias = Interface { name: b"eth0:\x1b1", alias: true, ..row };
        assert_eq!(
            text_of(|o| alias.put_short(o, false)),
            "eth0:?1          1400      - no statistics available -                        BMRU\n"
        );
        let none = Link { flags: 0x10000, mtu: u32::MAX, ..link.clone() };
        let none = Interface { link: &none, ..row };
        assert!(text_of(|o| none.put_short(o, false)).ends_with("[NO FLAGS]\n"));
        assert!(text_of(|o| none.put_short(o, false)).contains("    -1 "));
        assert!(!none.is_up() && row.is_up());
    }

    #[test]
    fn long_by_example() {
        let link = link();
        let addr = LinkAddr {
            index: 2,
            label: b"eth0".as_slice().into(),
            local: [192, 0, 2, 2],
            peer: [192, 0, 2, 2],
            broadcast: [192, 0, 2, 255],
            prefix_len: 24,
        };
        let other =
            LinkAddr6 { iface: b"lo".as_slice().into(), addr: [0; 16], prefix_len: 128, scope: 0x10, flags: 0x80 };
        let six =
            LinkAddr6 { iface: b"eth0".as_slice().into(), addr: [0xfd; 16], prefix_len: 64, scope: 0, flags: 0x80 };
        let addrs6 = [other, six];
        let row = Interface { name: b"eth0", link: &link, alias: false, addr: Some(&addr), addrs6: &addrs6 };
        let want = "\
eth0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1400
        inet 192.0.2.2  netmask 255.255.255.0  broadcast 192.0.2.255
        inet6 fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd  prefixlen 64  scopeid 0x0<global>
        ether 02:fc:00:00:00:01  txqueuelen 1000  (Ethernet)
        RX packets 63335  bytes 2177716558 (2.0 GiB)
        RX errors 0  dropped 7  overruns 7  frame 11
        TX packets 42393  bytes 3436835 (3.2 MiB)
        TX errors 0  dropped 0 overruns 0  carrier 2  collisions 0

";
        assert_eq!(text_of(|o| row.put_long(o, false)), want);
        let alias = Interface { alias: true, addrs6: &[], ..row };
        assert!(text_of(|o| alias.put_long(o, false)).ends_with("(Ethernet)\n\n"));
    }

    #[test]
    fn odd_flags_and_places() {
        for (flags, text) in [(0, "<"), (iff::PORTSEL, ""), (iff::UP | iff::DYNAMIC, "<UP,DYNAMIC>")] {
            assert_eq!(text_of(|o| put_flag_words(o, flags)), text);
        }
        for (scope, text) in [(0, "<global>"), (0x80, "<compat,global>"), (0x60, "<link,site>"), (0x0f, "")] {
            assert_eq!(text_of(|o| put_scope_words(o, scope)), text);
        }
        let map = LinkMap { mem_start: 0xfe00, mem_end: 0xfeff, base_addr: 0x1_0300, irq: 0x10b, dma: 1, port: 1 };
        let link = Link { flags: 0xe000, map, stats: None, ..link() };
        let row = Interface { name: b"e", link: &link, alias: false, addr: None, addrs6: &[] };
        let text = text_of(|o| row.put_long(o, false));
        assert!(text.starts_with("e: flags=-8192<DYNAMIC>  mtu"), "{text}");
        assert!(text.contains("        media 10base2autoselect\n"), "{text}");
        assert!(text.contains("device interrupt 11  base 0x300  memory 0xfe00-feff    dma 0x1\n"), "{text}");
    }

    #[test]
    fn units() {
        for (bytes, tenths, unit) in [
            (0, 0, "B"),
            (1024, 10240, "B"),
            (1025, 10, "KiB"),
            (3 << 30, 30, "GiB"),
            (1 << 60, 10240, "PiB"),
            (u64::MAX, 160, "EiB"),
        ] {
            assert_eq!(human(bytes), (tenths, unit));
        }
    }
}
