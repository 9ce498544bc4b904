//! Packet queues for programs, as listed by nfnetlink_queue.

use doctor::seen::{Moved, NfQueue, Sample};
use record::Accounting;
use std::collections::BTreeMap;
use sys::{Errno, Host};

use crate::probe::{InNetns, ProbeReader};

/// The file in which the kernel lists its queues.
const QUEUES: &str = "/proc/thread-self/net/netfilter/nfnetlink_queue";

/// Queues by number.
type Queues = BTreeMap<u16, NfQueue>;

/// Reads the queues of each namespace.
#[derive(Default)]
pub(crate) struct QueueReader {
    /// Queues at the first reading, by namespace.
    before: BTreeMap<u64, Queues>,
}

impl ProbeReader for QueueReader {
    fn first(&mut self, netns: &InNetns<'_>, stats: &mut Accounting) {
        self.before.insert(netns.netns_id, read(netns.host(), netns.netns_id, stats));
    }

    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, stats: &mut Accounting) {
        let before = self.before.remove(&netns.netns_id).unwrap_or_default();
        let now = read(netns.host(), netns.netns_id, stats).into_values();
        sample.around.queues = now.map(|queue| with_previous(&before, queue)).collect();
    }
}

/// The queues of the calling thread's namespace; empty if the kernel module is not loaded.
fn read(host: &Host, netns_id: u64, stats: &mut Accounting) -> Queues {
    let mut text = Vec::new();
    let read = host.bytes(&format!("{QUEUES}@{netns_id}"), "", &mut text, |into| {
        sys::fs::read_file(&host.real_path(QUEUES), into)
    });
    match read {
        Ok(()) => String::from_utf8_lossy(&text).lines().filter_map(parse_line).map(|one| (one.number, one)).collect(),
        Err(error) if [Errno::NOENT, Errno::NOT_RECORDED].contains(&error.errno) => Queues::new(),
        Err(error) => {
            stats.incomplete(1, format!("packet queues are not checked: {error}"));
            Queues::new()
        }
    }
}

/// Parses a line: number, the reader's port id, packets waiting, copy mode, copy range, dropped, dropped by the
/// socket.
fn parse_line(line: &str) -> Option<NfQueue> {
    let mut words = line.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let waiting = words.nth(1)?.parse().ok()?;
    let mut moved = |skip| Some(Moved { before: None, after: words.nth(skip)?.parse().ok()? });
    Some(NfQueue { number, waiting, dropped: moved(2)?, user_dropped: moved(0)? })
}

/// Adds a queue's previous counts. A new queue, or one whose counters were reset, gets none.
fn with_previous(before: &Queues, mut queue: NfQueue) -> NfQueue {
    if let Some(old) = before.get(&queue.number) {
        queue.dropped.before = Some(old.dropped.after).filter(|old| *old <= queue.dropped.after);
        queue.user_dropped.before = Some(old.user_dropped.after).filter(|old| *old <= queue.user_dropped.after);
    }
    queue
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn queues_as_the_kernel_lists_them() {
        let one = parse_line("    7  31337     3 2 65531    12     4    99  1").unwrap();
        let moved = |after| Moved { before: None, after };
        assert_eq!(one, NfQueue { number: 7, waiting: 3, dropped: moved(12), user_dropped: moved(4) });
        assert_eq!(parse_line("7 31337"), None);
        let old = Queues::from([(7, one.clone())]);
        let later = with_previous(&old, NfQueue { dropped: moved(20), user_dropped: moved(1), ..one });
        assert_eq!((later.dropped.grown(), later.user_dropped.before), (8, None));
    }
}
