//! Time and loss of packets between netfilter's hooks.

#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod block;
#[cfg(feature = "bpf")]
mod layout;
mod probe;
mod source;

pub(crate) use block::StageBlock;
pub use probe::StageProbe;
pub use source::StageSource;
