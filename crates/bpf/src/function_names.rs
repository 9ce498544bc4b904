//! Names of the kernel's functions by address (`c/function_names.bpf.c`).
use crate::error::BpfError;
use crate::kernel_types::KernelTypes;
use crate::load::{LoadSpec, LoadedObject, load_with};

const OBJECT: &[u8] = include_bytes!("../objects/function_names.o");
const PROGRAM: &str = "name_place";
/// Size of `struct place`.
const CONTEXT_BYTES: usize = 264;

/// The loaded program.
#[derive(Debug)]
pub struct FunctionNames {
    loaded: LoadedObject,
}

impl FunctionNames {
    /// Loads the program: takes half a millisecond and needs no types. Needs Linux 5.14, CAP_BPF and CAP_PERFMON.
    pub fn load() -> Result<FunctionNames, BpfError> {
        let spec = LoadSpec { object: OBJECT, programs: &[PROGRAM], constants: &[], entries: &[] };
        Ok(FunctionNames { loaded: load_with(&KernelTypes::empty(), &spec)? })
    }

    /// Calls `found` with the name of the function that contains `address`, and the offset from its start. Does not
    /// call it if the address is in no function. One system call.
    pub fn find(&self, address: u64, found: impl FnOnce(&[u8], u64)) -> Result<(), BpfError> {
        let mut context = [0; CONTEXT_BYTES];
        let (to, _) = context.split_at_mut(8);
        to.copy_from_slice(&address.to_ne_bytes());
        let code = self.loaded.program(PROGRAM)?.run(&mut context)?;
        let (_, text) = context.split_at(8);
        if let Some((name, offset)) = parse(text).filter(|_| code == 0) {
            found(name, offset);
        }
        Ok(())
    }
}

/// Parses `name+0x12/0x34 [module]`.
fn parse(text: &[u8]) -> Option<(&[u8], u64)> {
    let plus = text.iter().position(|byte| *byte == b'+')?;
    let (name, rest) = text.split_at_checked(plus)?;
    let digits = rest.strip_prefix(b"+0x")?.split(|byte| *byte == b'/').next()?;
    let offset = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (!name.is_empty()).then_some((name, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_in_call_traces() {
        assert_eq!(parse(b"nft_do_chain+0x1f/0x560 [nf_tables]\0\0"), Some((&b"nft_do_chain"[..], 0x1f)));
        assert_eq!(parse(b"ip_rcv.part.0+0x0/0x10\0"), Some((&b"ip_rcv.part.0"[..], 0)));
        for wrong in [&b"0xffffffff81000000\0"[..], b"", b"+0x1/0x2", b"name+12/13", b"name+0x", b"name+0xzz/0x1"] {
            assert_eq!(parse(wrong), None);
        }
    }
}
