//! Messages that were sent to the receiver and are unconfirmed, or may not have been read.

use crate::Batch;
use std::collections::VecDeque;

/// Batches that were handed to a transport, as one sequence of bytes since the connection began. The store owns the
/// bytes.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    parts: VecDeque<Part>,
    /// Bytes handed over since the connection began.
    sent: u64,
    /// Bytes that the receiver has confirmed, out of `sent`.
    confirmed: u64,
}

#[derive(Debug)]
struct Part {
    /// Number of the batch's first message.
    first: u64,
    /// End offset of each message in the batch.
    ends: Vec<u32>,
    /// Offset of the batch's first byte in the sequence; negative if an earlier connection began the batch.
    base: i64,
    /// Messages at the start of the batch that an earlier connection delivered.
    skipped: usize,
}

impl Part {
    /// Returns how many messages lie completely within the first `bytes` bytes of the sequence, or `skipped` if that
    /// is more.
    fn count_complete(&self, bytes: u64) -> usize {
        let within = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_sub(self.base);
        let whole = self.ends.partition_point(|end| i64::from(*end) <= within);
        whole.max(self.skipped)
    }

    /// Offset of the batch's end in the sequence.
    fn end(&self) -> i64 {
        self.base + self.ends.last().map_or(0, |end| i64::from(*end))
    }

    /// Number of the batch's message at `index`.
    fn number_of(&self, index: usize) -> u64 {
        self.first + index as u64
    }
}

impl InFlight {
    /// Begins a batch, whose first `skipped` messages were delivered before.
    pub(crate) fn begin(&mut self, batch: &Batch, skipped: usize) {
        let base = self.sent as i64 - batch.start_of(skipped) as i64;
        self.parts.push_back(Part { first: batch.first_number(), ends: batch.message_ends().to_vec(), base, skipped });
    }

    /// Counts more bytes that the transport has taken.
    pub(crate) fn add_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Bytes that were handed over but are unconfirmed.
    pub(crate) fn unconfirmed_bytes(&self) -> u64 {
        self.sent - self.confirmed
    }

    /// Marks all but the last `unconfirmed` bytes as confirmed. Returns the number of newly confirmed messages.
    pub(crate) fn confirm(&mut self, unconfirmed: u64) -> u64 {
        let confirmed = self.sent.saturating_sub(unconfirmed).max(self.confirmed);
        let before = std::mem::replace(&mut self.confirmed, confirmed);
        // Look only at the unconfirmed batches at the end: there may be many confirmed ones that are not forgotten
        // yet.
        let unconfirmed = self.parts.iter().rev().take_while(|part| part.end() > before as i64);
        unconfirmed.map(|part| (part.count_complete(confirmed) - part.count_complete(before)) as u64).sum()
    }

    /// Forgets batches that will never be sent again: they end at least `window` bytes before the end of the confirmed
    /// bytes. Returns the number below which no message is needed any more.
    pub(crate) fn release_final(&mut self, window: u64) -> Option<u64> {
        let keep = i64::try_from(self.confirmed.saturating_sub(window)).unwrap_or(i64::MAX);
        let mut number = None;
        while self.parts.front().is_some_and(|part| part.end() <= keep) {
            number = self.parts.pop_front().map(|part| part.number_of(part.ends.len()));
        }
        number
    }

    /// Ends the connection. The receiver may not have read the last `window` bytes of what it confirmed. Returns the
    /// number of the first message to resend (`None` without one), and how many messages to resend were already
    /// confirmed.
    pub(crate) fn end_connection(&mut self, window: u64) -> (Option<u64>, u64) {
        let surely_read = self.confirmed.saturating_sub(window);
        let again = self.messages_in(self.confirmed) - self.messages_in(surely_read);
        let first = self.first_after(surely_read);
        *self = InFlight::default();
        (first, again)
    }

    /// Returns the number of the first message that may have to be sent again, if the receiver may not have read the
    /// last `window` confirmed bytes; `None` without one.
    pub(crate) fn first_needed(&self, window: u64) -> Option<u64> {
        self.first_after(self.confirmed.saturating_sub(window))
    }

    /// Returns the number of the first message that is not completely within the first `bytes` bytes of the sequence.
    fn first_after(&self, bytes: u64) -> Option<u64> {
        self.parts.iter().find_map(|part| {
            let whole = part.count_complete(bytes);
            (whole < part.ends.len()).then(|| part.number_of(whole))
        })
    }

    fn messages_in(&self, bytes: u64) -> u64 {
        self.parts.iter().map(|part| (part.count_complete(bytes) - part.skipped) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of messages of 10 bytes each.
    fn batch(first: u64, messages: usize) -> Batch {
        let mut batch = Batch::new();
        for _ in 0..messages {
            batch.bytes_mut().extend_from_slice(b"0123456789");
            batch.end_message();
        }
        batch.number_from(first);
        batch
    }

    #[test]
    fn what_is_confirmed_is_counted_once() {
        let mut flight = InFlight::default();
        flight.begin(&batch(0, 3), 0);
        flight.add_sent(25);
        assert_eq!((flight.confirm(25), flight.confirm(11), flight.confirm(0), flight.confirm(3)), (0, 1, 1, 0));
        flight.add_sent(5);
        flight.begin(&batch(3, 2), 0);
        flight.add_sent(20);
        assert_eq!((flight.confirm(0), flight.unconfirmed_bytes()), (3, 0));
        assert_eq!(
            (flight.release_final(100), flight.release_final(20), flight.release_final(0)),
            (None, Some(3), Some(5))
        );
    }

    #[test]
    fn a_broken_connection_goes_back_to_the_first_message_that_is_not_confirmed() {
        let mut flight = InFlight::default();
        flight.begin(&batch(7, 3), 0);
        flight.add_sent(30);
        flight.begin(&batch(10, 4), 1);
        flight.add_sent(15);
        assert_eq!(flight.confirm(10), 3);
        let again = flight.end_connection(0);
        assert_eq!(again, (Some(11), 0));
        assert_eq!(flight.end_connection(0), (None, 0));
    }

    #[test]
    fn what_a_receiver_had_not_read_is_sent_again() {
        let mut flight = InFlight::default();
        flight.begin(&batch(0, 3), 0);
        flight.add_sent(30);
        flight.begin(&batch(3, 3), 0);
        flight.add_sent(30);
        assert_eq!(flight.confirm(5), 5);
        // 55 bytes are confirmed, and the last 30 of them may be unread: messages 2, 3 and 4 may be unread.
        assert_eq!(flight.end_connection(30), (Some(2), 3));
    }
}
