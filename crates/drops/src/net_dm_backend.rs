//! Backend that uses the kernel's drop monitor; its keys, counts and events have the format of the BPF backend.
use std::collections::HashMap;
use std::time::Duration;

use record::rows::LinkType;
use sys::{Host, SysError, clock};

use crate::backend::{BackendLosses, CountsDrops, ReasonNames, TellsDrops};
use crate::block::{ETH_P_IPV6, HAS_ADDRESSES, HAS_PORTS, KEY_BYTES, SAMPLE_BYTES};
use crate::error::DropsError;
use crate::event_block::{EVENT_BYTES, FRAME_EVENT_BYTES};
use crate::meaning::BY_HARDWARE;
use crate::net_dm::{DropAlert, DropMonitor, DropOrigins, ENDS_BYTES, OUR_QUEUE};
use crate::via::DropsVia;

/// Maximum number of counted combinations of reason, place, interface, EtherType and protocol. The sender chooses the
/// last two.
///
/// Bound: kinds of drops with the drop monitor. Beyond: drops of further kinds are counted as lost (exit code 3). This
/// also affects other users. By: a sender of packets with many EtherTypes and protocols.
const KINDS_MAX: usize = 4096;
/// Maximum number of stored names: the kernel's code has some thousands of places and hundreds of reasons.
///
/// Bound: names of functions and reasons with the drop monitor (`net_dm_backend::names_are_bounded`). Beyond: further
/// names are not shown. By: a broken kernel.
const NAMES_MAX: usize = 16_384;
/// Time that the kernel's workers get at each reading to report drops still in their queues.
const SETTLE_MS: i32 = 10;
const SETTLES_MAX: u32 = 10;
/// `struct ethhdr`
const ETHERNET: usize = 14;
const ETH_P_IP: u16 = 0x0800;
/// 802.3 packets, which have a length in the place of the type (include/uapi/linux/if_ether.h).
const ETH_P_802_3: u16 = 1;
const ETH_P_802_2: u16 = 4;
const ETH_P_802_3_MIN: u16 = 0x0600;
/// IP protocols with ports at the start of their header.
const WITH_PORTS: &[u8] = &[6, 17, 33, 132, 136];

/// Numbers reasons and places in the order in which they appear: messages only contain names, or addresses that only
/// the kernel can name.
#[derive(Debug, Default)]
struct NamesSeen {
    reasons: ReasonNames,
    numbers: HashMap<Box<[u8]>, u32>,
    functions: HashMap<u64, Box<[u8]>>,
    /// True after a drop by software without a reason.
    no_reasons: bool,
}

impl NamesSeen {
    /// The number of a reason, from 1 on; 0 without a reason, and beyond [`NAMES_MAX`].
    fn reason(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let next = u32::try_from(self.numbers.len() + 1).unwrap_or(0);
        if name.is_empty() || self.numbers.len() >= NAMES_MAX {
            return 0;
        }
        self.numbers.insert(name.into(), next);
        self.reasons.reasons.push((next, String::from_utf8_lossy(name).into()));
        next
    }

    /// Stores the name of a place.
    fn place(&mut self, address: u64, name: &[u8]) -> u64 {
        if self.functions.len() < NAMES_MAX && !name.is_empty() {
            self.functions.entry(address).or_insert_with(|| name.into());
        }
        address
    }

    /// Place and reason of a drop. For a drop by hardware the place is a small number that represents the group of its
    /// trap.
    fn of(&mut self, alert: &DropAlert<'_>) -> (u64, u32) {
        let Some((trap, group)) = alert.trap else {
            self.no_reasons |= alert.reason.is_empty();
            return (self.place(alert.place, alert.function()), self.reason(alert.reason));
        };
        let group = [BY_HARDWARE.as_bytes(), group].concat();
        let place = u64::from(self.reason(&group));
        (self.place(place, &group), self.reason(trap))
    }
}

fn put(into: &mut [u8], at: usize, bytes: &[u8]) {
    into.iter_mut().skip(at).zip(bytes).for_each(|(place, byte)| *place = *byte);
}

