//! `netwren nat [FILTER]`: shows entries as a table.

use super::super::{saved, table};
use crate::command::{Command, ParsedWords, Prepared, SavedPart, ready};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use conntrack::CtTable;
use lookups::session::Session;
use record::rows::{Nat, nat_need};
use record::{Accounting, Demand, Lookups};
use tables::SourceProvider;
use tables::nat::EntryProvider;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "nat",
    about: "Conntrack entries: connections through this host, with client, NAT and backend",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE.and(Scope::CT_TABLE),
    refusals: REFUSALS,
    tables: &[tables::NAT],
    recorded: Some(SavedPart { rows: Some("entries of connection tracking"), is_large: true, open: || Box::new(save) }),
    prepare: Some(prepare),
    ..Command::TABLE
};

/// Messages for flags that do not apply to entries.
pub(super) const REFUSALS: &[(&str, &str)] = &[("follow", "`nat` has no --follow: `netwren nat events` shows events")];

const EXAMPLES: &str = "\
Examples:
  netwren nat                                           all entries: client, destination, backend
  netwren nat 'nat = dnat and backend = 172.17.0.2:80'  connections to a container
  netwren nat 'state = established and timeout > 1h'    entries with long timeouts
  netwren nat 'status != seen_reply' --by published     unanswered connections, by destination
  netwren nat top                                       the clients with the most entries
  netwren nat 'bytes_in > 1MB' --sort bytes_in --limit 10
  netwren nat --table expect                            connections expected by helpers
  netwren nat delete 'client = 192.0.2.7'               show what --yes would delete
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let request = Request::of(words)?;
    let (plan, reading) = tables::nat::prepare(&request.table(), table_of(words))?;
    ready(move || table::run(&request, &plan, &reading))
}

/// The kernel's table named by `--table`.
pub(super) fn table_of(words: &ParsedWords<'_>) -> CtTable {
    let word = words.value("table");
    CtTable::ALL.into_iter().find(|table| Some(table.name()) == word).unwrap_or(CtTable::Conntrack)
}

/// Saves entries and expectations; returns the number of entries. Leaves out the field for expired entries, which only
/// the walk reports, because the walk lacks other fields.
fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let (mut notes, demand) = (Accounting::default(), Demand::<Nat>::every_field(nat_need::EXPIRED));
    let [entries, _] = [CtTable::Conntrack, CtTable::Expect].map(|table| {
        // In a replay their owners are found from the recorded sockets.
        let reading = EntryProvider::of_table(table);
        reading.with_source(session, Lookups::empty(), &mut notes, |source| saved::read(source, &demand, stats))
    });
    stats.add(&notes);
    entries
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::flags::parser;

    #[test]
    fn tables_and_what_does_not_go_together() {
        let table = |line: &str| parser::parse_line(&COMMAND, line, |words| Ok(table_of(words)));
        assert_eq!(table("--table dying").unwrap(), CtTable::Dying);
        assert_eq!(table("state = established").unwrap(), CtTable::Conntrack);
        for of in CtTable::ALL {
            assert_eq!(table(&format!("--table {}", of.name())).unwrap(), of);
        }
        for (line, says) in [("--follow", "nat events"), ("--table x", "possible values")] {
            assert!(table(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
