//! The programs of a filter: for the kernel, which knows an interface's hardware, and for packets of files.

use super::filter::{PcapFilter, live_target, tagged_target};
use capture::{complete, is_of_interface};
use packet::{is_tagged, put_untagged};
use pcapfilter::{Filter, FilterTarget, LinkType, Metadata, Packet, PacketOrigin};
use record::Lookups;
use record::rows::CapturedPacket;
use runtime::messages::print_message;
use std::cell::{Cell, RefCell};
use sys::packet_ring::{Instruction, PROGRAM_MAX, accept_all};

/// Hardware types (`ARPHRD_…`, include/uapi/linux/if_arp.h) of the link types that filters are compiled for.
const HARDWARE: [(LinkType, &[u32]); 3] =
    [(LinkType::Ethernet, &[1, 772]), (LinkType::Raw, &[519, 768, 769, 776, 0xfffe]), (LinkType::Ppp, &[512])];
/// `BPF_LD | BPF_W | BPF_ABS` of `SKF_AD_OFF + SKF_AD_HATYPE` and `SKF_AD_VLAN_TAG_PRESENT`;
/// `BPF_JMP | BPF_JEQ | BPF_K`; `BPF_JMP | BPF_JA`; `BPF_RET | BPF_K` (include/uapi/linux/{bpf_common,filter}.h).
const LOAD_HARDWARE: Instruction = load(28);
const LOAD_TAG_PRESENT: Instruction = load(48);
const JUMP_EQUAL: u16 = 0x15;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;
const REJECT: Instruction = Instruction { code: RETURN, jump_true: 0, jump_false: 0, k: 0 };

const fn load(ancillary: i32) -> Instruction {
    Instruction { code: 0x20, jump_true: 0, jump_false: 0, k: (-0x1000_i32 + ancillary) as u32 }
}

/// How much of a filter the kernel evaluates. The variant with the longest program comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    /// The whole filter. The kernel also passes packets that match only inside their VLAN tags, and these are counted.
    CountsTagged,
    /// The whole filter. The kernel passes no other packets.
    Exact,
    /// The filter for packets without an out-of-band VLAN tag. Packets with such a tag pass.
    Untagged,
    /// Like [`Reach::Untagged`], for Ethernet only. All packets of other link types pass.
    Ethernet,
}

/// A filter that the kernel evaluates as far as it can and netwren evaluates otherwise. Packets are tested as they were
/// on the wire, with their VLAN tags, as tcpdump tests packets from a file.
pub(super) struct Programs<'f> {
    filter: &'f PcapFilter,
    snaplen: u32,
    /// Compiled filters by link type and byte order; `None` for a link type that the filter does not support.
    compiled: RefCell<Vec<(u16, bool, Option<Filter>)>>,
    is_live: bool,
    reach: Cell<Reach>,
    /// Number of packets that fail only because of their VLAN tags.
    behind_tags: Cell<u64>,
    /// Buffer for a packet without its tags, reused to save allocations.
    bare: RefCell<Vec<u8>>,
}

