//! Rules that log to a group without a reader.

use super::moved::Moved;

/// A rule that logs to a group without a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleWithoutReader {
    /// The group.
    pub group: u16,
    /// Family of the table in nft's words: `inet`.
    pub family: &'static str,
    /// Name of the table.
    pub table: String,
    /// Name of the chain.
    pub chain: String,
    /// Handle of the rule in its table.
    pub handle: u64,
    /// Lower bound for the packets that it logged; `None` without a counter.
    pub logged: Option<Moved>,
    /// True if a chain with a hook leads to it.
    pub is_reached: bool,
}

impl RuleWithoutReader {
    /// Its place: `inet filter input handle 7`.
    pub(crate) fn place(&self) -> String {
        format!("{} {} {} handle {}", self.family, self.table, self.chain, self.handle)
    }
}
