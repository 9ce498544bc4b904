#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::net::{TcpListener, TcpStream};

use proptest::prelude::*;
use sys::fault::{Fault, arm, disarm_all};
use sys::netns;

use super::*;
use crate::attr::{Attrs, aligned};
use crate::message::{NLM_F_ACK_TLVS, NLM_F_CAPPED};

const INTR: u16 = NLM_F_DUMP_INTR;
const MULTI: u16 = 2;

/// One message as the kernel would write it.
fn message(kind: u16, flags: u16, seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + payload.len() as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&seq.to_ne_bytes());
    bytes.extend_from_slice(&77u32.to_ne_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

fn row(text: &[u8]) -> Vec<u8> {
    message(20, MULTI, SEQ, text)
}

fn done(code: i32) -> Vec<u8> {
    message(NLMSG_DONE, MULTI, SEQ, &code.to_ne_bytes())
}

fn attr(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut request = Request::dump(0);
    request.attr(kind, payload);
    request.bytes().unwrap()[16..].to_vec()
}

struct Canned(Vec<Vec<u8>>, usize);

impl Blocks for Canned {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        self.1 += 1;
        Ok(self.0.get(self.1 - 1).map(Vec::as_slice))
    }
}

/// Payloads with their block numbers, and the end.
type Read = (Vec<(Vec<u8>, u64)>, Result<DumpEnd, DumpError>);

fn read_as(request: &Request, seq: Option<u32>, blocks: &[Vec<u8>], stop_after: usize) -> Read {
    let mut got = Vec::new();
    let each = |part: &AnswerMessage<'_>| {
        got.push((part.payload.to_vec(), part.block));
        if got.len() == stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let request = request.bytes().unwrap();
    let mut reading = DumpReader { what: "test rows", request, seq, end: DumpEnd::default(), each };
    let end = reading.run(&mut Canned(blocks.to_vec(), 0));
    (got, end)
}

fn read(blocks: &[Vec<u8>]) -> Read {
    read_as(&Request::dump(20), Some(SEQ), blocks, usize::MAX)
}

#[test]
fn a_whole_dump() {
    let blocks = [[row(b"a"), row(b"bb")].concat(), row(b"c"), done(0)];
    let (got, end) = read(&blocks);
    // Payloads have the length that they state: the padding is not part of them.
    assert_eq!(got, [(b"a".to_vec(), 0), (b"bb".to_vec(), 0), (b"c".to_vec(), 1)]);
    let bytes = blocks.iter().map(Vec::len).sum::<usize>() as u64;
    assert_eq!(end, Ok(DumpEnd { messages: 3, bytes, blocks: 3, ..DumpEnd::default() }));
}

#[test]
fn an_interrupted_dump_is_noticed() {
    let flagged = message(20, MULTI | INTR, SEQ, b"x");
    let (got, end) = read(&[[row(b"a"), flagged, done(0)].concat()]);
    assert_eq!((got.len(), end.unwrap().interrupted), (2, true));
    let flagged = message(NLMSG_DONE, MULTI | INTR, SEQ, &0i32.to_ne_bytes());
    assert!(read(&[row(b"a"), flagged]).1.unwrap().interrupted, "on the end alone");
    assert!(!read(&[row(b"a"), done(0)]).1.unwrap().interrupted);
}

#[test]
fn an_error_in_the_end_message() {
    let (got, end) = read(&[[row(b"a"), done(-libc_errno::ENOMEM)].concat()]);
    assert_eq!(got.len(), 1);
    let error = end.unwrap_err();
    assert_eq!(error.to_string(), "cannot dump test rows: cannot allocate memory");
    assert_eq!(error.errno(), Some(Errno::NOMEM));
    assert!(!error.is_unavailable());
    // The payload contains an explanation after the number.
    let payload = [(-22i32).to_ne_bytes().to_vec(), attr(1, b"filter too odd\0")].concat();
    let end = message(NLMSG_DONE, MULTI | NLM_F_ACK_TLVS, SEQ, &payload);
    let error = read(&[end]).1.unwrap_err();
    assert_eq!(error.to_string(), "cannot dump test rows: invalid argument: filter too odd");
}

