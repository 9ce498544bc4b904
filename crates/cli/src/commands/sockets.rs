//! `netwren sockets`.

use super::{follow, plan, saved, table};
use crate::command::{Command, ParsedWords, Prepared, SavedPart, ready};
use crate::flags::defs::Scope;
use crate::flags::request::Request;
use lookups::asked;
use lookups::enrich::Enrichment;
use lookups::pillars;
use lookups::session::Session;
use record::rows::Sockets;
use record::{Accounting, Demand, LookupId, Schema};
use tables::sockets::SocketProvider;

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "sockets",
    about: "Sockets of all families with their owners",
    examples: EXAMPLES,
    scope: Scope::OWNED_TABLE.and(Scope::USERS).and(Scope::FOLLOW),
    tables: &[tables::SOCKETS, tables::SOCKET_EVENTS],
    other_table: &["follow"],
    columns_of_proto: COLUMNS_OF_PROTO,
    recorded: Some(SavedPart { rows: Some("sockets"), is_large: true, open: || Box::new(save) }),
    prepare: Some(prepare),
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
    prepare: Some(prepare_listeners),
    ..Command::TABLE
};

const EXAMPLES_OF_LISTENERS: &str = "\
Examples:
  netwren listeners                                     all listeners
  netwren listeners port = 443                          on this port
  netwren listeners 'accept_q > accept_q_max'           listeners whose accept queue is full
  netwren listeners --all-netns --container web         in a container
";

fn prepare_listeners(words: &ParsedWords<'_>) -> Prepared<'static> {
    let mut request = Request::of(words)?;
    // The filter is first checked alone, so that an error shows it as the user wrote it.
    let table = Schema::from_table::<Sockets>();
    plan::parse(table, &request).and_then(|ast| plan::bind(table, &request, &ast))?;
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
    prepare_list(request)
}

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let request = Request::of(words)?;
    if request.follow.is_some() { follow::prepare_sockets(request) } else { prepare_list(request) }
}

/// Prepares a run that shows the current sockets.
pub(super) fn prepare_list(request: Request) -> Prepared<'static> {
    let plan = plan::of_request(&request)?;
    let provider = SocketProvider::new(&request.table(), &plan)?;
    ready(move || table::run(&request, &plan, &provider))
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
