//! Batches: consecutive messages in one buffer.

/// Consecutive messages in one buffer. Work is done per batch wherever possible, not per message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Number of the first message; an output counts its messages from 0.
    first: u64,
    bytes: Vec<u8>,
    /// End offset of each message in `bytes`.
    ends: Vec<u32>,
    /// The class changes: the number of the new class, and the index of its first message. Messages before the first
    /// change are of class 0.
    classes: Vec<(u16, u32)>,
}

/// A batch of this many bytes is full. Smaller ones spend more on system calls than on the data.
const FULL: usize = 256 << 10;

impl Batch {
    /// An empty batch with room.
    pub fn new() -> Batch {
        Batch {
            first: 0,
            bytes: Vec::with_capacity(FULL + (16 << 10)),
            ends: Vec::with_capacity(1024),
            classes: Vec::new(),
        }
    }

    /// Builds a batch from its parts; `None` if they do not fit together. `first` is the number of its first message.
    pub fn of_parts(first: u64, bytes: Vec<u8>, ends: Vec<u32>) -> Option<Batch> {
        let in_order = ends.windows(2).all(|pair| pair.first() <= pair.last());
        let last = ends.last().map_or(0, |end| *end as usize);
        (in_order && last == bytes.len()).then_some(Batch { first, bytes, ends, classes: Vec::new() })
    }

    /// Returns the batch with these classes: each with the index of its first message, in order.
    pub(crate) fn with_classes(self, classes: Vec<(u16, u32)>) -> Batch {
        Batch { classes, ..self }
    }

    /// The buffer to append a message to. Bytes after the last end become a message with [`Batch::end_message`].
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Sets the class of the next messages. A full store divides its drops between classes.
    #[inline]
    pub fn set_class(&mut self, class: u16) {
        if self.classes.last().map_or(0, |(last, _)| *last) != class {
            self.classes.push((class, self.ends.len() as u32));
        }
    }

