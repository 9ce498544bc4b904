//! Remedies: commands with the place where they work, and values that never shrink a setting.

use record::rows::CounterSource::Sockstat;
use record::rows::Remedy;

use super::{FindingBuilder, Sample};

/// Beginnings of settings that exist, or can be changed, only in the first network namespace.
const FIRST_ONLY: &[&str] = &[
    "net.core.netdev_",
    "net.core.rmem_",
    "net.core.wmem_",
    "net.ipv4.neigh.default.",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.ipv6.neigh.default.",
    "net.netfilter.nf_conntrack_buckets",
    "net.netfilter.nf_conntrack_expect_max",
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_log_all_netns",
];

/// A setting that only the first network namespace has.
const FIRST: &str = "ipv4/tcp_mem";

/// A command, its effect and its risk.
pub(super) type RemedyParts<C> = (C, &'static str, &'static str);

impl FindingBuilder<'_> {
    /// Adds a command that would fix it, with its effect and its risk; without a command, advice for a person.
    pub(super) fn remedy(self, command: impl Into<String>, effect: &str, risk: &str) -> Self {
        let command = command.into();
        let is_elsewhere = !self.sample.is_first() && is_first_only(&command);
        let place = if is_elsewhere { "the first network namespace" } else { "" };
        let remedy = Remedy { command, effect: effect.to_owned(), risk: risk.to_owned(), place };
        self.with(|finding| finding.remedy.push(remedy))
    }

    /// Adds the remedies that apply.
    pub(super) fn remedies<C: Into<String>>(self, all: impl IntoIterator<Item = RemedyParts<C>>) -> Self {
        all.into_iter().fold(self, |draft, (command, effect, risk)| draft.remedy(command, effect, risk))
    }
}

impl Sample {
    /// True if it is of the first network namespace, or of a host whose first network namespace was also read.
    pub(super) fn is_first(&self) -> bool {
        self.setting(FIRST, 0).is_some()
    }
}

/// True if the command sets something that only the first network namespace can set.
fn is_first_only(command: &str) -> bool {
    let names = command.strip_prefix("sysctl -w ").into_iter().flat_map(str::split_whitespace);
    names.into_iter().any(|name| {
        let name = name.replace('/', ".");
        FIRST_ONLY.iter().any(|first| name.starts_with(first))
    })
}

/// Returns twice the current value of a setting, and at least `least`: a remedy never lowers a limit.
pub(super) fn larger(now: Option<i64>, least: i64) -> i64 {
    now.unwrap_or(0).saturating_mul(2).max(least)
}

/// Returns the remedy that doubles the three numbers (pages) of `ipv4/tcp_mem` or `ipv4/udp_mem`, and sets them to at
/// least four times the `used` pages.
pub(super) fn larger_memory(sample: &Sample, name: &str, used: &str) -> RemedyParts<String> {
    let risk = "sockets may take that much kernel memory";
    let Some(numbers) = sample.numbers(name).filter(|numbers| numbers.len() == 3) else {
        let effect = "set larger numbers in net.ipv4.tcp_mem or net.ipv4.udp_mem, in the first network namespace";
        return (String::new(), effect, risk);
    };
    let used = sample.counter(Sockstat, used).map_or(0, |used| used.after);
    let doubled: Vec<String> =
        numbers.iter().map(|number| larger(Some(*number), used.saturating_mul(4)).to_string()).collect();
    let command = format!("sysctl -w net.{}=\"{}\"", name.replace('/', "."), doubled.join(" "));
    (command, "allows all sockets of the protocol twice as much memory", risk)
}
