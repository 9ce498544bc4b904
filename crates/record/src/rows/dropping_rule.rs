//! The rule that dropped packets, as far as it is known.

use crate::named_enum::named_enum;

named_enum! {
    /// How certain it is that a rule dropped the packets.
    pub enum RuleBasis {
        /// No other rule or policy can have dropped them.
        Certain => "certain",
        /// Its counter has moved by as many packets; others can have dropped them, too.
        Counter => "counter",
        /// It is one of several that can have dropped them.
        Candidates => "candidates",
    }
}

/// Cells of the rule, or of the rules, that dropped packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DroppingRule<'b> {
    /// The rule with its text, or the places of several.
    pub text: &'b [u8],
    /// How certain it is.
    pub basis: RuleBasis,
    /// How many rules and policies can have dropped the packets.
    pub candidates: u64,
    /// Family and name of the table; `None` where there are several rules.
    pub table: Option<&'b str>,
    /// Name of the chain; `None` where there are several rules.
    pub chain: Option<&'b str>,
    /// Number of the rule in its table; `None` where there are several, and of a policy.
    pub handle: Option<u64>,
}
