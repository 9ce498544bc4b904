//! Packet queues for programs, as listed by nfnetlink_queue.

use doctor::checks::{Moved, NfQueue};
use record::Accounting;
use std::collections::BTreeMap;
use sys::{Errno, Host};

/// The file in which the kernel lists its queues.
const QUEUES: &str = "/proc/thread-self/net/netfilter/nfnetlink_queue";

/// Queues by namespace and number.
pub(super) type Queues = BTreeMap<(u64, u16), NfQueue>;

/// The queues of the calling thread's namespace; empty if the kernel module is not loaded.
pub(super) fn read(host: &Host, netns_id: u64, stats: &mut Accounting) -> BTreeMap<u16, NfQueue> {
    let mut text = Vec::new();
    let read = host.bytes(&format!("{QUEUES}@{netns_id}"), "", &mut text, |into| {
        sys::fs::read_file(&host.real_path(QUEUES), into)
    });
    match read {
        Ok(()) => String::from_utf8_lossy(&text).lines().filter_map(queue).map(|one| (one.number, one)).collect(),
        Err(error) if [Errno::NOENT, Errno::NOT_RECORDED].contains(&error.errno) => BTreeMap::new(),
        Err(error) => {
            stats.incomplete(1, format!("packet queues are not checked: {error}"));
            BTreeMap::new()
        }
    }
}

/// Parses a line: number, the reader's port id, packets waiting, copy mode, copy range, dropped, dropped by the
/// socket.
fn queue(line: &str) -> Option<NfQueue> {
    let mut words = line.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let waiting = words.nth(1)?.parse().ok()?;
    let mut moved = |skip| Some(Moved { before: None, after: words.nth(skip)?.parse().ok()? });
    Some(NfQueue { number, waiting, dropped: moved(2)?, user_dropped: moved(0)? })
}

/// Adds a queue's previous counts. A new queue, or one whose counters were reset, gets none.
pub(super) fn since(before: &Queues, netns_id: u64, mut queue: NfQueue) -> NfQueue {
    if let Some(old) = before.get(&(netns_id, queue.number)) {
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
        let one = queue("    7  31337     3 2 65531    12     4    99  1").unwrap();
        let moved = |after| Moved { before: None, after };
        assert_eq!(one, NfQueue { number: 7, waiting: 3, dropped: moved(12), user_dropped: moved(4) });
        assert_eq!(queue("7 31337"), None);
        let old = Queues::from([((1, 7), one.clone())]);
        let later = since(&old, 1, NfQueue { dropped: moved(20), user_dropped: moved(1), ..one });
        assert_eq!((later.dropped.grown(), later.user_dropped.before), (8, None));
    }
}
