//! `netwren nat delete FILTER`: a table of the entries that would be or were deleted.
//!
//! One pass selects them, as in any table. Each entry is deleted by the identity in the row that is shown (`acting`):
//! the original direction, the zone and the kernel's id, so that a newer entry with the same tuple survives. The id
//! alone is a hash of 32 bits, which two entries may share.

use super::super::acting::{self, Act, Verb};
use super::super::table;
use crate::command::{Command, ParsedWords, Prepared, ready};
use crate::flags::defs::Scope;
use conntrack::change::{Changes, Target};
use conntrack::{CtTable, NetnsRef, Via};
use netlink::DumpError;
use record::rows::{CtTuple, Nat, nat_need as need};
use record::{Accounting, Field, Kind, Value};
use sys::Errno;
use tables::nat::{self, EntryProvider};

/// The default order.
const ORDER: &str = "id";

type F = Field<Nat>;

/// The cells that identify an entry; [`target_of`] reads them back.
const KEY: &[Field<Nat>] = &[
    F::own("id", Kind::Id, |row| Value::number(row.id)).needs(need::ID),
    F::own("zone", Kind::Id, |row| Value::number(row.zone)).needs(need::ZONE),
    F::own("src", Kind::Endpoint, |row| Value::Endpoint(row.orig.src, Some(row.orig.src_part))),
    F::own("dst", Kind::Endpoint, |row| Value::Endpoint(row.orig.dst, Some(row.orig.dst_part))),
    F::own("proto", Kind::Id, |row| Value::U64(row.orig.proto.into())),
    F::own("orig_zone", Kind::Id, |row| Value::number(row.orig.zone)),
];

/// The entry that the cells of [`KEY`] identify; None without an id, because that would delete any entry that now has
/// the tuple.
fn target_of(key: &[Value<'_>]) -> Option<Target> {
    let number = |cell: Value<'_>| match cell {
        Value::U64(n) => Some(n),
        _ => None,
    };
    let [id, both_zone, Value::Endpoint(src, Some(src_part)), Value::Endpoint(dst, Some(dst_part)), proto, orig_zone] =
        *key
    else {
        return None;
    };
    let zone_of = |cell| number(cell).and_then(|zone| u16::try_from(zone).ok());
    let (proto, zone) = (u8::try_from(number(proto)?).ok()?, zone_of(orig_zone));
    let tuple = CtTuple { src, dst, proto, src_part, dst_part, zone };
    let id = u32::try_from(number(id)?).ok()?;
    Some(Target { tuple, zone: zone_of(both_zone), id: Some(id) })
}

/// The registry's entry.
pub(crate) static COMMAND: Command = Command {
    name: "nat delete",
    about: "Delete conntrack entries; without --yes only show them",
    examples: EXAMPLES,
    scope: Scope::ACTION.and(Scope::DELETING),
    refusals: &[("replay", "a recording has no entries to delete: leave out --replay")],
    tables: &[tables::NAT],
    prepare: Some(prepare),
    ..Command::TABLE
};

const EXAMPLES: &str = "\
Examples:
  netwren nat delete 'client = 192.0.2.7'            what would be deleted
  netwren nat delete 'client = 192.0.2.7' --yes      delete it
  netwren nat delete 'proto = udp and status != seen_reply' --yes
  netwren nat delete 'backend = 172.17.0.2:80' --limit 1 --yes
";

fn prepare(words: &ParsedWords<'_>) -> Prepared<'static> {
    let (request, yes) = acting::asked(words, ORDER)?;
    let (plan, reading) = nat::prepare(&request.table(), CtTable::Conntrack)?;
    // Netlink, because /proc has no ids.
    let (plan, reading) = (plan.with_key(KEY), EntryProvider { via: Some(Via::Netlink), ..reading });
    ready(move || {
        table::act_through(&request, &plan, &reading, |session, sink, rounds| {
            let changes = Changes::new(session.host(), NetnsRef { netns: None, netns_id: session.netns_id() });
            let deleter = Deleter { changes, deleted: 0, gone: 0, refused: Vec::new(), unnamed: 0 };
            acting::run(session, sink, rounds, yes, deleter)
        })
    })
}

/// Deletes the entries of shown rows.
struct Deleter<'c> {
    changes: Changes<'c>,
    deleted: u64,
    gone: u64,
    refused: Vec<DumpError>,
    /// Number of rows without an id.
    unnamed: u64,
}

