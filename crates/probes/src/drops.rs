//! Counts drops by reason and location during the window.

use ::drops::{DropCounter, DropOptions, DropScope, DropSource, DropsError, DropsVia, NOT_COUNTED};
use doctor::seen::{DropSeen, RuleSeen, Sample, Surroundings};
use lookups::rules::{DroppingRules, OpenRules};
use lookups::session::Session;
use record::rows::{Drops, PacketDrop, RuleBasis, ip_proto};
use record::{Accounting, Annotated, Demand, Next, Source, SourceError, SourceFault};
use std::cell::RefCell;

use crate::counter_window::Samples;
use crate::probe::{InNetns, ProbeReader, Round};

/// include/uapi/linux/if_ether.h
const ETH_P_ARP: u16 = 0x0806;

/// Bound: kinds of drops that `doctor` remembers for a namespace. Beyond: further kinds are not checked, counted (exit
/// code 3). By: anyone who causes many kinds of drops.
const DROPS_MAX: usize = 4096;

/// The function that drops IPv6 packets of groups without a member here: routine, unless a program waits for them.
const GROUP_WITHOUT_MEMBER: &[u8] = b"ip6_mc_input";

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
        Annotated::new(self.drops(session, all, sums_rounds), DroppingRules::new(session, &self.rules))
    }

    /// Makes a source of all drops for findings, which name the first packet of each kind, and so its rule.
    fn for_findings<'s>(
        &'s self,
        session: &'s Session,
        sums_rounds: bool,
    ) -> Annotated<DropSource<'s>, DroppingRules<'s>> {
        let rules = DroppingRules::new(session, &self.rules).naming_first();
        Annotated::new(self.drops(session, true, sums_rounds), rules)
    }

    fn drops<'s>(&'s self, session: &'s Session, all: bool, sums_rounds: bool) -> DropSource<'s> {
        let options = DropOptions { scope: drop_scope(session), all, sums_rounds };
        DropSource::new(session.host(), options, &self.counter)
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

    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, _: &mut Accounting) {
        if sample.around.drops.iter().flatten().any(DropSeen::may_be_legacy) {
            sample.around.legacy_rules = read_legacy(netns);
        }
    }

    fn end(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        let (session, is_replay) = (round.session, round.session.host().is_replay());
        if self.watch.counter.borrow().is_none() && !is_replay {
            return;
        }
        match add_drops(&self.watch.for_findings(session, self.sums_rounds), samples, stats) {
            Ok(()) => samples.values_mut().for_each(|sample| {
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
    }
}

/// The tools whose tables the calling thread's namespace has. Without root, in earlier recordings and on kernels
/// without such tables there are none.
fn read_legacy(netns: &InNetns<'_>) -> Vec<&'static str> {
    let (host, mut text) = (netns.host(), Vec::new());
    let files = [("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")];
    let mut has_tables = |file: &str| {
        let path = format!("/proc/thread-self/net/{file}");
        let key = format!("{path}@{}", netns.netns_id);
        let read = host.bytes(&key, "", &mut text, |into| sys::fs::read_file(&host.real_path(&path), into));
        read.is_ok() && !text.is_empty()
    };
    files.into_iter().filter(|(_, file)| has_tables(file)).map(|(tool, _)| tool).collect()
}

/// Adds the drops of all reasons except routine ones to the samples of their namespaces. If some are not counted or
/// belong to no sample, their numbers are lower bounds, which is noted.
fn add_drops(source: &dyn Source<Drops>, samples: &mut Samples, stats: &mut Accounting) -> Result<(), SourceError> {
    let (mut over, mut unplaced) = (0, 0);
    let read = source.run(&Demand::<Drops>::every_field(0), &mut |row| {
        match samples.get_mut(&Some(row.netns_id)) {
            _ if row.benign && row.place != GROUP_WITHOUT_MEMBER => {}
            Some(sample) => over += add_drop(&mut sample.around, row),
            None => unplaced += row.count,
        }
        Next::More
    })?;
    let not_counted = read.why.iter().filter(|why| NOT_COUNTED.contains(&&*why.text)).collect::<Vec<_>>();
    for why in &not_counted {
        stats.incomplete(why.count, why.text.clone());
    }
    if !not_counted.is_empty() {
        stats.add_reason(0, "numbers of dropped packets in findings are lower bounds");
    }
    if unplaced > 0 {
        stats.add_reason(unplaced, "a dropped packet that belongs to no known network namespace is in no finding");
    }
    if over > 0 {
        let text = format!("kinds of drops after the first {DROPS_MAX} of a network namespace are not checked");
        stats.incomplete(over, text);
    }
    Ok(())
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
        proto: row.l4.map_or(if row.ethertype == ETH_P_ARP { "arp" } else { "" }, ip_proto::name),
        ends: row.ends,
        ports: row.ports,
        tcp_flags: row.tcp_flags,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::{Scan, full_scan};

    /// A reading of drops in namespace 7 and outside any namespace, of which some were not counted.
    struct Reading {
        lost: u64,
    }

    impl Source<Drops> for Reading {
        fn prepare(&self, _: &Demand<Drops>) -> Box<dyn Scan<Drops> + '_> {
            full_scan::<Drops, _>("bpf", "drops", |each| {
                let drop = PacketDrop { netns_id: 7, reason: b"NO_SOCKET", count: 3, ..PacketDrop::default() };
                for row in [drop, PacketDrop { benign: true, ..drop }, PacketDrop { netns_id: 0, ..drop }] {
                    let _ = each(&row);
                }
                let mut stats = Accounting { seen: 3, ..Accounting::default() };
                if self.lost > 0 {
                    stats.incomplete(self.lost, NOT_COUNTED[2]);
                }
                Ok(stats)
            })
        }
    }

    #[test]
    fn drops_that_are_in_no_finding_are_reported() {
        let read = |lost| {
            let mut samples = Samples::from([(Some(7), Sample::new(Some(7)))]);
            let mut stats = Accounting::default();
            add_drops(&Reading { lost }, &mut samples, &mut stats).unwrap();
            assert_eq!(samples[&Some(7)].around.drops.as_ref().unwrap().len(), 1, "routine drops are left out");
            stats
        };
        let (whole, partial) = (read(0), read(2));
        let says = |stats: &Accounting, words: &str| stats.why.iter().any(|why| why.text.contains(words));
        assert!(!whole.is_partial() && says(&whole, "no known network namespace") && !says(&whole, "lower bounds"));
        assert!(partial.is_partial() && says(&partial, "was not counted") && says(&partial, "lower bounds"));
    }
}
