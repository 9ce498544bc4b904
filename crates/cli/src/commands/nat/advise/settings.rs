//! Converts advice to kernel settings.
use super::judged::Judged;
use doctor::nat::TimeoutAdvice;

/// A setting with its current and its advised value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting {
    /// Its file in /proc/sys/net/netfilter.
    pub(super) file: &'static str,
    pub(super) was: u64,
    pub(super) becomes: u64,
}

impl Setting {
    /// The name for sysctl(8).
    pub(super) fn name(&self) -> String {
        format!("net.netfilter.{}", self.file)
    }

    /// The assignment of a value in the syntax of sysctl(8).
    pub(super) fn with(&self, value: u64) -> String {
        format!("{}={value}", self.name())
    }

    /// The assignment of the advised value.
    pub(super) fn line(&self) -> String {
        self.with(self.becomes)
    }
}

/// The limit and the buckets, if they should change. Buckets come first, so that the raised limit never has too few
/// buckets. The host has one limit: the largest that any namespace needs, with the buckets computed for it, so that
/// both stay within the memory they were advised for.
pub(super) fn sizes(judged: &[Judged]) -> Vec<Setting> {
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

/// The timeout of a namespace, if shortening it frees entries.
pub(super) fn timeout(one: &Judged) -> Option<Setting> {
    let TimeoutAdvice { setting, seconds, advised_s, frees, .. } = one.advice.timeout?;
    frees.filter(|frees| *frees > 0)?;
    Some(Setting { file: setting.file(), was: seconds, becomes: advised_s? })
}

/// The settings in the syntax of sysctl(8).
pub(super) fn lines(settings: &[Setting]) -> Vec<String> {
    settings.iter().map(Setting::line).collect()
}