impl Act for Deleter<'_> {
    const VERB: Verb =
        Verb { thing: "entry", things: "entries", infinitive: "delete", present: "deletes", past: "deleted" };

    const RESULTS: &'static [&'static str] = &["deleted", "gone", "refused"];

    const KEY_CELLS: usize = KEY.len();

    /// Deletes the entry that the cells identify.
    fn act(&mut self, key: &[Value<'_>]) -> Value<'static> {
        let Some(target) = target_of(key) else {
            self.unnamed += 1;
            return Value::Null;
        };
        match self.changes.delete(&target) {
            Ok(()) => {
                self.deleted += 1;
                Value::Name("deleted")
            }
            // The entry expired, or a new entry has its tuple: the shown entry no longer exists.
            Err(error) if error.errno() == Some(Errno::NOENT) => {
                self.gone += 1;
                Value::Name("gone")
            }
            Err(error) => {
                self.refused.push(error);
                Value::Name("refused")
            }
        }
    }

    fn done(&self) -> u64 {
        self.deleted
    }

    fn add_failures(&self, stats: &mut Accounting) {
        if self.gone > 0 {
            stats.add_reason(self.gone, "already removed before netwren could delete them");
        }
        for error in &self.refused {
            stats.incomplete(1, format!("not deleted: {}", why(error)));
        }
        if self.unnamed > 0 {
            stats.incomplete(self.unnamed, "not deleted: the kernel reported no ID");
        }
    }
}

fn why(error: &DumpError) -> String {
    match error.errno() {
        Some(errno) if errno.is_denied() => format!("{errno} (needs CAP_NET_ADMIN)"),
        Some(errno) => errno.to_string(),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::flags::parser;
    use crate::flags::request::Request;
    use record::rows::{Conntrack, ip_proto};
    use record::{Addr, Lookups};

    fn key_of<'r>(row: &'r Conntrack<'_>) -> Vec<Value<'r>> {
        KEY.iter().map(|field| field.cell(row, &Lookups::empty())).collect()
    }

    /// The kernel's id is a hash of 32 bits: entries that share it are deleted individually by tuple and zone.
    #[test]
    fn replay_issue_10_entries_with_one_id_are_each_their_own_target() {
        let tcp = CtTuple {
            src: Addr::V4([10, 0, 0, 1]),
            dst: Addr::V4([10, 0, 0, 2]),
            proto: ip_proto::TCP,
            src_part: 40_000,
            dst_part: 443,
            zone: None,
        };
        let tuples = [
            tcp,
            CtTuple { src_part: 40_001, ..tcp },
            CtTuple { proto: ip_proto::UDP, ..tcp },
            CtTuple { zone: Some(3), ..tcp },
            CtTuple { src: Addr::V6([1; 16]), dst: Addr::V6([2; 16]), ..tcp },
            CtTuple { proto: ip_proto::ICMP, src_part: 7, dst_part: 8 << 8, ..tcp },
        ];
        let rows = tuples.iter().flat_map(|orig| [None, Some(9)].map(|zone| (*orig, zone)));
        for (orig, zone) in rows {
            let row = Conntrack { id: Some(0xdead_beef), orig, zone, ..Conntrack::EMPTY };
            let target = target_of(&key_of(&row)).unwrap();
            assert_eq!(target, Target { tuple: orig, zone, id: Some(0xdead_beef) });
        }
    }

    #[test]
    fn an_entry_without_an_id_is_no_target() {
        assert_eq!(target_of(&key_of(&Conntrack::EMPTY)), None);
        assert_eq!(target_of(&[]), None);
    }

    fn parse(line: &str) -> Result<(Request, bool), clap::Error> {
        parser::parse_line(&COMMAND, line, |words| acting::asked(words, ORDER))
    }

    #[test]
    fn nothing_is_deleted_by_accident() {
        assert!(!parse("proto = udp").unwrap().1);
        assert!(parse("proto = udp --yes").unwrap().1);
        for (line, says) in [
            ("--yes", "needs --all"),
            ("--all proto = udp", "cannot be used with"),
            ("--all --replay f", "a recording has no entries"),
            ("--all --watch", "--watch cannot be used with"),
            ("--all --all-netns", "--all-netns cannot be used with"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(says), "{line}");
        }
    }
}
