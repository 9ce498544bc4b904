//! Queries entries through another process, because this one has dropped the privilege.
//!
//! The querying process gets tuples of fixed size and answers with a block in the form of [`super::Asking`], and with
//! the reason for failed queries. Numbers are in the host's byte order, which both processes share.

use super::NetnsTuple;
use super::asking::{AnswersHeader, Questions, ask_all};
use super::wanted::{LOOKUPS_AT_ONCE, lookup_share, take_lookups};
use conntrack::EntryQueries;
use record::Addr;
use record::rows::CtTuple;
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use sys::{Blocks, Errno, Share, SysError};

/// Size of a tuple in bytes: its namespace, family, protocol, two parts, two addresses.
const TUPLE_BYTES: usize = 8 + 1 + 1 + 2 + 2 + 16 + 16;
/// Maximum size of a block of answers; an answer has some 400 bytes.
///
/// Bound: bytes of the answers about a batch. Beyond: further rows have no connection; reported (exit code 3). By: a
/// broken kernel.
const BLOCK_BYTES_MAX: usize = 64 << 20;
/// Maximum length of a reason.
///
/// Bound: bytes of a reason for a missing connection (`remote::too_much_is_refused`). Beyond: the answer is refused.
/// By: a broken kernel.
const TROUBLE_BYTES_MAX: usize = 4096;
const V4: u8 = 4;
const V6: u8 = 6;

/// Queries the process at the other end of a socket.
pub struct RemoteAnswers {
    questions: Rc<RefCell<Questions>>,
    stream: UnixStream,
    share: Share,
    /// Buffer for the request.
    request: Vec<u8>,
    block: Vec<u8>,
}

impl RemoteAnswers {
    /// `stream` is connected to [`answer_all`] and has timeouts.
    pub fn new(questions: Rc<RefCell<Questions>>, stream: UnixStream) -> RemoteAnswers {
        RemoteAnswers { questions, stream, share: lookup_share(), request: Vec::new(), block: Vec::new() }
    }
}

impl Blocks for RemoteAnswers {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let RemoteAnswers { questions, stream, share, request, block } = self;
        let mut questions = questions.borrow_mut();
        let most = take_lookups(share, questions.wanted.len());
        let (asked, left_out) = questions.wanted.take(most);
        questions.left_out = left_out.into_iter().collect();
        block.clear();
        if asked.is_empty() {
            return Ok(Some(block));
        }
        request.clear();
        request.extend_from_slice(&(asked.len() as u32).to_ne_bytes());
        asked.iter().for_each(|of| put_tuple(of, request));
        let failed = |error: io::Error| {
            let errno = error.raw_os_error().map_or(Errno::PIPE, Errno);
            SysError::new("recv", "entries from the lookup process", errno)
        };
        stream.write_all(request).map_err(failed)?;
        let trouble = receive(stream, block).map_err(failed)?;
        if !trouble.is_empty() {
            questions.trouble.get_or_insert(trouble);
        }
        Ok(Some(block))
    }
}

/// Receives an answer: its block, and the reason for failed queries.
pub fn receive(stream: &mut UnixStream, block: &mut Vec<u8>) -> io::Result<String> {
    let mut lengths = [[0; 4]; 2];
    stream.read_exact(lengths.as_flattened_mut())?;
    let [bytes, trouble] = lengths.map(|length| u32::from_ne_bytes(length) as usize);
    if bytes > BLOCK_BYTES_MAX || trouble > TROUBLE_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    block.resize(bytes, 0);
    stream.read_exact(block)?;
    let mut text = vec![0; trouble];
    stream.read_exact(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Sends an answer.
pub fn send(stream: &mut UnixStream, block: &[u8], trouble: &str) -> io::Result<()> {
    let trouble = trouble.as_bytes();
    let trouble = trouble.get(..TROUBLE_BYTES_MAX).unwrap_or(trouble);
    let block = if block.len() > BLOCK_BYTES_MAX { &[] } else { block };
    let lengths = [block.len() as u32, trouble.len() as u32].map(u32::to_ne_bytes);
    stream.write_all(&[lengths.as_flattened(), block, trouble].concat())
}

/// Answers requests from the other end until it closes, with one query socket per namespace. Returns at an invalid
/// request.
pub fn answer_all(stream: &mut UnixStream, queries: &mut [EntryQueries]) -> io::Result<()> {
    let (mut tuples, mut block) = (Vec::new(), Vec::new());
    loop {
        let mut count = [0; 4];
        stream.read_exact(&mut count)?;
        let count = u32::from_ne_bytes(count);
        if u64::from(count) > LOOKUPS_AT_ONCE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        tuples.resize(count as usize * TUPLE_BYTES, 0);
        stream.read_exact(&mut tuples)?;
        let asked: Vec<NetnsTuple> = tuples.chunks_exact(TUPLE_BYTES).filter_map(tuple).collect();
        let (unanswered, trouble) = ask_all(queries, &asked, &mut block);
        if let Some(place) = block.first_chunk_mut() {
            *place = AnswersHeader { unanswered, ..AnswersHeader::default() }.bytes();
        }
        send(stream, &block, &trouble.map(|error| error.to_string()).unwrap_or_default())?;
    }
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
        let (ours, mut other) = UnixStream::pair().unwrap();
        let questions = Rc::new(RefCell::new(Questions::default()));
        let mut remote = RemoteAnswers::new(Rc::clone(&questions), ours);
        assert_eq!(remote.next().unwrap(), Some(&[][..]), "nothing is asked: nothing is sent");
        let of = NetnsTuple { netns_id: 7, tuple: CtTuple::EMPTY };
        questions.borrow_mut().wanted.add(of, &1);
        send(&mut other, b"block", "no right").unwrap();
        assert_eq!(remote.next().unwrap(), Some(&b"block"[..]));
        assert_eq!(questions.borrow().trouble.as_deref(), Some("no right"));
        let mut request = [0; 4 + TUPLE_BYTES];
        other.read_exact(&mut request).unwrap();
        assert_eq!((request[..4].to_vec(), tuple(&request[4..])), (1u32.to_ne_bytes().to_vec(), Some(of)));
        drop(other);
        questions.borrow_mut().wanted.add(of, &1);
        assert!(remote.next().is_err());
    }

    #[test]
    fn too_much_is_refused() {
        let (mut ours, mut other) = UnixStream::pair().unwrap();
        ours.write_all(&u32::MAX.to_ne_bytes()).unwrap();
        assert_eq!(answer_all(&mut other, &mut []).unwrap_err().kind(), io::ErrorKind::InvalidData);
        other.write_all(&[0xff; 8]).unwrap();
        assert_eq!(receive(&mut ours, &mut Vec::new()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_request_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = tuple(&bytes);
            let (mut ours, mut other) = UnixStream::pair().unwrap();
            ours.write_all(&bytes).unwrap();
            drop(ours.shutdown(std::net::Shutdown::Write));
            prop_assert!(answer_all(&mut other, &mut []).is_err());
        }
    }
}