/// Key and sample of a drop.
fn decoded(alert: &DropAlert<'_>, names: &mut NamesSeen) -> ([u8; KEY_BYTES], [u8; SAMPLE_BYTES]) {
    let (mut key, mut sample) = ([0; KEY_BYTES], [0; SAMPLE_BYTES]);
    let (place, reason) = names.of(alert);
    let l4 = put_ends(alert, &mut sample);
    put(&mut key, 0, &place.to_ne_bytes());
    put(&mut key, 8, &reason.to_ne_bytes());
    put(&mut key, 16, &alert.ifindex.to_ne_bytes());
    put(&mut key, 20, &alert.ethertype.to_ne_bytes());
    put(&mut key, 22, &[l4]);
    put(&mut sample, 36, &alert.ethertype.to_ne_bytes());
    put(&mut sample, 40, &alert.bytes.to_ne_bytes());
    (key, sample)
}

/// The link type of a packet, which messages do not contain: an Ethernet header carries the packet's EtherType, or an
/// 802.3 length if the packet has no type; without such a header the packet starts with its IP header.
fn link_type(alert: &DropAlert<'_>) -> Option<LinkType> {
    let ethernet = alert.payload.get(ETHERNET - 2..ETHERNET).map(|at| u16::from_be_bytes([at[0], at[1]]));
    let version = alert.payload.first().map_or(0, |byte| byte >> 4);
    match (ethernet, alert.ethertype, version) {
        (Some(ethernet), ethertype, _) if ethernet == ethertype => Some(LinkType::ETHERNET),
        (Some(ethernet), ETH_P_802_3 | ETH_P_802_2, _) if ethernet < ETH_P_802_3_MIN => Some(LinkType::ETHERNET),
        (_, ETH_P_IP, 4) | (_, ETH_P_IPV6, 6) => Some(LinkType::RAW),
        _ => None,
    }
}

/// Puts the addresses and ports of a packet into a sample, as far as the message contains them. Returns the IP
/// protocol; 0 if it is unknown.
fn put_ends(alert: &DropAlert<'_>, sample: &mut [u8; SAMPLE_BYTES]) -> u8 {
    let begin = if link_type(alert) == Some(LinkType::ETHERNET) { ETHERNET } else { 0 };
    let header = alert.payload.get(begin..).unwrap_or_default();
    let version = header.first().map_or(0, |byte| byte >> 4);
    // Offset and length of the addresses, the protocol, and the offset of the next header.
    let parts = match (alert.ethertype, version) {
        (ETH_P_IP, 4) => header.get(..20).map(|ip| {
            let is_first = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0;
            ((12, 4), ip[9], is_first.then_some(usize::from(ip[0] & 15) * 4))
        }),
        (ETH_P_IPV6, 6) => header.get(..40).map(|ip| ((8, 16), ip[6], Some(40))),
        _ => None,
    };
    let Some(((at, len), l4, next)) = parts else { return 0 };
    put(sample, 0, header.get(at..at + len).unwrap_or_default());
    put(sample, 16, header.get(at + len..at + 2 * len).unwrap_or_default());
    let ports = next.filter(|_| WITH_PORTS.contains(&l4)).and_then(|at| header.get(at..at + 4));
    put(sample, 32, ports.unwrap_or_default());
    put(sample, 38, &[l4, HAS_ADDRESSES | if ports.is_some() { HAS_PORTS } else { 0 }]);
    l4
}

/// The count of one combination.
#[derive(Debug)]
struct KindCount {
    packets: u64,
    bytes: u64,
    sample: Box<[u8; SAMPLE_BYTES]>,
}

/// Counts from the monitor's messages.
#[derive(Debug)]
pub(crate) struct NetDmCounts {
    monitor: DropMonitor,
    names: NamesSeen,
    counts: HashMap<[u8; KEY_BYTES], KindCount>,
    /// Packets of combinations beyond the maximum.
    unknown: u64,
}

impl NetDmCounts {
    /// Monitors drops by software from now on; drops by hardware are in the devices' own counters.
    pub(crate) fn open(host: &Host) -> Result<NetDmCounts, DropsError> {
        let (names, counts) = Default::default();
        Ok(NetDmCounts {
            monitor: DropMonitor::open(host, DropOrigins::Software, ENDS_BYTES, OUR_QUEUE)?,
            names,
            counts,
            unknown: 0,
        })
    }
}

