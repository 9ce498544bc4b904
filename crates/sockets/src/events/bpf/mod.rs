//! Connections that the BPF program reports.
//!
//! A block is a header of numbers, followed by events; [`programs`] makes the blocks, a recording stores them.
mod event;
#[cfg(feature = "bpf")]
pub(crate) mod flow_sums;
#[cfg(feature = "bpf")]
pub(crate) mod programs;
#[cfg(feature = "bpf")]
pub(crate) mod udp_senders;

use netlink::DecodeError;
use netlink::prefix::u64_at;
use record::rows::{EventKind, SocketEvents};
use record::{Accounting, Each, Next, RowStats, SourceError, StreamState};
use sys::{Blocks, SysError};

use self::event::{EVENT, Event, decode, happened_ns, is_nameless_subflow};
use crate::events::{BPF, error_of};

/// Header of a block, in machine byte order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Offset from the kernel's monotonic clock to the time since 1970, in ns.
    pub(crate) epoch_ns: u64,
    /// Number of events lost so far because the ring was full.
    pub(crate) lost_ring: u64,
    /// Number of connections so far that did not fit into the table of connections.
    pub(crate) lost_map: u64,
    /// Number of failed connection attempts so far.
    pub(crate) failed: u64,
    /// Number of connections that are established and not accepted now.
    pub(crate) waiting: u64,
    /// Number of state changes so far that happened while the program was running on their CPU, which the kernel skips.
    pub(crate) missed: u64,
}

/// Size of a header in bytes.
pub(crate) const HEADER_BYTES: usize = 6 * 8;

impl Head {
    #[cfg_attr(not(feature = "bpf"), allow(dead_code))]
    pub(crate) fn bytes(&self) -> [u8; HEADER_BYTES] {
        let Head { epoch_ns, lost_ring, lost_map, failed, waiting, missed } = *self;
        let mut bytes = [0; HEADER_BYTES];
        let numbers = [epoch_ns, lost_ring, lost_map, failed, waiting, missed];
        bytes.chunks_exact_mut(8).zip(numbers).for_each(|(place, number)| place.copy_from_slice(&number.to_ne_bytes()));
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Head> {
        let number = |index: usize| u64_at(bytes, index * 8);
        Some(Head {
            epoch_ns: number(0)?,
            lost_ring: number(1)?,
            lost_map: number(2)?,
            failed: number(3)?,
            waiting: number(4)?,
            missed: number(5)?,
        })
    }
}

/// The events of one run.
pub(crate) struct BpfEvents<'h> {
    blocks: Box<dyn Blocks + 'h>,
    stats: RowStats,
    last: Head,
    wall_ns: u64,
    opened: u64,
    closed: u64,
    nameless_subflows: u64,
}

