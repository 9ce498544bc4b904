//! CPU sampling: a perf_event_open(2) timer on each CPU (`PERF_COUNT_SW_CPU_CLOCK`).
//!
//! The timer needs no hardware counters, so it works in virtual machines. It is an interrupt: code that runs with
//! interrupts disabled is sampled where it enables them again. The opener decides what happens with a sample: either a
//! BPF program runs for it ([`CpuClock::run`]), or its call chain is put into a ring ([`CallChains`]).
mod call_chains;
mod cpu_clock;

pub use call_chains::{CallChains, ChainLoss};
pub use cpu_clock::{CpuClock, online_cpus};