#[test]
fn a_refusal_keeps_the_kernels_words_and_place() {
    let mut request = Request::dump(20);
    request.append(&[0; 8]).attr(0x8005, b"filter");
    let sent = request.bytes().unwrap().to_vec();
    let at = 24u32; // after head and body
    let explanation = [attr(1, b"no such \x1b[31mthing\0"), attr(2, &at.to_ne_bytes())].concat();
    // The refusal repeats the whole request once, and only its head once.
    for (flags, repeated) in [(0, &sent[..]), (NLM_F_CAPPED, &sent[..16])] {
        let payload = [&(-1i32).to_ne_bytes()[..], repeated, &explanation].concat();
        let refusal = message(NLMSG_ERROR, flags | NLM_F_ACK_TLVS, SEQ, &payload);
        let error = read_as(&request, Some(SEQ), &[refusal], usize::MAX).1.unwrap_err();
        let says = Some("no such \\u{1b}[31mthing".into());
        let expected =
            DumpError::Refused { what: "test rows", errno: Errno::PERM, kernel_says: says, at_attr: Some(5) };
        assert_eq!(error, expected);
        assert!(error.is_unavailable());
        assert!(error.to_string().ends_with("(`netwren support` lists what works)"), "{error}");
    }
    // A truncated explanation, or one that points outside the request, is ignored; the refusal is kept.
    let payload = [&(-1i32).to_ne_bytes()[..], &sent[..16], &attr(2, &u32::MAX.to_ne_bytes()), &[9, 0, 1]].concat();
    let refusal = message(NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, SEQ, &payload);
    let error = read_as(&request, Some(SEQ), &[refusal], usize::MAX).1.unwrap_err();
    assert!(matches!(error, DumpError::Refused { at_attr: None, kernel_says: None, .. }));
}

#[test]
fn answers_to_others_are_skipped_and_counted() {
    let foreign = message(20, MULTI, SEQ + 9, b"not ours");
    let foreign_end = message(NLMSG_DONE, MULTI, SEQ + 9, &0i32.to_ne_bytes());
    let odd = message(0, MULTI, SEQ, b"");
    let noop = message(NLMSG_NOOP, MULTI, SEQ, b"");
    let ack = message(NLMSG_ERROR, 0, SEQ, &[0; 20]);
    let (got, end) = read(&[[foreign, foreign_end, odd, noop, ack, row(b"ours"), done(0)].concat()]);
    let end = end.unwrap();
    assert_eq!((got.len(), end.messages, end.unexpected), (1, 1, 3));
}

#[test]
fn a_replay_takes_the_recorded_number() {
    let block = [message(20, MULTI, 4711, b"a"), message(NLMSG_DONE, MULTI, 4711, &[0; 4])].concat();
    let (got, end) = read_as(&Request::dump(20), None, &[block], usize::MAX);
    assert_eq!((got.len(), end.unwrap().unexpected), (1, 0));
}

#[test]
fn a_length_that_does_not_fit() {
    let mut block = [row(b"a"), row(b"bbbb")].concat();
    block.truncate(block.len() - 2);
    let (got, end) = read(&[block]);
    assert_eq!(got.len(), 1);
    assert_eq!(end, Err(DumpError::Malformed { what: "test rows", attr: None, claims: 20, has: 18 }));
    for claims in [0u32, 15, u32::MAX] {
        let mut block = row(b"a");
        block[..4].copy_from_slice(&claims.to_ne_bytes());
        assert!(matches!(read(&[block]).1, Err(DumpError::Malformed { .. })), "{claims}");
    }
    assert!(matches!(read(&[vec![1, 2, 3]]).1, Err(DumpError::Malformed { claims: 16, has: 3, .. })));
    let short_error = message(NLMSG_ERROR, 0, SEQ, &[1, 2]);
    assert!(matches!(read(&[short_error]).1, Err(DumpError::Malformed { claims: 20, has: 18, .. })));
}

#[test]
fn bytes_that_end_before_the_dump() {
    let (got, end) = read(&[row(b"a"), row(b"b")]);
    assert_eq!(got.len(), 2);
    let error = end.unwrap_err();
    assert_eq!(error.to_string(), "test rows are incomplete: the recording breaks off here, after 2 messages");
    assert!(!error.is_unavailable());
    let overrun = message(NLMSG_OVERRUN, 0, SEQ, b"");
    assert!(matches!(read(&[row(b"a"), overrun]).1, Err(DumpError::Overrun { messages: 1, .. })));
}

