//! bpf(2): maps, programs, links, and the memory that is shared with them.
//!
//! A thin layer: one function per command, lengths checked, contents not interpreted. The crate `bpf` reads object
//! files and turns them into programs. The layouts follow `union bpf_attr` (include/uapi/linux/bpf.h); the kernel
//! accepts a shorter or longer one as long as the bytes unknown to it are zero.
mod call;
mod list;
mod map;
pub(crate) mod mapped;
mod program;
mod ring;

pub use list::{LoadedProgram, count_cgroup_programs, loaded_programs, missed_runs, verified_instructions, xdp_links};
pub use map::{Batch, Map, MapShape, ValueTypes, load_types};
pub use mapped::{MappedMemory, map_file};
pub use program::{
    LOG_BYTES_MAX, NetfilterPlace, ProgramShape, attach_iterator, attach_netfilter, attach_raw_tracepoint, attach_to,
    inject, load_program, open_iterator, run,
};
pub use ring::Ring;
