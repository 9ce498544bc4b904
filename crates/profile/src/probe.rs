//! Whether something could be measured here: for `netwren support`.
use sys::{Host, Tried};

use crate::softirq::{Sampler, SamplerBackend};

/// Whether CPUs could be sampled with call chains, and how, or why not. A sampler is started and dropped.
pub fn probe_sampling(host: &Host) -> Tried {
    match Sampler::start(host, 1, None) {
        Ok(sampler) => {
            let by = sampler.backend();
            let why = sampler.fallen.iter().map(|why| format!("; {why}")).collect::<String>();
            let names = if sys::symbols::are_shown(host) { "" } else { "; not grouped (names need CAP_SYSLOG)" };
            let words = format!("by {}{names}{why}", by.name());
            match sampler.lacking {
                Some(missing) if by == SamplerBackend::Proc => Tried::fails(missing, words),
                _ => Tried::works(words),
            }
        }
        Err(error) => Tried::fails(error.missing(), error.to_string()),
    }
}

/// Whether stages between netfilter's hooks could be measured, or why not. A program is loaded and dropped.
#[cfg(feature = "bpf")]
pub fn probe_stages() -> Tried {
    match bpf::PathStages::try_load() {
        Ok(()) => Tried::works("by bpf programs at netfilter's hooks, for as long as it runs"),
        Err(error) => error.tried(),
    }
}

/// They could not, and why.
#[cfg(not(feature = "bpf"))]
pub fn probe_stages() -> Tried {
    Tried::fails(sys::Missing::Build, crate::ProfileError::WithoutBpf.to_string())
}