    /// Runs of messages of one class: the class, and the indices of the messages.
    pub(crate) fn runs_by_class(&self) -> impl Iterator<Item = (u16, std::ops::Range<usize>)> + '_ {
        let begins = std::iter::once((0, 0)).chain(self.classes.iter().copied());
        let ends = self.classes.iter().map(|(_, at)| *at as usize).chain([self.ends.len()]);
        let runs = begins.zip(ends).map(|((class, from), to)| (class, from as usize..to));
        runs.filter(|(_, messages)| !messages.is_empty())
    }

    /// Returns the class and the number of bytes of each run of messages of one class.
    pub(crate) fn class_bytes(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.runs_by_class()
            .map(|(class, messages)| (class, (self.start_of(messages.end) - self.start_of(messages.start)) as u64))
    }

    /// Returns the class and the number of messages of each run of messages of one class.
    pub(crate) fn class_runs(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.runs_by_class().map(|(class, messages)| (class, messages.len() as u64))
    }

    /// True if a message is of this class.
    pub(crate) fn has_class(&self, class: u16) -> bool {
        self.runs_by_class().any(|(other, _)| other == class)
    }

    /// Returns the batch without the messages of a class, numbered without gaps from its first number.
    pub(crate) fn without_class(&self, class: u16) -> Batch {
        let mut rest = Batch { first: self.first, ..Batch::default() };
        for (other, messages) in self.runs_by_class().filter(|(other, _)| *other != class) {
            rest.append(self, other, messages);
        }
        rest
    }

    /// Returns the messages from `index` on, in a buffer of exactly their size.
    pub(crate) fn messages_from(&self, index: usize) -> Batch {
        let bytes = self.bytes.len() - self.start_of(index);
        let ends = Vec::with_capacity(self.ends.len().saturating_sub(index));
        let first = self.first + index as u64;
        let mut rest = Batch { first, bytes: Vec::with_capacity(bytes), ends, classes: Vec::new() };
        for (class, messages) in self.runs_by_class().filter(|(_, messages)| messages.end > index) {
            rest.append(self, class, messages.start.max(index)..messages.end);
        }
        rest
    }

    /// Appends all messages of `other`.
    pub(crate) fn join(&mut self, other: &Batch) {
        for (class, messages) in other.runs_by_class() {
            self.append(other, class, messages);
        }
    }

    /// Appends some messages of `from`, all of one class.
    pub(crate) fn append(&mut self, from: &Batch, class: u16, messages: std::ops::Range<usize>) {
        self.set_class(class);
        let (start, end) = (from.start_of(messages.start), from.start_of(messages.end));
        let base = self.bytes.len();
        self.bytes.extend_from_slice(from.bytes.get(start..end).unwrap_or_default());
        let ends = from.ends.get(messages).unwrap_or_default();
        self.ends.extend(ends.iter().map(|end| u32::try_from(*end as usize - start + base).unwrap_or(u32::MAX)));
    }

    /// Ends a message: all bytes appended since the last one belong to it.
    #[inline]
    pub fn end_message(&mut self) {
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
    }

    /// True if no further message should be added.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// True if the batch has no messages.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of messages.
    pub fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Bytes of all messages.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// End offset of each message.
    pub fn message_ends(&self) -> &[u32] {
        &self.ends
    }

    /// Number of the first message.
    pub fn first_number(&self) -> u64 {
        self.first
    }

    /// Number of the last message, plus one.
    pub fn end(&self) -> u64 {
        self.first + self.len()
    }

    /// Returns the messages in a buffer of exactly their size, and this batch emptied, if they fill less than a
    /// quarter of its buffer: messages that wait for long must not hold much more memory than they need.
    pub(crate) fn compact(self) -> (Batch, Option<Batch>) {
        if self.bytes.len() >= self.bytes.capacity() / 4 {
            return (self, None);
        }
        let small = Batch {
            first: self.first,
            bytes: self.bytes.clone(),
            ends: self.ends.clone(),
            classes: self.classes.clone(),
        };
        (small, Some(self.clear()))
    }

    /// Removes all messages but keeps the memory.
    pub(crate) fn clear(mut self) -> Batch {
        self.bytes.clear();
        self.ends.clear();
        self.classes.clear();
        Batch { first: 0, ..self }
    }

    /// True if the buffer can hold a full batch.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.capacity() >= FULL
    }

    /// Gives back memory if most of the buffer is unused.
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

    /// Returns how many messages lie completely within the first `bytes` bytes.
    pub fn count_complete(&self, bytes: usize) -> usize {
        if bytes >= self.bytes.len() {
            return self.ends.len();
        }
        self.ends.partition_point(|end| *end as usize <= bytes)
    }

    /// Start offset of message `index` of the batch; after the last message, the end of the batch.
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
    fn a_class_can_be_taken_out() {
        let mut batch = Batch::new();
        for (text, class) in [("a", 0), ("bb", 7), ("c", 7), ("dd", 0), ("ee", 7)] {
            batch.bytes_mut().extend_from_slice(text.as_bytes());
            batch.set_class(class);
            batch.end_message();
        }
        batch.number_from(10);
        assert_eq!(batch.class_bytes().collect::<Vec<_>>(), [(0, 1), (7, 3), (0, 2), (7, 2)]);
        let (zero, mut seven) = (batch.without_class(7), batch.without_class(0));
        assert_eq!(
            (zero.bytes(), zero.message_ends(), zero.first_number(), zero.end()),
            (&b"add"[..], &[1, 3][..], 10, 12)
        );
        assert_eq!((seven.bytes(), seven.message_ends()), (&b"bbcee"[..], &[2, 3, 5][..]));
        assert!(!seven.has_class(0) && zero.without_class(0).is_empty());
        seven.join(&zero);
        assert_eq!((seven.bytes(), seven.message_ends()), (&b"bbceeadd"[..], &[2, 3, 5, 6, 8][..]));
        assert_eq!(seven.class_runs().collect::<Vec<_>>(), [(7, 3), (0, 2)]);
        let (all, later, none) = (batch.messages_from(0), batch.messages_from(2), batch.messages_from(5));
        assert_eq!((all.bytes(), all.first_number(), all.end()), (batch.bytes(), 10, 15));
        assert_eq!((later.bytes(), later.message_ends(), later.first_number()), (&b"cddee"[..], &[1, 3, 5][..], 12));
        assert_eq!(later.class_runs().collect::<Vec<_>>(), [(7, 1), (0, 1), (7, 1)]);
        assert_eq!((none.is_empty(), none.first_number()), (true, 15));
    }

    #[test]
    fn messages_are_found_again() {
        let mut batch = Batch::new();
        for text in ["one", "", "three"] {
            batch.bytes_mut().extend_from_slice(text.as_bytes());
            batch.end_message();
        }
        batch.number_from(10);
        assert_eq!((batch.len(), batch.first_number(), batch.end()), (3, 10, 13));
        assert_eq!(
            (batch.message(0), batch.message(1), batch.message(2)),
            (Some(&b"one"[..]), Some(&b""[..]), Some(&b"three"[..]))
        );
        assert_eq!(batch.message(3), None);
        assert_eq!(
            (batch.count_complete(2), batch.count_complete(3), batch.count_complete(7), batch.count_complete(8)),
            (0, 2, 2, 3)
        );
        assert_eq!((batch.start_of(0), batch.start_of(2), batch.start_of(3)), (0, 3, 8));
        let parts = Batch::of_parts(10, batch.bytes().to_vec(), batch.message_ends().to_vec());
        assert_eq!(parts, Some(batch));
        assert_eq!(Batch::of_parts(0, vec![1], vec![2]), None);
        assert_eq!(Batch::of_parts(0, vec![1, 2], vec![2, 1, 2]), None);
    }
}
