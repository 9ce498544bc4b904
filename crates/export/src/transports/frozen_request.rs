//! Messages that are sent together, and again together until the receiver has answered: a receiver that recognises a
//! request stores it once, however often it arrives.

use crate::Batch;
use std::io;

/// The bounds of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrozenRequest {
    /// Number of the first message.
    pub(super) first: u64,
    /// Number of the last one, plus one.
    pub(super) end: u64,
    /// True if a connection or a run ended before the receiver had answered.
    pub(super) is_doubtful: bool,
}

/// What the messages that wait mean for a request without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundMessages {
    /// All messages of the request, so it can be repeated.
    All,
    /// Not one: an earlier run got the answer, or they were dropped since.
    None,
    /// Only some of them: the others were dropped.
    Some,
}

impl FrozenRequest {
    /// The bounds of a request with messages of `batch` from index `first` on: at most `messages_max` and `bytes_max`,
    /// but always one, because the receiver may take a message that is larger than all requests.
    pub(super) fn cut(batch: &Batch, first: usize, messages_max: usize, bytes_max: usize) -> FrozenRequest {
        let from = batch.start_of(first);
        let most = first.saturating_add(messages_max).min(batch.message_ends().len());
        let end = (first + 1..=most).rev().find(|end| batch.start_of(*end) - from <= bytes_max).unwrap_or(first + 1);
        let number = |index: usize| batch.first_number() + index as u64;
        FrozenRequest { first: number(first), end: number(end), is_doubtful: false }
    }

    /// Number of its messages.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.end - self.first).unwrap_or(u32::MAX)
    }

    /// Compares the request with the messages of `batch` from index `first` on.
    pub(super) fn find_in(&self, batch: &Batch, first: usize) -> FoundMessages {
        let number = batch.first_number() + first as u64;
        match () {
            () if self.first == number && self.end <= batch.end() => FoundMessages::All,
            () if number >= self.end => FoundMessages::None,
            () => FoundMessages::Some,
        }
    }

    /// Its messages, which are in `batch`.
    pub(super) fn messages<'b>(&self, batch: &'b Batch) -> impl Iterator<Item = &'b [u8]> {
        (self.index(batch, self.first)..self.index(batch, self.end)).map_while(|at| batch.message(at))
    }

    /// Bytes of its messages in `batch`.
    pub(super) fn bytes(&self, batch: &Batch) -> usize {
        let start = |number| batch.start_of(self.index(batch, number));
        start(self.end).saturating_sub(start(self.first))
    }

    /// The error if only some of its messages are left; `place` is where they belong.
    pub(super) fn torn_error(&self, place: &str) -> io::Error {
        io::Error::other(format!(
            "{place}: some of the {} messages of an unanswered request were dropped; the others may be stored twice",
            self.len()
        ))
    }

    fn index(&self, batch: &Batch, number: u64) -> usize {
        usize::try_from(number.saturating_sub(batch.first_number())).unwrap_or(usize::MAX)
    }

    /// Appends the bounds to a note for a later run.
    pub(super) fn put(&self, note: &mut Vec<u8>) {
        note.extend_from_slice(&self.first.to_le_bytes());
        note.extend_from_slice(&self.end.to_le_bytes());
    }

    /// Takes the bounds from the end of a note; `None` if there is anything else. The answer is unknown.
    pub(super) fn take(mut rest: &[u8]) -> Option<FrozenRequest> {
        let first = u64::from_le_bytes(take(&mut rest)?);
        let end = u64::from_le_bytes(take(&mut rest)?);
        (rest.is_empty() && first < end).then_some(FrozenRequest { first, end, is_doubtful: true })
    }
}

/// Takes the next bytes of a note.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, more) = rest.split_first_chunk()?;
    *rest = more;
    Some(*bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Messages of 10 bytes each, with the numbers from 100 on.
    fn batch(messages: usize) -> Batch {
        let mut batch = Batch::new();
        for _ in 0..messages {
            batch.bytes_mut().extend_from_slice(&[b'x'; 10]);
            batch.end_message();
        }
        batch.number_from(100);
        batch
    }

    #[test]
    fn a_request_has_as_much_as_it_may() {
        let batch = batch(8);
        let bounds = |first, messages, bytes| {
            let request = FrozenRequest::cut(&batch, first, messages, bytes);
            (request.first, request.end)
        };
        assert_eq!(bounds(0, 100, 100), (100, 108));
        assert_eq!(bounds(3, 2, 100), (103, 105));
        assert_eq!(bounds(3, 100, 39), (103, 106));
        assert_eq!(bounds(3, 100, 5), (103, 104));
        let request = FrozenRequest::cut(&batch, 3, 2, 100);
        assert_eq!((request.len(), request.bytes(&batch), request.messages(&batch).count()), (2, 20, 2));
    }

    #[test]
    fn a_request_is_repeated_only_as_a_whole() {
        let batch = batch(8);
        let find = |first, end, at| FrozenRequest { first, end, is_doubtful: true }.find_in(&batch, at);
        assert_eq!(find(103, 105, 3), FoundMessages::All);
        assert_eq!(find(100, 103, 3), FoundMessages::None);
        assert_eq!(find(102, 105, 3), FoundMessages::Some);
        assert_eq!(find(103, 109, 3), FoundMessages::Some);
    }

    #[test]
    fn bounds_are_read_as_they_were_written() {
        let request = FrozenRequest { first: 5, end: 900, is_doubtful: false };
        let mut note = Vec::new();
        request.put(&mut note);
        assert_eq!(FrozenRequest::take(&note), Some(FrozenRequest { is_doubtful: true, ..request }));
        for length in 0..note.len() {
            assert_eq!(FrozenRequest::take(&note[..length]), None, "{length}");
        }
        assert_eq!(FrozenRequest::take(&[&note[..], b"x"].concat()), None);
        FrozenRequest { first: 900, ..request }.put(&mut note);
        assert_eq!(FrozenRequest::take(&note[16..]), None);
    }
}
