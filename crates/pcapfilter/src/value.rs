//! The values that a program computes from a packet and compares. A value is a function of the packet and of scratch
//! memory, so equal expressions are the same value and have one number.

use crate::ast::Operator;
use crate::instruction::code;
use crate::interpret::{ANCILLARY, ANCILLARY_VLAN_KIND, ANCILLARY_VLAN_TAG, compute};
use std::collections::HashMap;

/// Number of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ValueId(u32);

/// The size of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Size {
    Byte,
    Half,
    Word,
}

impl Size {
    fn bytes(self) -> u32 {
        match self {
            Size::Byte => 1,
            Size::Half => 2,
            Size::Word => 4,
        }
    }
}

/// The byte range of a VLAN tag in an Ethernet header.
const TAG: std::ops::Range<u32> = 12..16;

/// A word of scratch memory. Facts about it end when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MemorySlot(pub(crate) u8);

impl MemorySlot {
    /// Its bit in a set of slots.
    pub(crate) fn bit(self) -> u32 {
        1_u32.checked_shl(self.0.into()).unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Constant(u32),
    Length,
    /// Bytes at `base` + `offset`.
    Load {
        size: Size,
        base: Option<ValueId>,
        offset: u32,
    },
    /// Four times the lower half of the byte at this offset: the length of an IPv4 header.
    HeaderLength(u32),
    Slot(MemorySlot),
    Binary(Operator, ValueId, ValueId),
    Negate(ValueId),
}

/// All values of a program.
#[derive(Default)]
pub(crate) struct Values {
    list: Vec<Value>,
    numbers: HashMap<Value, ValueId>,
    /// True if the outer VLAN tag is in the packet's metadata: offsets then refer to the packet with the tag in place.
    is_tag_beside: bool,
    /// True if a computed offset may fall into the tag, which no load reaches.
    may_read_tag: bool,
}

/// Returns the code of an operation.
pub(crate) fn code_of(operator: Operator) -> u16 {
    match operator {
        Operator::Add => code::ADD,
        Operator::Sub => code::SUB,
        Operator::Mul => code::MUL,
        Operator::Div => code::DIV,
        Operator::Mod => code::MOD,
        Operator::And => code::AND,
        Operator::Or => code::OR,
        Operator::Xor => code::XOR,
        Operator::ShiftLeft => code::LSH,
        Operator::ShiftRight => code::RSH,
    }
}

impl Values {
    /// Creates values for packets whose outer VLAN tag is in their metadata.
    pub(crate) fn with_metadata_tag() -> Values {
        Values { is_tag_beside: true, ..Values::default() }
    }

    /// True if the program may compute a value that differs from the packet with its tag in place.
    pub(crate) fn may_read_tag(&self) -> bool {
        self.may_read_tag
    }

    /// Records a load from the link-layer header at a computed offset.
    pub(crate) fn note_link_index(&mut self) {
        self.may_read_tag |= self.is_tag_beside;
    }

    pub(crate) fn get(&self, id: ValueId) -> Value {
        self.list.get(id.0 as usize).copied().unwrap_or(Value::Constant(0))
    }

    pub(crate) fn constant_of(&self, id: ValueId) -> Option<u32> {
        match self.get(id) {
            Value::Constant(constant) => Some(constant),
            _ => None,
        }
    }

    fn intern(&mut self, value: Value) -> ValueId {
        if let Some(id) = self.numbers.get(&value) {
            return *id;
        }
        let id = ValueId(self.list.len() as u32);
        self.list.push(value);
        self.numbers.insert(value, id);
        id
    }

    pub(crate) fn constant(&mut self, constant: u32) -> ValueId {
        self.intern(Value::Constant(constant))
    }

    pub(crate) fn length(&mut self) -> ValueId {
        let length = self.intern(Value::Length);
        if !self.is_tag_beside {
            return length;
        }
        let tag = self.constant(TAG.end - TAG.start);
        self.binary(Operator::Add, length, tag)
    }

    pub(crate) fn slot(&mut self, slot: MemorySlot) -> ValueId {
        self.intern(Value::Slot(slot))
    }

    pub(crate) fn header_length(&mut self, offset: u32) -> ValueId {
        // The program has already tested for the IPv4 EtherType, which is never the tag's.
        let moved = if self.is_tag_beside && offset >= TAG.end { TAG.end - TAG.start } else { 0 };
        self.intern(Value::HeaderLength(offset - moved))
    }

    /// Returns a load. A constant part of the base is moved to the offset.
    pub(crate) fn load(&mut self, size: Size, base: Option<ValueId>, offset: u32) -> ValueId {
        let (base, offset) = match base.map(|base| (base, self.get(base))) {
            Some((_, Value::Constant(constant))) => (None, offset.wrapping_add(constant)),
            // Not for "negative" constants: the sum must not wrap around in the load.
            Some((_, Value::Binary(Operator::Add, left, right)))
                if self.constant_of(right).is_some_and(|constant| constant <= 0xffff) =>
            {
                (Some(left), offset.wrapping_add(self.constant_of(right).unwrap_or(0)))
            }
            Some((base, _)) => (Some(base), offset),
            None => (None, offset),
        };
        if self.is_tag_beside { self.load_of_wire(size, base, offset) } else { self.plain_load(size, base, offset) }
    }

