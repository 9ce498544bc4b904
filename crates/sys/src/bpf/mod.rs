//! bpf(2): maps, programs, links, and the memory that is shared with them.
//!
//! Thin: one function a command, lengths checked, nothing interpreted. What an object file holds and how it becomes
//! programs is the crate `bpf`'s business. Layouts are those of `union bpf_attr` (include/uapi/linux/bpf.h); the kernel
//! takes a shorter or longer one as long as what it does not know is zero.
mod call;
mod list;
mod map;
pub(crate) mod mapped;
mod program;
mod ring;

pub use list::{LoadedProgram, loaded_programs, missed_runs, verified_instructions};
pub use map::{Batch, Map, MapShape, ValueTypes, load_types};
pub use mapped::{Mapped, map_file};
pub use program::{
    LOG_BYTES_MAX, NetfilterPlace, ProgramShape, attach_iterator, attach_netfilter, attach_raw_tracepoint, attach_to,
    inject, load_program, open_iterator, run,
};
pub use ring::Ring;
