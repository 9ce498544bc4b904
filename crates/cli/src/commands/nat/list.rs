//! `netwren nat [FILTER]`: shows entries as a table.

use super::super::plan::{PlanError, of_request};
use super::super::saved;
use super::super::table;
use super::uncounted;
use crate::command::{Command, ParsedWords, SavedPart};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use conntrack::{AllNetnsConntrack, ConntrackSource, CtTable, Options, Via};
use engine::Plan;
use lookups::asked::Asked;
use lookups::owners::readings::read_sockets;
use lookups::session::Session;
use owners::EntryOwners;
use record::rows::{Nat, nat_need};
use record::{Accounting, Annotated, Demand, LookupId, Lookups, Source};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use std::hash::RandomState;
use sys::Mode;
use tables::SourceProvider;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "nat",
    about: "Conntrack entries: connections through this host, with client, NAT and backend",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE.and(Scope::CT_TABLE),
    refusals: REFUSALS,
    tables: &[tables::NAT],
    recorded: Some(SavedPart { rows: Some("entries of connection tracking"), is_large: true, open: || Box::new(save) }),
    run: Some(run),
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

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let request = Request::of(words)?;
    Ok(match prepare(&request, table_of(words)) {
        Ok((plan, reading)) => table::run(&request, &plan, &reading),
        Err(wrong) => Outcome::because(Exit::Usage, wrong),
    })
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
        let reading = EntryProvider { via: None, table, owners: false, named: 0, secret: RandomState::new() };
        reading.with_source(session, Lookups::none(), &mut notes, |source| saved::read(source, &demand, stats))
    });
    stats.add(&notes);
    entries
}

/// The plan of a request, and the provider of its rows.
pub(super) fn prepare(request: &Request, table: CtTable) -> Result<(Plan<Nat>, EntryProvider), PlanError> {
    let plan = of_request::<Nat>(request)?;
    let owners = plan.demand().need & nat_need::OWNERS != 0;
    let named = plan.named_need();
    Ok((plan, EntryProvider { via: request.via, table, owners, named, secret: RandomState::new() }))
}

/// The `need` bits that a recording contains. Owners come from no table interface, so only the requested ones count.
fn recorded_bits(interface: &str, demanded: u64) -> u64 {
    conntrack::recorded_bits(interface, demanded) & (demanded | !nat_need::OWNERS)
}

/// Provides the source of entries.
pub(super) struct EntryProvider {
    pub(super) via: Option<Via>,
    pub(super) table: CtTable,
    /// True if the processes at the local end are requested.
    pub(super) owners: bool,
    /// The `need` bits of fields named in the request.
    pub(super) named: u64,
    /// Seed of the checksums that show whether owners have changed since the previous round.
    pub(super) secret: RandomState,
}

impl SourceProvider<Nat> for EntryProvider {
    fn needs_lookup(&self, id: LookupId) -> bool {
        id == LookupId::Owners && self.owners
    }

    fn compares(&self, id: LookupId) -> bool {
        self.needs_lookup(id)
    }

    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<Nat>) -> R,
    ) -> R {
        uncounted::add_reasons(session, self.named, stats);
        let options = Options { via: self.via, table: self.table, ..Options::new(session.netns_id()) };
        let namespaces = session.namespaces();
        let (one, every);
        let source: &dyn Source<Nat> = match namespaces.as_deref() {
            None => {
                one = ConntrackSource::new(session.host(), options).with_cache(&session.backends().conntrack);
                &one
            }
            Some(namespaces) => {
                let ways = session.ways(Some(namespaces));
                every = AllNetnsConntrack::new(session.host(), options, ways).with_cache(&session.backends().conntrack);
                &every
            }
        };
        let asked;
        let source: &dyn Source<Nat> = match session.host().mode() {
            Mode::Live => source,
            _ => {
                // With several namespaces each table may be read via a different interface, so the requested fields
                // count.
                let held = if namespaces.is_some() { |_: &str, demanded| demanded } else { recorded_bits };
                asked = Asked::new(source, session.host(), held);
                &asked
            }
        };
        // If there are no lookups (`--explain`), no sockets are read.
        let owners = lookups.get(LookupId::Owners).filter(|_| self.owners);
        let Some(owners) = owners else { return then(source) };
        let sockets = &read_sockets(session, stats);
        let owners = EntryOwners::new(sockets, owners, &self.secret, conntrack::own_ports);
        then(&Annotated::new(source, owners))
    }
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
