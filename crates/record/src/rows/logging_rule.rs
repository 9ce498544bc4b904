//! The rule that logged a packet, as far as known.

use crate::Value;

/// The verdicts of rules, as nft writes them.
pub const VERDICTS: &[&str] = &["accept", "drop", "reject", "queue", "jump", "goto", "return", "continue"];

/// Cells of the rule that logged a packet. `None` means unknown: if several rules may have logged the packet, only
/// their common properties are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoggingRule<'b> {
    /// Family and name of its table, as nft writes them: `inet filter`.
    pub table: Option<&'b str>,
    /// Name of its chain.
    pub chain: Option<&'b str>,
    /// Its handle in the table.
    pub handle: Option<u64>,
    /// Its verdict after logging, one of [`VERDICTS`]; `None` if it only logs.
    pub verdict: Option<&'static str>,
    /// Its comment; also `None` if it has no comment.
    pub comment: Option<&'b str>,
    /// The rule as `nft --stateless list ruleset` writes it.
    pub text: Option<&'b str>,
}

impl<'b> LoggingRule<'b> {
    /// The common properties of both rules.
    pub fn common_with(&self, other: &LoggingRule<'b>) -> LoggingRule<'b> {
        fn common_value<V: PartialEq>(one: Option<V>, other: Option<V>) -> Option<V> {
            if one == other { one } else { None }
        }
        LoggingRule {
            table: common_value(self.table, other.table),
            chain: common_value(self.chain, other.chain).filter(|_| self.table == other.table),
            handle: common_value(self.handle, other.handle).filter(|_| self.table == other.table),
            verdict: common_value(self.verdict, other.verdict),
            comment: common_value(self.comment, other.comment),
            text: common_value(self.text, other.text),
        }
    }
}

/// Text from outside, or null.
pub(super) fn text<'r>(text: Option<&'r str>) -> Value<'r> {
    Value::text(text.map(str::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_properties_are_left_out() {
        let one = LoggingRule {
            table: Some("inet t"),
            chain: Some("c"),
            handle: Some(3),
            verdict: Some("drop"),
            comment: Some("no ssh"),
            text: Some("log group 1"),
        };
        assert_eq!(one.common_with(&one), one);
        let recreated = LoggingRule { handle: Some(9), ..one };
        assert_eq!(one.common_with(&recreated), LoggingRule { handle: None, ..one });
        let elsewhere = LoggingRule { table: Some("ip t"), ..one };
        let common = LoggingRule { handle: None, chain: None, table: None, ..one };
        assert_eq!(one.common_with(&elsewhere), common, "a chain and a number belong to a table");
        assert_eq!(one.common_with(&LoggingRule::default()), LoggingRule::default());
    }
}
