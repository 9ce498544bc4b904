//! Speed and duplex of interfaces, and the modes that both ends of their links advertise: a dump of ethtool's generic
//! netlink family (Linux 5.6).
//!
//! Only twisted-pair modes (BASE-T) are read: these are negotiated, and fall back to a lower speed with a bad cable.
//! Fibres and backplanes have one speed or no link.
use netlink::generic::{self, GENLMSGHDR, PROTOCOL};
use netlink::{AnswerMessage, Attr, Attrs, Query, Request, prefix};
use sys::{Host, NetNs};

use crate::{HostError, bounded_dump};

// include/uapi/linux/ethtool_netlink.h
const ETHTOOL_MSG_LINKMODES_GET: u8 = 4;
const ETHTOOL_MSG_LINKMODES_GET_REPLY: u8 = 4;
const ETHTOOL_A_LINKMODES_HEADER: u16 = 1;
const ETHTOOL_A_LINKMODES_AUTONEG: u16 = 2;
const ETHTOOL_A_LINKMODES_OURS: u16 = 3;
const ETHTOOL_A_LINKMODES_PEER: u16 = 4;
const ETHTOOL_A_LINKMODES_SPEED: u16 = 5;
const ETHTOOL_A_LINKMODES_DUPLEX: u16 = 6;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_HEADER_FLAGS: u16 = 3;
/// Requests bits as numbers, not as a list of names.
const ETHTOOL_FLAG_COMPACT_BITSETS: u32 = 1;
const ETHTOOL_A_BITSET_VALUE: u16 = 4;
const ETHTOOL_A_BITSET_MASK: u16 = 5;

/// `ETHTOOL_LINK_MODE_…_BIT` of twisted pairs (include/uapi/linux/ethtool.h): bit, Mb/s, whether it is full duplex.
const MODES: &[(u32, u32, bool)] = &[
    (0, 10, false),
    (1, 10, true),
    (2, 100, false),
    (3, 100, true),
    (4, 1_000, false),
    (5, 1_000, true),
    (47, 2_500, true),
    (48, 5_000, true),
    (12, 10_000, true),
];

/// Bound: interfaces whose speed and duplex `doctor` remembers. Beyond: further interfaces are not checked, counted
/// (exit code 3). By: anyone who may make interfaces.
pub const LINK_MODES_MAX: usize = 65_536;

/// A set of link modes, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModeSet(u64);

impl ModeSet {
    /// The modes that are in both sets.
    pub fn and(self, other: ModeSet) -> ModeSet {
        ModeSet(self.0 & other.0)
    }

    /// The highest full-duplex speed of these modes in Mb/s; `None` without such a mode.
    pub fn best_full_mbps(self) -> Option<u32> {
        let has = |bit: u32| self.0 >> bit & 1 == 1;
        MODES.iter().filter(|(bit, _, is_full)| *is_full && has(*bit)).map(|(_, mbps, _)| *mbps).max()
    }
}

/// Speed, duplex and modes of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkMode {
    /// Number of the interface.
    pub index: u32,
    /// Speed in Mb/s; `None` if the driver does not know it.
    pub mbps: Option<u32>,
    /// True if it is full duplex; `None` if the driver does not know it.
    pub is_full: Option<bool>,
    /// True if speed and duplex are negotiated.
    pub is_negotiated: bool,
    /// Modes that the interface supports.
    pub supported: ModeSet,
    /// Modes that it advertises.
    pub ours: ModeSet,
    /// Modes that the peer advertises; empty if the peer does not negotiate, or if the driver does not know them.
    pub theirs: ModeSet,
}

