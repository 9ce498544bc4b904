//! The producer's number, and the note with which a later run repeats a request exactly: a broker stores a batch once
//! if it gets the same messages with the same numbers again.

use crate::transports::frozen_request::{FrozenRequest, take};

/// The first byte of a note.
const VERSION: u8 = 1;

/// A producer, the next number in its sequence, and the partition to which the sequence belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProducerState {
    pub(super) id: i64,
    pub(super) epoch: i16,
    pub(super) partition: i32,
    pub(super) sequence: i32,
}

impl ProducerState {
    /// Counts records that the broker has stored. The sequence begins again at 0 after 2³¹ − 1.
    pub(super) fn advance(&mut self, records: u32) {
        self.sequence = (self.sequence as u32).wrapping_add(records) as i32 & i32::MAX;
    }
}

/// Encodes the note about a request.
pub(super) fn encode(producer: &ProducerState, request: &FrozenRequest) -> Vec<u8> {
    let mut note = vec![VERSION];
    note.extend_from_slice(&producer.id.to_le_bytes());
    note.extend_from_slice(&producer.epoch.to_le_bytes());
    note.extend_from_slice(&producer.partition.to_le_bytes());
    note.extend_from_slice(&producer.sequence.to_le_bytes());
    request.put(&mut note);
    note
}

/// Decodes a note; `None` for one of another version.
pub(super) fn decode(note: &[u8]) -> Option<(ProducerState, FrozenRequest)> {
    let mut rest = note.strip_prefix(&[VERSION])?;
    let id = i64::from_le_bytes(take(&mut rest)?);
    let epoch = i16::from_le_bytes(take(&mut rest)?);
    let partition = i32::from_le_bytes(take(&mut rest)?);
    let sequence = i32::from_le_bytes(take(&mut rest)?);
    let request = FrozenRequest::take(rest)?;
    (partition >= 0 && sequence >= 0).then_some((ProducerState { id, epoch, partition, sequence }, request))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let producer = ProducerState { id: i64::MAX, epoch: 3, partition: 11, sequence: i32::MAX };
        let request = FrozenRequest { first: 5, end: 900, is_doubtful: false };
        let note = encode(&producer, &request);
        assert_eq!(decode(&note), Some((producer, FrozenRequest { is_doubtful: true, ..request })));
        for length in 0..note.len() {
            assert_eq!(decode(&note[..length]), None, "{length}");
        }
        assert_eq!(decode(b"\x02"), None);
        let wrong = ProducerState { partition: -1, ..producer };
        assert_eq!(decode(&encode(&wrong, &request)), None);
    }

    #[test]
    fn a_sequence_begins_again() {
        let mut producer = ProducerState { id: 1, epoch: 0, partition: 0, sequence: i32::MAX - 1 };
        producer.advance(3);
        assert_eq!(producer.sequence, 1);
    }
}
