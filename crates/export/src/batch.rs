//! Messages behind one another.

/// Some messages in one piece of memory, in order. Nothing is done for a single message that can be done for a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Number of the first message; an output counts its messages from 0.
    first: u64,
    bytes: Vec<u8>,
    /// Where each message ends in `bytes`.
    ends: Vec<u32>,
}

/// A batch is full once it has so many bytes: system calls for less cost more than what they carry.
const FULL: usize = 256 << 10;

impl Batch {
    /// An empty batch with room.
    pub fn new() -> Batch {
        Batch { first: 0, bytes: Vec::with_capacity(FULL + (16 << 10)), ends: Vec::with_capacity(1024) }
    }

    /// A batch of its parts; `None` if they do not fit together. `first` is the number of its first message.
    pub fn of_parts(first: u64, bytes: Vec<u8>, ends: Vec<u32>) -> Option<Batch> {
        let in_order = ends.windows(2).all(|pair| pair.first() <= pair.last());
        let last = ends.last().map_or(0, |end| *end as usize);
        (in_order && last == bytes.len()).then_some(Batch { first, bytes, ends })
    }

    /// What is to be appended to: bytes behind the last end are no message until [`Batch::end_message`].
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// What was appended since the last message is one.
    #[inline]
    pub fn end_message(&mut self) {
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
    }

    /// True if no further message should be added.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// True without messages.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of messages.
    pub fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// All messages.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each message ends.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Number of the first message.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Number behind that of the last message.
    pub fn end(&self) -> u64 {
        self.first + self.len()
    }

    /// The messages in memory of their size, and this batch without messages, if they fill a small part of it only:
    /// what waits long must not hold much more memory than it needs.
    pub(crate) fn compacted(self) -> (Batch, Option<Batch>) {
        if self.bytes.len() >= self.bytes.capacity() / 4 {
            return (self, None);
        }
        let small = Batch { first: self.first, bytes: self.bytes.clone(), ends: self.ends.clone() };
        (small, Some(self.emptied()))
    }

    /// The same memory without messages.
    pub(crate) fn emptied(mut self) -> Batch {
        self.bytes.clear();
        self.ends.clear();
        Batch { first: 0, ..self }
    }

    /// True if its memory is that of a full batch.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.capacity() >= FULL
    }

    /// Gives back memory, if most of it is not in use.
    pub fn shrink(&mut self) {
        if self.bytes.capacity() / 2 > self.bytes.len() {
            self.bytes.shrink_to_fit();
            self.ends.shrink_to_fit();
        }
    }

    /// Numbers the messages from `first` on.
    pub fn number_from(&mut self, first: u64) {
        self.first = first;
    }

    /// How many messages are whole in the first `bytes` bytes.
    pub fn whole_in(&self, bytes: usize) -> usize {
        self.ends.partition_point(|end| *end as usize <= bytes)
    }

    /// Where message `index` of the batch begins; behind the last one, the end.
    pub fn start_of(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            None => 0,
            Some(before) => self.ends.get(before).map_or(self.bytes.len(), |end| *end as usize),
        }
    }

    /// Message `index` of the batch.
    pub fn message(&self, index: usize) -> Option<&[u8]> {
        self.bytes.get(self.start_of(index)..*self.ends.get(index)? as usize)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_are_found_again() {
        let mut batch = Batch::new();
        for text in ["one", "", "three"] {
            batch.bytes_mut().extend_from_slice(text.as_bytes());
            batch.end_message();
        }
        batch.number_from(10);
        assert_eq!((batch.len(), batch.first(), batch.end()), (3, 10, 13));
        assert_eq!(
            (batch.message(0), batch.message(1), batch.message(2)),
            (Some(&b"one"[..]), Some(&b""[..]), Some(&b"three"[..]))
        );
        assert_eq!(batch.message(3), None);
        assert_eq!((batch.whole_in(2), batch.whole_in(3), batch.whole_in(7), batch.whole_in(8)), (0, 2, 2, 3));
        assert_eq!((batch.start_of(0), batch.start_of(2), batch.start_of(3)), (0, 3, 8));
        let parts = Batch::of_parts(10, batch.bytes().to_vec(), batch.ends().to_vec());
        assert_eq!(parts, Some(batch));
        assert_eq!(Batch::of_parts(0, vec![1], vec![2]), None);
        assert_eq!(Batch::of_parts(0, vec![1, 2], vec![2, 1, 2]), None);
    }
}
