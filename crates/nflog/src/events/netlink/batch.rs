//! Decodes batches of datagrams into rows, and counts what is missing in them.
use netlink::datagrams::{BATCH_HEADER, BatchHeader, DatagramFrame, DatagramFrames};
use netlink::{DecodeError, Messages};
use record::rows::{LogRecord, LogRecords};
use record::{Accounting, Each, Next};

use super::layout::RecordLayouts;
use super::record::is_record;
use super::sequence::Sequences;

/// The state that one batch leaves for the next, and the counts.
#[derive(Default)]
pub(crate) struct BatchDecoder {
    pub(crate) layouts: RecordLayouts,
    pub(crate) sequences: Sequences,
    /// The header of the last batch.
    pub(crate) header: BatchHeader,
    /// Received records arrived after this time, in ns since 1970.
    since_ns: u64,
    /// Counts of the rows so far.
    pub(crate) stats: Accounting,
    pub(crate) first_error: Option<DecodeError>,
}

impl BatchDecoder {
    /// Hands the records of these groups to `each`. A recording may hold others.
    pub(crate) fn decode(&mut self, batch: &[u8], groups: &[u16], each: &mut Each<'_, LogRecords>) {
        match BatchHeader::parse(batch) {
            Some(now) => self.header = now,
            None => {
                self.note_fault(DecodeError::Short { what: "batch of records", claims: BATCH_HEADER, has: batch.len() })
            }
        }
        for frame in DatagramFrames::new(batch) {
            match frame {
                Ok(frame) if self.decode_frame(&frame, groups, each) == Next::More => {}
                Ok(_) => break,
                Err(error) => {
                    self.note_fault(error);
                    break;
                }
            }
        }
    }

    #[inline]
    fn decode_frame(&mut self, frame: &DatagramFrame<'_>, groups: &[u16], each: &mut Each<'_, LogRecords>) -> Next {
        if frame.bytes.is_empty() {
            self.note_mark(frame);
        }
        let (netns_id, received_ns, since_ns) = (frame.netns_id, frame.wall_ns, self.since_ns);
        let base = LogRecord { time_ns: received_ns, netns_id, received_ns, since_ns, ..LogRecord::default() };
        let mut row = self.layouts.begin_frame(&base);
        for message in Messages::new(frame.bytes) {
            let unknown_attrs = &mut self.stats.unknown_attrs;
            let decoded = match message {
                Ok(message) if !is_record(&message) => continue,
                Ok(message) => self.layouts.decode_into(message.payload, &base, &mut row, unknown_attrs),
                Err(error) => Err(DecodeError::Short { what: "nlmsghdr", claims: error.claims, has: error.has }),
            };
            if let Err(error) = decoded {
                self.note_fault(error);
                continue;
            }
            if let Some(seq) = row.seq {
                self.sequences.add_record(row.netns_id, row.group, seq);
            }
            self.stats.seen += 1;
            if groups.iter().all(|group| *group != row.group) {
                self.stats.filtered += 1;
            } else if each(&row) == Next::Stop {
                return Next::Stop;
            }
        }
        Next::More
    }

    fn note_fault(&mut self, error: DecodeError) {
        self.stats.seen += 1;
        self.stats.failed += 1;
        self.first_error.get_or_insert(error);
    }

    /// Applies a frame without messages.
    fn note_mark(&mut self, frame: &DatagramFrame<'_>) {
        match frame.nsid.map(u16::try_from) {
            None => self.since_ns = frame.wall_ns,
            // The namespace was removed, and the group's socket with it.
            Some(Ok(group)) => self.sequences.remove_group(frame.netns_id, group),
            Some(Err(_)) => {}
        }
    }
}
