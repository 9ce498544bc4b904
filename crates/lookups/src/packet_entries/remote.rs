//! Queries entries through a helper process, because the process that reads packets has dropped the privilege
//! (docs/adr/0024, 0027). The helper receives addresses and ports only, and no other bytes of a packet.
//!
//! A request is a message with tuples of fixed size. The answer is two messages: the reason for failed queries, and a
//! block in the form of [`super::Asking`]. The first answer, which needs no request, tells whether any queries are
//! possible.

use super::asking::{AnswersHeader, Questions, ask_all};
use super::packets::WORDS;
use super::wanted::{LOOKUPS_AT_ONCE, lookup_share, take_lookups};
use super::{EntryLookups, NetnsTuple, open_queries};
use crate::session::{Session, SessionTarget};
use conntrack::EntryQueries;
use record::rows::{CtTuple, capture_need};
use record::{Accounting, Addr};
use runtime::exit::Exit;
use runtime::helper_process::{Helper, put_message};
use runtime::messages::print_message;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;
use sys::caps::{Cap, CapSet};
use sys::{Blocks, Errno, Share, SysError, rights};

/// The program name that selects the helper process.
pub const NAME: &str = "netwren-entries";
/// Time limit for the queries of one batch. After it is exceeded, no more queries are made.
///
/// Bound: for the kernel's answers about the connections of a batch. Beyond: further packets have no connection;
/// reported (exit code 3). By: a broken kernel.
const ANSWER: Duration = Duration::from_secs(5);
/// The first block: whether any queries are possible.
const POSSIBLE: &[u8] = b"1";
const IMPOSSIBLE: &[u8] = b"0";
/// Size of a tuple in bytes: its namespace, family, protocol, two parts, two addresses.
const TUPLE_BYTES: usize = 8 + 1 + 1 + 2 + 2 + 16 + 16;
/// Maximum size of a request.
const REQUEST_BYTES_MAX: usize = LOOKUPS_AT_ONCE as usize * TUPLE_BYTES;
/// Maximum size of a block of answers; an answer has some 400 bytes.
///
/// Bound: bytes of the answers about a batch (`remote::too_long_answers_fail`). Beyond: its rows have no connection;
/// counted (exit code 3). By: a broken kernel.
const BLOCK_BYTES_MAX: usize = 64 << 20;
const TOO_LONG: &str = "the kernel's answers about a batch of packets are too long";
/// Maximum length of a reason.
///
/// Bound: bytes of a reason for a missing connection (`remote::too_much_is_refused`). Beyond: the answer is refused.
/// By: a broken kernel.
const TROUBLE_BYTES_MAX: usize = 4096;
const V4: u8 = 4;
const V6: u8 = 6;

/// Starts the helper process in the calling thread's network namespace. `None` if the demand's bits `need` do not
/// include entries.
pub fn start(all_netns: bool, need: u64) -> Result<Option<EntryLookups<'static>>, String> {
    if need & capture_need::ENTRY == 0 {
        return Ok(None);
    }
    let failed = |error: io::Error| format!("cannot look up connections of packets: {error}");
    let helper = Helper::start(NAME, [if all_netns { "1" } else { "0" }]).map_err(failed)?;
    helper.limit_time(ANSWER).map_err(failed)?;
    let mut first = Vec::new();
    let trouble = Some(receive(&helper, &mut first).map_err(failed)?).filter(|trouble| !trouble.is_empty());
    if let Some(error) = &trouble {
        print_message(&format!("{}: {error}", WORDS.unknown));
    }
    let questions = Rc::new(RefCell::default());
    let remote = || Box::new(RemoteAnswers::new(Rc::clone(&questions), helper)) as Box<dyn Blocks>;
    let answers = (first != IMPOSSIBLE).then(remote);
    Ok(Some(EntryLookups::new(questions, answers, trouble)))
}

/// Queries the helper process.
struct RemoteAnswers {
    questions: Rc<RefCell<Questions>>,
    helper: Helper,
    share: Share,
    /// Buffer for the request.
    request: Vec<u8>,
    block: Vec<u8>,
}

impl RemoteAnswers {
    /// `helper` leads to [`answer_all`] and has a time limit.
    fn new(questions: Rc<RefCell<Questions>>, helper: Helper) -> RemoteAnswers {
        RemoteAnswers { questions, helper, share: lookup_share(), request: Vec::new(), block: Vec::new() }
    }
}

