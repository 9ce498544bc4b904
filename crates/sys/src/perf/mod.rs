//! Samples of what CPUs do: a timer of perf_event_open(2) on each CPU (`PERF_COUNT_SW_CPU_CLOCK`).
//!
//! The timer needs no counters of the hardware, so that it works in virtual machines. It is an interrupt: code that
//! runs with interrupts off is sampled where it switches them on again. What is done with a sample says the opener:
//! a BPF program runs for it ([`CpuClock::run`]), or its call chain is put into a ring ([`CallChains`]).
mod call_chains;
mod cpu_clock;

pub use call_chains::{CallChains, ChainLoss};
pub use cpu_clock::{CpuClock, online_cpus};
