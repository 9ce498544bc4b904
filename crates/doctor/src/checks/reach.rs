//! The programs and hosts that a finding hurts, from which its severity follows.

use record::rows::CounterSource::{Snmp, Snmp6};
use record::rows::Severity;

use super::words::percent;
use super::{FindingBuilder, Sample};

/// From this share on, in percent, a loss is more than noise: every network loses a packet in a thousand.
const SOME_PERCENT: u64 = 1;
/// From this share on, in percent, most of a service or of the traffic is lost.
const MOST_PERCENT: u64 = 50;

/// The programs, hosts and packets that are hurt.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reach {
    /// No program of this host, and no host that uses it: unsolicited packets (scans, backscatter, broadcasts, flooded
    /// frames), or a program that waits on purpose.
    Nobody,
    /// A part of what moved within the window.
    Part {
        /// Number of lost packets or connections.
        hurt: u64,
        /// Number of all, including the lost ones.
        of: u64,
        /// The share in percent from which it is a warning.
        warns_from: u64,
    },
}

impl Reach {
    /// `hurt` of `of` packets or connections. The whole is at least what was lost.
    pub(super) fn part(hurt: u64, of: u64) -> Reach {
        Reach::Part { hurt, of: of.max(hurt), warns_from: SOME_PERCENT }
    }

    /// A part of traffic of which a share up to `percent` is normally lost or refused on purpose.
    pub(super) fn or_more_than(self, percent: u64) -> Reach {
        match self {
            Reach::Nobody => Reach::Nobody,
            Reach::Part { hurt, of, .. } => Reach::Part { hurt, of, warns_from: percent },
        }
    }

    /// Returns the most severe word for a finding with this reach.
    pub(super) fn limit(self) -> Severity {
        let Reach::Part { hurt, of, warns_from } = self else { return Severity::Hint };
        let is_share = |percent: u64| hurt > 0 && hurt.saturating_mul(100) >= of.saturating_mul(percent);
        match (is_share(MOST_PERCENT.max(warns_from)), is_share(warns_from)) {
            (true, _) => Severity::Critical,
            (false, true) => Severity::Warning,
            (false, false) => Severity::Hint,
        }
    }
}

impl FindingBuilder<'_> {
    /// States the reach: the finding becomes no more severe than that. `things` names the whole in the cost.
    pub(super) fn reach(self, reach: Reach, things: &str) -> Self {
        let draft = self.with(|finding| finding.severity = finding.severity.max(reach.limit()));
        match reach {
            Reach::Part { hurt, of, .. } if !things.is_empty() => {
                draft.also_cost(format!("{} of {of} {things}", percent(hurt, of)))
            }
            _ => draft,
        }
    }
}

/// Returns the packets of both families that this host received or sent.
pub(super) fn moved_packets(sample: &Sample) -> u64 {
    let of = |source, names: [&str; 2]| names.iter().map(|name| sample.grown(source, name)).sum::<u64>();
    of(Snmp, ["IpInReceives", "IpOutRequests"]) + of(Snmp6, ["Ip6InReceives", "Ip6OutRequests"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_follows_reach() {
        assert_eq!(Reach::Nobody.limit(), Severity::Hint);
        assert_eq!(Reach::part(13, 12_000).limit(), Severity::Hint);
        assert_eq!(Reach::part(120, 12_000).limit(), Severity::Warning);
        assert_eq!(Reach::part(120, 12_000).or_more_than(5).limit(), Severity::Hint);
        assert_eq!(Reach::part(6000, 12_000).limit(), Severity::Critical);
        assert_eq!(Reach::part(9, 3).limit(), Severity::Critical, "the whole includes what was lost");
        assert_eq!(Reach::part(0, 0).limit(), Severity::Hint);
    }
}
