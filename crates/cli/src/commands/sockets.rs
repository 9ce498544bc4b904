//! `netwren sockets`.

use super::follow;
use super::plan::{self, PlanError};
use super::saved;
use super::table;
use crate::command::{Command, ParsedWords, SavedPart};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use engine::{DiffSource, DiffState, Plan, Predicate};
use lookups::asked;
use lookups::enrich::Enrichment;
use lookups::owners::leaked::{self, WithLeaked};
use lookups::owners::unseen;
use lookups::pillars;
use lookups::session::Session;
use owners::{OwnerlessCount, OwnerlessSockets};
use record::Via;
use record::rows::{Socket, Sockets};
use record::{Accounting, Annotated, Demand, Expr, LookupId, Lookups, Schema, Source, Table};
use runtime::exit::Exit;
use runtime::outcome::Outcome;
use std::cell::RefCell;
use tables::{Repeat, SourceProvider};

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "sockets",
    about: "Sockets of all families with their owners",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE.and(Scope::USERS).and(Scope::FOLLOW),
    tables: &[tables::SOCKETS, tables::SOCKET_EVENTS],
    columns_of_proto: COLUMNS_OF_PROTO,
    recorded: Some(SavedPart { rows: Some("sockets"), is_large: true, open: || Box::new(save) }),
    run: Some(run),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren sockets                                       all sockets except bound, unused TCP sockets
  netwren sockets state = bound_inactive                bound, unused TCP sockets
  netwren sockets state = listen                        listening sockets
  netwren sockets 'peer in 10.0.0.0/8 and rtt > 20ms'   slow peers
  netwren sockets 'process ~ \"nginx\"' --by peer --limit 10
  netwren sockets proto = tcp -o json | jq .peer_addr
  netwren sockets --columns +cwnd,rtt_us,retrans_total --sort retrans_total
  netwren sockets --columns help                        every field
  netwren sockets kill 'peer = 192.0.2.7'               show what --yes would close
";

/// Columns that identify the ends of sockets without IP addresses.
const COLUMNS_OF_PROTO: &[(&str, &[&str])] = &[
    ("unix", &["unix_type", "path", "peer_inode"]),
    ("packet", &["packet_type", "ethertype", "iface"]),
    ("netlink", &["netlink_protocol", "portid"]),
];

/// Columns of `netwren listeners`.
const COLUMNS_OF_LISTENERS: &str = "proto,local_addr,local_port,accept_q,accept_q_max,process,pid,user";

/// Columns of `netwren listeners --no-owner`.
const COLUMNS_WITHOUT_OWNER: &str = "proto,local_addr,local_port,accept_q,accept_q_max,user";

/// The filter for sockets that accept connections or packets from any peer.
pub(super) const LISTENERS: &str =
    "state = listen and proto = tcp or proto = udp and state = unconn and local_port != null";

/// `netwren listeners`.
pub(crate) static LISTENERS_COMMAND: Command = Command {
    name: "listeners",
    about: "Listening TCP sockets and unconnected UDP sockets, with their processes",
    examples: EXAMPLES_OF_LISTENERS,
    scope: Scope::OWNED_TABLE.and(Scope::USERS),
    tables: &[tables::SOCKETS],
    run: Some(run_listeners),
    ..Command::TABLE
};

const EXAMPLES_OF_LISTENERS: &str = "\
Examples:
  netwren listeners                                     all listeners
  netwren listeners port = 443                          on this port
  netwren listeners 'accept_q > accept_q_max'           listeners whose accept queue is full
  netwren listeners --all-netns --container web         in a container
";

fn run_listeners(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let mut request = Request::of(words)?;
    // The filter is first checked alone, so that an error shows it as the user wrote it.
    let table = Schema::of::<Sockets>();
    let checked = plan::parse(table, &request).and_then(|ast| plan::bind(table, &request, &ast));
    if let Err(wrong) = checked {
        return Ok(Outcome::because(Exit::Usage, wrong));
    }
    let shown = &mut request.shown;
    shown.filter = match shown.filter.trim() {
        "" => LISTENERS.to_owned(),
        filter => format!("({filter}) and ({LISTENERS})"),
    };
    if !shown.wide && shown.by.is_none() {
        let columns = if shown.no_owner { COLUMNS_WITHOUT_OWNER } else { COLUMNS_OF_LISTENERS };
        let netns = if request.all_netns { "netns," } else { "" };
        shown.columns.get_or_insert_with(|| format!("{netns}{columns}"));
        shown.order = Some("proto,local_port");
    }
    self::shown(&request)
}

fn run(words: &ParsedWords<'_>) -> Result<Outcome, String> {
    let request = &Request::of(words)?;
    if request.follow.is_some() {
        return Ok(follow::sockets(request));
    }
    shown(request)
}

/// Shows the current sockets.
pub(super) fn shown(request: &Request) -> Result<Outcome, String> {
    Ok(table::show(request, |plan| {
        let memory = (request.repeat != Repeat::Once).then(RefCell::default);
        Ok(SocketProvider {
            via: request.via,
            places: chooser(plan)?,
            filter: whole_filter(plan)?,
            with_leaked: leaked::are_asked_for(&plan.demand().conjuncts),
            all_netns: request.all_netns,
            memory,
        })
    }))
}

