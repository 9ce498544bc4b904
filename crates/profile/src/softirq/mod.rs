//! Samples of what CPUs do.

mod backend;
mod block;
mod proc_stat;
mod reading;
mod ring;
mod sampler;
mod source;

pub use backend::SamplerBackend;
pub(crate) use block::SampleBlock;
pub(crate) use reading::ClassifiedBlock;
pub use sampler::Sampler;
pub use source::{ChainSource, SampleOptions, SampleSource};
