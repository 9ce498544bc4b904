//! The kernel interfaces that provide samples.

/// A method of sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplerBackend {
    /// A BPF program counts call chains in the kernel.
    Bpf,
    /// Rings deliver the call chains of perf_event_open(2).
    Perf,
    /// Ticks of /proc/stat, which only have a total for softirqs.
    Proc,
}

impl SamplerBackend {
    /// All backends, the best first.
    pub const ALL: [SamplerBackend; 3] = [SamplerBackend::Bpf, SamplerBackend::Perf, SamplerBackend::Proc];

    /// The name of the backend.
    pub fn name(self) -> &'static str {
        match self {
            SamplerBackend::Bpf => "bpf",
            SamplerBackend::Perf => "perf",
            SamplerBackend::Proc => "proc",
        }
    }
}
