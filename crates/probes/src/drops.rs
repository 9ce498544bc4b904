//! Counts drops by reason and location during the window.

use ::drops::{DropCounter, DropOptions, DropScope, DropSource, DropsError, DropsVia};
use doctor::seen::{DropSeen, RuleSeen, Surroundings};
use lookups::rules::{DroppingRules, OpenRules};
use lookups::session::Session;
use record::rows::{Drops, PacketDrop, RuleBasis, ip_proto};
use record::{Accounting, Annotated, Demand, Next, Source, SourceFault};
use std::cell::RefCell;

use crate::counter_window::Samples;
use crate::probe::{ProbeReader, Round};

/// Bound: kinds of drops that `doctor` remembers for a namespace. Beyond: further kinds are not checked, counted (exit
/// code 3). By: anyone who causes many kinds of drops.
const DROPS_MAX: usize = 4096;

/// Returns the namespaces whose drops a session counts.
pub fn drop_scope(session: &Session) -> DropScope {
    match session.namespaces() {
        Some(_) => DropScope::AllNetns,
        None => DropScope::Netns(u32::try_from(session.netns_id()).unwrap_or(0)),
    }
}

/// Counts drops from round to round, with the rules that dropped packets.
#[derive(Default)]
pub struct DropWatch {
    /// The counter; `None` before [`DropWatch::open`], and if packets are not counted.
    pub counter: RefCell<Option<DropCounter>>,
    rules: OpenRules,
}

impl DropWatch {
    /// Starts counting through a backend, if it has not started yet; does nothing in a replay. With `lists_rules` it
    /// lists the rules first. Takes about 15 ms.
    pub fn open(&self, session: &Session, via: Option<DropsVia>, lists_rules: bool) -> Result<(), DropsError> {
        if session.host().is_replay() || self.counter.borrow().is_some() {
            return Ok(());
        }
        if lists_rules {
            self.rules.open(session);
        }
        let counter = DropCounter::open(session.host(), drop_scope(session), via)?;
        self.counter.replace(Some(counter));
        Ok(())
    }

    /// Makes a source of the drops since the last reading. With `all` it includes routine drops; with `sums_rounds` it
    /// reads all rounds of a replay.
    pub fn source<'s>(
        &'s self,
        session: &'s Session,
        all: bool,
        sums_rounds: bool,
    ) -> Annotated<DropSource<'s>, DroppingRules<'s>> {
        let options = DropOptions { scope: drop_scope(session), all, sums_rounds };
        let drops = DropSource::new(session.host(), options, &self.counter);
        Annotated::new(drops, DroppingRules::new(session, &self.rules))
    }
}

/// Reads the drops of a round.
pub(crate) struct DropReader<'w> {
    pub(crate) watch: &'w DropWatch,
    /// True if a replay is analyzed as a whole instead of round by round.
    pub(crate) sums_rounds: bool,
}

impl ProbeReader for DropReader<'_> {
    fn begin(&mut self, round: &Round<'_>, stats: &mut Accounting) {
        if let Err(error) = self.watch.open(round.session, Some(DropsVia::Bpf), true) {
            stats.incomplete(0, format!("drops are not counted by reason: {error}"));
        }
    }

    fn end(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let (session, is_replay) = (round.session, round.session.host().is_replay());
        if self.watch.counter.borrow().is_none() && !is_replay {
            return;
        }
        let source = self.watch.source(session, false, self.sums_rounds);
        let mut over = 0;
        let read = source.run(&Demand::<Drops>::every_field(0), &mut |row| {
            if let Some(sample) = samples.get_mut(&Some(row.netns_id)) {
                over += add_drop(&mut sample.around, row);
            }
            Next::More
        });
        match read {
            Ok(_) => samples.values_mut().for_each(|sample| {
                sample.around.drops.get_or_insert_default();
            }),
            Err(error) if is_replay && error.fault == SourceFault::Io => {
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
        ifindex: row.ifindex,
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
