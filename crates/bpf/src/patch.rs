//! Writes numbers into instructions.
//!
//! An instruction is 8 bytes: operation, registers (destination low, source high), offset s16, immediate s32. A 64-bit
//! constant takes two instructions; the second contains the upper half.
use crate::error::BpfError;
use crate::object::{u16_at, u32_at};
use crate::relocate::{Resolution, Widening};

/// `BPF_LD | BPF_IMM | BPF_DW`: the 64-bit constant.
const WIDE: u8 = 0x18;
/// `BPF_JMP | BPF_CALL`
pub(crate) const CALL: u8 = 0x85;
/// A call of a function with such a number replaces an instruction that needs something missing. The verifier refuses
/// it only if it is reachable, and reports the number, which leads to the name.
pub(crate) const POISON: u32 = 0x0bad_0000;

/// Source registers with a meaning (`BPF_PSEUDO_*`).
pub(crate) mod source {
    pub(crate) const MAP: u8 = 1;
    pub(crate) const MAP_VALUE: u8 = 2;
    pub(crate) const KERNEL_FUNCTION: u8 = 2;
}

fn wrong(why: &'static str) -> BpfError {
    BpfError::Malformed { what: "instructions of the BPF object", why }
}

/// The instructions of one program.
#[derive(Debug, Clone)]
pub(crate) struct Code(Vec<u8>);

