//! Packets that the kernel drops (`c/packet_drops.bpf.c`).
//!
//! Needs Linux 5.10, BTF, CAP_BPF and CAP_PERFMON. Counting ends when the value is dropped or the process ends. Start
//! reading at [`PacketDrops::open`].
use sys::bpf::Ring;
use sys::{Host, SysError};

use crate::btf::{TypeKind, Types};
use crate::error::BpfError;
use crate::kernel_types::{KernelTypes, WantedTypes, kinds};
use crate::link::Link;
use crate::load::{LoadSpec, LoadedObject, load_with};
use crate::object::u64_at;

const OBJECT: &[u8] = include_bytes!("../objects/packet_drops.o");
const PROGRAM: &str = "on_drop";
const EVENT_PROGRAM: &str = "on_drop_event";
const FRAME_PROGRAM: &str = "on_drop_frame";
/// The maps of counts: the second is for namespaces that belong to user namespaces, the last for drops that did not
/// fit into the others.
const MAPS: [&str; 3] = ["drops", "guest_drops", "merged_drops"];
/// Size of `struct drop_count` of one CPU.
const COUNT_BYTES: usize = 16;

/// Size of `struct drop_key`.
pub const DROP_KEY_BYTES: usize = 24;
/// Size of `struct drop_sample`.
pub const DROP_SAMPLE_BYTES: usize = 248;

/// The maximum number of packet bytes in an event (`SNAPLEN_MAX`).
pub const DROP_SNAPLEN_MAX: u32 = 4096;

/// The number for a reason that this kernel does not have.
const NO_REASON: u32 = u32::MAX;
/// The prefix of all reason names.
const PREFIX: &str = "SKB_DROP_REASON_";
/// The prefix of subsystem names. A subsystem's number is the upper 16 bits of its reasons.
const SUBSYSTEM_PREFIX: &str = "SKB_DROP_REASON_SUBSYS_";

/// The kernel's names for reasons. The numbers differ between kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropReasons {
    /// `enum skb_drop_reason`: number and name, without the common prefix. Empty before 5.17.
    pub reasons: Vec<(u32, Box<str>)>,
    /// `enum skb_drop_reason_subsys` (6.4).
    pub subsystems: Vec<(u32, Box<str>)>,
}

/// Packets that were not counted, or not in the count to which they belong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropLosses {
    /// Packets counted only by reason and place, because the map was full.
    pub merged: u64,
    /// Packets not counted, because that map was full as well; for events: those lost because the ring was full.
    pub lost: u64,
    /// Drops in an interrupt of the program itself: the kernel does not run the program again in that case.
    pub missed: u64,
}

/// The attached program.
#[derive(Debug)]
pub struct PacketDrops {
    loaded: LoadedObject,
    _link: Link,
    reasons: DropReasons,
}

/// The maximum number of keys that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropRoom {
    /// For namespaces that belong to the host's initial user namespace.
    pub own: u32,
    /// For all other namespaces, which any user can create.
    pub guests: u32,
    /// Reasons and places of drops that fit into neither.
    pub merged: u32,
}

/// Bound: kinds of drops: reason, place, namespace, interface and protocol, without ports. Beyond: packets of further
/// kinds are counted by reason and place alone; reported (exit code 3). By: anyone who may make interfaces in a
/// namespace of the host; senders cannot (`drops::root_a_storm_of_random_ports_is_one_row`).
const KINDS_MAX: u32 = 4096;
/// Bound: kinds of drops in the namespaces of user namespaces. Beyond: packets of further kinds are counted by reason
/// and place alone; reported (exit code 3). By: a user who makes namespaces, for all such namespaces; those of the host
/// have their own (`packet_drops::root_namespaces_of_users_take_no_room_of_others`).
const GUEST_KINDS_MAX: u32 = 2048;
/// Bound: pairs of reason and place for packets of further kinds. Beyond: packets are counted as lost (exit code 3;
/// `packet_drops::root_without_any_room_packets_are_lost_and_counted`). By: a kernel with more such places.
const MERGED_KINDS_MAX: u32 = 1024;

impl DropRoom {
    /// Enough for hundreds of namespaces; takes 2 ms to create on two CPUs.
    pub const USUAL: DropRoom = DropRoom { own: KINDS_MAX, guests: GUEST_KINDS_MAX, merged: MERGED_KINDS_MAX };
}

impl PacketDrops {
    /// Loads the program and attaches it. From here on it counts every drop in the namespace with this inode, or in
    /// all namespaces. Drops without a known namespace are always counted. Costs 10 to 20 ms.
    pub fn open(host: &Host, only_netns: Option<u32>, room: DropRoom) -> Result<PacketDrops, BpfError> {
        let samples = room.own.saturating_add(room.guests).saturating_add(room.merged);
        let entries =
            [("drops", room.own), ("guest_drops", room.guests), ("merged_drops", room.merged), ("samples", samples)];
        let (loaded, link, reasons) = load_and_attach(host, PROGRAM, only_netns, &[], &entries)?;
        Ok(PacketDrops { loaded, _link: link, reasons })
    }

