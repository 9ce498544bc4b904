//! Which messages went to the receiver and are not confirmed, or may not have been read.

use crate::Batch;
use std::collections::VecDeque;

/// Batches that were handed to a transport, as one row of bytes since the connection began. The bytes themselves are
/// the store's.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    parts: VecDeque<Part>,
    /// Bytes handed over since the connection began.
    sent: u64,
    /// Of these, bytes that the receiver has confirmed.
    confirmed: u64,
}

#[derive(Debug)]
struct Part {
    /// Number of the batch's first message.
    first: u64,
    /// Where each message of the batch ends in it.
    ends: Vec<u32>,
    /// Where the batch's first byte lies in the row; negative if the batch was begun by an earlier connection.
    base: i64,
    /// Messages of the batch that count: those before were delivered by an earlier connection.
    skipped: usize,
}

impl Part {
    /// Messages that are whole in the first `bytes` bytes of the row.
    fn whole_in(&self, bytes: u64) -> usize {
        let within = i64::try_from(bytes).unwrap_or(i64::MAX).saturating_sub(self.base);
        let whole = self.ends.partition_point(|end| i64::from(*end) <= within);
        whole.max(self.skipped)
    }

    /// Where the batch ends in the row.
    fn end(&self) -> i64 {
        self.base + self.ends.last().map_or(0, |end| i64::from(*end))
    }

    /// Number of the batch's message at `index`.
    fn number_of(&self, index: usize) -> u64 {
        self.first + index as u64
    }
}

impl InFlight {
    /// Begins a batch, of which `skipped` messages were delivered before.
    pub(crate) fn begin(&mut self, batch: &Batch, skipped: usize) {
        let base = self.sent as i64 - batch.start_of(skipped) as i64;
        self.parts.push_back(Part { first: batch.first(), ends: batch.ends().to_vec(), base, skipped });
    }

    /// Notes that the transport has taken more bytes.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Bytes that were handed over and are not confirmed.
    pub(crate) fn unconfirmed(&self) -> u64 {
        self.sent - self.confirmed
    }

    /// Notes that all but the last `unconfirmed` bytes are confirmed; returns how many messages that are more than
    /// before.
    pub(crate) fn confirm(&mut self, unconfirmed: u64) -> u64 {
        let confirmed = self.sent.saturating_sub(unconfirmed).max(self.confirmed);
        let before = std::mem::replace(&mut self.confirmed, confirmed);
        // Batches that were confirmed before stay until they cannot be asked for again: there may be many.
        let unconfirmed = self.parts.iter().rev().take_while(|part| part.end() > before as i64);
        unconfirmed.map(|part| (part.whole_in(confirmed) - part.whole_in(before)) as u64).sum()
    }

    /// Forgets batches of which nothing can be asked for again: they lie more than `window` bytes before what is
    /// confirmed. Returns the number below which no message is needed any more.
    pub(crate) fn forget(&mut self, window: u64) -> Option<u64> {
        let keep = i64::try_from(self.confirmed.saturating_sub(window)).unwrap_or(i64::MAX);
        let mut number = None;
        while self.parts.front().is_some_and(|part| part.end() <= keep) {
            number = self.parts.pop_front().map(|part| part.number_of(part.ends.len()));
        }
        number
    }

    /// The connection has ended, and of what was confirmed the last `window` bytes may not have been read. Returns the
    /// number of the first message that is to be sent again (`None` if there is none) and how many of them had been
    /// confirmed.
    pub(crate) fn rewind(&mut self, window: u64) -> (Option<u64>, u64) {
        let surely_read = self.confirmed.saturating_sub(window);
        let again = self.messages_in(self.confirmed) - self.messages_in(surely_read);
        let first = self.first_after(surely_read);
        *self = InFlight::default();
        (first, again)
    }

    /// Number of the first message that may be asked for again while the last `window` bytes of what is confirmed may
    /// not have been read; `None` if there is none.
    pub(crate) fn first_needed(&self, window: u64) -> Option<u64> {
        self.first_after(self.confirmed.saturating_sub(window))
    }

    /// Number of the first message that is not whole in the first `bytes` bytes of the row.
    fn first_after(&self, bytes: u64) -> Option<u64> {
        self.parts.iter().find_map(|part| {
            let whole = part.whole_in(bytes);
            (whole < part.ends.len()).then(|| part.number_of(whole))
        })
    }

    fn messages_in(&self, bytes: u64) -> u64 {
        self.parts.iter().map(|part| (part.whole_in(bytes) - part.skipped) as u64).sum()
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
        flight.sent(25);
        assert_eq!((flight.confirm(25), flight.confirm(11), flight.confirm(0), flight.confirm(3)), (0, 1, 1, 0));
        flight.sent(5);
        flight.begin(&batch(3, 2), 0);
        flight.sent(20);
        assert_eq!((flight.confirm(0), flight.unconfirmed()), (3, 0));
        assert_eq!((flight.forget(100), flight.forget(20), flight.forget(0)), (None, Some(3), Some(5)));
    }

    #[test]
    fn a_broken_connection_goes_back_to_the_first_message_that_is_not_confirmed() {
        let mut flight = InFlight::default();
        flight.begin(&batch(7, 3), 0);
        flight.sent(30);
        flight.begin(&batch(10, 4), 1);
        flight.sent(15);
        assert_eq!(flight.confirm(10), 3);
        let again = flight.rewind(0);
        assert_eq!(again, (Some(11), 0));
        assert_eq!(flight.rewind(0), (None, 0));
    }

    #[test]
    fn what_a_receiver_had_not_read_is_sent_again() {
        let mut flight = InFlight::default();
        flight.begin(&batch(0, 3), 0);
        flight.sent(30);
        flight.begin(&batch(3, 3), 0);
        flight.sent(30);
        assert_eq!(flight.confirm(5), 5);
        // 55 bytes are confirmed; of these 30 may not have been read: messages 2, 3, 4 are not surely read.
        assert_eq!(flight.rewind(30), (Some(2), 3));
    }
}
