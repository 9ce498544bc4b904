//! Replies that this kernel does not send: written by hand as a recording, then replayed.
use record::{Accounting, Proto};
use sockets::Options;
use sys::{Blocks, Host, SysError};

use testkit::program::workspace;

use crate::rows::{ATTRIBUTES, Kept, demand, read};

const NETNS: u64 = 7;
const DUMP_INTERRUPTED: u16 = 0x10;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

struct Crafted(std::vec::IntoIter<Vec<u8>>, Vec<u8>);

impl Blocks for Crafted {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        let Some(block) = self.0.next() else { return Ok(None) };
        self.1 = block;
        Ok(Some(&self.1))
    }
}

/// A stream: the table's name in the key, and its blocks.
type Stream = (&'static str, Vec<Vec<u8>>);

fn replay(streams: Vec<Stream>) -> (Vec<Kept>, Accounting) {
    replay_as(Proto::Tcp, streams)
}

fn replay_as(proto: Proto, streams: Vec<Stream>) -> (Vec<Kept>, Accounting) {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape");
    let host = Host::live().recording(&tape).unwrap();
    for (table, blocks) in streams {
        let key = format!("sockets/{table}/netlink@{NETNS}");
        let mut stream = host.stream(&key, "", || Ok(Box::new(Crafted(blocks.into_iter(), Vec::new())))).unwrap();
        while stream.next().unwrap().is_some() {}
    }
    host.finish().unwrap();
    let options = Options { order: vec![proto], if_named: &[], ..Options::new(NETNS) };
    read(&Host::open_replay(&tape).unwrap(), options, &demand(ATTRIBUTES, Vec::new()))
}

fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + payload.len() as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

// An IPv4 listener with this cookie and these attributes.
fn socket(cookie: u8, attrs: &[u8]) -> Vec<u8> {
    let mut payload = [0; 72];
    (payload[0], payload[1], payload[5], payload[44]) = (2, 10, 80, cookie);
    [payload.as_slice(), attrs].concat()
}

fn row(flags: u16, cookie: u8) -> Vec<u8> {
    message(20, flags, &socket(cookie, &[]))
}

fn done(flags: u16) -> Vec<u8> {
    message(NLMSG_DONE, flags, &0i32.to_ne_bytes())
}

fn refusal(errno: i32) -> Vec<u8> {
    message(NLMSG_ERROR, 0, &[(-errno).to_ne_bytes().as_slice(), &[0; 16]].concat())
}

/// Reads every row of tables that this kernel may lack, through the source. The associations of an SCTP socket have its
/// cookie, but are not duplicates of it.
#[test]
fn families_of_other_kernels() {
    for (proto, tables, rows) in [
        (Proto::Sctp, &["sctp4", "sctp6"][..], 7),
        (Proto::Dccp, &["dccp4"], 3),
        (Proto::Vsock, &["vsock"], 4),
        (Proto::Tipc, &["tipc"], 6),
        (Proto::Xdp, &["xdp"], 2),
    ] {
        let file = |table: &str| workspace().join(format!("fixtures/sock_diag/6.12/{table}.nl"));
        let streams = tables.iter().map(|table| (*table, vec![std::fs::read(file(table)).unwrap()])).collect();
        let (got, stats) = replay_as(proto, streams);
        assert_eq!((got.len(), stats.duplicates), (rows, 0), "{proto:?} {stats:?}");
        assert!(got.iter().all(|row| row.proto == proto && row.cookie != 0));
    }
}

#[test]
fn a_row_that_does_not_fit_costs_itself() {
    let broken = message(20, 0, &socket(2, &[40, 0, 8, 0, 1, 2, 3, 4]));
    let short = message(20, 0, &[2; 30]);
    let foreign = message(20, 0, &[99; 80]);
    let blocks = vec![[row(0, 1), broken, short.clone(), short, foreign, row(0, 3), done(0)].concat()];
    let (rows, stats) = replay(vec![("tcp", blocks)]);
    assert_eq!((rows.len(), stats.failed, stats.seen, stats.is_partial()), (2, 4, 6, true));
    let why: Vec<(u64, &str)> = stats.why.iter().map(|why| (why.count, &*why.text)).collect();
    assert_eq!(
        why,
        [
            (1, "malformed rows: attribute 8 claims 40 bytes, 8 are present"),
            (2, "malformed rows: inet_diag_msg claims 72 bytes, 30 are present"),
            (1, "malformed rows: unknown address family 99"),
        ]
    );
}

#[test]
fn reasons_do_not_pile_up() {
    let broken = |n: u8| message(20, 0, &socket(n, &[n, 0, 8, 0]));
    let blocks = vec![(100..200).map(broken).chain([done(0)]).collect::<Vec<_>>().concat()];
    let (_, stats) = replay(vec![("tcp", blocks)]);
    assert_eq!(stats.failed, 100);
    assert!(stats.why.len() <= 9, "{}", stats.why.len());
    assert_eq!(stats.why.iter().map(|why| why.count).sum::<u64>(), 100);
}

#[test]
fn doubles_at_a_boundary_are_removed_and_counted() {
    let first = [row(0, 1), row(0, 2), row(0, 3)].concat();
    let second = [row(0, 2), row(0, 3), row(0, 4), done(0)].concat();
    let (rows, stats) = replay(vec![("tcp", vec![first, second])]);
    assert_eq!((rows.len(), stats.duplicates, stats.seen, stats.is_partial()), (4, 2, 6, false));
}

#[test]
fn an_interrupted_dump_is_begun_again_while_nothing_is_out() {
    let interrupted = vec![done(DUMP_INTERRUPTED)];
    let whole = vec![[row(0, 1), done(0)].concat()];
    let (rows, stats) = replay(vec![("tcp", interrupted), ("tcp", whole)]);
    assert_eq!((rows.len(), stats.incomplete), (1, false));
}

#[test]
fn an_interrupted_dump_after_rows_is_reported() {
    let blocks = vec![[row(0, 1), row(DUMP_INTERRUPTED, 2), done(DUMP_INTERRUPTED)].concat()];
    let (rows, stats) = replay(vec![("tcp", blocks)]);
    assert_eq!((rows.len(), stats.incomplete), (2, true));
    assert_eq!(stats.why[0].text, "TCP sockets changed while they were read: some may be missing");
}

#[test]
fn a_dump_that_is_always_interrupted_ends() {
    let (rows, stats) = replay(vec![("tcp", vec![done(DUMP_INTERRUPTED)])]);
    assert_eq!((rows.len(), stats.incomplete), (0, true));
}

#[test]
fn a_recorded_refusal_is_fallen_back_from_as_it_was() {
    let one = |cookie| vec![[row(0, cookie), done(0)].concat()];
    let (rows, stats) = replay(vec![("tcp", vec![refusal(2)]), ("tcp4", one(1)), ("tcp6", one(2))]);
    assert_eq!((rows.len(), &stats.via[..], stats.why.len()), (2, &["netlink"][..], 0));
}

#[test]
fn an_error_in_the_middle_is_reported_with_the_kernels_words() {
    let (rows, stats) = replay(vec![("tcp", vec![[row(0, 1), refusal(12)].concat()])]);
    assert_eq!((rows.len(), stats.incomplete), (1, true));
    assert_eq!(stats.why[0].text, "cannot dump TCP sockets: cannot allocate memory");
}