    fn plain_load(&mut self, size: Size, base: Option<ValueId>, offset: u32) -> ValueId {
        self.intern(Value::Load { size, base, offset })
    }

    /// Loads from an offset in the packet with its tag in place.
    fn load_of_wire(&mut self, size: Size, base: Option<ValueId>, offset: u32) -> ValueId {
        let moved = TAG.end - TAG.start;
        if let Some(base) = base {
            // In the payload: the program has already tested for an EtherType that is not the tag's.
            let is_behind = offset >= TAG.start + 2;
            self.may_read_tag |= !is_behind;
            return self.plain_load(size, Some(base), if is_behind { offset - moved } else { offset });
        }
        let end = offset.saturating_add(size.bytes());
        match (offset, size) {
            (ANCILLARY.., _) => self.plain_load(size, None, offset),
            _ if end <= TAG.start => self.plain_load(size, None, offset),
            _ if offset >= TAG.end => self.plain_load(size, None, offset - moved),
            (12, Size::Half) => self.plain_load(Size::Half, None, ANCILLARY_VLAN_KIND),
            (14, Size::Half) => self.plain_load(Size::Half, None, ANCILLARY_VLAN_TAG),
            (12..16, Size::Byte) => {
                let half = self.load_of_wire(Size::Half, None, offset & !1);
                let operation = if offset & 1 == 0 { (Operator::ShiftRight, 8) } else { (Operator::And, 0xff) };
                let right = self.constant(operation.1);
                self.binary(operation.0, half, right)
            }
            _ => self.joined_bytes(offset..end),
        }
    }

    /// Joins these bytes to one number.
    fn joined_bytes(&mut self, offsets: std::ops::Range<u32>) -> ValueId {
        let (mut number, eight) = (self.constant(0), self.constant(8));
        for offset in offsets {
            let (high, low) =
                (self.binary(Operator::ShiftLeft, number, eight), self.load_of_wire(Size::Byte, None, offset));
            number = self.binary(Operator::Or, low, high);
        }
        number
    }

    pub(crate) fn negate(&mut self, value: ValueId) -> ValueId {
        match self.constant_of(value) {
            Some(constant) => self.constant(constant.wrapping_neg()),
            None => self.intern(Value::Negate(value)),
        }
    }

    /// Returns an operation, computed now if possible. A division by zero remains: it rejects every packet.
    pub(crate) fn binary(&mut self, operator: Operator, left: ValueId, right: ValueId) -> ValueId {
        let (first, second) = (self.constant_of(left), self.constant_of(right));
        if let (Some(first), Some(second)) = (first, second) {
            if let Some(result) = compute(code_of(operator), first, second) {
                return self.constant(result);
            }
        }
        let is_symmetric =
            matches!(operator, Operator::Add | Operator::Mul | Operator::And | Operator::Or | Operator::Xor);
        if first.is_some() && second.is_none() && is_symmetric {
            return self.binary(operator, right, left);
        }
        match (operator, second) {
            (Operator::Add | Operator::Sub | Operator::Or | Operator::Xor, Some(0)) => return left,
            (Operator::ShiftLeft | Operator::ShiftRight, Some(0)) => return left,
            (Operator::Mul | Operator::Div, Some(1)) => return left,
            (Operator::Sub, Some(constant)) => {
                let negative = self.constant(constant.wrapping_neg());
                return self.binary(Operator::Add, left, negative);
            }
            (Operator::And, Some(u32::MAX)) => return left,
            // Also for bytes that do not exist, like libpcap.
            (Operator::And | Operator::Mul, Some(0)) => return right,
            (Operator::And, Some(mask)) if self.is_unmasked(mask, left) => return left,
            // (x + 1) + 2 is x + 3.
            (Operator::Add, Some(constant)) => {
                if let Value::Binary(Operator::Add, inner, before) = self.get(left) {
                    if let Some(before) = self.constant_of(before) {
                        let sum = self.constant(before.wrapping_add(constant));
                        return self.binary(Operator::Add, inner, sum);
                    }
                }
            }
            _ => {}
        }
        self.intern(Value::Binary(operator, left, right))
    }

    /// True if the mask removes no bit that the value can have.
    fn is_unmasked(&self, mask: u32, value: ValueId) -> bool {
        let all = match self.get(value) {
            Value::Load { size: Size::Byte, .. } => 0xff,
            Value::Load { size: Size::Half, .. } => 0xffff,
            _ => return false,
        };
        mask & all == all
    }

    /// True if a value is computed from this word of scratch memory.
    pub(crate) fn reads_slot(&self, value: ValueId, slot: MemorySlot) -> bool {
        self.slots_of(value) & slot.bit() != 0
    }

    /// Returns the slots that a value reads, as bits.
    pub(crate) fn slots_of(&self, value: ValueId) -> u32 {
        let mut slots = 0;
        let mut waiting = vec![value];
        while let Some(value) = waiting.pop() {
            match self.get(value) {
                Value::Slot(slot) => slots |= slot.bit(),
                Value::Load { base: Some(base), .. } => waiting.push(base),
                Value::Negate(inner) => waiting.push(inner),
                Value::Binary(_, left, right) => waiting.extend([left, right]),
                _ => {}
            }
        }
        slots
    }
}
