//! Counts drops by reason and location while the host is observed.

use super::Samples;
use crate::commands::drops::rules::{DropRules, OpenRules};
use crate::commands::drops::scope;
use crate::commands::saved;
use ::drops::{DropCounter, DropOptions, DropSource, DropsVia};
use doctor::checks::{DropSeen, RuleSeen, Surroundings};
use lookups::session::Session;
use record::rows::{Drops, PacketDrop, RuleBasis, ip_proto};
use record::{Accounting, Annotated, Next, Source, SourceFault};
use std::cell::RefCell;

/// Bound: kinds of drops that `doctor` remembers for a namespace. Beyond: further kinds are not checked, counted (exit
/// code 3). By: anyone who causes many kinds of drops.
const DROPS_MAX: usize = 4096;

/// Counts drops while the host is observed.
pub(in crate::commands::doctor) struct DropWatch {
    counter: RefCell<Option<DropCounter>>,
    /// True if a replay is analyzed as a whole instead of round by round.
    sums_rounds: bool,
}

impl DropWatch {
    /// Creates a watch that does not count yet.
    pub(in crate::commands::doctor) fn new(sums_rounds: bool) -> DropWatch {
        DropWatch { counter: RefCell::default(), sums_rounds }
    }

    /// Starts counting, if it has not started yet. Takes about 15 ms.
    pub(in crate::commands::doctor) fn begin(&self, session: &Session, stats: &mut Accounting) {
        if session.host().is_replay() || self.counter.borrow().is_some() {
            return;
        }
        session.cache::<OpenRules>().open(session);
        match DropCounter::open(session.host(), scope(session), Some(DropsVia::Bpf)) {
            Ok(counter) => drop(self.counter.replace(Some(counter))),
            Err(error) => {
                stats.incomplete(0, format!("drops are not counted by reason: {error}"));
            }
        }
    }

    /// The counter, for other users; None before the first reading, or if no program can count drops.
    pub(in crate::commands) fn counter(&self) -> &RefCell<Option<DropCounter>> {
        &self.counter
    }

    /// Adds the drops since the last reading.
    pub(in crate::commands::doctor) fn read(&self, session: &Session, samples: &mut Samples, stats: &mut Accounting) {
        if self.counter.borrow().is_none() && !session.host().is_replay() {
            return;
        }
        let options = DropOptions { scope: scope(session), all: false, sums_rounds: self.sums_rounds };
        let drops = DropSource::new(session.host(), options, &self.counter);
        let source = Annotated::new(&drops, DropRules::new(session));
        let demand = saved::every_field::<Drops>(0);
        let mut over = 0;
        let read = source.run(&demand, &mut |row| {
            if let Some(sample) = samples.get_mut(&Some(row.netns_id)) {
                over += add_drop(&mut sample.around, row);
            }
            Next::More
        });
        match read {
            Ok(_) => samples.values_mut().for_each(|sample| {
                sample.around.drops.get_or_insert_default();
            }),
            Err(error) if session.host().is_replay() && error.fault == SourceFault::Io => {
                stats.unanswered = true;
                stats.add_reason(0, "the recording holds no drops by reason (`netwren doctor --record` records them)");
            }
            Err(error) => {
                stats.incomplete(1, format!("drops are not counted by reason: {error}"));
            }
        }
        if over > 0 {
            let text = format!("kinds of drops after the first {DROPS_MAX} of a network namespace are not checked");
            stats.incomplete(over, text);
        }
    }
}

/// Adds a kind of drop; returns 1 if there are too many.
fn add_drop(around: &mut Surroundings, row: &PacketDrop<'_>) -> u64 {
    let drops = around.drops.get_or_insert_default();
    if drops.len() >= DROPS_MAX {
        return 1;
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    drops.push(DropSeen {
        reason: text(row.reason),
        place: text(row.place),
        hook: row.hook,
        // The name is filled in with the interfaces.
        iface: if row.ifindex == 0 { String::new() } else { row.ifindex.to_string() },
        proto: row.l4.map_or("", ip_proto::name),
        ends: row.ends,
        ports: row.ports,
        count: row.count,
        rule: row.rule.map(|rule| RuleSeen {
            text: text(rule.text),
            chain: rule.table.zip(rule.chain).map(|(table, chain)| format!("{table} {chain}")),
            is_certain: rule.basis != RuleBasis::Candidates,
        }),
        meaning: row.meaning,
        remedy: row.remedy,
    });
    0
}
