//! Connections summed up per flow and interval, for `flows --follow`.
//!
//! With BPF the kernel sums them up, and each interval costs a read of the flows that changed. Without BPF the events
//! of the other backend are summed up here. Start reading at [`FlowSums`].
use netlink::DecodeError;
use netlink::prefix::u64_at;
use record::rows::{FlowEvent, FlowEvents, SocketEvents};
use record::{Accounting, Demand, Each, Next, Offer, RowStats, SourceError, Stream, StreamState};
use std::collections::BTreeMap;
use std::time::Duration;
use sys::{Blocks, Host};

use super::bpf::{HEADER_BYTES, Head, MISSED, totals};
use super::flow_key::{FlowTotals, KEY, OLD_KEY, SPAN, SUM, put, row};
use super::flow_shares::FlowTable;
use super::{BPF, Follow, LiveConnections, OpenError, error_of, not_live, shut_out};
use crate::Via;

/// Maximum number of accounts whose folded flows are counted separately; further accounts are counted together.
///
/// Bound: users and services whose folded flows are counted one by one. Beyond: the folded flows of further ones are
/// counted together. By: a user with thousands of subordinate ids.
const ACCOUNTS_MAX: usize = 1024;

/// Flows of one namespace, or of all, interval by interval.
pub struct FlowSums<'h> {
    backend: Backend<'h>,
    interval: Duration,
    stats: RowStats,
    /// Why the better backend is unavailable.
    shut: Option<String>,
    opened: u64,
    closed: u64,
    /// Openings and closings in folded rows, by account.
    folded: FoldedCounts,
}

enum Backend<'h> {
    /// Blocks of sums from the kernel, with keys of `key` bytes.
    Kernel { blocks: Box<dyn Blocks + 'h>, last: Head, key: usize },
    /// Events that are summed up here.
    Events(Box<SummedEvents<'h>>),
}

/// Events of the other backend, and their sums.
struct SummedEvents<'h> {
    live: LiveConnections<'h>,
    flows: FlowTable,
    /// Start of the interval; 0 before the first.
    began_ns: u64,
    grouped: u64,
}

