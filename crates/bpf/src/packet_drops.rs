//! Packets that the kernel drops (`c/packet_drops.bpf.c`).
//!
//! Needs Linux 5.10, BTF, CAP_BPF and CAP_PERFMON. Ends with the value, however the process ends. Start reading at
//! [`PacketDrops::open`].
use sys::bpf::Ring;
use sys::{Host, SysError};

use crate::btf::{TypeKind, Types};
use crate::error::BpfError;
use crate::kernel_types::{KernelTypes, WantedTypes, kinds};
use crate::link::Link;
use crate::load::{Loaded, Spec, load_with};
use crate::object::u64_at;

const OBJECT: &[u8] = include_bytes!("../objects/packet_drops.o");
const PROGRAM: &str = "on_drop";
const EVENT_PROGRAM: &str = "on_drop_event";
const FRAME_PROGRAM: &str = "on_drop_frame";
/// The maps of counts: one is for namespaces that belong to user namespaces, the last for what found no room.
const MAPS: [&str; 3] = ["drops", "guest_drops", "merged_drops"];
/// `struct drop_count` of one CPU.
const COUNT_BYTES: usize = 16;

/// Bytes of `struct drop_key`.
pub const DROP_KEY_BYTES: usize = 24;
/// Bytes of `struct drop_sample`.
pub const DROP_SAMPLE_BYTES: usize = 248;

/// The most bytes of a packet that an event has (`SNAPLEN_MAX`).
pub const DROP_SNAPLEN_MAX: u32 = 4096;

/// The number of a reason that this kernel has not got.
const NO_REASON: u32 = u32::MAX;
/// The prefix of every name of a reason.
const PREFIX: &str = "SKB_DROP_REASON_";
/// The prefix of names of subsystems. A subsystem's number is the upper 16 bits of its reasons.
const SUBSYSTEM_PREFIX: &str = "SKB_DROP_REASON_SUBSYS_";

/// The kernel's names for reasons: a number means something else in the next kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropReasons {
    /// `enum skb_drop_reason`: number and name, without what all names begin with. Empty before 5.17.
    pub reasons: Vec<(u32, Box<str>)>,
    /// `enum skb_drop_reason_subsys` (6.4).
    pub subsystems: Vec<(u32, Box<str>)>,
}

/// Packets that are in no count, or not in the one that they belong to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropLosses {
    /// Counted by reason and place alone, because the map was full.
    pub merged: u64,
    /// Not counted, because that map was full, too; of events: those that found the ring full.
    pub lost: u64,
    /// Drops in an interrupt of the program itself, which the kernel does not run again then.
    pub missed: u64,
}

/// The program at work.
#[derive(Debug)]
pub struct PacketDrops {
    loaded: Loaded,
    _link: Link,
    reasons: DropReasons,
}

/// How many keys are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropRoom {
    /// Of namespaces that belong to the host's first user namespace.
    pub own: u32,
    /// Of all other namespaces, which any user can make.
    pub guests: u32,
    /// Reasons and places of what finds no room in these.
    pub merged: u32,
}

impl DropRoom {
    /// Enough for hundreds of namespaces; 2 ms to make on two CPUs.
    pub const USUAL: DropRoom = DropRoom { own: 4096, guests: 2048, merged: 1024 };
}

impl PacketDrops {
    /// Loads the program and attaches it: from here on every drop counts, of the namespace with this inode or of all.
    /// Those of no known namespace count in either case. Costs 10 to 20 ms.
    pub fn open(host: &Host, only_netns: Option<u32>, room: DropRoom) -> Result<PacketDrops, BpfError> {
        let samples = room.own.saturating_add(room.guests).saturating_add(room.merged);
        let entries =
            [("drops", room.own), ("guest_drops", room.guests), ("merged_drops", room.merged), ("samples", samples)];
        let (loaded, link, reasons) = attached(host, PROGRAM, only_netns, &[], &entries)?;
        Ok(PacketDrops { loaded, _link: link, reasons })
    }

    /// Loads the program with hardly any room and drops it again, unattached. Returns the kernel's names for reasons.
    pub fn try_load(host: &Host) -> Result<DropReasons, BpfError> {
        let entries = ["drops", "guest_drops", "merged_drops", "samples"].map(|map| (map, 1));
        loaded(host, PROGRAM, None, &[], &entries).map(|(_, reasons)| reasons)
    }

    /// The kernel's names for reasons.
    pub fn reasons(&self) -> &DropReasons {
        &self.reasons
    }

