//! Whether something could be measured here: for `netwren support`.
use sys::Host;

use crate::softirq::{Sampler, SamplerBackend};

/// True if CPUs could be sampled with call chains, and how, or why not. A sampler is started and dropped.
pub fn probe_sampling(host: &Host) -> (bool, String) {
    match Sampler::start(host, 1, None) {
        Ok(sampler) => {
            let by = sampler.backend();
            let why = sampler.fallen.iter().map(|why| format!("; {why}")).collect::<String>();
            let names = if sys::symbols::are_shown(host) { "" } else { "; not grouped (names need CAP_SYSLOG)" };
            (by != SamplerBackend::Proc, format!("by {}{names}{why}", by.name()))
        }
        Err(error) => (false, error.to_string()),
    }
}

/// True if stages between netfilter's hooks could be measured, or why not. A program is loaded and dropped.
#[cfg(feature = "bpf")]
pub fn probe_stages() -> (bool, String) {
    match bpf::PathStages::try_load() {
        Ok(()) => (true, "by bpf programs at netfilter's hooks, for as long as it runs".to_owned()),
        Err(bpf::BpfError::Denied { needs, errno, .. }) => (false, format!("{errno}: needs {needs}")),
        Err(error) => (false, error.to_string()),
    }
}

/// False, and why.
#[cfg(not(feature = "bpf"))]
pub fn probe_stages() -> (bool, String) {
    (false, crate::ProfileError::WithoutBpf.to_string())
}