impl<'h> FlowSums<'h> {
    /// Starts to follow. Fails if no backend opens, see [`LiveConnections::open`].
    pub fn open(host: &'h Host, follow: Follow<'h>, interval: Duration) -> Result<FlowSums<'h>, SourceError> {
        let of = |backend, shut| FlowSums {
            backend,
            interval,
            stats: RowStats::default(),
            shut,
            opened: 0,
            closed: 0,
            folded: FoldedCounts::new(),
        };
        let by_kernel = |blocks, key| Backend::Kernel { blocks, last: Head::default(), key };
        let mut shut = None;
        for (name, bytes) in [(STREAM, KEY), (OLD_STREAM, OLD_KEY)] {
            let key = stream_key(name, &follow);
            if host.is_replay() && host.contains(&key) {
                let blocks = host.stream(&key, "", || Err(not_live())).map_err(error_of)?;
                return Ok(of(by_kernel(blocks, bytes), None));
            }
        }
        if !host.is_replay() && follow.via != Some(Via::Netlink) {
            match open_bpf(host, &follow, interval) {
                Ok(blocks) => {
                    let key = stream_key(STREAM, &follow);
                    let blocks = host.stream(&key, "", || Ok(blocks)).map_err(error_of)?;
                    return Ok(of(by_kernel(blocks, KEY), None));
                }
                Err(cause) if follow.only_bpf() => return Err(shut_out(cause)),
                Err(cause) => shut = Some(cause.to_string()),
            }
        }
        let via = if host.is_replay() { follow.via } else { Some(Via::Netlink) };
        let live = LiveConnections::open(host, Follow { via, ..follow })?;
        Ok(of(
            Backend::Events(Box::new(SummedEvents { live, flows: FlowTable::default(), began_ns: 0, grouped: 0 })),
            shut,
        ))
    }

    /// A warning for the user at the start, if the backend may miss connections.
    pub fn caveat(&self) -> Option<String> {
        match &self.backend {
            Backend::Kernel { .. } => None,
            Backend::Events(added) => match (&self.shut, added.live.caveat()) {
                (Some(why), Some(caveat)) => Some(format!("{why}; {caveat}")),
                (_, caveat) => caveat,
            },
        }
    }

    fn by_kernel(&mut self, each: &mut Each<'_, FlowEvents>) -> Result<StreamState, SourceError> {
        let Backend::Kernel { blocks, last, key } = &mut self.backend else { return Ok(StreamState::Ended) };
        let key_bytes = *key;
        let Some(block) = blocks.next().map_err(error_of)? else { return Ok(StreamState::Ended) };
        self.stats.add_backend(BPF);
        let (Some(head), Some(span_ns)) = (Head::parse(block), u64_at(block, HEADER_BYTES)) else {
            self.stats.add_undecoded(DecodeError::Short {
                what: "block of flows",
                claims: HEADER_BYTES + SPAN,
                has: block.len(),
            });
            return Ok(StreamState::Open);
        };
        *last = head;
        for entry in block.get(HEADER_BYTES + SPAN..).unwrap_or_default().chunks(key_bytes + SUM) {
            self.stats.add_arrived(1);
            let Some(sums) = FlowTotals::parse_at(entry, key_bytes) else {
                self.stats.add_failed(DecodeError::Short { what: "flow", claims: key_bytes + SUM, has: entry.len() });
                continue;
            };
            let mut key = [0; KEY];
            put(&mut key, 0, entry.get(..key_bytes).unwrap_or_default());
            match row(&key, &sums, head.epoch_ns, span_ns) {
                Ok(row) => {
                    self.opened += row.opened;
                    self.closed += row.closed;
                    count_folded(&mut self.folded, &row);
                    self.stats.row();
                    if each(&row) == Next::Stop {
                        break;
                    }
                }
                Err(error) => self.stats.add_failed(error),
            }
        }
        Ok(StreamState::Open)
    }

    fn by_events(&mut self, each: &mut Each<'_, FlowEvents>) -> Result<StreamState, SourceError> {
        let Backend::Events(added) = &mut self.backend else { return Ok(StreamState::Ended) };
        let SummedEvents { live, flows, began_ns, grouped } = &mut **added;
        let nothing = Demand::<SocketEvents>::new(&[], Vec::new());
        let tide = live.next(&nothing, &mut |event| {
            flows.sums_of(event).add(event);
            *grouped += 1;
            Next::More
        })?;
        let now_ns = live.wall_ns();
        if *began_ns == 0 {
            *began_ns = now_ns;
        }
        let span_ns = now_ns.saturating_sub(*began_ns);
        if tide == StreamState::Open && u128::from(span_ns) < self.interval.as_nanos() {
            return Ok(tide);
        }
        *began_ns = now_ns;
        for (key, sums) in &flows.take() {
            self.stats.add_arrived(1);
            match row(key, sums, now_ns, span_ns) {
                Ok(row) => {
                    count_folded(&mut self.folded, &row);
                    self.stats.row();
                    if each(&row) == Next::Stop {
                        break;
                    }
                }
                Err(error) => self.stats.add_failed(error),
            }
        }
        Ok(tide)
    }
}

/// Names of the kernel's sums on a tape: with interfaces in their keys, and without.
const STREAM: &str = "flows+ifaces/bpf";
const OLD_STREAM: &str = "flows/bpf";

fn stream_key(name: &str, follow: &Follow<'_>) -> String {
    if follow.all_netns { name.into() } else { format!("{name}@{}", follow.netns_id) }
}

#[cfg(feature = "bpf")]
fn open_bpf<'h>(host: &'h Host, follow: &Follow<'h>, interval: Duration) -> Result<Box<dyn Blocks + 'h>, OpenError> {
    Ok(Box::new(super::bpf::flow_sums::KernelSums::open(host, follow, interval)?))
}

#[cfg(not(feature = "bpf"))]
fn open_bpf<'h>(_: &'h Host, _: &Follow<'h>, _: Duration) -> Result<Box<dyn Blocks + 'h>, OpenError> {
    Err(sys::WITHOUT_BPF.into())
}

