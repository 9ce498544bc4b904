//! The BPF programs that are loaded on this host, and the links that hold them.
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

/// Maximum number of programs or links listed: a bound for the loop, far above what hosts have.
const LISTED_MAX: usize = 1 << 16;
/// `struct bpf_prog_info`: type, id, …, name at 64.
const FACTS_BYTES: usize = 80;
const NAME_AT: usize = 64;

/// All programs loaded on this host. Needs CAP_SYS_ADMIN. Three system calls per program.
pub fn loaded_programs() -> Result<Vec<LoadedProgram>, SysError> {
    list(Command::ProgNextId, "the list of BPF programs", read_program)
}

/// Indexes of 32-bit words in `struct bpf_link_info`: type, and the program's id; `BPF_LINK_TYPE_XDP`.
const LINK_KIND_WORD: usize = 0;
const LINK_PROGRAM_WORD: usize = 2;
const LINK_XDP: u32 = 6;

/// The links that hold XDP programs, as ids of program and link. Such a program is detached by `bpftool link detach id
/// LINK`, and not by tools that only know the interface. Needs CAP_SYS_ADMIN. Three system calls per link of any kind.
pub fn xdp_links() -> Result<Vec<(u32, u32)>, SysError> {
    let read = |id| {
        let facts = read_facts::<{ LINK_PROGRAM_WORD + 1 }>(&open(Command::LinkById, id)?)?;
        Ok((facts[LINK_KIND_WORD], facts[LINK_PROGRAM_WORD], id))
    };
    let all = list(Command::LinkNextId, "the list of BPF links", read)?;
    Ok(all.into_iter().filter(|(kind, ..)| *kind == LINK_XDP).map(|(_, program, link)| (program, link)).collect())
}

/// Reads all objects of a kind; those that end in the meantime are left out.
fn list<T>(next: Command, what: &str, read: impl Fn(u32) -> Result<T, Errno>) -> Result<Vec<T>, SysError> {
    let failed = |errno| SysError::new(next.name(), what, errno);
    let mut found = Vec::new();
    let mut id = 0;
    while found.len() < LISTED_MAX {
        let mut attr = IdAttr { id, next: 0, flags: 0 };
        // SAFETY: IdAttr is the layout of PROG_GET_NEXT_ID and of LINK_GET_NEXT_ID, and holds no address.
        match unsafe { bpf(next, &mut attr) } {
            Ok(_) => id = attr.next,
            Err(Errno::NOENT) => break,
            Err(errno) => return Err(failed(errno)),
        }
        match read(id) {
            Ok(one) => found.push(one),
            Err(errno) if errno.is_missing_object() => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(found)
}

/// Opens a program or a link by its id.
fn open(by_id: Command, id: u32) -> Result<Fd, Errno> {
    let mut attr = IdAttr { id, next: 0, flags: 0 };
    // SAFETY: IdAttr is the layout of PROG_GET_FD_BY_ID and of LINK_GET_FD_BY_ID, and holds no address.
    let fd = unsafe { bpf(by_id, &mut attr) }?;
    // SAFETY: the kernel just returned this descriptor to us alone.
    Ok(unsafe { Fd::take(fd) })
}

/// The first words of what the kernel knows of an object.
fn read_facts<const WORDS: usize>(object: &Fd) -> Result<[u32; WORDS], Errno> {
    let mut facts = [0u32; WORDS];
    let (fd, bytes) = (object.raw() as u32, size_of_val(&facts) as u32);
    let mut attr = FactsAttr { fd, bytes, facts: facts.as_mut_ptr() as u64 };
    // SAFETY: FactsAttr is the layout of OBJ_GET_INFO_BY_FD; the address is that of `bytes` bytes to be written. The
    // zeros in them (addresses of lists) request nothing.
    unsafe { bpf(Command::ObjectFacts, &mut attr) }?;
    Ok(facts)
}

/// Indexes of 32-bit words in `struct bpf_prog_info`: the halves of `recursion_misses` (Linux 5.12), and
/// `verified_insns` (5.16).
const MISSES_WORD: usize = 52;
const VERIFIED_WORD: usize = 54;

/// How often a program was skipped because it was already running on the same CPU: an interrupt occurred while it ran.
/// Counted since Linux 5.12, for tracepoints since 6.1; 0 before. One system call.
pub fn missed_runs(program: &Fd) -> Result<u64, Errno> {
    let facts = read_facts::<{ MISSES_WORD + 2 }>(program)?;
    Ok(u64::from(facts[MISSES_WORD]) | u64::from(facts[MISSES_WORD + 1]) << 32)
}

/// Number of instructions that the verifier processed when the program was loaded, counting repeated visits. It is a
/// measure of the cost of loading. 0 before Linux 5.16. One system call.
pub fn verified_instructions(program: &Fd) -> Result<u32, Errno> {
    Ok(read_facts::<{ VERIFIED_WORD + 1 }>(program)?[VERIFIED_WORD])
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

fn read_program(id: u32) -> Result<LoadedProgram, Errno> {
    let facts = read_facts::<{ FACTS_BYTES / 4 }>(&open(Command::ProgById, id)?)?;
    let bytes: Vec<u8> = facts.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = bytes.get(NAME_AT..).unwrap_or_default();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(LoadedProgram { id, kind: facts[0], name: escape_bytes(name) })
}
