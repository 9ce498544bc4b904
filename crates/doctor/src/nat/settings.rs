//! Converts advice to kernel settings.

use super::{Advice, Evidence, TimeoutAdvice};

/// A namespace, and the advice for it.
pub struct Judged {
    /// Its inode.
    pub netns_id: u64,
    /// Its name, which is untrusted text.
    pub name: Vec<u8>,
    /// What was read about it.
    pub evidence: Evidence,
    /// What follows from that.
    pub advice: Advice,
}

/// A setting with its current and its advised value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its file in /proc/sys/net/netfilter.
    pub file: &'static str,
    /// Its current value.
    pub was: u64,
    /// Its advised value.
    pub becomes: u64,
}

impl Setting {
    /// Returns the name for sysctl(8).
    pub fn name(&self) -> String {
        format!("net.netfilter.{}", self.file)
    }

    /// Returns the assignment of a value in the syntax of sysctl(8).
    pub fn with(&self, value: u64) -> String {
        format!("{}={value}", self.name())
    }

    /// Returns the assignment of the advised value.
    pub fn line(&self) -> String {
        self.with(self.becomes)
    }
}

/// Returns the limit and the buckets, if they should change. Buckets come first, so that the raised limit never has too
/// few buckets. The host has one limit: the largest that any namespace needs, with the buckets computed for it, so that
/// both stay within the memory they were advised for.
pub fn sizes_of(judged: &[Judged]) -> Vec<Setting> {
    let sizes = judged.iter().filter_map(|one| Some((one.evidence.max?, one.evidence.buckets?, one.advice.sizes?)));
    // These values are the same in each namespace.
    let Some((max, buckets, _)) = sizes.clone().next() else { return Vec::new() };
    let advised = sizes.map(|(.., sizes)| (sizes.advised_max, sizes.advised_buckets)).max();
    let Some((advised_max, advised_buckets)) = advised else { return Vec::new() };
    let all = [
        Setting { file: "nf_conntrack_buckets", was: buckets, becomes: advised_buckets },
        Setting { file: "nf_conntrack_max", was: max, becomes: advised_max },
    ];
    all.into_iter().filter(|setting| setting.becomes != setting.was).collect()
}

/// Returns the timeout of a namespace, if shortening it frees entries.
pub fn timeout_of(one: &Judged) -> Option<Setting> {
    let TimeoutAdvice { setting, seconds, advised_s, frees, .. } = one.advice.timeout?;
    frees.filter(|frees| *frees > 0)?;
    Some(Setting { file: setting.file(), was: seconds, becomes: advised_s? })
}

/// Returns the settings in the syntax of sysctl(8).
pub fn sysctl_lines(settings: &[Setting]) -> Vec<String> {
    settings.iter().map(Setting::line).collect()
}