    /// Loads the program with minimal maps and unloads it again without attaching it. Returns the kernel's names for
    /// reasons.
    pub fn try_load(host: &Host) -> Result<DropReasons, BpfError> {
        let entries = ["drops", "guest_drops", "merged_drops", "samples"].map(|map| (map, 1));
        loaded(host, PROGRAM, None, &[], &entries).map(|(_, reasons)| reasons)
    }

    /// The kernel's names for reasons.
    pub fn reasons(&self) -> &DropReasons {
        &self.reasons
    }

    /// Calls `each` with each key, and its packets and bytes since the program was opened. One system call per
    /// thousand keys.
    pub fn for_each(&self, mut each: impl FnMut(&[u8; DROP_KEY_BYTES], u64, u64)) -> Result<(), BpfError> {
        for map in MAPS {
            self.loaded.map(map)?.for_each(|key, value| {
                let of_cpus = value.chunks_exact(COUNT_BYTES);
                let (mut packets, mut bytes) = (0_u64, 0_u64);
                for of_cpu in of_cpus {
                    packets = packets.wrapping_add(u64_at(of_cpu, 0).unwrap_or(0));
                    bytes = bytes.wrapping_add(u64_at(of_cpu, 8).unwrap_or(0));
                }
                if let Some(key) = key.first_chunk() {
                    each(key, packets, bytes);
                }
            })?;
        }
        Ok(())
    }

    /// Reads the data of a key's first packet into `sample`; false if it is not available yet. One system call.
    pub fn read_sample(
        &self,
        key: &[u8; DROP_KEY_BYTES],
        sample: &mut [u8; DROP_SAMPLE_BYTES],
    ) -> Result<bool, BpfError> {
        self.loaded.map("samples")?.get(key, sample)
    }

    /// Reads the counts of lost packets. Three system calls.
    pub fn losses(&self) -> Result<DropLosses, BpfError> {
        Ok(DropLosses {
            merged: self.loaded.counter("merged")?,
            lost: self.loaded.counter("lost")?,
            missed: self.loaded.program(PROGRAM)?.missed_runs()?,
        })
    }
}

impl DropReasons {
    /// Reads the names from the kernel's types: 1 to 3 ms.
    pub fn read(host: &Host) -> Result<DropReasons, BpfError> {
        read_reasons(&KernelTypes::read(host)?).map(|(reasons, _)| reasons)
    }

    /// The number of the reason with this name.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.reasons.iter().find(|(_, known)| **known == *name).map(|(number, _)| *number)
    }
}

/// Optional parts of an event, in addition to its key and the packet's addresses and ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropEventParts {
    /// No optional part.
    Plain,
    /// The stack that led to the drop: costs 3 µs.
    Stack,
    /// At most this many bytes of the packet, and at most [`DROP_SNAPLEN_MAX`].
    Frame(u32),
}

/// The attached program that writes each drop into a ring.
#[derive(Debug)]
pub struct PacketDropEvents {
    program: &'static str,
    loaded: LoadedObject,
    _link: Link,
    ring: Ring,
    reasons: DropReasons,
}

impl PacketDropEvents {
    /// Loads the program and attaches it, as [`PacketDrops::open`] does. `ring_bytes` (a power of two, whole pages) is
    /// the size of the ring for unread events: an event takes 96 bytes, 288 with its stack, or 104 plus the packet's
    /// bytes.
    pub fn open(
        host: &Host,
        only_netns: Option<u32>,
        parts: DropEventParts,
        ring_bytes: u32,
    ) -> Result<PacketDropEvents, BpfError> {
        let (program, name, value) = match parts {
            DropEventParts::Plain => (EVENT_PROGRAM, "with_stack", 0),
            DropEventParts::Stack => (EVENT_PROGRAM, "with_stack", 1),
            DropEventParts::Frame(snaplen) => (FRAME_PROGRAM, "snaplen", snaplen.min(DROP_SNAPLEN_MAX)),
        };
        let constant = u32::to_ne_bytes(value);
        let (loaded, link, reasons) =
            load_and_attach(host, program, only_netns, &[(name, &constant)], &[("events", ring_bytes)])?;
        let ring = loaded.map("events")?.ring()?;
        Ok(PacketDropEvents { program, loaded, _link: link, ring, reasons })
    }

    /// The kernel's names for reasons.
    pub fn reasons(&self) -> &DropReasons {
        &self.reasons
    }

    /// Calls `each` with every waiting event; returns their number. Makes no system call.
    pub fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<u64, SysError> {
        self.ring.consume(each)
    }

    /// Waits at most `timeout_ms` until 64 KiB of events are available. Fewer events do not end the wait: read the
    /// ring after it in any case.
    pub fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.ring.wait(timeout_ms).map(drop)
    }

    /// Number of drops lost because the ring was full, and of drops that interrupted the program. Two system calls.
    pub fn losses(&self) -> Result<DropLosses, BpfError> {
        let missed = self.loaded.program(self.program)?.missed_runs()?;
        Ok(DropLosses { merged: 0, lost: self.loaded.counter("lost_events")?, missed })
    }
}

