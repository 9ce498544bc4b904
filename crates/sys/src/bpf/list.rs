//! The BPF programs that are loaded on this host.
use super::call::{Command, bpf};
use crate::errno::{Errno, SysError, escape_bytes};
use crate::fd::Fd;

/// A BPF program loaded by any process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedProgram {
    /// The kernel's id of it.
    pub id: u32,
    /// `enum bpf_prog_type`.
    pub kind: u32,
    /// Name as the kernel stores it, escaped.
    pub name: Box<str>,
}

#[repr(C)]
struct IdAttr {
    id: u32,
    next: u32,
    flags: u32,
}

#[repr(C)]
struct FactsAttr {
    fd: u32,
    bytes: u32,
    facts: u64,
}

/// Maximum number of programs listed: a bound for the loop, far above what hosts have.
const PROGRAMS_MAX: usize = 1 << 16;
/// `struct bpf_prog_info`: type, id, …, name at 64.
const FACTS_BYTES: usize = 80;
const NAME_AT: usize = 64;

/// All programs loaded on this host. Needs CAP_SYS_ADMIN. Three system calls per program.
pub fn loaded_programs() -> Result<Vec<LoadedProgram>, SysError> {
    let failed = |errno| SysError::new(Command::ProgNextId.name(), "the list of BPF programs", errno);
    let mut found = Vec::new();
    let mut id = 0;
    while found.len() < PROGRAMS_MAX {
        let mut attr = IdAttr { id, next: 0, flags: 0 };
        // SAFETY: IdAttr is the layout of PROG_GET_NEXT_ID and holds no address.
        match unsafe { bpf(Command::ProgNextId, &mut attr) } {
            Ok(_) => id = attr.next,
            Err(Errno::NOENT) => break,
            Err(errno) => return Err(failed(errno)),
        }
        match read_program(id) {
            Ok(program) => found.push(program),
            // The program was unloaded in the meantime.
            Err(errno) if errno.is_missing_object() => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(found)
}

/// Indexes of 64-bit words in `struct bpf_prog_info`: `recursion_misses` (Linux 5.12), and the next word, whose first
/// half is `verified_insns` (5.16).
const MISSES_WORD: usize = 26;
const VERIFIED_WORD: usize = 27;

/// How often a program was skipped because it was already running on the same CPU: an interrupt occurred while it ran.
/// Counted since Linux 5.12, for tracepoints since 6.1; 0 before. One system call.
pub fn missed_runs(program: &Fd) -> Result<u64, Errno> {
    Ok(first_facts(program)?[MISSES_WORD])
}

/// Number of instructions that the verifier processed when the program was loaded, counting repeated visits. It is a
/// measure of the cost of loading. 0 before Linux 5.16. One system call.
pub fn verified_instructions(program: &Fd) -> Result<u32, Errno> {
    Ok(first_facts(program)?[VERIFIED_WORD] as u32)
}

#[repr(C)]
struct QueryAttr {
    target: u32,
    attach: u32,
    flags: u32,
    attach_flags: u32,
    ids: u64,
    count: u32,
    rest: u32,
}
const _: () = assert!(size_of::<QueryAttr>() == 32);

/// Number of programs that are attached to a cgroup (a cgroup v2 directory) itself, not to its parents. `attach` is the
/// attach type, `enum bpf_attach_type`. Needs CAP_NET_ADMIN. One system call.
pub fn count_cgroup_programs(cgroup: &Fd, attach: u32) -> Result<u32, Errno> {
    let target = cgroup.raw() as u32;
    let mut attr = QueryAttr { target, attach, flags: 0, attach_flags: 0, ids: 0, count: 0, rest: 0 };
    // SAFETY: QueryAttr is the layout of PROG_QUERY; without room for ids, the kernel only writes their number.
    unsafe { bpf(Command::ProgQuery, &mut attr) }?;
    Ok(attr.count)
}

fn first_facts(program: &Fd) -> Result<[u64; VERIFIED_WORD + 1], Errno> {
    let mut facts = [0u64; VERIFIED_WORD + 1];
    let (fd, bytes) = (program.raw() as u32, size_of_val(&facts) as u32);
    let mut attr = FactsAttr { fd, bytes, facts: facts.as_mut_ptr() as u64 };
    // SAFETY: FactsAttr is the layout of OBJ_GET_INFO_BY_FD; the address is that of `bytes` bytes to be written. The
    // zeros in them (addresses of lists) request nothing.
    unsafe { bpf(Command::ObjectFacts, &mut attr) }?;
    Ok(facts)
}

fn read_program(id: u32) -> Result<LoadedProgram, Errno> {
    let mut attr = IdAttr { id, next: 0, flags: 0 };
    // SAFETY: as in `loaded_programs`.
    let fd = unsafe { bpf(Command::ProgById, &mut attr) }?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    let fd = unsafe { Fd::take(fd) };
    let mut facts = [0u64; FACTS_BYTES / 8];
    let mut attr = FactsAttr { fd: fd.raw() as u32, bytes: FACTS_BYTES as u32, facts: facts.as_mut_ptr() as u64 };
    // SAFETY: FactsAttr is the layout of OBJ_GET_INFO_BY_FD; the address is that of FACTS_BYTES bytes to be written.
    // The zeros in them (addresses of lists) request nothing.
    unsafe { bpf(Command::ObjectFacts, &mut attr) }?;
    let bytes: Vec<u8> = facts.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = bytes.get(NAME_AT..).unwrap_or_default();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let kind = bytes.first_chunk().map_or(0, |kind| u32::from_ne_bytes(*kind));
    Ok(LoadedProgram { id, kind, name: escape_bytes(name) })
}
