//! Which messages lie in what was encrypted and sent.

use std::collections::VecDeque;

/// Where each TLS record ends, in bytes of messages and in bytes on the wire.
#[derive(Debug, Default)]
pub(super) struct Records {
    ends: VecDeque<RecordEnd>,
    /// Bytes of messages that were encrypted.
    taken: u64,
    /// Of these, bytes in records that the receiver's kernel has acknowledged as a whole.
    delivered: u64,
}

#[derive(Debug)]
struct RecordEnd {
    messages: u64,
    wire: u64,
}

impl Records {
    /// Notes that `messages` bytes were encrypted, and that their records end at byte `wire` of the connection.
    pub(super) fn sealed(&mut self, messages: usize, wire: u64) {
        self.taken += messages as u64;
        self.ends.push_back(RecordEnd { messages: self.taken, wire });
    }

    /// Notes that the receiver's kernel has acknowledged the first `wire` bytes of the connection. Part of a record is
    /// of no use to the receiver, and counts for nothing.
    pub(super) fn acknowledged(&mut self, wire: u64) {
        while let Some(end) = self.ends.front().filter(|end| end.wire <= wire) {
            self.delivered = end.messages;
            self.ends.pop_front();
        }
    }

    /// Bytes of messages in records that were not acknowledged as a whole.
    pub(super) fn unconfirmed(&self) -> u64 {
        self.taken - self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_records_are_delivered() {
        let mut records = Records::default();
        // A handshake of 500 bytes came first; each record costs 22 bytes.
        records.sealed(100, 622);
        records.sealed(16_384, 17_028);
        records.sealed(10, 17_060);
        let mut unconfirmed = |wire| {
            records.acknowledged(wire);
            records.unconfirmed()
        };
        assert_eq!([0, 500, 621].map(&mut unconfirmed), [16_494; 3]);
        assert_eq!([622, 17_027].map(&mut unconfirmed), [16_394; 2]);
        assert_eq!(unconfirmed(17_028), 10);
        assert_eq!(unconfirmed(20_000), 0);
    }
}
