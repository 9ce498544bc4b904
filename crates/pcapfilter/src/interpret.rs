//! Runs a program on a packet: for files, and for conditions that the kernel's program cannot decide. Safe with any
//! program.

use crate::instruction::{Instruction, Program, code};

/// `SKF_AD_OFF` of include/uapi/linux/filter.h: offsets from here on do not refer to bytes of the packet.
pub(crate) const ANCILLARY: u32 = -0x1000_i32 as u32;
pub(crate) const ANCILLARY_PACKET_TYPE: u32 = ANCILLARY.wrapping_add(4);
pub(crate) const ANCILLARY_IFINDEX: u32 = ANCILLARY.wrapping_add(8);
pub(crate) const ANCILLARY_VLAN_TAG: u32 = ANCILLARY.wrapping_add(44);
pub(crate) const ANCILLARY_VLAN_PRESENT: u32 = ANCILLARY.wrapping_add(48);
pub(crate) const ANCILLARY_VLAN_KIND: u32 = ANCILLARY.wrapping_add(60);
/// netwren's own: the values of the caller's words. The kernel never receives a program that uses them.
pub(crate) const ANCILLARY_EXTRA: u32 = ANCILLARY.wrapping_add(0x800);

/// Words of scratch memory (`BPF_MEMWORDS`).
pub(crate) const MEMORY_WORDS: usize = 16;

/// Steps per run. A loop over the headers of a packet needs fewer, for any length of packet.
///
/// Bound: steps of a pcap filter on one packet. Beyond: the packet does not match. By: the author of a file of packets.
const STEPS_MAX: usize = 1 << 20;

/// The input of a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    /// The captured bytes, from the link-layer header on.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub length: u32,
    /// The kernel's data about the packet; None for packets of a file.
    pub metadata: Option<Metadata>,
}

/// A VLAN tag: its EtherType (0x8100, 0x88a8 …) and its control information.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlanTag {
    /// EtherType of the tag.
    pub kind: u16,
    /// Priority and VLAN id.
    pub control: u16,
}

/// Data that the kernel stores with a packet, separate from its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Metadata {
    /// The tag that the kernel has removed from the packet.
    pub vlan_tag: Option<VlanTag>,
    /// `PACKET_HOST` … (include/uapi/linux/if_packet.h); 4 is an outgoing packet.
    pub packet_type: u8,
    /// Number of the interface.
    pub ifindex: u32,
}

/// Runs `program`. Returns the number of bytes to keep, 0 for a packet that does not pass. A load beyond the packet, a
/// division by zero, an unknown instruction or a jump out of the program rejects the packet. `extra` returns the
/// values of the caller's words, by their index in [`crate::Filter::extras`].
pub fn run(program: &Program, packet: &Packet<'_>, extra: &mut dyn FnMut(usize) -> bool) -> u32 {
    let mut machine = Machine { a: 0, x: 0, memory: [0; MEMORY_WORDS], packet, extra };
    let mut next = 0_usize;
    for _ in 0..STEPS_MAX {
        let Some(instruction) = program.instructions.get(next) else { return 0 };
        match machine.step(*instruction) {
            Some(MachineStep::Next) => next += 1,
            // Also backwards: libpcap's programs for `protochain` have loops.
            Some(MachineStep::Skip(distance)) => next = next.wrapping_add(1).wrapping_add_signed(distance as isize),
            Some(MachineStep::Return(bytes)) => return bytes,
            None => return 0,
        }
    }
    0
}

enum MachineStep {
    Next,
    Skip(i32),
    Return(u32),
}

struct Machine<'p, 'b, 'e> {
    a: u32,
    x: u32,
    memory: [u32; MEMORY_WORDS],
    packet: &'p Packet<'b>,
    extra: &'e mut dyn FnMut(usize) -> bool,
}

