//! The BPF features that this kernel and these rights allow.
use std::ffi::CStr;

use sys::Host;
use sys::bpf::{ProgramShape, load_program};

use crate::btf::TypeKind;
use crate::error::BpfError;
use crate::kernel_types::{KernelTypes, WantedTypes, kinds};
use crate::program::ProgramType;

/// A feature that our programs need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// The kernel publishes its types (CONFIG_DEBUG_INFO_BTF).
    Types,
    /// `syscall` programs load (5.14), so the rights are present.
    Programs,
    /// Kernel memory may be read through any pointer: `bpf_rdonly_cast` and `bpf_rcu_read_lock` (6.2).
    Casts,
    /// Loops without a fixed bound: `may_goto` (6.9).
    Loops,
    /// `iter/task_file` (5.8; sockets from files 5.11).
    FileIterator,
    /// `iter/tcp` and `iter/udp` (5.9).
    SocketIterators,
    /// Typed tracepoints: `tp_btf/inet_sock_set_state` (5.5).
    Tracepoints,
    /// `cgroup/getpeername4` and 6 (5.8).
    AcceptHooks,
}

impl Ability {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Ability; 8] = [
        Ability::Types,
        Ability::Programs,
        Ability::Casts,
        Ability::Loops,
        Ability::FileIterator,
        Ability::SocketIterators,
        Ability::Tracepoints,
        Ability::AcceptHooks,
    ];

    /// Its name in `netwren support`.
    pub fn name(self) -> &'static str {
        match self {
            Ability::Types => "kernel types",
            Ability::Programs => "programs",
            Ability::Casts => "reading kernel memory",
            Ability::Loops => "long loops",
            Ability::FileIterator => "iterator over open files",
            Ability::SocketIterators => "iterators over sockets",
            Ability::Tracepoints => "tracepoints of sockets",
            Ability::AcceptHooks => "programs at accept",
        }
    }

    /// The use that netwren makes of it.
    pub fn purpose(self) -> &'static str {
        match self {
            Ability::Types => "programs are adapted to this kernel",
            Ability::Programs => "privileges and kernel allow them",
            Ability::Casts => "socket tables are walked in the kernel",
            Ability::Loops => "tables are walked in few calls",
            Ability::FileIterator => "owners of sockets are found without /proc",
            Ability::SocketIterators => "TCP sockets are read without netlink",
            Ability::Tracepoints => "connections are followed as they open and close",
            Ability::AcceptHooks => "the accepting process is known at once, not at first use",
        }
    }

    /// The first kernel that has it.
    pub fn first_version(self) -> &'static str {
        match self {
            Ability::Types => "5.4 with CONFIG_DEBUG_INFO_BTF",
            Ability::Programs => "5.14",
            Ability::Casts => "6.2",
            Ability::Loops => "6.9",
            Ability::FileIterator => "5.11",
            Ability::SocketIterators => "5.9",
            Ability::Tracepoints => "5.5",
            Ability::AcceptHooks => "5.8",
        }
    }
}

/// Whether an ability is available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbilityTrial {
    /// The ability.
    pub ability: Ability,
    /// `None` if it is available, otherwise the reason why not.
    pub error: Option<BpfError>,
}

/// `r0 = 1; exit`: the smallest program that every program type accepts.
const SMALLEST: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 1, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
/// `SMALLEST` with a `may_goto` over one instruction; 6.12 refuses one with offset 0.
const LOOP: [[u8; 8]; 4] = [SMALLEST[0], [0xe5, 0, 1, 0, 0, 0, 0, 0], SMALLEST[0], SMALLEST[1]];
const LICENCE: &CStr = c"Dual BSD/GPL";

/// Determines all of [`Ability::ALL`]: the kernel's types are read once, five programs of three instructions are
/// loaded and unloaded. Takes 2 to 4 ms; nothing is attached.
pub fn try_abilities(host: &Host) -> Vec<AbilityTrial> {
    let mut wanted = WantedTypes::new();
    let function = kinds(&[TypeKind::FUNCTION]);
    let casts = ["bpf_rdonly_cast", "bpf_rcu_read_lock", "bpf_rcu_read_unlock"].map(|name| wanted.add(name, function));
    let files = [wanted.add("bpf_iter_task_file", function)];
    let sockets = ["bpf_iter_tcp", "bpf_iter_udp"].map(|name| wanted.add(name, function));
    let tracepoint = wanted.add("btf_trace_inet_sock_set_state", kinds(&[TypeKind::TYPEDEF]));
    let types = KernelTypes::read(host).and_then(|types| types.find(&mut wanted).map(drop)).err();
    let named = |ability: Ability, numbers: &[usize]| match &types {
        Some(error) => Some(error.clone()),
        None if numbers.iter().all(|number| !wanted.types_found(*number).is_empty()) => None,
        None => Some(missing_error(ability)),
    };
    let programs = try_small_program(Ability::Programs, ProgramType::Called, &SMALLEST, 0);
    let loops = || try_small_program(Ability::Loops, ProgramType::Called, &LOOP, 0);
    let traced = || {
        let target = wanted.types_found(tracepoint).first().map_or(0, |(id, _)| *id);
        try_small_program(Ability::Tracepoints, ProgramType::Tracepoint("inet_sock_set_state"), &SMALLEST, target)
    };
    let iterated = || {
        let target = wanted.types_found(sockets[0]).first().map_or(0, |(id, _)| *id);
        try_small_program(Ability::SocketIterators, ProgramType::Iterator("tcp"), &SMALLEST, target)
    };
    let created = || try_small_program(Ability::AcceptHooks, ProgramType::ACCEPT, &SMALLEST, 0);
    let error = |ability| match ability {
        Ability::Types => types.clone(),
        Ability::Programs => programs.clone(),
        Ability::Casts => programs.clone().or_else(|| named(ability, &casts)),
        Ability::Loops => programs.clone().or_else(loops),
        Ability::FileIterator => programs.clone().or_else(|| named(ability, &files)),
        // These are older than `syscall` programs, so they do not depend on them.
        Ability::SocketIterators => named(ability, &sockets).or_else(iterated),
        Ability::Tracepoints => named(ability, &[tracepoint]).or_else(traced),
        Ability::AcceptHooks => created(),
    };
    Ability::ALL.map(|ability| AbilityTrial { ability, error: error(ability) }).into()
}

fn missing_error(ability: Ability) -> BpfError {
    BpfError::Missing { kind: "BPF feature", name: ability.name().into(), since: Some(ability.first_version()) }
}

fn try_small_program(
    ability: Ability,
    program_type: ProgramType<'_>,
    code: &[[u8; 8]],
    target: u32,
) -> Option<BpfError> {
    let (kind, attach, flags) = program_type.numbers();
    let instructions = code.as_flattened();
    let shape = ProgramShape { name: "nw_probe", kind, attach, flags, target, instructions, licence: LICENCE };
    let error = load_program(&shape, &mut []).err()?;
    if error.errno.is_denied() {
        return Some(BpfError::Denied {
            what: error.object,
            needs: program_type.needed_capabilities(),
            errno: error.errno,
        });
    }
    Some(missing_error(ability))
}
