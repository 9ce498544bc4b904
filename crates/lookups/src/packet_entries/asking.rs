//! Queries conntrack entries from the kernel: one block of answers per batch of packets, which a recording stores
//! unchanged.

use super::NetnsTuple;
use super::wanted::{Wanted, lookup_share, take_lookups};
use conntrack::{CtDecoder, EntryQueries, QueryCounts};
use netlink::Messages;
use netlink::datagrams::{BatchHeader, DatagramFrames};
use record::rows::{Conntrack, CtTuple};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;
use sys::{Blocks, Share, SysError};

/// The next questions and their results. Shared with the blocks, which a recording replaces.
#[derive(Debug, Default)]
pub struct Questions {
    pub(super) wanted: Wanted,
    /// Connections of the last batch that were not queried because there were too many. Unknown in a replay.
    pub(super) left_out: HashSet<NetnsTuple>,
    /// The first error if the kernel did not answer.
    pub trouble: Option<String>,
    /// True if questions of the last batch failed. Unknown in a replay.
    pub(super) has_failed: bool,
    /// Namespaces that have a query socket.
    pub asked: HashSet<u64>,
    /// Sockets of newly found namespaces, and the set of all current namespaces: others are no longer queried.
    pub namespaces: Option<(Vec<EntryQueries>, HashSet<u64>)>,
}

impl Questions {
    /// Notes whether questions of this batch failed, and why.
    pub(super) fn note_failure(&mut self, trouble: Option<String>) {
        self.has_failed = trouble.is_some();
        self.trouble = self.trouble.take().or(trouble);
    }
}

/// The kernel's answers, one block per batch.
pub struct Asking {
    questions: Rc<RefCell<Questions>>,
    /// One query socket per namespace.
    queries: Vec<EntryQueries>,
    share: Share,
    block: Vec<u8>,
    /// True if no questions are asked because the kernel sends entries with records.
    are_sent: bool,
}

impl Asking {
    /// Asks `questions` with `queries`, one per namespace. With `are_sent` it asks nothing, because the kernel sends
    /// entries with records.
    pub fn new(questions: Rc<RefCell<Questions>>, queries: Vec<EntryQueries>, are_sent: bool) -> Asking {
        questions.borrow_mut().asked = queries.iter().map(EntryQueries::netns_id).collect();
        Asking { questions, queries, share: lookup_share(), block: Vec::new(), are_sent }
    }
}

/// The counts at the start of a block, stored in fields of [`BatchHeader`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswersHeader {
    /// Number of connections that were not queried because there were too many.
    pub left_out: u64,
    /// Number of questions without an answer.
    pub unanswered: u64,
    /// True if the kernel sends entries with records.
    pub are_sent: bool,
}

impl AnswersHeader {
    pub(super) fn bytes(self) -> [u8; netlink::datagrams::BATCH_HEADER] {
        let header = BatchHeader {
            lost: self.left_out,
            alloc_failures: self.unanswered,
            sockets: self.are_sent.into(),
            ..BatchHeader::default()
        };
        header.bytes()
    }

    /// Parses the header; counts are 0 if the block is too short.
    pub fn parse(block: &[u8]) -> AnswersHeader {
        let header = BatchHeader::parse(block).unwrap_or_default();
        let (left_out, unanswered) = (header.lost, header.alloc_failures);
        AnswersHeader { left_out, unanswered, are_sent: header.sockets != 0 }
    }
}

impl Blocks for Asking {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let Asking { questions, queries, share, block, are_sent } = self;
        let mut questions = questions.borrow_mut();
        if let Some((opened, alive)) = questions.namespaces.take() {
            queries.extend(opened);
            queries.retain(|queries| alive.contains(&queries.netns_id()));
            questions.asked = queries.iter().map(EntryQueries::netns_id).collect();
        }
        let mut header = AnswersHeader { are_sent: *are_sent, ..AnswersHeader::default() };
        let most = take_lookups(share, questions.wanted.len());
        let (asked, left_out) = questions.wanted.take(most);
        header.left_out = left_out.len() as u64;
        questions.left_out = left_out.into_iter().collect();
        let (unanswered, trouble) = ask_all(queries, &asked, block);
        header.unanswered = unanswered;
        questions.note_failure(trouble.map(|error| error.to_string()));
        if let Some(place) = block.first_chunk_mut() {
            *place = header.bytes();
        }
        Ok(Some(block))
    }
}

/// Time after which questions without an entry are asked once more: a packet that has just arrived can be ahead of its
/// entry, because the kernel stores a new entry only after its packet has passed all hooks.
const AGAIN_AFTER: Duration = Duration::from_millis(1);

/// Bound: connections without an entry that are looked up once more in a batch of packets. Beyond: further ones are
/// not, and none is if there are more than four times as many; if they are new, their first packets have no entry,
/// counted. By: a sender of packets that get no entry.
const AGAIN_MAX: usize = 64;

/// Asks for all tuples in `asked` with the socket of each namespace. Fills `block` with the answers, after room for
/// their [`AnswersHeader`]. Returns the number of questions without an answer, and the kernel's reason for refusing
/// some. Takes [`AGAIN_AFTER`] longer if some have no entry.
pub(super) fn ask_all(
    queries: &mut [EntryQueries],
    asked: &[NetnsTuple],
    block: &mut Vec<u8>,
) -> (u64, Option<SysError>) {
    ask_twice(queries, asked, block, &|| std::thread::sleep(AGAIN_AFTER))
}