/// Loads one of the programs and attaches it.
fn load_and_attach(
    host: &Host,
    program: &str,
    only_netns: Option<u32>,
    constants: &[(&str, &[u8])],
    entries: &[(&str, u32)],
) -> Result<(LoadedObject, Link, DropReasons), BpfError> {
    let (loaded, reasons) = loaded(host, program, only_netns, constants, entries)?;
    let link = loaded.program(program)?.attach()?;
    Ok((loaded, link, reasons))
}

/// Loads one of the programs, adapted to the kernel's tracepoint and reasons.
fn loaded(
    host: &Host,
    program: &str,
    only_netns: Option<u32>,
    constants: &[(&str, &[u8])],
    entries: &[(&str, u32)],
) -> Result<(LoadedObject, DropReasons), BpfError> {
    let types = KernelTypes::read(host)?;
    let (reasons, arguments) = read_reasons(&types)?;
    let number = |name| reasons.number(name).unwrap_or(NO_REASON).to_ne_bytes();
    let (netns, arguments) = (only_netns.unwrap_or(0).to_ne_bytes(), arguments.to_ne_bytes());
    let (consumed, netfilter) = (number("SKB_CONSUMED"), number("NETFILTER_DROP"));
    let own: [(&str, &[u8]); 4] =
        [("only_netns", &netns), ("arguments", &arguments), ("consumed", &consumed), ("netfilter_drop", &netfilter)];
    let constants = [&own[..], constants].concat();
    let spec = LoadSpec { object: OBJECT, programs: &[program], constants: &constants, entries };
    Ok((load_with(&types, &spec)?, reasons))
}

/// Reasons by name, and the number of arguments of the tracepoint, in one pass over the kernel's types.
fn read_reasons(types: &KernelTypes) -> Result<(DropReasons, u32), BpfError> {
    let mut wanted = WantedTypes::new();
    let of_enum = kinds(&[TypeKind::ENUM, TypeKind::ENUM64]);
    let reasons = wanted.add("skb_drop_reason", of_enum);
    let subsystems = wanted.add("skb_drop_reason_subsys", of_enum);
    let tracepoint = wanted.add("btf_trace_kfree_skb", kinds(&[TypeKind::TYPEDEF]));
    let found = types.find(&mut wanted)?;
    let of_enum = |number: usize, prefix: &str| match wanted.types_found(number).first() {
        Some((id, _)) => constants(&found, *id, prefix),
        None => Vec::new(),
    };
    let names = DropReasons { reasons: of_enum(reasons, PREFIX), subsystems: of_enum(subsystems, SUBSYSTEM_PREFIX) };
    let arguments = wanted.types_found(tracepoint).first().and_then(|(id, _)| tracepoint_arguments(&found, *id));
    Ok((names, arguments.unwrap_or(2)))
}

/// Numbers and names of an enum, without `prefix`. Constants after the last reason are not reasons.
fn constants(types: &Types<'_>, id: u32, prefix: &str) -> Vec<(u32, Box<str>)> {
    let Some(found) = types.get(id) else { return Vec::new() };
    let constant = |(name, value): (u32, u64)| {
        let name = types.name(name);
        let name = name.strip_prefix(prefix).unwrap_or(name);
        let is_limit = matches!(name, "MAX" | "SUBSYS_MASK" | "SUBSYS_NUM" | "NUM");
        Some((u32::try_from(value).ok().filter(|_| !is_limit && !name.is_empty())?, name.into()))
    };
    found.values().filter_map(constant).collect()
}

/// The number of arguments of the tracepoint that the typedef `btf_trace_NAME` stands for. The first is not passed to
/// programs.
fn tracepoint_arguments(types: &Types<'_>, typedef: u32) -> Option<u32> {
    let (_, pointer) = types.strip_modifiers(typedef)?;
    let (_, prototype) = types.strip_modifiers(pointer.size_or_type)?;
    u32::try_from(prototype.parameters()?.checked_sub(1)?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_running_kernels_reasons() {
        let Ok(types) = KernelTypes::read(&Host::live()) else {
            println!("skipped: no types of the kernel here");
            return;
        };
        let (names, arguments) = read_reasons(&types).unwrap();
        assert!((2..=8).contains(&arguments), "{arguments}");
        if arguments < 3 {
            return;
        }
        let number = |name| names.number(name).unwrap_or_else(|| panic!("{name}: {names:?}"));
        let all = ["NOT_SPECIFIED", "NO_SOCKET", "SOCKET_RCVBUFF", "NETFILTER_DROP", "IP_RPFILTER"];
        let mut numbers: Vec<u32> = all.into_iter().map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all.len());
        assert!(names.number("MAX").is_none());
    }
}
