//! `netwren nat top snat_port_use`: the number of source ports that each source NAT address uses per destination, and
//! the number available.
//!
//! The engine makes the groups: entries by address and remote end, each with a distinct port. `PortUseSink` adds the
//! number of ports.

use super::super::plan::bind;
use super::super::table;
use super::LIMIT;
use crate::command::{Prepared, ready};
use crate::flags::request::Request;
use conntrack::CtTable;
use probes::nat::PortUseSink;
use record::Schema;
use record::rows::Nat;
use tables::nat;

/// The word after `nat top`.
pub(super) const WORD: &str = "snat_port_use";

/// The fields of a group. The namespace's inode is needed to find its rules.
const BY: &str = "proto,reply_dst,backend";
const BY_NETNS: &str = "netns,netns_id,proto,reply_dst,backend";
/// The filter for entries that need a source port.
const FILTER: &str = "nat in (snat, both) and reply_dport != null";
/// The highest port of a group, which selects the range. It is not shown.
const HIGHEST: &str = "reply_dport";

/// Prepares a run of the command.
pub(super) fn prepare(mut request: Request, table: CtTable) -> Prepared<'static> {
    // Errors in the user's filter are reported before it is extended.
    engine::filter::parse(&request.shown.filter).and_then(|own| bind(Schema::from_table::<Nat>(), &request, &own))?;
    let limit = request.shown.limit.take().unwrap_or(LIMIT);
    add_words(&mut request);
    let is_sorted = request.shown.sort.is_some();
    let (plan, reading) = nat::prepare(&request.table(), table)?;
    ready(move || {
        table::show_through(&request, &plan, &reading, |session, sink, rounds| {
            let mut ports = PortUseSink::new(session, sink, limit, is_sorted);
            let mut run = rounds(&mut ports)?;
            if ports.cut() > 0 {
                run.stats.add_reason(0, format!("{} more groups are not shown (--limit)", ports.cut()));
            }
            if ports.lacks_rules() {
                run.stats.add_reason(0, "the number of source ports is unknown: nft did not list the rules");
            }
            Ok(run)
        })
    })
}

fn add_words(request: &mut Request) {
    let shown = &mut request.shown;
    shown.by = Some(if request.all_netns { BY_NETNS } else { BY }.to_owned());
    shown.filter = match shown.filter.trim() {
        "" => FILTER.to_owned(),
        own => format!("({own}) and {FILTER}"),
    };
    let [_, highest, _] = &mut shown.aggregates;
    *highest = Some(highest.take().map_or_else(|| HIGHEST.to_owned(), |own| format!("{HIGHEST},{own}")));
}
