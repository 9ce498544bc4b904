//! `netwren routes [FILTER]`: the routing tables, as rows.

use super::saved;
use super::source_provider::SourceProvider;
use super::table;
use crate::asked::Asked;
use crate::command::{Command, ParsedWords, SavedPart, TableEntry};
use crate::flags::request::Request;
use crate::outcome::Outcome;
use crate::session::Session;
use host::routes::RouteSource;
use record::rows::Routes;
use record::{Accounting, Lookups, Source};
use sys::Mode;

/// The registry's entry. Any user can fill the tables of a network namespace of his own, so a recording takes them late.
pub(crate) static COMMAND: Command = Command {
    name: "routes",
    about: "Routes of IPv4 and IPv6, of all routing tables: a row for each next hop",
    examples: EXAMPLES,
    tables: &[TableEntry::of::<Routes>()],
    recorded: Some(SavedPart { rows: Some("routes"), is_large: true, read: save }),
    run: Some(|words: &ParsedWords<'_>| Ok(run(&Request::of(words)?))),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren routes 'table = main'
  netwren routes 'destination = default' --all-netns    every default route of the host
  netwren routes 'dst_addr in 10.0.0.0/8 and protocol != kernel'
  netwren routes 'type in (blackhole, unreachable, prohibit)' -o json
  netwren routes --by iface,table,family --all-netns
  netwren routes --watch 'flags = linkdown or flags = dead'
";

fn run(request: &Request) -> Outcome {
    table::show(request, |_| Ok(RouteProvider))
}

fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let all = saved::every_field::<Routes>(0);
    saved::read(&RouteSource::new(session.host(), session.ways(session.namespaces().as_deref())), &all, stats)
}

struct RouteProvider;

impl SourceProvider<Routes> for RouteProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        _: Lookups<'_>,
        _: &mut Accounting,
        then: impl FnOnce(&dyn Source<Routes>) -> R,
    ) -> R {
        let namespaces = session.namespaces();
        let source = RouteSource::new(session.host(), session.ways(namespaces.as_deref()));
        match session.host().mode() {
            Mode::Live => then(&source),
            _ => then(&Asked::new(&source, session.host(), |_, demanded| demanded)),
        }
    }
}