impl Blocks for RemoteAnswers {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let RemoteAnswers { questions, helper, share, request, block } = self;
        let mut questions = questions.borrow_mut();
        let most = take_lookups(share, questions.wanted.len());
        let (asked, left_out) = questions.wanted.take(most);
        questions.left_out = left_out.into_iter().collect();
        block.clear();
        if asked.is_empty() {
            questions.has_failed = false;
            return Ok(Some(block));
        }
        request.clear();
        put_message(request, |out| asked.iter().for_each(|of| put_tuple(of, out)));
        let answer = helper.send(request).and_then(|()| receive(helper, block));
        let trouble = answer.map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::PIPE, Errno);
            SysError::new("recv", "entries from the lookup process", errno)
        })?;
        questions.note_failure(Some(trouble).filter(|trouble| !trouble.is_empty()));
        Ok(Some(block))
    }
}

/// Receives an answer into `block`; returns the reason for failed queries, or an empty string.
fn receive(helper: &Helper, block: &mut Vec<u8>) -> io::Result<String> {
    helper.receive_answer(TROUBLE_BYTES_MAX, block)?;
    let trouble = String::from_utf8_lossy(block).into_owned();
    helper.receive_answer(BLOCK_BYTES_MAX, block)?;
    Ok(trouble)
}

/// Sends an answer.
fn send(main: &Helper, block: &[u8], trouble: &str) -> io::Result<()> {
    let is_too_long = block.len() > BLOCK_BYTES_MAX;
    let (block, trouble) = if is_too_long { (&[][..], TOO_LONG) } else { (block, trouble) };
    let trouble = trouble.as_bytes();
    let trouble = trouble.get(..TROUBLE_BYTES_MAX).unwrap_or(trouble);
    let mut out = Vec::with_capacity(block.len() + 64);
    [trouble, block].iter().for_each(|part| put_message(&mut out, |out| out.extend_from_slice(part)));
    main.send(&out)
}

/// The helper process: answers requests until the main process closes its end. Keeps only CAP_NET_ADMIN, which each
/// query requires, and opens no files or sockets after the first answer.
pub fn run(mut words: impl Iterator<Item = OsString>) -> Exit {
    let Some(all_netns) = words.next().map(|word| word == "1") else { return Exit::Usage };
    let Some(main) = Helper::serve(NAME) else { return Exit::Usage };
    let Ok(session) = Session::open(SessionTarget { all_netns, ..SessionTarget::default() }) else {
        return Exit::Failed;
    };
    session.find_namespaces(None, &mut Accounting::default());
    let mut trouble = None;
    let mut queries = open_queries(&session, &mut trouble);
    rights::keep_open_only(CapSet::from_caps(&[Cap::NetAdmin]));
    let first = if queries.is_empty() { IMPOSSIBLE } else { POSSIBLE };
    if send(&main, first, trouble.as_deref().unwrap_or_default()).is_err() {
        return Exit::Failed;
    }
    // The end of the main process also appears as an error.
    let _ = answer_all(&main, &mut queries);
    Exit::Ok
}

/// Answers requests from the main process until it closes its end, with one query socket per namespace. Returns an
/// error at an invalid request.
fn answer_all(main: &Helper, queries: &mut [EntryQueries]) -> io::Result<()> {
    let (mut request, mut block) = (Vec::new(), Vec::new());
    while main.receive(REQUEST_BYTES_MAX, &mut request)? {
        let tuples: Option<Vec<NetnsTuple>> = request.chunks(TUPLE_BYTES).map(tuple).collect();
        let tuples = tuples.ok_or(ErrorKind::InvalidData)?;
        let (unanswered, trouble) = ask_all(queries, &tuples, &mut block);
        if let Some(place) = block.first_chunk_mut() {
            *place = AnswersHeader { unanswered, ..AnswersHeader::default() }.bytes();
        }
        send(main, &block, &trouble.map(|error| error.to_string()).unwrap_or_default())?;
    }
    Ok(())
}

fn put_tuple(of: &NetnsTuple, out: &mut Vec<u8>) {
    let CtTuple { src, dst, proto, src_part, dst_part, .. } = of.tuple;
    let family = if matches!(src, Addr::V4(_)) { V4 } else { V6 };
    out.extend_from_slice(&of.netns_id.to_ne_bytes());
    out.extend_from_slice(&[family, proto]);
    [src_part, dst_part].iter().for_each(|part| out.extend_from_slice(&part.to_ne_bytes()));
    for addr in [src, dst] {
        let mut octets = [0; 16];
        octets.iter_mut().zip(addr.octets()).for_each(|(place, octet)| *place = *octet);
        out.extend_from_slice(&octets);
    }
}

