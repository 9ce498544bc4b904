//! Start times of entries, from which their duration is computed when they end. Only needed if the kernel does not
//! store them (net.netfilter.nf_conntrack_timestamp is 0).
use std::collections::HashMap;

use record::rows::Conntrack;

/// Maximum number of stored start times, some 40 bytes each; further entries have no duration.
///
/// Bound: entries whose start is remembered. Beyond: events of further entries have no duration; they are counted. By:
/// clients with as many connections.
pub(crate) const MAX: usize = 1 << 20;

/// Start times in nanoseconds since 1970, by entry.
#[derive(Debug, Default)]
pub(crate) struct StartTimes {
    began: HashMap<u64, u64>,
    /// Number of entries beyond [`MAX`].
    pub(crate) unremembered: u64,
}

impl StartTimes {
    /// Records the start of a new entry.
    pub(crate) fn begin(&mut self, entry: &Conntrack<'_>, now_ns: u64) {
        // The kernel also reports the start in the destroy event.
        if entry.start_ns.is_some() {
            return;
        }
        if self.began.len() >= MAX {
            self.unremembered += 1;
            return;
        }
        self.began.insert(entry.lifetime_key(), now_ns);
    }

    /// Removes an entry that ended and returns its duration in microseconds.
    pub(crate) fn end(&mut self, entry: &Conntrack<'_>, now_ns: u64) -> Option<u64> {
        // Removed even if the kernel reports the start: the sysctl may have changed since then.
        let seen = if self.began.is_empty() { None } else { self.began.remove(&entry.lifetime_key()) };
        let began = entry.start_ns.or(seen)?;
        Some(entry.stop_ns.unwrap_or(now_ns).saturating_sub(began) / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::CtTuple;

    #[test]
    fn by_the_kernel_or_by_us() {
        let mut start_times = StartTimes::default();
        let seen = Conntrack { id: Some(7), ..Conntrack::EMPTY };
        let other = Conntrack { orig: CtTuple { src_part: 9, ..CtTuple::EMPTY }, ..seen };
        start_times.begin(&seen, 5_000_000);
        assert_eq!(start_times.end(&other, 9_000_000), None, "the same id, another entry");
        assert_eq!(start_times.end(&seen, 9_000_000), Some(4_000));
        assert_eq!(start_times.end(&seen, 9_000_000), None, "only once");
        let told = Conntrack { start_ns: Some(1_000_000), stop_ns: Some(3_000_000), ..seen };
        start_times.begin(&told, 1_000_000);
        assert!(start_times.began.is_empty());
        assert_eq!(start_times.end(&told, 9_000_000), Some(2_000));
        assert_eq!(start_times.end(&Conntrack { stop_ns: None, ..told }, 9_000_000), Some(8_000));
    }
}