impl CountsDrops for NetDmCounts {
    fn via(&self) -> DropsVia {
        DropsVia::NetDm
    }

    fn reasons(&self) -> &ReasonNames {
        &self.names.reasons
    }

    fn lacks_reasons(&self) -> bool {
        self.names.no_reasons
    }

    fn function(&self, address: u64) -> Option<&[u8]> {
        self.names.functions.get(&address).map(|name| &**name)
    }

    fn each(&mut self, each: &mut dyn FnMut(&[u8; KEY_BYTES], u64, u64)) -> Result<(), DropsError> {
        self.drain()?;
        for _ in 0..SETTLES_MAX {
            if !self.monitor.wait(SETTLE_MS)? {
                break;
            }
            self.drain()?;
        }
        self.counts.iter().for_each(|(key, counted)| each(key, counted.packets, counted.bytes));
        Ok(())
    }

    fn sample(&self, key: &[u8; KEY_BYTES], sample: &mut [u8; SAMPLE_BYTES]) -> Result<(), DropsError> {
        if let Some(counted) = self.counts.get(key) {
            *sample = *counted.sample;
        }
        Ok(())
    }

    fn losses(&mut self) -> Result<BackendLosses, DropsError> {
        Ok(BackendLosses { lost: self.monitor.lost()?.saturating_add(self.unknown), ..BackendLosses::default() })
    }

    fn drain(&mut self) -> Result<(), DropsError> {
        let (names, counts, unknown) = (&mut self.names, &mut self.counts, &mut self.unknown);
        self.monitor.take(&mut |alert| {
            let (key, sample) = decoded(alert, names);
            if counts.len() >= KINDS_MAX && !counts.contains_key(&key) {
                *unknown += 1;
                return;
            }
            let first = || KindCount { packets: 0, bytes: 0, sample: Box::new(sample) };
            let counted = counts.entry(key).or_insert_with(first);
            counted.packets += 1;
            counted.bytes = counted.bytes.wrapping_add(alert.bytes.into());
        })?;
        Ok(())
    }
}

/// Each drop that the monitor reports.
#[derive(Debug)]
pub(crate) struct NetDmEvents {
    monitor: DropMonitor,
    names: NamesSeen,
    /// Buffer of the current event.
    event: Vec<u8>,
    with_frames: bool,
}

impl NetDmEvents {
    /// Monitors drops by software, and drops by hardware that it hands over, from now on; with `snaplen` also that many
    /// bytes of each packet.
    pub(crate) fn open(host: &Host, snaplen: Option<u32>) -> Result<NetDmEvents, DropsError> {
        let frame =
            snaplen.map_or(0, |snaplen| FRAME_EVENT_BYTES - EVENT_BYTES + usize::try_from(snaplen).unwrap_or(0));
        Ok(NetDmEvents {
            monitor: DropMonitor::open(
                host,
                DropOrigins::Both,
                snaplen.map_or(ENDS_BYTES, |bytes| bytes.max(ENDS_BYTES)),
                OUR_QUEUE,
            )?,
            names: NamesSeen::default(),
            event: vec![0; EVENT_BYTES + frame],
            with_frames: snaplen.is_some(),
        })
    }
}

/// Writes the event of a drop into `event`, which has the size of one event.
fn put_event(alert: &DropAlert<'_>, names: &mut NamesSeen, epoch_ns: u64, with_frames: bool, event: &mut [u8]) {
    let (key, sample) = decoded(alert, names);
    let Some((head, frame)) = event.split_at_mut_checked(EVENT_BYTES) else { return };
    put(head, 0, &alert.wall_ns.wrapping_sub(epoch_ns).to_ne_bytes());
    put(head, 8, &key);
    put(head, 8 + KEY_BYTES, &sample);
    if with_frames {
        put_frame(alert, frame);
    }
}