impl Stream<FlowEvents> for FlowSums<'_> {
    fn offer(&self, _: &Demand<FlowEvents>) -> Offer {
        let (backend, line) = match &self.backend {
            Backend::Kernel { .. } => (BPF, "flows via BPF: summed in the kernel, read every interval"),
            Backend::Events(_) => {
                (Via::Netlink.name(), "flows via netlink: close events as reported, open events by polling")
            }
        };
        Offer { backend, explain: vec![line.into()], ..Offer::default() }
    }

    fn next(&mut self, _: &Demand<FlowEvents>, each: &mut Each<'_, FlowEvents>) -> Result<StreamState, SourceError> {
        match self.backend {
            Backend::Kernel { .. } => self.by_kernel(each),
            Backend::Events(_) => self.by_events(each),
        }
    }

    fn close(&mut self) -> Accounting {
        let mut stats = std::mem::take(&mut self.stats);
        let mut stats = match &mut self.backend {
            Backend::Kernel { last, .. } => {
                if last.lost_map > 0 {
                    let text = "connections that the kernel had no memory to store: their direction may be unknown";
                    stats.incomplete(last.lost_map, text);
                }
                if last.missed > 0 {
                    stats.incomplete(last.missed, MISSED);
                }
                let mut stats = stats.close();
                stats.lost += last.lost_ring;
                if last.lost_ring > 0 {
                    stats.add_reason(last.lost_ring, "open and close events not shown: the table of flows was full");
                }
                stats.add_reason(0, totals(self.opened, self.closed, last.failed));
                stats
            }
            Backend::Events(added) => {
                let SummedEvents { live, grouped, .. } = &mut **added;
                let mut stats = stats.close();
                // Its rows were summed up: they are part of our rows.
                stats.add(&Accounting { grouped: *grouped, ..live.close() });
                stats
            }
        };
        // Comes after the other reasons, whose number no user can increase.
        add_folded(std::mem::take(&mut self.folded), &mut stats);
        stats
    }
}

/// Openings and closings by user and port of the service, 0 for all of the user's; `None` for all other accounts.
type FoldedCounts = BTreeMap<Option<(u32, u16)>, u64>;

/// Reports which accounts have folded rows, the largest first.
fn add_folded(folded: FoldedCounts, stats: &mut Accounting) {
    let mut folded: Vec<_> = folded.into_iter().collect();
    folded.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (account, count) in folded {
        let of = match account {
            None => "of other or unknown users".to_owned(),
            Some((uid, 0)) => format!("of uid {uid}"),
            // The peers of the service opened them, not its user.
            Some((uid, port)) => format!("by port {port} of uid {uid}"),
        };
        stats.incomplete(
            count,
            format!("open and close events {of} are in rows of `many`: more than its share of flows"),
        );
    }
}

/// Counts the openings and closings in a row of folded flows.
fn count_folded(folded: &mut FoldedCounts, row: &FlowEvent) {
    let Some(uid) = row.folded_uid else { return };
    let account = Some((uid, row.local_port.or(row.peer_port).unwrap_or(0)));
    let is_counted = uid != u32::MAX && (folded.len() < ACCOUNTS_MAX || folded.contains_key(&account));
    *folded.entry(account.filter(|_| is_counted)).or_default() += row.opened + row.closed;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_10_accounts_are_named_and_hide_no_other_reason() {
        let folded: FoldedCounts = (0..20).map(|port| (Some((1000, port)), u64::from(port) + 1)).collect();
        let mut stats = Accounting::default();
        stats.add_reason(3, "lost");
        add_folded(folded, &mut stats);
        assert!(stats.is_partial());
        assert_eq!((&*stats.why[0].text, stats.why[1].count), ("lost", 20));
        assert!(stats.why[1].text.contains("by port 19 of uid 1000 are in rows"), "{}", stats.why[1].text);
        assert_eq!(stats.why.iter().map(|why| why.count).sum::<u64>(), 3 + 210, "none is left out");
    }
}