/// Reads the link modes of the interfaces in the namespace with inode `netns`: of `inside`, or of the calling thread's.
/// Returns them, and the number of interfaces beyond the maximum. Leaves out interfaces whose driver does not report
/// links; empty on a kernel without this family.
///
/// One request and one dump; each driver is queried, which takes from 1 µs to as long as its hardware takes. Needs no
/// privilege, except to enter another namespace.
pub fn read(host: &Host, netns: u64, inside: Option<&NetNs>) -> Result<(Vec<LinkMode>, u64), HostError> {
    let found = generic::family(host, "ethtool", &format!("family of ethtool@{netns}"), inside)?;
    let Some(family) = found else { return Ok((Vec::new(), 0)) };
    let mut request = Request::dump(family.id);
    request.append(&[ETHTOOL_MSG_LINKMODES_GET, 1, 0, 0]);
    request.nested(ETHTOOL_A_LINKMODES_HEADER, |header| {
        header.attr_u32(ETHTOOL_A_HEADER_FLAGS, ETHTOOL_FLAG_COMPACT_BITSETS);
    });
    let key = format!("link modes@{netns}");
    let ask = Query { what: "link modes", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: inside };
    bounded_dump::read(host, &ask, LINK_MODES_MAX, link_mode)
}

/// `None` for other messages, and for messages without an interface.
fn link_mode(part: &AnswerMessage<'_>) -> Option<LinkMode> {
    if prefix::u8_at(part.payload, 0)? != ETHTOOL_MSG_LINKMODES_GET_REPLY {
        return None;
    }
    let mut found = LinkMode::default();
    for attr in Attrs::new(part.payload.get(GENLMSGHDR..)?).flatten() {
        match attr.kind {
            ETHTOOL_A_LINKMODES_HEADER => {
                let index = attr.nested().flatten().find(|inner| inner.kind == ETHTOOL_A_HEADER_DEV_INDEX);
                found.index = index?.u32().ok()?;
            }
            ETHTOOL_A_LINKMODES_AUTONEG => found.is_negotiated = attr.u8().is_ok_and(|on| on == 1),
            ETHTOOL_A_LINKMODES_OURS => (found.ours, found.supported) = bits(&attr),
            ETHTOOL_A_LINKMODES_PEER => found.theirs = bits(&attr).0,
            // SPEED_UNKNOWN is -1; a driver without a link may also report 0.
            ETHTOOL_A_LINKMODES_SPEED => found.mbps = attr.u32().ok().filter(|mbps| ![0, u32::MAX].contains(mbps)),
            // DUPLEX_HALF, DUPLEX_FULL; DUPLEX_UNKNOWN is 0xff.
            ETHTOOL_A_LINKMODES_DUPLEX => {
                found.is_full = match attr.u8() {
                    Ok(0) => Some(false),
                    Ok(1) => Some(true),
                    _ => None,
                };
            }
            _ => {}
        }
    }
    (found.index != 0).then_some(found)
}

/// Value and mask of a bit set: 32-bit words in machine byte order.
fn bits(attr: &Attr<'_>) -> (ModeSet, ModeSet) {
    let (mut value, mut mask) = (ModeSet::default(), ModeSet::default());
    let words = |attr: &Attr<'_>| {
        let word = |at| u64::from(prefix::u32_at(attr.payload, at).unwrap_or(0));
        ModeSet(word(0) | word(4) << 32)
    };
    for attr in attr.nested().flatten() {
        match attr.kind {
            ETHTOOL_A_BITSET_VALUE => value = words(&attr),
            ETHTOOL_A_BITSET_MASK => mask = words(&attr),
            _ => {}
        }
    }
    (value, mask)
}

