//! The rule that dropped packets, as far as known.

use crate::named_enum::named_enum;

named_enum! {
    /// The certainty that a rule dropped the packets.
    pub enum RuleBasis {
        /// Only this rule or policy can have dropped them.
        Certain => "certain",
        /// Its counter increased by the same number of packets; other rules can also have dropped them.
        Counter => "counter",
        /// It is one of several rules that can have dropped them.
        Candidates => "candidates",
    }
}

/// Cells of the rule, or of the rules, that dropped packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DroppingRule<'b> {
    /// The rule as text, or the places of several rules.
    pub text: &'b [u8],
    /// The certainty.
    pub basis: RuleBasis,
    /// Number of rules and policies that can have dropped the packets.
    pub candidates: u64,
    /// Family and name of the table; `None` if there are several rules.
    pub table: Option<&'b str>,
    /// Name of the chain; `None` if there are several rules.
    pub chain: Option<&'b str>,
    /// Handle of the rule in its table; `None` for several rules and for a policy.
    pub handle: Option<u64>,
}