impl<'h> BpfEvents<'h> {
    pub(crate) fn new(blocks: Box<dyn Blocks + 'h>) -> BpfEvents<'h> {
        let (stats, last) = (RowStats::default(), Head::default());
        BpfEvents { blocks, stats, last, wall_ns: 0, opened: 0, closed: 0, nameless_subflows: 0 }
    }

    pub(crate) fn next(&mut self, each: &mut Each<'_, SocketEvents>) -> Result<StreamState, SourceError> {
        let Some(block) = self.blocks.next().map_err(source_error)? else { return Ok(StreamState::Ended) };
        self.stats.add_backend(BPF);
        let Some(head) = Head::parse(block) else {
            self.stats.add_undecoded(DecodeError::Short {
                what: "block of events",
                claims: HEADER_BYTES,
                has: block.len(),
            });
            return Ok(StreamState::Open);
        };
        self.last = head;
        let mut events = block.get(HEADER_BYTES..).unwrap_or_default();
        while !events.is_empty() {
            self.stats.add_arrived(1);
            let event = match Event::split_first(events) {
                Ok((event, rest)) => {
                    events = rest;
                    event
                }
                Err(short) => {
                    self.stats.add_failed(DecodeError::Short { what: "event", claims: EVENT, has: short.len() });
                    break;
                }
            };
            self.wall_ns = happened_ns(event).wrapping_add(head.epoch_ns);
            match &decode(event, self.wall_ns) {
                Ok(row) => {
                    self.opened += u64::from(row.kind == EventKind::Open);
                    self.closed += u64::from(row.kind == EventKind::Close);
                    self.nameless_subflows += u64::from(is_nameless_subflow(event));
                    self.stats.row();
                    if each(row) == Next::Stop {
                        break;
                    }
                }
                Err(error) => self.stats.add_failed(*error),
            }
        }
        Ok(StreamState::Open)
    }

    /// Time of the last event.
    pub(crate) fn wall_ns(&self) -> u64 {
        self.wall_ns
    }

    /// Number of connections without a known accept.
    pub(crate) fn waiting_connections(&self) -> u64 {
        self.last.waiting
    }

    pub(crate) fn close(&mut self) -> Accounting {
        let (mut stats, last) = (std::mem::take(&mut self.stats), self.last);
        if last.lost_map > 0 {
            let text = "connections that did not fit in the kernel's table: their owners are missing";
            stats.incomplete(last.lost_map, text);
        }
        if last.missed > 0 {
            stats.incomplete(last.missed, MISSED);
        }
        if self.nameless_subflows > 0 {
            stats.incomplete(self.nameless_subflows, NAMELESS_SUBFLOWS);
        }
        if last.waiting > 0 {
            let waiting = last.waiting;
            stats.add_note(format!("{waiting} connections were established, but no process accepted them: not shown"));
        }
        let mut stats = stats.close();
        stats.lost += last.lost_ring;
        if last.lost_ring > 0 {
            stats.add_reason(last.lost_ring, "events were lost because they arrived faster than they were read");
        }
        stats.add_reason(0, totals(self.opened, self.closed, last.failed));
        stats
    }
}

/// The consequence of [`Head::missed`] for the rows.
pub(crate) const MISSED: &str =
    "state changes occurred while the BPF program was running on the same CPU: open or close events may be missing";

/// The line about events without a process, of subflows that joined an MPTCP connection.
const NAMELESS_SUBFLOWS: &str =
    "subflows of MPTCP have no process: their connection's first subflow was closed, or not accepted yet";

/// The line that ends a run.
pub(crate) fn totals(opened: u64, closed: u64, failed: u64) -> String {
    format!("{opened} connections opened, {closed} closed, {failed} attempts failed")
}

fn source_error(error: SysError) -> SourceError {
    error_of(error)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::{CloseReason, Direction};
    use record::{Addr, State};

    struct Given(Vec<Vec<u8>>, Vec<u8>);

    impl Blocks for Given {
        fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
            if self.0.is_empty() {
                return Ok(None);
            }
            self.1 = self.0.remove(0);
            Ok(Some(&self.1))
        }
    }

