//! Tests whether measuring works on this host, for `netwren support`.
use sys::{Host, Trial};

use crate::softirq::{Sampler, SamplerBackend};

/// Returns whether CPUs can be sampled with call chains, and how, or why not. Starts a sampler and drops it.
pub fn try_sampling(host: &Host) -> Trial {
    match Sampler::start(host, 1, None) {
        Ok(sampler) => {
            let by = sampler.backend();
            let why = sampler.fallen.iter().map(|why| format!("; {why}")).collect::<String>();
            let names = if sys::symbols::are_shown(host) { "" } else { "; not grouped (names need CAP_SYSLOG)" };
            let words = format!("via {}{names}{why}", by.name());
            match sampler.lacking {
                Some(missing) if by == SamplerBackend::Proc => Trial::new_missing(missing, words),
                _ => Trial::new_working(words),
            }
        }
        Err(error) => Trial::new_missing(error.missing_requirement(), error.to_string()),
    }
}

/// Returns whether stages between netfilter's hooks can be measured, or why not. Loads a program and drops it.
#[cfg(feature = "bpf")]
pub fn try_stages() -> Trial {
    match bpf::PathStages::try_load() {
        Ok(()) => Trial::new_working("via BPF programs at netfilter's hooks, while it runs"),
        Err(error) => error.to_tried(),
    }
}

/// Returns that they cannot be measured without BPF.
#[cfg(not(feature = "bpf"))]
pub fn try_stages() -> Trial {
    Trial::new_missing(sys::Missing::Build, crate::ProfileError::WithoutBpf.to_string())
}
