//! IPFIX over UDP (RFC 7011): sets of records are joined into datagrams, and the templates are repeated.
//!
//! A message of a batch is one set or several, each with one record.

use super::udp::{SendDatagram, TOO_LONG, Udp, is_too_long};
use super::{TakenPart, Transport, is_later};
use crate::Batch;
use std::io;
use std::time::{Duration, Instant};

/// The version of the protocol.
const VERSION: u16 = 10;
/// Bytes before the first set: version 2, length 2, export time 4, sequence number 4, observation domain 4.
const HEAD_BYTES: usize = 16;
/// Bytes before the first record of a set: number 2, length 2.
const SET_HEAD_BYTES: usize = 4;
/// Most bytes of a datagram: tunnels rarely carry more than 1,420 without fragments.
const DATAGRAM_MAX: usize = 1_400;
/// How often the templates are sent: a collector that was restarted cannot read records until then.
const TEMPLATES_EVERY: Duration = Duration::from_secs(60);
/// The observation domain: all interfaces of this process.
const DOMAIN: u32 = 1;

/// A collector of flows.
pub(super) struct Ipfix {
    udp: Udp,
    packer: Packer,
}

/// Makes datagrams.
struct Packer {
    /// The set of templates.
    templates: Vec<u8>,
    /// When the templates were last sent to this address; `None` if they never were.
    sent_templates: Option<Instant>,
    /// Number of records sent, modulo 2³².
    sequence: u32,
    datagram: Vec<u8>,
}

impl Ipfix {
    /// Sends to `HOST:PORT`.
    pub(super) fn new(receiver: String, templates: Vec<u8>) -> Ipfix {
        let packer = Packer { templates, sent_templates: None, sequence: 0, datagram: Vec::new() };
        Ipfix { udp: Udp::new(receiver), packer }
    }
}

impl Packer {
    /// Sends the messages from byte `at` on, until the buffer is full. A message that is too long for a datagram counts
    /// as refused.
    fn send(&mut self, batch: &Batch, at: usize, send: &mut SendDatagram<'_>) -> io::Result<TakenPart> {
        let mut taken = TakenPart::default();
        let mut next = batch.count_complete(at);
        while next < batch.message_ends().len() {
            let (end, records) = self.fill(batch, next);
            let bytes = batch.start_of(end) - batch.start_of(next);
            match send(&self.datagram) {
                Ok(_) => {
                    self.sent_templates.get_or_insert_with(Instant::now);
                    self.sequence = self.sequence.wrapping_add(records);
                }
                Err(error) if is_too_long(&error) => taken.refused += (end - next) as u64,
                Err(error) if is_later(&error) => break,
                // Report the sent messages first; the next call gets the error again.
                Err(error) if taken.bytes == 0 => return Err(error),
                Err(_) => break,
            }
            taken.bytes += bytes;
            next = end;
        }
        Ok(taken)
    }

    /// Fills the datagram with the messages from `first` on, but at least with one. Returns the index after the last
    /// one, and the number of records.
    fn fill(&mut self, batch: &Batch, first: usize) -> (usize, u32) {
        self.sent_templates = self.sent_templates.filter(|sent| sent.elapsed() < TEMPLATES_EVERY);
        self.datagram.clear();
        self.datagram.resize(HEAD_BYTES, 0);
        if self.sent_templates.is_none() {
            self.datagram.extend_from_slice(&self.templates);
        }
        let (mut end, mut records, mut last_set) = (first, 0, None);
        while let Some(message) = batch.message(end) {
            if end > first && self.datagram.len() + message.len() > DATAGRAM_MAX {
                break;
            }
            for (number, record) in sets(message) {
                self.put(number, record, &mut last_set);
                records += 1;
            }
            end += 1;
        }
        let length = u16::try_from(self.datagram.len()).unwrap_or(u16::MAX);
        let seconds = (sys::clock::wall_ns() / 1_000_000_000) as u32;
        let (version, length) = (VERSION.to_be_bytes(), length.to_be_bytes());
        let numbers = [seconds, self.sequence, DOMAIN].map(u32::to_be_bytes);
        let head = version.into_iter().chain(length).chain(numbers.into_iter().flatten());
        self.datagram.iter_mut().zip(head).for_each(|(place, byte)| *place = byte);
        (end, records)
    }

    /// Appends a record, to the last set if that has the same number.
    fn put(&mut self, number: u16, record: &[u8], last_set: &mut Option<(u16, usize)>) {
        let at = match *last_set {
            Some((last, at)) if last == number => at,
            _ => {
                let at = self.datagram.len();
                self.datagram.extend_from_slice(&number.to_be_bytes());
                self.datagram.extend_from_slice(&[0; 2]);
                *last_set = Some((number, at));
                at
            }
        };
        self.datagram.extend_from_slice(record);
        let length = u16::try_from(self.datagram.len() - at).unwrap_or(u16::MAX).to_be_bytes();
        if let Some(place) = self.datagram.get_mut(at + 2..at + SET_HEAD_BYTES) {
            place.copy_from_slice(&length);
        }
    }
}