impl<'f> Programs<'f> {
    /// Creates the programs for packets from interfaces. With `counts_tagged` the kernel also passes packets that match
    /// only inside their VLAN tags, and [`Programs::passes`] counts them.
    pub(super) fn live(filter: &'f PcapFilter, snaplen: u32, counts_tagged: bool) -> Programs<'f> {
        let counts_tagged = counts_tagged && !filter.is_about_tags();
        Programs {
            filter,
            snaplen,
            compiled: RefCell::default(),
            is_live: true,
            reach: Cell::new(if counts_tagged { Reach::CountsTagged } else { Reach::Exact }),
            behind_tags: Cell::new(0),
            bare: RefCell::default(),
        }
    }

    /// Creates the programs for packets of a file whose first interface has this link type. Fails if the filter does
    /// not support it.
    pub(super) fn of_file(filter: &'f PcapFilter, link_type: u32, is_swapped: bool) -> Result<Programs<'f>, String> {
        let programs = Programs { is_live: false, ..Programs::live(filter, u32::MAX, true) };
        let number = u16::try_from(link_type).unwrap_or(u16::MAX);
        let first = programs.compile(number, is_swapped)?;
        programs.compiled.borrow_mut().push((number, is_swapped, Some(first)));
        Ok(programs)
    }

    fn compile(&self, link_type: u16, is_swapped: bool) -> Result<Filter, String> {
        let link = LinkType::from_number(link_type.into());
        let link = link.ok_or_else(|| format!("no filter is compiled for link type {link_type}"))?;
        let origin =
            if self.is_live { PacketOrigin::Live { vlan_beside: false } } else { PacketOrigin::File { is_swapped } };
        self.filter.compile(&FilterTarget { link, origin, snaplen: self.snaplen, netmask: None })
    }

    /// Returns the kernel's program, which branches on the hardware type of each packet's interface. Interfaces of one
    /// link type run the program for that type; packets of link types that the filter does not support are rejected. If
    /// the programs together are too long, the kernel passes more packets and [`Programs::passes`] tests them.
    pub(super) fn kernel(&self) -> Result<Vec<Instruction>, String> {
        // The ring prepends a few more instructions.
        let fits = |program: &Vec<Instruction>| program.len() + 8 <= PROGRAM_MAX;
        let mut program = self.joined()?;
        for reach in [Reach::Exact, Reach::Untagged, Reach::Ethernet] {
            if fits(&program) {
                return Ok(program);
            }
            if reach > self.reach.get() {
                self.reach.set(reach);
                program = self.joined()?;
            }
        }
        match fits(&program) {
            true => Ok(program),
            false => Err(format!("the filter has {} instructions, more than the kernel accepts", program.len())),
        }
    }

    /// The instructions for packets of a link type; empty if the filter does not support it.
    fn body(&self, link: LinkType) -> Result<Vec<Instruction>, String> {
        if link != LinkType::Ethernet && self.reach.get() == Reach::Ethernet {
            return Ok(accept_all(self.snaplen));
        }
        let target = live_target(link, self.snaplen);
        if link != LinkType::Ethernet {
            return Ok(instructions(&self.filter.compile(&target)?));
        }
        let counts_tagged = self.reach.get() == Reach::CountsTagged;
        let both = counts_tagged.then(|| self.filter.compile_behind_tag(&target));
        let plain = match both {
            Some(Ok(both)) => both,
            _ => {
                self.reach.set(self.reach.get().max(Reach::Exact));
                self.filter.compile(&target)?
            }
        };
        // Packets whose outer tag the kernel keeps outside the packet need their own instructions.
        let tagged = self.tagged();
        let skip = Instruction { code: JUMP, jump_true: 0, jump_false: 0, k: tagged.len() as u32 };
        let is_beside = Instruction { code: JUMP_EQUAL, jump_true: 1, jump_false: 0, k: 1 };
        Ok([&[LOAD_TAG_PRESENT, is_beside, skip], &tagged[..], &instructions(&plain)].concat())
    }

    /// Returns the instructions for Ethernet packets whose outer tag is kept outside the packet. The instructions for
    /// other packets follow them.
    fn tagged(&self) -> Vec<Instruction> {
        let is_exact = self.reach.get() < Reach::Untagged;
        let exact = self.filter.compile(&tagged_target(self.snaplen)).ok().filter(|_| is_exact);
        let Some(exact) = exact else {
            self.reach.set(self.reach.get().max(Reach::Untagged));
            return accept_all(self.snaplen);
        };
        let mut program = instructions(&exact);
        let length = program.len();
        let rejections = program.iter_mut().enumerate().filter(|(_, instruction)| **instruction == REJECT);
        if self.reach.get() == Reach::CountsTagged {
            // Packets that match without the tag also pass: the program for other packets decides about them.
            rejections
                .for_each(|(at, place)| *place = Instruction { code: JUMP, k: (length - at - 1) as u32, ..REJECT });
        }
        program
    }

    fn joined(&self) -> Result<Vec<Instruction>, String> {
        let (mut heads, mut bodies) = (vec![LOAD_HARDWARE], Vec::new());
        let mut places = Vec::new();
        for (link, hardware) in HARDWARE {
            match self.body(link) {
                Ok(body) => {
                    places.extend(hardware.iter().map(|number| (*number, bodies.len())));
                    bodies.extend(body);
                }
                Err(refusal) if link == LinkType::Ethernet => return Err(refusal),
                Err(_) => {}
            }
        }
        let heads_bytes = 1 + places.len() * 2 + 1;
        for (number, begin) in places {
            heads.push(Instruction { code: JUMP_EQUAL, jump_true: 0, jump_false: 1, k: number });
            // The distance from the instruction after the jump to the program.
            let distance = heads_bytes + begin - heads.len() - 1;
            heads.push(Instruction { code: JUMP, jump_true: 0, jump_false: 0, k: distance as u32 });
        }
        heads.push(REJECT);
        heads.extend(bodies);
        Ok(heads)
    }

    /// True if the kernel's program passes too many packets, or tests none: then [`Programs::passes`] tests each
    /// packet.
    pub(super) fn is_rest_needed(&self) -> bool {
        let rest = |link| {
            let filter = self.filter.compile(&live_target(link, self.snaplen));
            filter.is_ok_and(|filter| filter.rest.is_some())
        };
        !self.is_live || self.reach.get() != Reach::Exact || HARDWARE.iter().any(|(link, _)| rest(*link))
    }

    /// True if the packet passes the whole filter.
    pub(super) fn passes(&self, row: &CapturedPacket<'_>, is_swapped: bool) -> bool {
        let mut compiled = self.compiled.borrow_mut();
        let number = row.link_type.0;
        let at = compiled.iter().position(|(one, swapped, _)| (*one, *swapped) == (number, is_swapped));
        let at = at.unwrap_or_else(|| {
            let filter = self.compile(number, is_swapped);
            if let Err(refusal) = &filter {
                print_message(&format!("packets of link type {number} are not shown: {refusal}"));
            }
            compiled.push((number, is_swapped, filter.ok()));
            compiled.len() - 1
        });
        let Some((_, _, Some(filter))) = compiled.get(at) else { return false };
        let has_tag = is_tagged(row.link_type, row.frame);
        if self.is_live && !has_tag && filter.rest.is_none() && self.reach.get() != Reach::Ethernet {
            // The kernel has already tested the packet.
            return true;
        }
        let metadata = is_of_interface(row).then(|| Metadata {
            // The tag was put back into the packet.
            vlan_tag: None,
            packet_type: row.packet_type.map_or(0, |aim| aim as u8),
            ifindex: row.ifindex,
        });
        let packet = Packet { bytes: row.frame, length: row.len, metadata };
        let program = filter.rest.as_ref().unwrap_or(&filter.kernel);
        let mut answer = |number: usize| {
            let own = filter.extras.get(number).and_then(|extra| self.filter.own(extra.word));
            // Comparisons tested by the plan count as true here.
            own.is_none_or(|own| {
                let mut info = Vec::new();
                own.predicate.matches(&complete(*row, own.need, &mut info), &Lookups::empty())
            })
        };
        let passes = pcapfilter::run(program, &packet, &mut answer) > 0;
        if !passes && has_tag && !self.filter.is_about_tags() {
            let mut bare = self.bare.borrow_mut();
            let tags = put_untagged(row.link_type, row.frame, usize::MAX, &mut bare);
            let length = row.len.saturating_sub(tags as u32 * 4);
            let matches = pcapfilter::run(program, &Packet { bytes: &bare, length, metadata }, &mut answer) > 0;
            self.behind_tags.set(self.behind_tags.get() + u64::from(tags > 0 && matches));
        }
        passes
    }

    /// Reports how many packets fail only because of their VLAN tags.
    pub(super) fn say_behind_tags(&self) {
        let count = self.behind_tags.get();
        if count == 0 {
            return;
        }
        let packets = if count == 1 { "1 packet matches" } else { &format!("{count} packets match") };
        print_message(&format!(
            "{packets} the expression only inside VLAN tags (not captured): start it with `vlan and`, once per \
             tag, or compare fields (`src = ADDRESS`, `dport = PORT`), which ignore tags"
        ));
    }
}

fn instructions(filter: &Filter) -> Vec<Instruction> {
    let one =
        |one: &pcapfilter::Instruction| Instruction { code: one.code, jump_true: one.jt, jump_false: one.jf, k: one.k };
    filter.kernel.instructions.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{COMMAND, asked};
    use super::*;
    use crate::flags::parser;
    use record::rows::LinkType as RowLinkType;

    /// A packet from a tunnel interface, which has only an IPv4 header.
    fn of_tunnel(destination: [u8; 4]) -> Vec<u8> {
        [&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1][..], &destination].concat()
    }

    #[test]
    fn what_is_too_long_for_the_kernel_is_judged_by_us() {
        let hosts: Vec<String> = (0..1000).map(|nth| format!("host 10.77.{}.{}", nth / 250, nth % 250)).collect();
        let capture = parser::parse_line(&COMMAND, &hosts.join(" or "), asked).unwrap();
        let programs = Programs::live(capture.filter.as_ref().unwrap(), 100, false);
        assert!(!programs.is_rest_needed());
        assert!(programs.kernel().unwrap().len() + 8 <= PROGRAM_MAX);
        assert!(programs.is_rest_needed());
        for (destination, passes) in [([10, 77, 3, 249], true), ([10, 77, 4, 1], false)] {
            let frame = of_tunnel(destination);
            let row =
                CapturedPacket { frame: &frame, len: 20, link_type: RowLinkType(101), ..CapturedPacket::default() };
            assert_eq!(programs.passes(&row, false), passes);
        }
    }
}