/// Parses a tuple; `None` for invalid bytes.
fn tuple(bytes: &[u8]) -> Option<NetnsTuple> {
    let (netns_id, rest) = bytes.split_first_chunk::<8>()?;
    let ([family, proto], rest) = rest.split_first_chunk::<2>()?;
    let (src_part, rest) = rest.split_first_chunk::<2>()?;
    let (dst_part, rest) = rest.split_first_chunk::<2>()?;
    let (src, rest) = rest.split_first_chunk::<16>()?;
    let dst = rest.first_chunk::<16>()?;
    let addr = |octets: &[u8; 16]| match *family {
        V4 => octets.first_chunk().map(|octets| Addr::V4(*octets)),
        V6 => Some(Addr::V6(*octets)),
        _ => None,
    };
    let tuple = CtTuple {
        src: addr(src)?,
        dst: addr(dst)?,
        proto: *proto,
        src_part: u16::from_ne_bytes(*src_part),
        dst_part: u16::from_ne_bytes(*dst_part),
        zone: None,
    };
    Some(NetnsTuple { netns_id: u64::from_ne_bytes(*netns_id), tuple })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::SeenPacket;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tuples_come_as_they_went() {
        let v4 = CtTuple {
            src: Addr::V4([192, 0, 2, 1]),
            dst: Addr::V4([203, 0, 113, 7]),
            proto: 6,
            src_part: 40_000,
            dst_part: 443,
            zone: None,
        };
        let v6 = CtTuple { src: Addr::V6([1; 16]), dst: Addr::V6([2; 16]), proto: 58, ..v4 };
        for tuple in [v4, v6] {
            let (of, mut bytes) = (NetnsTuple { netns_id: 1 << 40, tuple }, Vec::new());
            put_tuple(&of, &mut bytes);
            assert_eq!((bytes.len(), super::tuple(&bytes)), (TUPLE_BYTES, Some(of)));
        }
    }

    /// Reasons for failed queries arrive with the answer; a process that has ended causes an error, not an empty
    /// answer.
    #[test]
    fn answers_and_reasons_come_through() {
        let [main, other] = Helper::pair().unwrap();
        let questions = Rc::new(RefCell::new(Questions::default()));
        let mut remote = RemoteAnswers::new(Rc::clone(&questions), main);
        assert_eq!(remote.next().unwrap(), Some(&[][..]), "nothing is asked: nothing is sent");
        let of = NetnsTuple { netns_id: 7, tuple: CtTuple::EMPTY };
        questions.borrow_mut().wanted.add(of, &1);
        send(&other, b"block", "no right").unwrap();
        assert_eq!(remote.next().unwrap(), Some(&b"block"[..]));
        assert_eq!(questions.borrow().trouble.as_deref(), Some("no right"));
        let mut request = Vec::new();
        assert!(other.receive(TUPLE_BYTES, &mut request).unwrap());
        assert_eq!(tuple(&request), Some(of));
        drop(other);
        questions.borrow_mut().wanted.add(of, &1);
        assert!(remote.next().is_err());
    }

    /// Packets whose answers are too long have no connection, which counts as a failure.
    #[test]
    fn too_long_answers_fail() {
        let [main, other] = Helper::pair().unwrap();
        let questions = Rc::new(RefCell::new(Questions::default()));
        let mut remote = RemoteAnswers::new(Rc::clone(&questions), main);
        let of = NetnsTuple { netns_id: 7, tuple: CtTuple::EMPTY };
        questions.borrow_mut().wanted.add(of, &1);
        send(&other, &vec![0; BLOCK_BYTES_MAX + 1], "").unwrap();
        assert_eq!(remote.next().unwrap(), Some(&[][..]));
        let lookups = EntryLookups::new(Rc::clone(&questions), Some(Box::new(remote)), None);
        let packet = SeenPacket { of, is_error: false, time_ns: 0, path: 0, begins_anew: false };
        assert_eq!(lookups.find(&packet), None);
        let mut stats = Accounting::default();
        lookups.tell(&WORDS, &mut stats);
        assert_eq!((stats.incomplete, stats.why.len(), stats.why[0].count), (true, 1, 1), "{stats:?}");
    }

    #[test]
    fn too_much_is_refused() {
        let [main, other] = Helper::pair().unwrap();
        main.send(&u32::MAX.to_ne_bytes()).unwrap();
        assert_eq!(answer_all(&other, &mut []).unwrap_err().kind(), ErrorKind::InvalidData);
        other.send(&[0xff; 8]).unwrap();
        assert_eq!(receive(&main, &mut Vec::new()).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_request_is_survived(request in prop::collection::vec(any::<u8>(), 1..200)) {
            let [main, other] = Helper::pair().unwrap();
            let mut message = Vec::new();
            put_message(&mut message, |out| out.extend_from_slice(&request));
            main.send(&message).unwrap();
            drop(main);
            let is_valid = request.chunks(TUPLE_BYTES).all(|one| tuple(one).is_some());
            prop_assert!(is_valid || answer_all(&other, &mut []).is_err());
        }
    }
}