#[test]
fn an_early_stop_is_no_error() {
    let blocks = [[row(b"a"), row(b"b")].concat(), vec![0xff; 3]];
    let (got, end) = read_as(&Request::dump(20), Some(SEQ), &blocks, 1);
    let end = end.unwrap();
    assert_eq!((got.len(), end.stopped, end.messages), (1, true, 1));
}

#[test]
fn one_thing_ends_with_its_acknowledgement() {
    let answer = message(20, 0, SEQ, b"it");
    let ack = message(NLMSG_ERROR, NLM_F_CAPPED, SEQ, &[0; 20]);
    let (got, end) = read_as(&Request::for_one(20), Some(SEQ), &[answer, ack], usize::MAX);
    assert_eq!((got.len(), end.unwrap().messages), (1, 1));
}

#[test]
fn a_request_too_long_is_not_sent() {
    let mut request = Request::dump(20);
    request.attr(3, &[0; 65_532]).attr(4, &[0; 70_000]);
    let ask = ask(&request);
    let error = dump(&Host::live(), &ask, |_| panic!("must not be sent")).unwrap_err();
    assert_eq!(error, DumpError::TooLong { what: "tcp sockets", attr: 3, bytes: 65_532 });
}

/// SOCK_DIAG_BY_FAMILY for TCP over IPv4 in these states.
fn tcp4(states: u32) -> Request {
    let mut body = vec![2, 6, 0, 0];
    body.extend_from_slice(&states.to_ne_bytes());
    body.resize(56, 0);
    let mut request = Request::dump(20);
    request.append(&body);
    request
}

fn ask(request: &Request) -> Query<'_> {
    Query { what: "tcp sockets", protocol: 4, request, key: "tcp4", note: "", netns: None }
}

/// Local ports of the rows of a dump.
fn ports(host: &Host, ask: &Query<'_>) -> (Vec<u16>, DumpEnd) {
    let mut ports = Vec::new();
    let end = dump(host, ask, |part| {
        assert_eq!(part.kind, 20);
        ports.extend(prefix::be16_at(part.payload, 4));
        for attr in Attrs::new(&part.payload[72..]) {
            attr.unwrap();
        }
        ControlFlow::Continue(())
    });
    (ports, end.unwrap())
}

#[test]
fn the_live_table_has_our_listener() {
    let listeners: Vec<TcpListener> = (0..20).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let own: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    let before = sys::cost::syscalls();
    let (seen, end) = ports(&Host::live(), &ask(&tcp4(1 << 10)));
    assert!(sys::cost::syscalls() > before);
    assert!(own.iter().all(|port| seen.contains(port)));
    assert!(end.messages >= 20 && end.unexpected == 0 && !end.stopped);
    assert_eq!(end.messages, seen.len() as u64);
}