impl Machine<'_, '_, '_> {
    /// Executes one instruction. None rejects the packet.
    fn step(&mut self, Instruction { code, jt, jf, k }: Instruction) -> Option<MachineStep> {
        match code {
            code::RET_K => return Some(MachineStep::Return(k)),
            code::RET_A => return Some(MachineStep::Return(self.a)),
            code::LD_W_ABS => self.a = self.load(k, 4)?,
            code::LD_H_ABS => self.a = self.load(k, 2)?,
            code::LD_B_ABS => self.a = self.load(k, 1)?,
            code::LD_W_IND => self.a = self.byte_load(self.x.checked_add(k)?, 4)?,
            code::LD_H_IND => self.a = self.byte_load(self.x.checked_add(k)?, 2)?,
            code::LD_B_IND => self.a = self.byte_load(self.x.checked_add(k)?, 1)?,
            code::LD_IMM => self.a = k,
            code::LD_LEN => self.a = self.packet.length,
            code::LD_MEM => self.a = *self.memory.get(k as usize)?,
            code::LDX_IMM => self.x = k,
            code::LDX_LEN => self.x = self.packet.length,
            code::LDX_MEM => self.x = *self.memory.get(k as usize)?,
            code::LDX_MSH => self.x = (self.byte_load(k, 1)? & 0xf) * 4,
            code::ST => *self.memory.get_mut(k as usize)? = self.a,
            code::STX => *self.memory.get_mut(k as usize)? = self.x,
            code::TAX => self.x = self.a,
            code::TXA => self.a = self.x,
            code if code & 7 == code::ALU => {
                self.a = compute(code & 0xf0, self.a, if code & code::X == 0 { k } else { self.x })?;
            }
            code if code & 7 == code::JMP => return self.jump(code, jt, jf, k),
            _ => return None,
        }
        Some(MachineStep::Next)
    }

    fn jump(&self, code: u16, jt: u8, jf: u8, k: u32) -> Option<MachineStep> {
        let right = if code & code::X == 0 { k } else { self.x };
        let holds = match code & 0xf0 {
            code::JA => return Some(MachineStep::Skip(k as i32)),
            code::JEQ => self.a == right,
            code::JGT => self.a > right,
            code::JGE => self.a >= right,
            code::JSET => self.a & right != 0,
            _ => return None,
        };
        Some(MachineStep::Skip(i32::from(if holds { jt } else { jf })))
    }

    fn load(&mut self, offset: u32, size: usize) -> Option<u32> {
        if offset < ANCILLARY {
            return self.byte_load(offset, size);
        }
        if offset >= ANCILLARY_EXTRA {
            return Some(u32::from((self.extra)((offset - ANCILLARY_EXTRA) as usize)));
        }
        let metadata = self.packet.metadata?;
        match offset {
            ANCILLARY_PACKET_TYPE => Some(metadata.packet_type.into()),
            ANCILLARY_IFINDEX => Some(metadata.ifindex),
            ANCILLARY_VLAN_TAG => Some(metadata.vlan_tag.unwrap_or_default().control.into()),
            ANCILLARY_VLAN_KIND => Some(metadata.vlan_tag.unwrap_or_default().kind.into()),
            ANCILLARY_VLAN_PRESENT => Some(metadata.vlan_tag.is_some().into()),
            _ => None,
        }
    }

    fn byte_load(&self, offset: u32, size: usize) -> Option<u32> {
        let from = offset as usize;
        let bytes = self.packet.bytes.get(from..from.checked_add(size)?)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }
}

/// Computes an arithmetic operation, also for constants. None for a division by zero.
pub(crate) fn compute(operation: u16, left: u32, right: u32) -> Option<u32> {
    Some(match operation {
        code::ADD => left.wrapping_add(right),
        code::SUB => left.wrapping_sub(right),
        code::MUL => left.wrapping_mul(right),
        code::DIV => left.checked_div(right)?,
        code::MOD => left.checked_rem(right)?,
        code::OR => left | right,
        code::AND => left & right,
        code::XOR => left ^ right,
        code::LSH => left.checked_shl(right).unwrap_or(0),
        code::RSH => left.checked_shr(right).unwrap_or(0),
        code::NEG => left.wrapping_neg(),
        _ => return None,
    })
}
