//! netwren's own BPF programs: read from an embedded object file, adapted to the running kernel, loaded.
//!
//! An object is compiled by clang from `c/*.bpf.c`: ELF with instructions, the types it was compiled against (BTF) and
//! a relocation for every access to a kernel type (CO-RE). Loading consists of these steps: select the wanted
//! programs, look up their types in the kernel's BTF, write the real offsets into the instructions, create the maps,
//! pass everything to the verifier. Everything is released with [`LoadedObject`]; nothing is pinned. Knows nothing
//! about sockets or rows. Start reading at [`load()`].
//!
//! Not supported, because nothing needs it: functions called inside a program, callbacks, kernel configuration
//! symbols, typed reads of types of modules, program types other than those in `program.rs`.
#![forbid(unsafe_code)]

mod btf;
pub mod conntrack_new;
mod conntrack_table;
pub mod conntrack_walk;
mod core_relocations;
mod cpu_samples;
mod error;
mod function_names;
mod fuzz;
mod kernel_types;
mod link;
mod load;
#[cfg(test)]
mod made;
mod maps;
mod object;
mod owners_files;
mod packet_delays;
mod packet_drops;
mod patch;
mod path_stages;
mod portion;
mod program;
mod relocate;
mod resets;
pub mod sockets_iter;
pub mod sockets_walk;
mod time_parts;
mod trial;

pub use cpu_samples::{CpuSamples, CpuTally, SampledChain};
pub use error::BpfError;
pub use function_names::FunctionNames;
pub use fuzz::{fuzz_btf, fuzz_object};
pub use kernel_types::KernelTypes;
pub use link::{IterRows, Link};
pub use load::{LoadSpec, LoadedObject, load, load_with};
pub use maps::Map;
pub use owners_files::OwnersFiles;
pub use packet_delays::{PacketDelay, PacketDelays};
pub use packet_drops::{
    DROP_KEY_BYTES, DROP_SAMPLE_BYTES, DROP_SNAPLEN_MAX, DropEventParts, DropLosses, DropReasons, DropRoom,
    PacketDropEvents, PacketDrops,
};
pub use path_stages::{MoveDirection, PLACES_MAX, PathPlace, PathStages, StageArrivals};
pub use program::Program;
pub use resets::{RESET_EVENT_BYTES, Resets};
pub use sys::bpf::{MappedMemory, Ring};
pub use sys::{EventProgram, RingBlocks};
pub use trial::{Ability, AbilityTrial, try_abilities};
