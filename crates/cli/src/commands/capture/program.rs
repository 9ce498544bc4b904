//! The programs of a filter: for the kernel, which knows an interface's hardware, and for packets of files.

use super::filter::{PcapFilter, live_target};
use crate::messages::say;
use capture::{complete, is_of_interface};
use pcapfilter::{Filter, FilterTarget, LinkType, Metadata, Origin, Packet};
use record::Lookups;
use record::rows::CapturedPacket;
use std::cell::{Cell, RefCell};
use sys::packet_ring::{Instruction, PROGRAM_MAX, accept_all};

/// Hardware types (`ARPHRD_…`, include/uapi/linux/if_arp.h) of the link types that filters are compiled for.
const HARDWARE: [(LinkType, &[u32]); 3] =
    [(LinkType::Ethernet, &[1, 772]), (LinkType::Raw, &[519, 768, 769, 776, 0xfffe]), (LinkType::Ppp, &[512])];
/// `BPF_LD | BPF_W | BPF_ABS` of `SKF_AD_OFF + SKF_AD_HATYPE`; `BPF_JMP | BPF_JEQ | BPF_K`; `BPF_JMP | BPF_JA`;
/// `BPF_RET | BPF_K` (include/uapi/linux/{bpf_common,filter}.h).
const LOAD_HARDWARE: Instruction =
    Instruction { code: 0x20, jump_true: 0, jump_false: 0, k: (-0x1000_i32 + 28) as u32 };
const JUMP_EQUAL: u16 = 0x15;
const JUMP: u16 = 0x05;
const REJECT: Instruction = Instruction { code: 0x06, jump_true: 0, jump_false: 0, k: 0 };

/// A filter as it is carried out: by the kernel as far as it can, and by us.
pub(super) struct Programs<'f> {
    filter: &'f PcapFilter,
    snaplen: u32,
    /// By link type and byte order; `None` for one that the filter is not for.
    compiled: RefCell<Vec<(u16, bool, Option<Filter>)>>,
    is_live: bool,
    /// True if the kernel tests packets of Ethernet only: the programs for all link types are too long together.
    is_for_ethernet: Cell<bool>,
}

impl<'f> Programs<'f> {
    /// For packets of interfaces. Fails as the compiler does for Ethernet.
    pub(super) fn live(filter: &'f PcapFilter, snaplen: u32) -> Programs<'f> {
        Programs { filter, snaplen, compiled: RefCell::default(), is_live: true, is_for_ethernet: Cell::new(false) }
    }

    /// For packets of a file, whose first interface has this link type. Fails if the filter is none for that.
    pub(super) fn of_file(filter: &'f PcapFilter, link_type: u32, is_swapped: bool) -> Result<Programs<'f>, String> {
        let programs = Programs { is_live: false, ..Programs::live(filter, u32::MAX) };
        let number = u16::try_from(link_type).unwrap_or(u16::MAX);
        let first = programs.compile(number, is_swapped)?;
        programs.compiled.borrow_mut().push((number, is_swapped, Some(first)));
        Ok(programs)
    }

    fn compile(&self, link_type: u16, is_swapped: bool) -> Result<Filter, String> {
        let link = LinkType::from_number(link_type.into());
        let link = link.ok_or_else(|| format!("no filter is compiled for link type {link_type}"))?;
        let origin = if self.is_live { Origin::Live { vlan_beside: true } } else { Origin::File { is_swapped } };
        self.filter.compile(&FilterTarget { link, origin, snaplen: self.snaplen, netmask: None })
    }

    /// The kernel's program: the one for the hardware of each packet's interface. The interfaces of one link type see
    /// what a program for that type sees; what the filter is not for does not pass. Where all of them are too long
    /// together, the kernel lets through what is not of Ethernet, and [`Programs::passes`] judges.
    pub(super) fn kernel(&self) -> Result<Vec<Instruction>, String> {
        // The ring puts a few more before it.
        let fits = |program: &Vec<Instruction>| program.len() + 8 <= PROGRAM_MAX;
        let all = self.joined()?;
        if fits(&all) {
            return Ok(all);
        }
        self.is_for_ethernet.set(true);
        let program = self.joined()?;
        match fits(&program) {
            true => Ok(program),
            false => Err(format!("the filter has {} instructions, more than the kernel takes", program.len())),
        }
    }

    /// The instructions for packets of a link type; none if the filter is not for it.
    fn body(&self, link: LinkType) -> Result<Vec<Instruction>, String> {
        if self.is_for_ethernet.get() && link != LinkType::Ethernet {
            return Ok(accept_all(self.snaplen));
        }
        let filter = self.filter.compile(&live_target(link, self.snaplen))?;
        let instruction = |one: &pcapfilter::Instruction| Instruction {
            code: one.code,
            jump_true: one.jt,
            jump_false: one.jf,
            k: one.k,
        };
        Ok(filter.kernel.instructions.iter().map(instruction).collect())
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
            // From the instruction behind the jump to the program.
            let distance = heads_bytes + begin - heads.len() - 1;
            heads.push(Instruction { code: JUMP, jump_true: 0, jump_false: 0, k: distance as u32 });
        }
        heads.push(REJECT);
        heads.extend(bodies);
        Ok(heads)
    }

    /// True if the kernel's program takes more than it should, or runs on none of the packets: then each is judged by
    /// [`Programs::passes`].
    pub(super) fn is_rest_needed(&self) -> bool {
        let rest = |link| {
            let filter = self.filter.compile(&live_target(link, self.snaplen));
            filter.is_ok_and(|filter| filter.rest.is_some())
        };
        !self.is_live || self.is_for_ethernet.get() || HARDWARE.iter().any(|(link, _)| rest(*link))
    }

    /// True if the packet passes the whole filter.
    pub(super) fn passes(&self, row: &CapturedPacket<'_>, is_swapped: bool) -> bool {
        let mut compiled = self.compiled.borrow_mut();
        let number = row.link_type.0;
        let at = compiled.iter().position(|(one, swapped, _)| (*one, *swapped) == (number, is_swapped));
        let at = at.unwrap_or_else(|| {
            let filter = self.compile(number, is_swapped);
            if let Err(refusal) = &filter {
                say(&format!("packets of link type {number} are not shown: {refusal}"));
            }
            compiled.push((number, is_swapped, filter.ok()));
            compiled.len() - 1
        });
        let Some((_, _, Some(filter))) = compiled.get(at) else { return false };
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
            // What the plan tests counts as true here.
            own.is_none_or(|own| {
                let mut info = Vec::new();
                own.predicate.matches(&complete(*row, own.need, &mut info), &Lookups::none())
            })
        };
        pcapfilter::run(program, &packet, &mut answer) > 0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{COMMAND, asked};
    use super::*;
    use crate::flags::parser;
    use record::rows::LinkType as RowLinkType;

    /// A packet of a tunnel: an IPv4 header and nothing else.
    fn of_tunnel(destination: [u8; 4]) -> Vec<u8> {
        [&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1][..], &destination].concat()
    }

    #[test]
    fn what_is_too_long_for_the_kernel_is_judged_by_us() {
        let hosts: Vec<String> = (0..1000).map(|nth| format!("host 10.77.{}.{}", nth / 250, nth % 250)).collect();
        let capture = parser::parse_line(&COMMAND, &hosts.join(" or "), asked).unwrap();
        let programs = Programs::live(capture.filter.as_ref().unwrap(), 100);
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
