//! The texts of rules, from the output of `nft --handle --stateless list ruleset`.
//!
//! That output is for people: it contains comments and prefixes unescaped, including line breaks. The author of a rule
//! can write lines that look like others, so a rule that appears twice has no text, and only texts are taken from here.
//! The list of rules, and what they log, comes from the JSON listing ([`crate::log_rules`]).

use std::collections::HashMap;

/// Family and name of a table, and the number of a rule in it.
type RulePlace = (String, u64);

/// Texts of rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RuleTexts {
    /// `None` if several lines claim to be that rule.
    texts: HashMap<RulePlace, Option<Box<str>>>,
}

impl RuleTexts {
    /// The texts in a listing.
    pub fn parse(listing: &[u8]) -> RuleTexts {
        let listing = String::from_utf8_lossy(listing);
        let mut texts: HashMap<RulePlace, Option<Box<str>>> = HashMap::new();
        let mut table = "";
        for line in listing.lines() {
            let Some((text, handle)) = handle_of(line) else { continue };
            match text.trim_start().strip_suffix(" {") {
                // `table inet filter { # handle 1`; chains and sets start in the same way.
                Some(head) => table = head.strip_prefix("table ").unwrap_or(table),
                None => {
                    let text: Box<str> = text.trim().into();
                    texts.entry((table.to_owned(), handle)).and_modify(|known| *known = None).or_insert(Some(text));
                }
            }
        }
        RuleTexts { texts }
    }

    /// The text of a rule; `None` if it is missing or ambiguous.
    pub fn of(&self, table: &str, handle: u64) -> Option<&str> {
        self.texts.get(&(table.to_owned(), handle))?.as_deref()
    }
}

/// The part of a line before its ` # handle N`, and that number.
fn handle_of(line: &str) -> Option<(&str, u64)> {
    let (text, number) = line.rsplit_once(" # handle ")?;
    Some((text, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Output of nft 1.0.6.
    const LISTING: &str = "table inet t { # handle 1\n\tmap vm { # handle 3\n\t\ttype inet_service : verdict\n\t}\n\n\
        \tchain o { # handle 2\n\t\ttype filter hook output priority filter; policy accept;\n\
        \t\tudp dport 7009 counter log prefix \"to five: \" group 5 drop comment \"x # handle 9\" # handle 5\n\t}\n}\n\
        table netdev n { # handle 2\n\tchain i { # handle 1\n\t\tlog prefix \"a\" group 3 # handle 5\n\t}\n}\n";

    #[test]
    fn texts_by_example() {
        let texts = RuleTexts::parse(LISTING.as_bytes());
        let text = "udp dport 7009 counter log prefix \"to five: \" group 5 drop comment \"x # handle 9\"";
        assert_eq!(texts.of("inet t", 5), Some(text));
        assert_eq!(texts.of("netdev n", 5), Some("log prefix \"a\" group 3"));
        assert_eq!((texts.of("inet t", 9), texts.of("inet t", 3), texts.of("ip t", 5)), (None, None, None));
    }

    #[test]
    fn a_line_in_a_comment_takes_no_other_rules_place() {
        let forged = LISTING.replace("x # handle 9", "x\n\t\tlog prefix \"a\" group 3 # handle 6\nx");
        let forged = forged.replace("\t}\n}\ntable netdev", "\t\taccept # handle 6\n\t}\n}\ntable netdev");
        assert_eq!(RuleTexts::parse(forged.as_bytes()).of("inet t", 6), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(table| |[a-z{}\"\n\t]|# handle|[0-9]){0,60}") {
            let _ = RuleTexts::parse(text.as_bytes());
        }
    }
}