fn ask_twice(
    queries: &mut [EntryQueries],
    asked: &[NetnsTuple],
    block: &mut Vec<u8>,
    wait: &dyn Fn(),
) -> (u64, Option<SysError>) {
    block.clear();
    block.extend_from_slice(&AnswersHeader::default().bytes());
    let (mut all_unanswered, mut trouble) = (0, None);
    let mut ask = |asked: &[NetnsTuple]| {
        let mut missing = Vec::new();
        for queries in &mut *queries {
            let netns_id = queries.netns_id();
            let tuples: Vec<CtTuple> = asked.iter().filter(|of| of.netns_id == netns_id).map(|of| of.tuple).collect();
            if tuples.is_empty() {
                continue;
            }
            match ask_both_ways(queries, &tuples, block) {
                Ok((unanswered, without)) => {
                    all_unanswered += unanswered;
                    missing.extend(without.into_iter().map(|tuple| NetnsTuple { netns_id, tuple }));
                }
                Err(error) => _ = trouble.get_or_insert(error),
            }
        }
        missing
    };
    let mut missing = ask(asked);
    missing.truncate(AGAIN_MAX);
    if !missing.is_empty() {
        wait();
        ask(&missing);
    }
    (all_unanswered, trouble)
}

/// Asks for each tuple, and then for its inverse unless an entry for it has been received: the tuples of an entry with
/// NAT match a packet before translation, and their inverses match it afterwards. Returns the number of questions
/// without an answer, and the tuples without an entry.
fn ask_both_ways(
    queries: &mut EntryQueries,
    tuples: &[CtTuple],
    block: &mut Vec<u8>,
) -> Result<(u64, Vec<CtTuple>), SysError> {
    let counts = queries.query(tuples, block)?;
    let mut unanswered = answered(counts)?;
    let known = known_in(block, queries.netns_id());
    let inverse: Vec<CtTuple> =
        tuples.iter().filter_map(CtTuple::reply_tuple).filter(|inverse| !known.contains(inverse)).collect();
    unanswered += answered(queries.query(&inverse, block)?)?;
    // This reads all answers again, which would cost too much in a flood.
    if inverse.is_empty() || inverse.len() > 4 * AGAIN_MAX {
        return Ok((unanswered, Vec::new()));
    }
    let known = known_in(block, queries.netns_id());
    let missing = inverse.iter().filter(|inverse| !known.contains(inverse)).filter_map(CtTuple::reply_tuple);
    Ok((unanswered, missing.filter(|tuple| !known.contains(tuple)).collect()))
}

/// The tuples of a namespace's entries in a block of answers.
fn known_in(block: &[u8], netns_id: u64) -> HashSet<CtTuple> {
    let mut known = HashSet::new();
    each_entry(block, &mut |entry, _| {
        if entry.netns_id == netns_id {
            known.extend([plain(entry.orig), plain(entry.reply)]);
        }
    });
    known
}

fn answered(counts: QueryCounts) -> Result<u64, SysError> {
    match counts.refused {
        Some((_, errno)) => Err(SysError::new("ask", "connection-tracking entries", errno)),
        None => Ok(counts.unanswered),
    }
}

/// The tuple without a zone, as packets have it.
pub(super) fn plain(tuple: CtTuple) -> CtTuple {
    CtTuple { zone: None, ..tuple }
}

/// Hands each entry in a block of answers to `each`, with its time of receipt in ns since 1970; skips malformed data.
pub(super) fn each_entry(block: &[u8], each: &mut dyn FnMut(&Conntrack<'_>, u64)) {
    for frame in DatagramFrames::new(block).map_while(Result::ok) {
        let mut decoder = CtDecoder::new(frame.netns_id);
        for message in Messages::new(frame.bytes).map_while(Result::ok).filter(|message| !message.is_end()) {
            if let Ok(entry) = decoder.decode(message.payload) {
                each(&entry, frame.wall_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::Addr;
    use record::rows::ip_proto;
    use std::net::{Ipv4Addr, UdpSocket};
    use testkit::netns::Lab;

    /// The kernel stores the entry of a new connection after the capture has seen its first packet.
    #[test]
    fn root_an_entry_that_comes_a_moment_later_is_found() {
        testkit::require_root!();
        let lab = Lab::new("askagain");
        lab.use_conntrack();
        lab.run_inside(|| {
            let [client, server] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
            let [from, to] = [&client, &server].map(|socket| socket.local_addr().unwrap());
            let tuple = CtTuple {
                src: Addr::V4([127, 0, 0, 1]),
                dst: Addr::V4([127, 0, 0, 1]),
                proto: ip_proto::UDP,
                src_part: from.port(),
                dst_part: to.port(),
                zone: None,
            };
            let mut queries = [EntryQueries::open(7).unwrap()];
            let mut block = Vec::new();
            let asked = [NetnsTuple { netns_id: 7, tuple }];
            let arrives = || _ = client.send_to(b"x", to).unwrap();
            assert_eq!(ask_twice(&mut queries, &asked, &mut block, &arrives), (0, None));
            assert!(known_in(&block, 7).contains(&tuple), "{block:?}");
        });
    }
}