#[test]
fn a_table_of_many_buffers_and_an_early_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let pairs: Vec<(TcpStream, TcpStream)> =
        (0..300).map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0)).collect();
    let request = tcp4(!0);
    // A set, because a row may be repeated if other tests open and close sockets at the same time.
    let mut clients = std::collections::BTreeSet::new();
    let end = dump(&Host::live(), &ask(&request), |part| {
        let (local, peer) = (prefix::be16_at(part.payload, 4), prefix::be16_at(part.payload, 6));
        if local == Some(address.port()) {
            clients.insert(peer);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(clients.len(), pairs.len() + 1, "all clients, and 0 for the listener");
    let end = end.unwrap();
    assert!(end.blocks >= 2, "{end:?}");
    let end = dump(&Host::live(), &ask(&request), |_| ControlFlow::Break(())).unwrap();
    assert_eq!((end.messages, end.blocks, end.stopped), (1, 1, true));
}

#[test]
fn the_kernel_refuses_a_family_it_lacks() {
    let mut request = Request::dump(20);
    let mut body = vec![0; 56];
    body[0] = 0; // AF_UNSPEC
    body[1] = 6;
    request.append(&body);
    let error = dump(&Host::live(), &ask(&request), |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, DumpError::Refused { errno: Errno::NOENT, .. }), "{error:?}");
    assert!(error.is_unavailable());
}

#[test]
fn the_kernel_explains() {
    // RTM_GETNEIGH for IPv4: once without an address (the kernel names the missing attribute), once with an address of
    // a wrong length (the kernel explains it in text).
    let refusal = |address: Option<&[u8]>| {
        let mut request = Request::for_one(30);
        request.append(&[2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        if let Some(address) = address {
            request.attr(1, address);
        }
        let ask = Query { what: "neighbour", protocol: 0, request: &request, key: "neighbour", note: "", netns: None };
        exchange(&Host::live(), &ask, |_| ControlFlow::Continue(())).unwrap_err()
    };
    let error = refusal(Some(&[1, 2, 3]));
    let DumpError::Refused { errno: Errno::INVAL, kernel_says: Some(says), .. } = &error else { panic!("{error:?}") };
    assert!(says.contains("address"), "{says}");
    // The missing attribute is named since 6.0, before that it is explained in text.
    let error = refusal(None);
    let DumpError::Refused { errno: Errno::INVAL, kernel_says, at_attr, .. } = &error else { panic!("{error:?}") };
    assert!(*at_attr == Some(1) || kernel_says.is_some(), "{error:?}");
}

#[test]
fn an_exact_answer_and_its_acknowledgement() {
    // RTM_GETLINK for the loopback device: one message, then the acknowledgement.
    let mut request = Request::for_one(18);
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&1i32.to_ne_bytes());
    request.append(&body);
    let ask = Query { what: "link", protocol: 0, request: &request, key: "link", note: "", netns: None };
    let mut names = Vec::new();
    let end = exchange(&Host::live(), &ask, |part| {
        for attr in Attrs::new(&part.payload[16..]).map(Result::unwrap).filter(|attr| attr.kind == 3) {
            names.push(attr.c_str().to_vec());
        }
        ControlFlow::Continue(())
    });
    assert_eq!(end.unwrap().messages, 1);
    assert_eq!(names, [b"lo"]);
}

#[test]
fn recorded_and_replayed() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let _listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let request = tcp4(1 << 10);
    let ask = ask(&request);
    let host = Host::live().recording(&path).unwrap();
    let live = ports(&host, &ask);
    host.finish().unwrap();

    let replay = Host::open_replay(&path).unwrap();
    let opened = sys::cost::syscalls();
    assert_eq!(ports(&replay, &ask), live);
    assert!(sys::cost::syscalls() > opened);
    replay.finish().unwrap();
    let other = Query { key: "udp4", ..ask };
    let error = dump(&replay, &other, |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.errno(), Some(Errno::NOT_RECORDED));

    // Wherever the file is truncated, the dump ends with an error or the file is reported as incomplete.
    let bytes = std::fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let Ok(replay) = Host::open_replay(&path) else { continue };
        let _ = dump(&replay, &ask, |_| ControlFlow::Continue(()));
        assert!(replay.finish().is_err(), "cut at {length}");
    }
}

#[test]
fn a_recording_that_stopped_early_cannot_be_replayed_further() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("tape");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _pairs: Vec<(TcpStream, TcpStream)> =
        (0..300).map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0)).collect();
    let request = tcp4(!0);
    let host = Host::live().recording(&path).unwrap();
    dump(&host, &ask(&request), |_| ControlFlow::Break(())).unwrap();
    host.finish().unwrap();
    let replay = Host::open_replay(&path).unwrap();
    let error = dump(&replay, &ask(&request), |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, DumpError::CutShort { errno: Errno::NOT_RECORDED, .. }), "{error:?}");
    assert!(dump(&replay, &ask(&request), |_| ControlFlow::Break(())).is_ok(), "as far as the recording went");
}

#[test]
fn refused_sockets_and_lost_messages() {
    let request = tcp4(1 << 10);
    let run = || dump(&Host::live(), &ask(&request), |_| ControlFlow::Continue(()));
    arm("socket", 0, 1, Fault::Fails(Errno::PERM));
    let denied = run();
    arm("recvmsg", 0, 1, Fault::Fails(Errno::NOBUFS));
    let lost = run();
    arm("recvmsg", 0, 1, Fault::Short(100));
    let cut = run();
    arm("recvmsg", 0, 3, Fault::Fails(Errno::INTR));
    let interrupted = run();
    disarm_all();
    let denied = denied.unwrap_err();
    assert_eq!(denied.to_string(), "cannot open netlink socket (sock_diag): operation not permitted");
    assert!(denied.is_unavailable());
    assert!(matches!(lost, Err(DumpError::Overrun { messages: 0, .. })), "{lost:?}");
    assert_eq!(cut.unwrap_err().errno(), Some(Errno::MSGSIZE));
    assert!(interrupted.is_ok());
}