/// Saves every socket with every field, after the owners, in the order in which every table reads them.
fn save(session: &Session, stats: &mut Accounting) -> u64 {
    let demand = Demand::<Sockets>::every_field(0);
    let is_recorded = |id: &LookupId| !matches!(id, LookupId::Hosts | LookupId::PacketDelays);
    let ids = LookupId::ALL.into_iter().filter(is_recorded).collect();
    let ids = asked::lookups(session.host(), &demand, ids, stats);
    Enrichment::read(session, &ids, stats);
    pillars::with_sockets(session, None, &|_| true, |source| saved::read(source, &demand, stats))
}

/// The filter parts that depend on the namespace only: a namespace that fails them need not be read.
fn chooser(plan: &Plan<Sockets>) -> Result<Predicate<Sockets>, PlanError> {
    let about = |part: &&Expr| {
        let (mut tests, mut others) = (0, 0);
        part.for_each_test(&mut |test| match Sockets::FIELDS.get(test.field).map(|field| field.name) {
            Some("netns" | "netns_id") => tests += 1,
            _ => others += 1,
        });
        tests > 0 && others == 0
    };
    let parts: Vec<Expr> = plan.demand().conjuncts.iter().filter(about).cloned().collect();
    Predicate::new(&parts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))
}

fn whole_filter(plan: &Plan<Sockets>) -> Result<Predicate<Sockets>, PlanError> {
    Predicate::new(&plan.demand().conjuncts).map_err(|bad| PlanError::Plan(engine::PlanError::Pattern(bad)))
}

struct SocketProvider {
    via: Option<Via>,
    /// Selects the namespaces to read if all are available.
    places: Predicate<Sockets>,
    filter: Predicate<Sockets>,
    /// True if the provider also looks for TCP sockets that are in no table.
    with_leaked: bool,
    all_netns: bool,
    /// State kept between rounds, if there are several.
    memory: Option<RefCell<DiffState<Sockets>>>,
}

impl SourceProvider<Sockets> for SocketProvider {
    fn with_source<R>(
        &self,
        session: &Session,
        lookups: Lookups<'_>,
        stats: &mut Accounting,
        then: impl FnOnce(&dyn Source<Sockets>) -> R,
    ) -> R {
        // If no names were read (`--explain`), every namespace may match.
        let named = lookups.has(LookupId::Netns);
        let wanted = |netns_id| !named || self.places.matches(&Socket { netns_id, ..Socket::EMPTY }, &lookups);
        pillars::with_sockets(session, self.via, &wanted, |source| {
            let (partial, by_proc) = (stats.incomplete, unseen::are_read_from_proc(stats));
            let is_wanted = |netns_id| wanted(netns_id) && (self.all_netns || netns_id == session.netns_id());
            let (filter, lookups_of) = (&self.filter, &lookups);
            let leaked = WithLeaked { source, session, filter, lookups: lookups_of, is_wanted: &is_wanted };
            let source = if self.with_leaked { &leaked } else { source };
            let is_shown = |row: &Socket<'_>| self.filter.matches(row, &lookups);
            let receivers = || unseen::receivers(session.host(), source, &lookups);
            let report = |count, stats: &mut _| {
                let receivers = if by_proc { &receivers as &dyn Fn() -> _ } else { &Vec::new };
                unseen::report(session.host(), count, partial, receivers, stats);
            };
            let (is_shown, report, count) = (&is_shown, &report, OwnerlessCount::default());
            let owners = lookups.get(LookupId::Owners);
            let counted =
                owners.map(|owners| Annotated::new(source, OwnerlessSockets { owners, is_shown, report, count }));
            let source = counted.as_ref().map_or(source, |counted| counted);
            match &self.memory {
                None => then(source),
                Some(memory) => then(&DiffSource::new(source, memory, session.steady_ns())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::plan::of_request;
    use super::*;
    use crate::flags::parser;

    fn columns_of(line: &str) -> Vec<String> {
        let request = parser::parse_line(&COMMAND, line, Request::of).unwrap();
        let plan = of_request::<Sockets>(&request).unwrap();
        plan.columns().0.iter().map(|column| column.name.to_string()).collect()
    }

    #[test]
    fn sockets_without_addresses_show_their_names() {
        let unix = columns_of("proto = unix and state = listen --no-owner");
        assert_eq!(unix, ["proto", "state", "recv_q", "send_q", "unix_type", "path", "peer_inode"]);
        assert!(columns_of("proto = netlink").iter().any(|name| name == "portid"));
        // Filters on more than one table, other columns and machine-readable formats keep the default columns.
        for line in ["proto in (unix, tcp)", "proto != unix", "not proto = unix", "proto = unix or proto = tcp"] {
            assert!(columns_of(line).iter().any(|name| name == "local_addr"), "{line}");
        }
        for format in ["json", "csv", "wide"] {
            assert!(
                columns_of(&format!("proto = unix -o {format}")).iter().any(|name| name == "local_addr"),
                "{format}"
            );
        }
        assert_eq!(columns_of("proto = unix --columns local_addr"), ["local_addr"]);
    }

    #[test]
    fn issue_15_unix_sockets_show_their_path_where_they_are_asked_for() {
        let has = |line: &str, name: &str| columns_of(line).iter().any(|column| column == name);
        for line in ["path ~ docker", "path != \"/run/x\"", "unix_type = stream and state = listen"] {
            assert!(has(line, "path") && !has(line, "local_addr"), "{line}");
        }
        for line in ["proto in (unix, tcp)", "proto = unix or proto = tcp"] {
            assert!(has(line, "path") && has(line, "local_addr"), "{line}");
        }
        for line in ["proto = tcp", "proto != unix", "not proto = unix", "path = null", "iface = lo"] {
            assert!(!has(line, "path") && has(line, "local_addr"), "{line}");
        }
    }
}