    fn event(kind: u8, state: u8, error: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        [3_000_000u64, 1_000_000, 77, 5, 10, 20].iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
        [4_026_531_840u32, 812, 33, 150, 1, 6, 7].iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(80u16.to_ne_bytes());
        bytes.extend(40_000u16.to_ne_bytes());
        bytes.extend([kind, 2, 1, state]);
        bytes.extend(error.to_ne_bytes());
        bytes.extend(b"nginx\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend([0; 8]);
        bytes
    }

    fn event6(kind: u8) -> Vec<u8> {
        let mut bytes = event(kind, 1, 0);
        bytes[89] = 10;
        bytes.extend([0; 15].iter().chain(&[1]));
        bytes.extend([0; 15].iter().chain(&[2]));
        bytes.extend([0; 32]);
        bytes
    }

    fn read(blocks: Vec<Vec<u8>>) -> (Vec<String>, Accounting) {
        let mut told = BpfEvents::new(Box::new(Given(blocks, Vec::new())));
        let mut rows = Vec::new();
        while told
            .next(&mut |row| {
                rows.push(format!("{row:?}"));
                if row.kind == EventKind::Close {
                    assert_eq!(row.duration_us, Some(2000));
                    assert_eq!(row.time_ns, 1_003_000_000);
                    assert_eq!((row.direction, row.local.port, row.peer.port), (Direction::In, 80, 40_000));
                    assert_eq!(row.peer.addr, Addr::V4([10, 0, 0, 2]));
                    let holder = row.holder.unwrap();
                    assert_eq!((holder.pid, holder.process.as_bytes()), (812, &b"nginx"[..]));
                    assert_eq!(
                        (row.uid, row.bytes_in, row.bytes_out, row.rtt_us),
                        (Some(33), Some(10), Some(20), Some(150))
                    );
                    assert_eq!(
                        (row.retrans_total, row.segs_in, row.segs_out, row.cookie),
                        (Some(1), Some(6), Some(7), 77)
                    );
                }
                Next::More
            })
            .unwrap()
            == StreamState::Open
        {}
        (rows, told.close())
    }

    fn block(head: Head, events: &[Vec<u8>]) -> Vec<u8> {
        let mut block = head.bytes().to_vec();
        events.iter().for_each(|event| block.extend(event));
        block
    }

    #[test]
    fn events_become_rows_and_the_books_balance() {
        let head = Head { epoch_ns: 1_000_000_000, ..Head::default() };
        let (rows, stats) =
            read(vec![block(head, &[event(1, 1, 0), event(2, State::LAST_ACK.0, 0)]), block(head, &[])]);
        assert_eq!(rows.len(), 2);
        assert!(rows[1].contains(&format!("{:?}", CloseReason::Fin)), "{}", rows[1]);
        assert_eq!((stats.seen, stats.failed, stats.is_partial()), (2, 0, false));
    }

    #[test]
    fn both_families_in_one_block() {
        let head = Head { epoch_ns: 1_000_000_000, ..Head::default() };
        let (rows, stats) = read(vec![block(head, &[event6(1), event(1, 1, 0), event6(1), event(2, 4, 0)])]);
        assert_eq!((rows.len(), stats.failed), (4, 0));
        assert!(rows[0].contains("V6") && rows[2].contains("V6") && !rows[1].contains("V6"), "{rows:?}");
    }

    #[test]
    fn an_interface_counts_where_the_event_says_that_it_has_one() {
        let mut with = event(1 | 128, 1, 0);
        with[116..120].copy_from_slice(&7u32.to_ne_bytes());
        let mut without = with.clone();
        without[88] = 1;
        let (rows, stats) = read(vec![block(Head::default(), &[with, without])]);
        assert_eq!((rows.len(), stats.failed), (2, 0));
        assert!(rows[0].contains("ifindex: 7") && rows[1].contains("ifindex: 0"), "{rows:?}");
    }

    #[test]
    fn senders_are_sockets_of_udp() {
        let (rows, stats) = read(vec![block(Head::default(), &[event(3, 7, 0), event6(3), event(1, 1, 0)])]);
        assert_eq!((rows.len(), stats.failed), (3, 0));
        assert_eq!(rows.iter().map(|row| row.contains("proto: Udp")).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn subflows_without_a_process_are_counted() {
        let mut nameless = event(1, 1, 0);
        nameless[90] |= 1 << 7;
        nameless[52..56].fill(0);
        let (rows, stats) = read(vec![block(Head::default(), &[nameless, event(1, 1, 0)])]);
        assert!(rows[0].contains("direction: In") && rows[0].contains("holder: None"), "{rows:?}");
        assert!(stats.is_partial() && stats.why.iter().any(|why| why.count == 1), "{stats:?}");
    }

    #[test]
    fn losses_are_reported() {
        let head = Head { lost_ring: 3, lost_map: 2, waiting: 1, missed: 4, ..Head::default() };
        let (_, stats) = read(vec![block(head, &[])]);
        assert_eq!(stats.lost, 3);
        assert!(stats.is_partial() && stats.why.len() == 5, "{stats:?}");
        let (_, missed) = read(vec![block(Head { missed: 1, ..Head::default() }, &[])]);
        assert!(missed.is_partial() && missed.why.len() == 2, "{missed:?}");
    }

    #[test]
    fn garbled_blocks_cost_their_rows_only() {
        let mut unknown_kind = event(9, 1, 0);
        let mut family = event(1, 1, 0);
        family[89] = 7;
        unknown_kind.truncate(EVENT);
        let cut = event(1, 1, 0)[..50].to_vec();
        let head = Head::default();
        let (rows, stats) = read(vec![vec![1, 2, 3], block(head, &[unknown_kind, family, event(1, 1, 0), cut])]);
        assert_eq!((rows.len(), stats.failed), (1, 4));
    }

    #[test]
    fn ends_have_reasons() {
        for (state, error, reason) in [
            (State::FIN_WAIT2, 0, CloseReason::Fin),
            (State::ESTABLISHED, 0, CloseReason::Abort),
            (State::ESTABLISHED, 104, CloseReason::Reset),
            (State::CLOSE_WAIT, 32, CloseReason::Reset),
            (State::FIN_WAIT1, 110, CloseReason::Timeout),
            (State::ESTABLISHED, 103, CloseReason::Killed),
            (State::ESTABLISHED, 113, CloseReason::Error),
        ] {
            let (rows, _) =
                read(vec![block(Head { epoch_ns: 1_000_000_000, ..Head::default() }, &[event(2, state.0, error)])]);
            assert!(rows[0].contains(&format!("reason: Some({reason:?})")), "{}", rows[0]);
        }
    }
}