/// The sets of a message, each as number and record.
fn sets(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (head, _) = rest.split_first_chunk::<SET_HEAD_BYTES>()?;
        let [number, length] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_be_bytes);
        let (set, more) = rest.split_at_checked(length.into())?;
        rest = more;
        Some((number, set.get(SET_HEAD_BYTES..)?))
    })
}

impl Transport for Ipfix {
    fn open(&mut self) -> io::Result<()> {
        self.packer.sent_templates = None;
        self.udp.open()
    }

    fn send(&mut self, batch: &Batch, at: usize) -> io::Result<TakenPart> {
        let packer = &mut self.packer;
        self.udp.send_by(&mut |send| packer.send(batch, at, send))
    }

    fn unconfirmed_bytes(&mut self) -> io::Result<u64> {
        self.udp.unconfirmed_bytes()
    }

    fn check(&mut self) -> io::Result<()> {
        self.udp.check()
    }

    fn take_refusal_reason(&mut self) -> Option<String> {
        Some(TOO_LONG.to_owned())
    }

    fn is_proven(&self) -> bool {
        self.udp.is_proven()
    }

    fn close(&mut self) {
        self.udp.close();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A set with a record of `bytes` bytes.
    fn set(number: u16, bytes: usize) -> Vec<u8> {
        let length = (bytes + SET_HEAD_BYTES) as u16;
        [&number.to_be_bytes()[..], &length.to_be_bytes(), &vec![7; bytes]].concat()
    }

    fn batch(messages: &[Vec<u8>]) -> Batch {
        let mut batch = Batch::new();
        for message in messages {
            batch.bytes_mut().extend_from_slice(message);
            batch.end_message();
        }
        batch
    }

    fn two(datagram: &[u8], at: usize) -> usize {
        u16::from_be_bytes([datagram[at], datagram[at + 1]]).into()
    }

    #[test]
    fn records_share_sets_and_datagrams() {
        let mut packer = Ipfix::new(String::new(), set(2, 8)).packer;
        let flows = [set(256, 60), set(256, 60)].concat();
        let messages = batch(&vec![flows; 20]);
        let mut sent: Vec<Vec<u8>> = Vec::new();
        let mut send = |datagram: &[u8]| {
            sent.push(datagram.to_vec());
            Ok(datagram.len())
        };
        let taken = packer.send(&messages, 0, &mut send).unwrap();
        assert_eq!((taken.bytes, taken.refused), (messages.bytes().len(), 0));
        assert_eq!(sent.len(), 2);
        let sequence = |datagram: &[u8]| u32::from_be_bytes(*datagram[8..].first_chunk().unwrap());
        assert!(sent.iter().all(|one| one.len() <= DATAGRAM_MAX && two(one, 2) == one.len() && two(one, 0) == 10));
        // Templates, then one set with all records.
        let (first, second) = (&sent[0], &sent[1]);
        assert_eq!((two(first, 16), two(first, 28), two(first, 30)), (2, 256, first.len() - 28));
        assert_eq!((two(second, 16), two(second, 18)), (256, second.len() - 16));
        let records = (first.len() - 32) / 60 + (second.len() - 20) / 60;
        assert_eq!((sequence(first), sequence(second) as usize, records), (0, (first.len() - 32) / 60, 40));
        // After a minute, templates again.
        sent.clear();
        packer.sent_templates = Instant::now().checked_sub(TEMPLATES_EVERY);
        let mut send = |datagram: &[u8]| {
            sent.push(datagram.to_vec());
            Ok(datagram.len())
        };
        packer.send(&batch(&[set(260, 34)]), 0, &mut send).unwrap();
        assert_eq!((two(&sent[0], 16), sequence(&sent[0])), (2, 40));
    }

    #[test]
    fn what_is_not_sent_is_sent_later_or_refused() {
        let mut packer = Ipfix::new(String::new(), Vec::new()).packer;
        let messages = batch(&vec![set(256, 1000); 3]);
        let mut calls = 0;
        let mut send = |_: &[u8]| {
            calls += 1;
            match calls {
                1 => Ok(0),
                2 => Err(io::Error::from_raw_os_error(sys::Errno::MSGSIZE.0)),
                _ => Err(io::ErrorKind::WouldBlock.into()),
            }
        };
        let taken = packer.send(&messages, 0, &mut send).unwrap();
        assert_eq!((taken.bytes, taken.refused, packer.sequence), (2 * 1004, 1, 1));
        // Bytes of an earlier version or another format are no sets.
        assert_eq!(sets(b"{\"a\": 1}").count(), 0);
        assert_eq!(sets(&[1, 0, 0, 3, 1, 0, 0, 4]).count(), 0);
    }
}
