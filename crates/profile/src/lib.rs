//! Measures where the kernel spends time on packets, as rows: samples of CPUs in network code ([`SampleSource`]), and
//! the time and loss of packets between netfilter's hooks ([`StageSource`]).
//!
//! Both measure for some seconds and encode the result as a block of bytes, which a recording may contain. Rows are
//! made from such a block. Knows the names of the kernel's functions; knows nothing about its callers or their timers.
//! Start reading at [`Sampler`] and [`StageProbe`].
#![forbid(unsafe_code)]

mod error;
mod fuzz;
mod groups;
mod path;
mod softirq;
mod trial;
mod words;

pub use error::ProfileError;
pub use fuzz::{fuzz_samples, fuzz_stages};
pub use path::{StageProbe, StageSource};
pub use softirq::{ChainSource, SampleOptions, SampleSource, Sampler, SamplerBackend};
pub use trial::{try_sampling, try_stages};
