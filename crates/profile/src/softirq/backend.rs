//! The interfaces that samples can come by.

/// A way to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplerBackend {
    /// A BPF program counts call chains in the kernel.
    Bpf,
    /// Call chains of perf_event_open(2) through rings.
    Perf,
    /// Ticks of /proc/stat: softirqs as a whole.
    Proc,
}

impl SamplerBackend {
    /// All, the best first.
    pub const ALL: [SamplerBackend; 3] = [SamplerBackend::Bpf, SamplerBackend::Perf, SamplerBackend::Proc];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            SamplerBackend::Bpf => "bpf",
            SamplerBackend::Perf => "perf",
            SamplerBackend::Proc => "proc",
        }
    }
}
