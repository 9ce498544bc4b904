//! Where the kernel spends time on packets, as rows: samples of what CPUs do in network code ([`SampleSource`]), and
//! the time and loss of packets between netfilter's hooks ([`StageSource`]).
//!
//! Both watch for some seconds and put what they saw into a block of bytes, which a recording may hold; rows are made
//! of such a block. Knows the names of the kernel's functions; knows nothing of who asks, nor of clocks to wait by.
//! Start reading at [`Sampler`] and [`StageProbe`].
#![forbid(unsafe_code)]

mod error;
mod fuzz;
mod groups;
mod path;
mod probe;
mod softirq;
mod words;

pub use error::ProfileError;
pub use fuzz::{fuzz_samples, fuzz_stages};
pub use path::{StageProbe, StageSource};
pub use probe::{probe_sampling, probe_stages};
pub use softirq::{ChainSource, SampleOptions, SampleSource, Sampler, SamplerBackend};
