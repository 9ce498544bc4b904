//! Decides when a file is complete. Pure.

use std::time::Duration;

/// Delay before the next attempt after a file could not be started.
const RETRY_NS: u64 = 1_000_000_000;

/// Limits of a file; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileLimits {
    /// Size in bytes, including the end of the file's format.
    pub bytes_max: Option<u64>,
    /// Time since the file was started.
    pub age_max: Option<Duration>,
    /// Number of packets.
    pub packets_max: Option<u64>,
}

/// The state of the current file. Times are from a clock that is never set.
#[derive(Debug)]
pub(super) struct FileState {
    limits: FileLimits,
    packets: u64,
    begun_ns: u64,
    /// Earliest time for the next attempt after a failure.
    retry_ns: Option<u64>,
}

impl FileState {
    /// The state of a file that starts now.
    pub(super) fn new(limits: FileLimits, now_ns: u64) -> FileState {
        FileState { limits, packets: 0, begun_ns: now_ns, retry_ns: None }
    }

    /// Counts a packet of the file.
    #[inline]
    pub(super) fn add_packet(&mut self) {
        self.packets += 1;
    }

    /// Resets the count after the packets could not be written because the disk was full.
    pub(super) fn reset_packets(&mut self) {
        self.packets = 0;
    }

    /// True if the next packet, which would make the file `bytes` long, belongs in a new file.
    #[inline]
    pub(super) fn is_full(&self, bytes: u64) -> bool {
        let is_full = self.limits.bytes_max.is_some_and(|most| bytes > most)
            || self.limits.packets_max.is_some_and(|most| self.packets >= most);
        is_full && self.packets > 0 && self.retry_ns.is_none()
    }

    /// True if the file is old enough to start a new one. A file without packets continues, and its age restarts.
    pub(super) fn is_old(&mut self, now_ns: u64) -> bool {
        if self.retry_ns.is_some_and(|retry_ns| now_ns >= retry_ns) {
            self.retry_ns = None;
        }
        let age_ns = u128::from(now_ns.saturating_sub(self.begun_ns));
        if self.retry_ns.is_some() || self.limits.age_max.is_none_or(|most| age_ns < most.as_nanos()) {
            return false;
        }
        if self.packets == 0 {
            self.begun_ns = now_ns;
        }
        self.packets > 0
    }

    /// Continues this file for a while after a new one could not be started.
    pub(super) fn postpone(&mut self, now_ns: u64) {
        self.retry_ns = Some(now_ns.saturating_add(RETRY_NS));
    }

    /// Starts a new file.
    pub(super) fn begin(&mut self, now_ns: u64) {
        *self = FileState::new(self.limits, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn files_are_full_by_bytes_or_packets() {
        let by_bytes = FileLimits { bytes_max: Some(100), ..FileLimits::default() };
        let mut state = FileState::new(by_bytes, 0);
        assert!(!state.is_full(1000), "a packet that is larger than a file has one of its own");
        state.add_packet();
        assert!(!state.is_full(100) && state.is_full(101));
        state.reset_packets();
        assert!(!state.is_full(101), "a full disk is not filled with empty files");
        state.add_packet();
        state.begin(0);
        assert!(!state.is_full(101));
        let mut state = FileState::new(FileLimits { packets_max: Some(2), ..FileLimits::default() }, 0);
        state.add_packet();
        assert!(!state.is_full(u64::MAX));
        state.add_packet();
        assert!(state.is_full(0));
        let mut state = FileState::new(FileLimits::default(), 0);
        state.add_packet();
        assert!(!state.is_full(u64::MAX) && !state.is_old(u64::MAX));
    }

    #[test]
    fn files_with_packets_are_old_without_traffic() {
        let by_age = FileLimits { age_max: Some(Duration::from_secs(10)), ..FileLimits::default() };
        let mut state = FileState::new(by_age, 0);
        assert!(!state.is_old(15 * SECOND), "nothing in it");
        state.add_packet();
        assert!(!state.is_old(24 * SECOND), "its time began anew");
        assert!(state.is_old(25 * SECOND));
        assert!(!state.is_old(3 * SECOND));
    }

    #[test]
    fn a_failure_is_not_repeated_with_each_packet() {
        let mut state = FileState::new(FileLimits { packets_max: Some(1), ..FileLimits::default() }, 0);
        state.add_packet();
        assert!(state.is_full(0));
        state.postpone(5);
        assert!(!state.is_full(0) && !state.is_old(SECOND));
        assert!(!state.is_full(0));
        assert!(!state.is_old(SECOND + 5));
        assert!(state.is_full(0));
    }
}