/// Decodes any bytes as messages about links. For the fuzzer: it must neither panic nor loop forever.
pub fn fuzz_link_modes(data: &[u8]) {
    if let Some(one) = link_mode(&AnswerMessage { kind: 20, flags: 0, payload: data, block: 0 }) {
        let _ = (one.ours.and(one.theirs).best_full_mbps(), one.supported.best_full_mbps());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use testkit::netns::Lab;

    /// The answer of a 1000BASE-T card's driver after the cable lost a pair: both ends advertise up to 1000BASE-T, the
    /// link has 100 Mb/s. The layout follows net/ethtool/linkmodes.c and bitset.c.
    const GIGABIT: &[u8] = b"\x04\x01\0\0\
        \x18\0\x01\x80\x08\0\x01\0\x02\0\0\0\x09\0\x02\0eth0\0\0\0\0\
        \x05\0\x02\0\x01\0\0\0\
        \x24\0\x03\x80\x08\0\x02\0\x7d\0\0\0\x0c\0\x04\0\x2f\x20\0\0\0\0\0\0\x0c\0\x05\0\x2f\x20\0\0\0\0\0\0\
        \x1c\0\x04\x80\x04\0\x01\0\x08\0\x02\0\x7d\0\0\0\x0c\0\x04\0\x2f\x20\0\0\0\0\0\0\
        \x08\0\x05\0\x64\0\0\0\
        \x05\0\x06\0\x01\0\0\0";

    fn decode(payload: &[u8]) -> Option<LinkMode> {
        link_mode(&AnswerMessage { kind: 20, flags: 0, payload, block: 0 })
    }

    #[test]
    fn a_link_below_what_both_ends_offer() {
        let found = decode(GIGABIT).unwrap();
        assert_eq!((found.index, found.mbps, found.is_full, found.is_negotiated), (2, Some(100), Some(true), true));
        assert_eq!(found.ours.and(found.theirs).best_full_mbps(), Some(1000));
        assert_eq!(found.supported.best_full_mbps(), Some(1000));
        assert_eq!(decode(&GIGABIT[..4]), None, "of no interface");
        assert_eq!(decode(&[&[5], &GIGABIT[1..]].concat()), None, "another message");
        let unknown: Vec<u8> = GIGABIT.iter().copied().take(GIGABIT.len() - 16).collect();
        let unknown = [&unknown[..], b"\x08\0\x05\0\xff\xff\xff\xff\x05\0\x06\0\xff\0\0\0"].concat();
        let unknown = decode(&unknown).unwrap();
        assert_eq!((unknown.mbps, unknown.is_full), (None, None));
    }

    #[test]
    fn the_best_of_modes() {
        let best = |bits: &[u32]| ModeSet(bits.iter().fold(0, |set, bit| set | 1 << bit)).best_full_mbps();
        assert_eq!((best(&[]), best(&[0, 2, 4]), best(&[1, 6, 7]), best(&[5, 47])), (None, None, Some(10), Some(2500)));
        assert_eq!(ModeSet(0b1010).and(ModeSet(0b0010)).best_full_mbps(), Some(10));
    }

    #[test]
    fn root_what_drivers_of_this_kernel_answer() {
        testkit::require_root!();
        let lab = Lab::new("linkmodes");
        lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
        lab.ip(&["tuntap", "add", "dev", "tap0", "mode", "tap"]);
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let (host, netns) = (Host::live().recording(&tape).unwrap(), NetNs::open_path(&lab.path()).unwrap());
        let (live, over) = read(&host, 1, Some(&netns)).unwrap();
        host.finish().unwrap();
        let index = |name: &str| {
            let text = lab.output("cat", &[&format!("/sys/class/net/{name}/ifindex")]);
            text.trim().parse::<u32>().unwrap()
        };
        let of = |name: &str| live.iter().find(|one| one.index == index(name)).unwrap();
        assert_eq!((of("va").mbps, of("va").is_full, of("va").is_negotiated), (Some(10_000), Some(true), false));
        assert_eq!(of("va").ours.and(of("va").theirs).best_full_mbps(), None);
        assert!(of("tap0").is_full == Some(true) && of("tap0").mbps.is_some());
        assert!(live.iter().all(|one| one.index != 1), "the loopback interface knows no link");
        assert_eq!(over, 0);
        assert_eq!(read(&Host::open_replay(&tape).unwrap(), 1, None).unwrap().0, live);
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            fuzz_link_modes(&bytes);
            fuzz_link_modes(&[GIGABIT, &bytes].concat());
        }
    }
}
