//! The TLS records that were sent, and the bytes of messages in them.

use std::collections::VecDeque;

/// The end of each TLS record, in bytes of messages and in bytes on the wire.
#[derive(Debug, Default)]
pub(super) struct Records {
    ends: VecDeque<RecordEnd>,
    /// Bytes of messages that were encrypted.
    taken: u64,
    /// Bytes of messages in records that the receiver's kernel has acknowledged completely.
    delivered: u64,
}

#[derive(Debug)]
struct RecordEnd {
    messages: u64,
    wire: u64,
}

impl Records {
    /// Adds `messages` encrypted bytes, whose records end at byte `wire` of the connection.
    pub(super) fn add_encrypted(&mut self, messages: usize, wire: u64) {
        self.taken += messages as u64;
        self.ends.push_back(RecordEnd { messages: self.taken, wire });
    }

    /// Updates `delivered`: the receiver's kernel has acknowledged the first `wire` bytes of the connection. Part of a
    /// record is useless to the receiver and does not count.
    pub(super) fn add_acknowledged(&mut self, wire: u64) {
        while let Some(end) = self.ends.front().filter(|end| end.wire <= wire) {
            self.delivered = end.messages;
            self.ends.pop_front();
        }
    }

    /// Bytes of messages in records that are not acknowledged completely.
    pub(super) fn unconfirmed_bytes(&self) -> u64 {
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
        records.add_encrypted(100, 622);
        records.add_encrypted(16_384, 17_028);
        records.add_encrypted(10, 17_060);
        let mut unconfirmed = |wire| {
            records.add_acknowledged(wire);
            records.unconfirmed_bytes()
        };
        assert_eq!([0, 500, 621].map(&mut unconfirmed), [16_494; 3]);
        assert_eq!([622, 17_027].map(&mut unconfirmed), [16_394; 2]);
        assert_eq!(unconfirmed(17_028), 10);
        assert_eq!(unconfirmed(20_000), 0);
    }
}