/// Writes the bytes of a packet after its event, as far as there is room: length, number of bytes, link type.
fn put_frame(alert: &DropAlert<'_>, frame: &mut [u8]) {
    let link_type = link_type(alert);
    let bytes = if link_type.is_some() { alert.payload } else { &[] };
    let room = frame.len().saturating_sub(FRAME_EVENT_BYTES - EVENT_BYTES);
    let bytes = bytes.get(..room).unwrap_or(bytes);
    frame.fill(0);
    put(frame, 0, &alert.bytes.to_ne_bytes());
    put(frame, 4, &u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_ne_bytes());
    put(frame, 6, &link_type.map_or(0, |link_type| link_type.0).to_ne_bytes());
    put(frame, FRAME_EVENT_BYTES - EVENT_BYTES, bytes);
}

impl TellsDrops for NetDmEvents {
    fn via(&self) -> DropsVia {
        DropsVia::NetDm
    }

    fn reasons(&self) -> &ReasonNames {
        &self.names.reasons
    }

    fn function(&self, address: u64) -> Option<&[u8]> {
        self.names.functions.get(&address).map(|name| &**name)
    }

    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), SysError> {
        let epoch_ns = clock::wall_ns().wrapping_sub(clock::monotonic_ns());
        let (event, names, with_frames) = (&mut self.event, &mut self.names, self.with_frames);
        self.monitor.take(&mut |alert| {
            put_event(alert, names, epoch_ns, with_frames, event);
            each(event);
        })
    }

    fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        // Does not return at the first message: messages are cheaper when many wait.
        std::thread::sleep(Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0)));
        Ok(())
    }

    fn losses(&mut self) -> Result<BackendLosses, DropsError> {
        Ok(BackendLosses { lost: self.monitor.lost()?, ..BackendLosses::default() })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::block::packet;
    use crate::event_block::{ALL_NETNS, BY_NET_DM, EventDecoder, EventHeader, HEADER_BYTES, WITH_FRAMES};
    use crate::fixtures::NET_DM;
    use crate::meaning::is_benign;
    use crate::names::{FUNCTION, REASON, put_name};
    use record::Addr;

    fn alert(datagram: &[u8]) -> DropAlert<'_> {
        DropAlert::decode(netlink::Messages::new(datagram).next().unwrap().unwrap().payload).unwrap()
    }

    #[test]
    fn addresses_and_ports_of_recorded_packets() {
        let mut names = NamesSeen::default();
        let row = |datagram: &'static [u8], names: &mut NamesSeen| {
            let (key, sample) = decoded(&alert(datagram), names);
            packet(&key, &sample)
        };
        let four = row(NET_DM.tcp4_612, &mut names);
        let local = Addr::V4([127, 0, 0, 1]);
        assert_eq!((four.ends, four.l4, four.ports.unwrap().1), (Some((local, local)), Some(6), 9));
        assert_eq!((four.ifindex, four.first_bytes, four.ethertype), (1, 74, 0x0800));
        let six = row(NET_DM.tcp6_612, &mut names);
        let local = Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((six.ends, six.l4, six.ports.unwrap().1), (Some((local, local)), Some(6), 9));
        assert_eq!(&*names.functions[&four.place_address], b"tcp_v4_rcv");
        assert_eq!((four.reason_number, names.reasons.reasons.len(), names.no_reasons), (six.reason_number, 1, false));
        let trapped = row(NET_DM.trap_drop, &mut names);
        assert_eq!(trapped.ends.unwrap().1, Addr::V4([198, 51, 100, 1]));
        assert_eq!(&*names.functions[&trapped.place_address], b"devlink l2_drops");
        assert!(trapped.place_address <= u32::MAX.into(), "no address of the kernel");
        row(NET_DM.tcp4_510, &mut names);
        assert!(names.no_reasons, "5.10 has none");
    }

    /// Converts a recorded message into the packet that is written to a capture file.
    #[test]
    fn recorded_packets_with_their_bytes() {
        const SNAPLEN: usize = 100;
        let mut names = NamesSeen::default();
        let mut events = Vec::new();
        for datagram in [NET_DM.tcp4_612, NET_DM.tcp6_612, NET_DM.trap_drop] {
            let mut event = vec![0xee; FRAME_EVENT_BYTES + SNAPLEN];
            put_event(&alert(datagram), &mut names, 0, true, &mut event);
            events.extend(event);
        }
        let mut block = vec![0; HEADER_BYTES];
        let (all, one) = (events.len() as u64, (FRAME_EVENT_BYTES + SNAPLEN) as u64);
        let flags = WITH_FRAMES | BY_NET_DM | ALL_NETNS;
        EventHeader { events: all, event: one, flags, ..EventHeader::default() }.put(&mut block);
        block.extend(events);
        for (number, name) in &names.reasons.reasons {
            put_name(&mut block, REASON, u64::from(*number), name.as_bytes());
        }
        names.functions.iter().for_each(|(address, name)| put_name(&mut block, FUNCTION, *address, name));
        let mut seen = Vec::new();
        let decoded = EventDecoder::default().decode(&block, |row, _| {
            let frame = row.frame.unwrap();
            assert_eq!(frame.link_type, Some(LinkType::ETHERNET));
            let place = String::from_utf8(row.packet.place.to_vec()).unwrap();
            seen.push((place, frame.len, frame.bytes.len(), frame.bytes[12..15].to_vec()));
            true
        });
        assert!(decoded.is_ok_and(|header| header.event == one));
        let expected = [
            ("tcp_v4_rcv", 74, 74, [8, 0, 0x45]),
            ("tcp_v6_rcv", 94, 94, [0x86, 0xdd, 0x60]),
            ("devlink l2_drops", 142, SNAPLEN, [8, 0, 0x45]),
        ];
        let expected = expected.map(|(place, len, here, head)| (place.to_owned(), len, here, head.to_vec()));
        assert_eq!(seen, expected);
    }

    #[test]
    fn packets_begin_with_ethernet_or_with_ip() {
        let whole = alert(NET_DM.tcp4_612);
        let of = |ethertype: u16, payload: &[u8]| link_type(&DropAlert { ethertype, payload, ..whole });
        assert_eq!(of(ETH_P_IP, &whole.payload[ETHERNET..]), Some(LinkType::RAW), "of a tunnel");
        assert_eq!(of(0x0806, whole.payload), None, "neither");
        let spanning_tree = [&[0; 12][..], &[0, 38, 0x42, 0x42, 3]].concat();
        assert_eq!(of(ETH_P_802_2, &spanning_tree), Some(LinkType::ETHERNET));
        assert_eq!((of(ETH_P_IP, &[]), of(ETH_P_802_3, &[0; 13])), (None, None));
        let mut frame = [1; FRAME_EVENT_BYTES - EVENT_BYTES + 4];
        put_frame(&DropAlert { ethertype: 0x0806, ..whole }, &mut frame);
        assert_eq!(frame[4..], [0; 8], "no bytes where it is not known what they are");
    }

    #[test]
    fn exceptions_of_hardware_are_no_losses() {
        let mut names = NamesSeen::default();
        for (datagram, benign) in [(NET_DM.trap_drop, false), (NET_DM.trap_exception, true)] {
            let alert = alert(datagram);
            let (place, _) = names.of(&alert);
            assert_eq!(is_benign(alert.trap.unwrap().0, &names.functions[&place]), benign);
        }
    }

    #[test]
    fn packets_cut_anywhere_and_fragments() {
        let whole = alert(NET_DM.tcp4_612);
        for len in 0..whole.payload.len() {
            let (key, sample) =
                decoded(&DropAlert { payload: &whole.payload[..len], ..whole }, &mut NamesSeen::default());
            let row = packet(&key, &sample);
            assert_eq!((row.ends.is_some(), row.ports.is_some()), (len >= 34, len >= 38), "{len} bytes");
        }
        let mut fragment = whole.payload.to_vec();
        fragment[ETHERNET + 7] = 9;
        let (key, sample) = decoded(&DropAlert { payload: &fragment, ..whole }, &mut NamesSeen::default());
        assert_eq!(packet(&key, &sample).ports, None);
    }

    #[test]
    fn names_are_bounded() {
        let mut names = NamesSeen::default();
        let last = (0..NAMES_MAX + 5).map(|n| names.reason(n.to_string().as_bytes())).last();
        (0..NAMES_MAX as u64 + 5).for_each(|n| _ = names.place(n, b"f"));
        assert_eq!((last, names.numbers.len(), names.functions.len()), (Some(0), NAMES_MAX, NAMES_MAX));
    }
}
