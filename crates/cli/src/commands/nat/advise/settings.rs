//! What was advised, as settings of the kernel.
use super::judged::Judged;
use doctor::nat::TimeoutAdvice;

/// A setting with what it is and what it shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting {
    /// Its file in /proc/sys/net/netfilter.
    pub(super) file: &'static str,
    pub(super) was: u64,
    pub(super) becomes: u64,
}

impl Setting {
    /// As sysctl(8) calls it.
    pub(super) fn name(&self) -> String {
        format!("net.netfilter.{}", self.file)
    }

    /// With a value, as sysctl(8) takes it.
    pub(super) fn with(&self, value: u64) -> String {
        format!("{}={value}", self.name())
    }

    /// With the value it shall have.
    pub(super) fn line(&self) -> String {
        self.with(self.becomes)
    }
}

/// The limit and the buckets, as far as they should be others; buckets first, so that no entry that may come in finds
/// too few. One host, one limit: it is that of the namespace which needs the largest, with the buckets that were
/// counted together with it, so that both stay within the memory they were advised for.
pub(super) fn sizes(judged: &[Judged]) -> Vec<Setting> {
    let sizes = judged.iter().filter_map(|one| Some((one.evidence.max?, one.evidence.buckets?, one.advice.sizes?)));
    // Each namespace read the same.
    let Some((max, buckets, _)) = sizes.clone().next() else { return Vec::new() };
    let advised = sizes.map(|(.., sizes)| (sizes.advised_max, sizes.advised_buckets)).max();
    let Some((advised_max, advised_buckets)) = advised else { return Vec::new() };
    let all = [
        Setting { file: "nf_conntrack_buckets", was: buckets, becomes: advised_buckets },
        Setting { file: "nf_conntrack_max", was: max, becomes: advised_max },
    ];
    all.into_iter().filter(|setting| setting.becomes != setting.was).collect()
}

/// The timeout of a namespace that should be shorter, if that frees anything.
pub(super) fn timeout(one: &Judged) -> Option<Setting> {
    let TimeoutAdvice { setting, seconds, advised_s, frees, .. } = one.advice.timeout?;
    frees.filter(|frees| *frees > 0)?;
    Some(Setting { file: setting.file(), was: seconds, becomes: advised_s? })
}

/// The settings as sysctl(8) takes them.
pub(super) fn lines(settings: &[Setting]) -> Vec<String> {
    settings.iter().map(Setting::line).collect()
}