#[test]
fn issue_10_an_answer_without_end_is_left() {
    let mut blocks = EndlessAnswer::default();
    let empty = (0..10_000).take_while(|_| blocks.block(0, false).is_ok()).count();
    assert_eq!((empty, blocks.block(0, false)), (EMPTY_BLOCKS_MAX as usize, Err(Errno::IO)));
    assert_eq!(EndlessAnswer::default().block(0, true), Err(Errno::INTR));
    let mut blocks = EndlessAnswer::default();
    assert!((1..100_000).all(|n| blocks.block(n, false).is_ok()), "rows may be many");
    let after = (100_000..200_000).take_while(|&n| blocks.block(n, true).is_ok()).count();
    assert_eq!(after, BLOCKS_AFTER_INTERRUPT as usize);
}

#[test]
fn root_asked_in_another_namespace() {
    if !testkit::root::root_or_skip("entering a network namespace") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let home = NetNs::current().unwrap();
    std::thread::spawn(move || {
        netns::unshare_net().unwrap();
        let (request, host) = (tcp4(1 << 10), Host::live());
        assert_eq!(ports(&host, &ask(&request)).0, []);
        let there = Query { netns: Some(&home), ..ask(&request) };
        assert!(ports(&host, &there).0.contains(&port));
        assert_ne!(netns::current_inode().unwrap(), home.inode());
    })
    .join()
    .unwrap();
}

/// The error numbers used here; two of them are not worth a dependency.
mod libc_errno {
    pub(super) const ENOMEM: i32 = 12;
}

proptest! {
    #[test]
    fn random_bytes_end_without_panic(data in proptest::collection::vec(any::<u8>(), 0..600), block in 1usize..300) {
        fuzz_dump(&data, block);
        crate::fuzz_attrs(&data);
    }

    // Random bytes rarely look like messages: these do, occasionally with wrong lengths.
    #[test]
    fn odd_messages_end_without_panic(
        parts in proptest::collection::vec(
            (any::<u8>(), any::<u16>(), proptest::collection::vec(any::<u8>(), 0..60), 0usize..40), 0..12),
    ) {
        let mut data = Vec::new();
        for (kind, flags, payload, length) in parts {
            let mut one = message(u16::from(kind % 24), flags, SEQ, &payload);
            if length < 8 {
                one[0] = one[0].wrapping_add(length as u8);
            }
            data.extend_from_slice(&one);
        }
        fuzz_dump(&data, 200);
        fuzz_dump(&data, usize::MAX);
    }

    #[test]
    fn what_is_built_is_what_is_read(
        body in proptest::collection::vec(any::<u8>(), 0..40),
        attrs in proptest::collection::vec((0u16..0x4000, proptest::collection::vec(any::<u8>(), 0..40)), 0..8),
        inner in proptest::collection::vec((0u16..0x4000, proptest::collection::vec(any::<u8>(), 0..20)), 0..4),
    ) {
        let mut request = Request::dump(20);
        request.append(&body);
        for (kind, payload) in &attrs {
            request.attr(*kind, payload);
        }
        request.nested(7, |request| {
            for (kind, payload) in &inner {
                request.attr(*kind, payload);
            }
        });
        let bytes = request.bytes().unwrap();
        prop_assert_eq!(bytes.len() % 4, 0);
        let messages: Vec<Message<'_>> = Messages::new(bytes).map(Result::unwrap).collect();
        prop_assert_eq!(messages.len(), 1);
        let (got_body, rest) = messages[0].payload.split_at(aligned(body.len()));
        prop_assert_eq!(&got_body[..body.len()], &body[..]);
        let got: Vec<_> = Attrs::new(rest).map(|attr| attr.unwrap()).collect();
        prop_assert_eq!(got.len(), attrs.len() + 1);
        for (attr, (kind, payload)) in got.iter().zip(&attrs) {
            prop_assert_eq!((attr.kind, attr.payload), (*kind, &payload[..]));
        }
        let nested: Vec<_> = got[attrs.len()].nested().map(|attr| attr.unwrap()).collect();
        prop_assert_eq!(nested.len(), inner.len());
        for (attr, (kind, payload)) in nested.iter().zip(&inner) {
            prop_assert_eq!((attr.kind, attr.payload), (*kind, &payload[..]));
        }
    }
}