impl Code {
    pub(crate) fn new(bytes: &[u8]) -> Code {
        Code(bytes.to_vec())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn operation(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied().filter(|_| at % 8 == 0)
    }

    fn read_immediate(&self, at: usize) -> u32 {
        u32_at(&self.0, at + 4).unwrap_or(0)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<(), BpfError> {
        let place = self.0.get_mut(at..at + bytes.len()).ok_or(wrong("a relocation beyond the end"))?;
        place.copy_from_slice(bytes);
        Ok(())
    }

    fn put_source(&mut self, at: usize, source: u8) -> Result<(), BpfError> {
        let registers = self.0.get_mut(at + 1).ok_or(wrong("a relocation beyond the end"))?;
        *registers = *registers & 0x0f | source << 4;
        Ok(())
    }

    /// Makes the 64-bit constant at `at` a reference to the map with this `descriptor`, or to the byte at `offset` of
    /// its value.
    pub(crate) fn put_map(&mut self, at: usize, descriptor: i32, offset: Option<u32>) -> Result<(), BpfError> {
        self.expect_wide(at)?;
        // The value that the compiler left in the constant is added: an element of an array in .rodata.
        let offset = offset.map(|offset| offset.wrapping_add(self.read_immediate(at)));
        self.put_source(at, if offset.is_some() { source::MAP_VALUE } else { source::MAP })?;
        self.put(at + 4, &descriptor.to_le_bytes())?;
        self.put(at + 12, &offset.unwrap_or(0).to_le_bytes())
    }

    /// The value that the compiler left in a 64-bit constant.
    pub(crate) fn addend(&self, at: usize) -> u32 {
        self.read_immediate(at)
    }

    /// Sets the 64-bit constant at `at` to this number.
    pub(crate) fn put_number(&mut self, at: usize, number: u64) -> Result<(), BpfError> {
        self.expect_wide(at)?;
        self.put_source(at, 0)?;
        self.put(at + 4, &(number as u32).to_le_bytes())?;
        self.put(at + 12, &((number >> 32) as u32).to_le_bytes())
    }

    /// Makes the call at `at` a call of the kernel function with this type.
    pub(crate) fn put_call(&mut self, at: usize, type_id: u32) -> Result<(), BpfError> {
        if self.operation(at) != Some(CALL) {
            return Err(wrong("a call relocation without a call"));
        }
        self.put_source(at, source::KERNEL_FUNCTION)?;
        self.put(at + 2, &0u16.to_le_bytes())?;
        self.put(at + 4, &type_id.to_le_bytes())
    }

    /// Replaces the instruction at `at` by one that must not be reached.
    pub(crate) fn make_unreachable(&mut self, at: usize, number: u32) -> Result<(), BpfError> {
        let wide = self.operation(at) == Some(WIDE);
        for at in [at].into_iter().chain(wide.then_some(at + 8)) {
            self.put(at, &[CALL, 0, 0, 0])?;
            self.put(at + 4, &(POISON | number & 0xffff).to_le_bytes())?;
        }
        Ok(())
    }

    /// Replaces the object's number by the kernel's. Returns false if the instruction cannot express it; the caller
    /// then poisons the instruction.
    pub(crate) fn relocate(&mut self, at: usize, resolution: &Resolution) -> Result<bool, BpfError> {
        let operation = self.operation(at).ok_or(wrong("a relocation beyond the end"))?;
        let Some(kernel) = resolution.kernel else { return Ok(false) };
        match operation & 7 {
            // ALU, ALU64 with a constant.
            4 | 7 if operation & 8 == 0 => {
                self.compare(resolution, self.read_immediate(at).into())?;
                let Ok(number) = u32::try_from(kernel.number) else { return Ok(false) };
                self.put(at + 4, &number.to_le_bytes())?;
            }
            // LDX, ST, STX: the offset, and the width.
            1..=3 => {
                self.compare(resolution, u16_at(&self.0, at + 2).unwrap_or(0).into())?;
                let Ok(number) = i16::try_from(kernel.number) else { return Ok(false) };
                let Some(operation) = widen_operation(operation, resolution) else { return Ok(false) };
                self.put(at + 2, &number.to_le_bytes())?;
                self.put(at, &[operation])?;
            }
            _ if operation == WIDE => {
                let now = u64::from(self.read_immediate(at)) | u64::from(self.read_immediate(at + 8)) << 32;
                self.compare(resolution, now)?;
                self.put_number(at, kernel.number)?;
            }
            _ => return Err(wrong("a relocation at an instruction without a number")),
        }
        Ok(true)
    }

    fn compare(&self, resolution: &Resolution, now: u64) -> Result<(), BpfError> {
        if resolution.local.exact && resolution.local.number != now {
            return Err(wrong("a relocation that does not fit its instruction"));
        }
        Ok(())
    }

    fn expect_wide(&self, at: usize) -> Result<(), BpfError> {
        if self.operation(at) == Some(WIDE) { Ok(()) } else { Err(wrong("an address in a short instruction")) }
    }
}

/// The operation code with the width of the kernel's member; `None` if that would change the value.
fn widen_operation(operation: u8, resolution: &Resolution) -> Option<u8> {
    let (Some((own, of)), Some((theirs, to))) =
        (resolution.local.width, resolution.kernel.and_then(|kernel| kernel.width))
    else {
        return Some(operation);
    };
    if own == theirs {
        return Some(operation);
    }
    if of != to || of == Widening::Fixed {
        return None;
    }
    // BPF_W, BPF_H, BPF_B, BPF_DW
    let width = match theirs {
        4 => 0x00,
        2 => 0x08,
        1 => 0x10,
        8 => 0x18,
        _ => return None,
    };
    Some(operation & !0x18 | width)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::relocate::Operand;

    fn operand(number: u64, width: Option<(u32, Widening)>) -> Operand {
        Operand { number, width, exact: true }
    }

    fn resolution(local: u64, kernel: u64) -> Resolution {
        Resolution { local: operand(local, None), kernel: Some(operand(kernel, None)) }
    }

    #[test]
    fn a_load_gets_its_offset_and_width() {
        // r0 = *(u32 *)(r1 + 8)
        let load = [0x61, 0x10, 8, 0, 0, 0, 0, 0];
        let mut code = Code::new(&load);
        assert!(code.relocate(0, &resolution(8, 0x1234)).unwrap());
        assert_eq!(code.bytes(), [0x61, 0x10, 0x34, 0x12, 0, 0, 0, 0]);
        let widths = |own, theirs| Resolution { local: operand(8, Some(own)), kernel: Some(operand(16, Some(theirs))) };
        let number = Widening::Number;
        for (bytes, operation) in [(1, 0x71), (2, 0x69), (4, 0x61), (8, 0x79)] {
            let mut code = Code::new(&load);
            assert!(code.relocate(0, &widths((4, number), (bytes, number))).unwrap());
            assert_eq!(code.operation(0), Some(operation), "{bytes} bytes");
        }
        let refused = [
            widths((4, number), (3, number)),
            widths((4, Widening::Fixed), (8, Widening::Fixed)),
            resolution(8, 40_000),
        ];
        for resolution in refused {
            assert!(!Code::new(&load).relocate(0, &resolution).unwrap(), "{resolution:?}");
        }
    }

    #[test]
    fn constants_short_and_wide() {
        // r1 += 8
        let mut code = Code::new(&[0x07, 1, 0, 0, 8, 0, 0, 0]);
        assert!(code.relocate(0, &resolution(8, 70_000)).unwrap());
        assert_eq!(code.bytes()[4..], 70_000u32.to_le_bytes());
        let mut wide = Code::new(&[0x18, 1, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(wide.relocate(0, &resolution(8, 5 << 32 | 6)).unwrap());
        assert_eq!((wide.read_immediate(0), wide.read_immediate(8)), (6, 5));
    }

    #[test]
    fn a_note_must_fit_its_instruction() {
        let load = [0x61, 0x10, 8, 0, 0, 0, 0, 0];
        assert!(Code::new(&load).relocate(0, &resolution(9, 16)).is_err());
        assert!(Code::new(&load).relocate(8, &resolution(8, 16)).is_err());
        assert!(Code::new(&load).relocate(4, &resolution(8, 16)).is_err(), "not at an instruction");
        // r0 = r1; exit
        assert!(Code::new(&[0xbf, 0x10, 0, 0, 0, 0, 0, 0]).relocate(0, &resolution(0, 1)).is_err());
        assert!(Code::new(&[0x95, 0, 0, 0, 0, 0, 0, 0]).relocate(0, &resolution(0, 1)).is_err());
        let mut loose = resolution(9, 16);
        loose.local.exact = false;
        assert!(Code::new(&load).relocate(0, &loose).unwrap());
    }

    #[test]
    fn what_is_missing_becomes_poison() {
        let mut code = Code::new(&[0x18, 1, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0]);
        code.make_unreachable(0, 3).unwrap();
        let number = (POISON | 3).to_le_bytes();
        assert_eq!((code.operation(0), code.operation(8), code.operation(16)), (Some(CALL), Some(CALL), Some(0x95)));
        assert_eq!((&code.bytes()[4..8], &code.bytes()[12..16]), (&number[..], &number[..]));
        assert!(code.make_unreachable(24, 0).is_err());
    }

    #[test]
    fn maps_and_calls() {
        let mut code =
            Code::new(&[0x18, 1, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x85, 0x10, 7, 0, 0xff, 0xff, 0xff, 0xff]);
        code.put_map(0, 9, Some(16)).unwrap();
        assert_eq!(
            (code.bytes()[1], code.read_immediate(0), code.read_immediate(8)),
            (0x21, 9, 20),
            "the addend counts"
        );
        code.put_map(0, 9, None).unwrap();
        assert_eq!((code.bytes()[1], code.read_immediate(0), code.read_immediate(8)), (0x11, 9, 0));
        code.put_call(16, 1234).unwrap();
        assert_eq!(code.bytes()[16..], [0x85, 0x20, 0, 0, 0xd2, 4, 0, 0]);
        assert!(code.put_map(16, 1, None).is_err() && code.put_call(0, 1).is_err());
    }
}