    /// Calls back with each key, and its packets and bytes since the program was opened. One system call for a
    /// thousand keys.
    pub fn each(&self, mut each: impl FnMut(&[u8; DROP_KEY_BYTES], u64, u64)) -> Result<(), BpfError> {
        for map in MAPS {
            self.loaded.map(map)?.each(|key, value| {
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

    /// Reads what the first packet of a key left into `sample`; false if it is not there yet. One system call.
    pub fn sample(&self, key: &[u8; DROP_KEY_BYTES], sample: &mut [u8; DROP_SAMPLE_BYTES]) -> Result<bool, BpfError> {
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

/// Parts of an event beside its key and the ends of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropEventParts {
    /// Nothing.
    Plain,
    /// The stack that led to the drop: 3 us more.
    Stack,
    /// So many bytes of the packet at most; no more than [`DROP_SNAPLEN_MAX`].
    Frame(u32),
}

/// The program that writes each drop into a ring, at work.
#[derive(Debug)]
pub struct PacketDropEvents {
    program: &'static str,
    loaded: Loaded,
    _link: Link,
    ring: Ring,
    reasons: DropReasons,
}

impl PacketDropEvents {
    /// Loads the program and attaches it, as [`PacketDrops::open`] does. `ring_bytes` (a power of two, whole pages) is
    /// the room for what waits to be read: an event takes 96 bytes, 288 with its stack, 104 and those of the packet.
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
            attached(host, program, only_netns, &[(name, &constant)], &[("events", ring_bytes)])?;
        let ring = loaded.map("events")?.ring()?;
        Ok(PacketDropEvents { program, loaded, _link: link, ring, reasons })
    }

    /// The kernel's names for reasons.
    pub fn reasons(&self) -> &DropReasons {
        &self.reasons
    }

    /// Calls back with every event that waits; returns how many there were. No system call.
    pub fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<u64, SysError> {
        self.ring.consume(each)
    }

    /// Waits until 64 KiB of events are there, for `timeout_ms` at most. Fewer events do not end the wait: read the
    /// ring after it in any case.
    pub fn wait(&self, timeout_ms: i32) -> Result<(), SysError> {
        self.ring.wait(timeout_ms).map(drop)
    }

    /// Drops that found the ring full, and those that interrupted the program. Two system calls.
    pub fn losses(&self) -> Result<DropLosses, BpfError> {
        let missed = self.loaded.program(self.program)?.missed_runs()?;
        Ok(DropLosses { merged: 0, lost: self.loaded.counter("lost_events")?, missed })
    }
}

/// Loads one of the programs and attaches it.
fn attached(
    host: &Host,
    program: &str,
    only_netns: Option<u32>,
    constants: &[(&str, &[u8])],
    entries: &[(&str, u32)],
) -> Result<(Loaded, Link, DropReasons), BpfError> {
    let (loaded, reasons) = loaded(host, program, only_netns, constants, entries)?;
    let link = loaded.program(program)?.attach()?;
    Ok((loaded, link, reasons))
}

/// Loads one of the programs, fitted to the kernel's tracepoint and reasons.
fn loaded(
    host: &Host,
    program: &str,
    only_netns: Option<u32>,
    constants: &[(&str, &[u8])],
    entries: &[(&str, u32)],
) -> Result<(Loaded, DropReasons), BpfError> {
    let types = KernelTypes::read(host)?;
    let (reasons, arguments) = read_reasons(&types)?;
    let number = |name| reasons.number(name).unwrap_or(NO_REASON).to_ne_bytes();
    let (netns, arguments) = (only_netns.unwrap_or(0).to_ne_bytes(), arguments.to_ne_bytes());
    let (consumed, netfilter) = (number("SKB_CONSUMED"), number("NETFILTER_DROP"));
    let own: [(&str, &[u8]); 4] =
        [("only_netns", &netns), ("arguments", &arguments), ("consumed", &consumed), ("netfilter_drop", &netfilter)];
    let constants = [&own[..], constants].concat();
    let spec = Spec { object: OBJECT, programs: &[program], constants: &constants, entries };
    Ok((load_with(&types, &spec)?, reasons))
}

/// Reasons by name, and how many arguments the tracepoint has, in one pass over the kernel's types.
fn read_reasons(types: &KernelTypes) -> Result<(DropReasons, u32), BpfError> {
    let mut wanted = WantedTypes::new();
    let of_enum = kinds(&[TypeKind::ENUM, TypeKind::ENUM64]);
    let reasons = wanted.add("skb_drop_reason", of_enum);
    let subsystems = wanted.add("skb_drop_reason_subsys", of_enum);
    let tracepoint = wanted.add("btf_trace_kfree_skb", kinds(&[TypeKind::TYPEDEF]));
    let found = types.find(&mut wanted)?;
    let of_enum = |number: usize, prefix: &str| match wanted.found(number).first() {
        Some((id, _)) => constants(&found, *id, prefix),
        None => Vec::new(),
    };
    let names = DropReasons { reasons: of_enum(reasons, PREFIX), subsystems: of_enum(subsystems, SUBSYSTEM_PREFIX) };
    let arguments = wanted.found(tracepoint).first().and_then(|(id, _)| tracepoint_arguments(&found, *id));
    Ok((names, arguments.unwrap_or(2)))
}

/// Numbers and names of an enum, without `prefix`. Those behind the last reason are no reasons.
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

/// The arguments of the tracepoint that the typedef `btf_trace_NAME` stands for. The first is no program's.
fn tracepoint_arguments(types: &Types<'_>, typedef: u32) -> Option<u32> {
    let (_, pointer) = types.bare(typedef)?;
    let (_, prototype) = types.bare(pointer.size_or_type)?;
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
