#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
//! Tests the resolver with small name servers on loopback: good, slow, dead and hostile ones.
use super::*;
use std::net::UdpSocket;

/// A name server in a thread: `answers` returns the datagrams to send for each query.
struct Server {
    addr: SocketAddr,
    thread: Option<JoinHandle<Vec<Vec<u8>>>>,
}

impl Server {
    fn new(answers: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = socket.local_addr().unwrap();
        let serve = move || {
            let (mut queries, mut buffer) = (Vec::new(), [0; 512]);
            loop {
                let (got, from) = socket.recv_from(&mut buffer).unwrap();
                // An empty datagram ends the thread.
                if got == 0 {
                    return queries;
                }
                queries.push(buffer[..got].to_vec());
                for answer in answers(&buffer[..got]) {
                    // The resolver may have ended already.
                    let _ = socket.send_to(&answer, from);
                }
            }
        };
        Server { addr, thread: Some(std::thread::spawn(serve)) }
    }

    fn stop(&mut self) -> Vec<Vec<u8>> {
        let Some(thread) = self.thread.take() else { return Vec::new() };
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[], self.addr).unwrap();
        thread.join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The query as an answer with this response code and, if there is a name, one PTR record.
fn answer(query: &[u8], rcode: u8, name: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = query.to_vec();
    bytes[2] |= 0x80;
    bytes[3] = rcode;
    if let Some(name) = name {
        bytes[7] = 1;
        bytes.extend([0xc0, 12, 0, 12, 0, 1, 0, 0, 0, 60, 0, name.len() as u8]);
        bytes.extend(name);
    }
    bytes
}

/// `host-LAST-OCTET.test` for IPv4 queries: the first label is the last octet.
fn name_of(query: &[u8]) -> Vec<u8> {
    let octet = &query[13..13 + usize::from(query[12])];
    let label = [b"host-", octet].concat();
    [&[label.len() as u8], &label[..], b"\x04test\0"].concat()
}

fn options(servers: &[&Server]) -> ResolverOptions {
    let servers = servers.iter().map(|server| server.addr).collect();
    ResolverOptions { servers: Some(servers), timeout: Duration::from_millis(100), ..ResolverOptions::default() }
}

/// A host with its own /etc, so that this machine's hosts file does not matter.
fn host(hosts: &str) -> (tempfile::TempDir, Host) {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("hosts"), hosts).unwrap();
    let host = Host::with_roots("/proc".into(), "/sys".into(), tmp.path().into());
    (tmp, host)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn addr(text: &str) -> Addr {
    text.parse().unwrap()
}

/// Requests one address and returns its name and the outcome.
fn ask(options: &ResolverOptions) -> (Option<Vec<u8>>, NamesReport) {
    let (_tmp, host) = host("");
    let resolver = Resolver::start(&host, options).unwrap();
    resolver.want(addr("192.0.2.5"));
    resolver.wait_until(soon());
    let names = resolver.names(&host).unwrap();
    (names.name(addr("192.0.2.5")).map(<[u8]>::to_vec), resolver.report())
}

#[test]
fn many_names_through_few_flights() {
    let mut server = Server::new(|query| vec![answer(query, 0, Some(&name_of(query)))]);
    let (_tmp, host) = host("192.0.2.7 seven.local\n2001:db8::7 seven6\n");
    let resolver = Resolver::start(&host, &ResolverOptions { in_flight_max: 8, ..options(&[&server]) }).unwrap();
    for n in 0..=255 {
        resolver.want(Addr::V4([192, 0, 2, n]));
        resolver.want(Addr::V6([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, n]));
    }
    for unasked in ["0.0.0.0", "::", "fe80::1", "2001:db8::7"] {
        resolver.want(addr(unasked));
    }
    resolver.wait_until(soon());
    let names = resolver.names(&host).unwrap();
    for n in (0..=255).filter(|n| *n != 7) {
        let expected = format!("host-{n}.test");
        assert_eq!(names.name(Addr::V4([192, 0, 2, n])), Some(expected.as_bytes()));
    }
    assert_eq!(names.name(addr("::ffff:192.0.2.7")), Some(&b"seven.local"[..]));
    assert_eq!(names.name(addr("2001:db8::7")), Some(&b"seven6"[..]));
    assert_eq!(names.name(addr("fe80::1")), None);
    assert_eq!(resolver.report(), NamesReport { found: 255, ..NamesReport::default() });
    drop(resolver);
    let queries = server.stop();
    let mut ids: Vec<[u8; 2]> = queries.iter().map(|query| [query[0], query[1]]).collect();
    let in_order = ids.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((64..192).contains(&in_order), "ids that follow a pattern: {in_order} of 254 ascend");
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() > 240, "{} different ids", ids.len());
}

#[test]
fn an_address_without_a_name() {
    for rcode in [3, 0] {
        let server = Server::new(move |query| vec![answer(query, rcode, None)]);
        assert_eq!(ask(&options(&[&server])), (None, NamesReport { nameless: 1, ..NamesReport::default() }));
    }
    // A name that is too long after its bytes are escaped; and the root.
    let long = [&[63][..], &[0xff; 63], &[63], &[0xff; 63], &[0]].concat();
    for name in [long, vec![0]] {
        let server = Server::new(move |query| vec![answer(query, 0, Some(&name))]);
        assert_eq!(ask(&options(&[&server])).1.nameless, 1);
    }
}

#[test]
fn a_server_that_is_silent_and_one_that_is_not_there() {
    let mut silent = Server::new(|_| Vec::new());
    let failed = NamesReport { failed: 1, ..NamesReport::default() };
    assert_eq!(ask(&options(&[&silent])), (None, failed));
    assert_eq!(silent.stop().len(), 2, "two tries");
    // Its port is closed by now: the kernel reports that immediately, long before the timeout.
    let patient = ResolverOptions { timeout: Duration::from_secs(3600), ..options(&[&silent]) };
    assert_eq!(ask(&patient), (None, failed));
    let nowhere = ResolverOptions { servers: Some(Vec::new()), ..patient };
    assert_eq!(ask(&nowhere), (None, failed));
}

#[test]
fn the_second_server_knows() {
    let good = Server::new(|query| vec![answer(query, 0, Some(&name_of(query)))]);
    let refusing = Server::new(|query| vec![answer(query, 5, None)]);
    let silent = Server::new(|_| Vec::new());
    let mut gone = Server::new(|_| Vec::new());
    gone.stop();
    for first in [&refusing, &silent, &gone] {
        assert_eq!(ask(&options(&[first, &good])).0, Some(b"host-5.test".to_vec()));
    }
}

#[test]
fn lies_before_the_answer() {
    let server = Server::new(|query| {
        let evil = answer(query, 0, Some(b"\x04evil\0"));
        let (mut other_id, mut other_question) = (evil.clone(), evil.clone());
        other_id[1] ^= 1;
        other_question[13] = b'9';
        let garbage = (0..50u8).map(|n| vec![n; usize::from(n)]);
        let cut = (0..query.len()).map(|n| evil[..n].to_vec());
        let lies = [other_id, other_question, query.to_vec(), vec![0; 512]];
        let truth = answer(query, 0, Some(b"\x04good\x04test\0"));
        garbage.chain(cut).chain(lies).chain([truth]).filter(|answer| !answer.is_empty()).collect()
    });
    let (name, report) = ask(&options(&[&server]));
    assert_eq!(name, Some(b"good.test".to_vec()));
    assert_eq!(report.found, 1);
}

#[test]
fn an_answer_from_a_stranger_does_not_count() {
    // The server stays silent and lets another socket of the same host answer.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let servers = Some(vec![server.local_addr().unwrap()]);
    let options = ResolverOptions { servers, timeout: Duration::from_millis(100), ..ResolverOptions::default() };
    let serve = std::thread::spawn(move || {
        let mut buffer = [0; 512];
        for _ in 0..2 {
            let (got, from) = server.recv_from(&mut buffer).unwrap();
            let _ = stranger.send_to(&answer(&buffer[..got], 0, Some(b"\x04evil\0")), from);
        }
    });
    assert_eq!(ask(&options), (None, NamesReport { failed: 1, ..NamesReport::default() }));
    serve.join().unwrap();
}

#[test]
fn waiting_ends_at_the_deadline_and_dropping_at_once() {
    let server = Server::new(|_| Vec::new());
    let (_tmp, host) = host("");
    let options = ResolverOptions { timeout: Duration::from_secs(3600), ..options(&[&server]) };
    let resolver = Resolver::start(&host, &options).unwrap();
    (0..200).for_each(|n| resolver.want(Addr::V4([192, 0, 2, n])));
    let before = Instant::now();
    resolver.wait_until(before + Duration::from_millis(20));
    assert!(before.elapsed() < Duration::from_secs(60));
    let report = resolver.report();
    assert_eq!(report.waiting, 200);
    assert_eq!(report.lines(), ["names of 200 addresses did not arrive in time (allow more: --resolve=5s)"]);
    assert!(resolver.names(&host).unwrap().is_empty());
    drop(resolver);
    assert!(before.elapsed() < Duration::from_secs(60));
}

#[test]
fn what_is_remembered_is_bounded() {
    let server = Server::new(|query| vec![answer(query, 0, Some(&name_of(query)))]);
    let hosts: String = (0..100).map(|n| format!("10.0.0.{n} n{n}\n")).collect();
    let (_tmp, host) = host(&hosts);
    let resolver = Resolver::start(&host, &ResolverOptions { addresses_max: 20, ..options(&[&server]) }).unwrap();
    (0..50).for_each(|n| resolver.want(Addr::V4([192, 0, 2, n])));
    resolver.wait_until(soon());
    let report = resolver.report();
    assert_eq!(report, NamesReport { found: 10, over: 40, ..NamesReport::default() });
    assert_eq!(report.lines(), ["names of 40 addresses not requested: too many"]);
}

#[test]
fn a_replay_sends_no_query_and_knows_the_same_names() {
    let mut server = Server::new(|query| vec![answer(query, 0, Some(&name_of(query)))]);
    let (tmp, host) = host("");
    let tape = tmp.path().join("tape");
    let host = host.recording(&tape).unwrap();
    let resolver = Resolver::start(&host, &options(&[&server])).unwrap();
    resolver.want(addr("192.0.2.5"));
    resolver.wait_until(soon());
    resolver.names(&host).unwrap();
    host.finish().unwrap();
    drop(resolver);
    server.stop();

    let host = Host::open_replay(&tape).unwrap();
    let resolver = Resolver::start(&host, &options(&[&server])).unwrap();
    resolver.want(addr("192.0.2.5"));
    resolver.wait_until(soon());
    assert_eq!(resolver.names(&host).unwrap().name(addr("192.0.2.5")), Some(&b"host-5.test"[..]));
    assert_eq!(resolver.report(), NamesReport::default());
}

#[test]
fn a_host_without_files_asks_itself() {
    let tmp = tempfile::tempdir().unwrap();
    let host = Host::with_roots("/proc".into(), "/sys".into(), tmp.path().into());
    let resolver = Resolver::start(&host, &ResolverOptions::default()).unwrap();
    assert!(resolver.names(&host).unwrap().is_empty());
}

#[test]
fn what_is_forgotten_is_asked_for_again() {
    let mut server = Server::new(|query| vec![answer(query, 0, Some(&name_of(query)))]);
    let (_tmp, host) = host("192.0.2.200 listed\n");
    let resolver =
        Resolver::start(&host, &ResolverOptions { addresses_max: 4, forgets: true, ..options(&[&server]) }).unwrap();
    for n in [1, 2, 3, 4, 1] {
        let wanted = Addr::V4([192, 0, 2, n]);
        assert_eq!(resolver.known(wanted), KnownName::Unasked, "{n}");
        resolver.want(wanted);
        let name = format!("host-{n}.test").into_bytes().into_boxed_slice();
        assert_eq!(resolver.wait_for(wanted, soon()), KnownName::Name(name));
    }
    assert_eq!(resolver.known(addr("192.0.2.200")), KnownName::Name(b"listed"[..].into()));
    assert_eq!(resolver.report().over, 0);
    drop(resolver);
    assert_eq!(server.stop().len(), 5);
}

#[test]
fn names_that_no_host_can_have_or_that_look_like_addresses() {
    for (name, is_one) in [
        (&b"\x03a-b\x03c_d\0"[..], true),
        (b"\x0210\x010\x03net\0", true),
        (b"\x042001\x02db\x02b8\0", true),
        (b"\x03a\x1bb\0", false),
        (b"\x02-a\0", false),
        (b"\x03a.b\0", false),
        (b"\x02\xc3\xa4\0", false),
        (b"\x0210\x010\x010\x011\0", false),
        (b"\x0810.0.0.1\0", false),
        (b"\x0210\x011\0", false),
        (b"\x09167772161\0", false),
        (b"\x0a0x7f000001\0", false),
        (b"\x020X\0", false),
        (b"\x03::1\0", false),
        (b"\x0c2001:db8::17\0", false),
        (b"\x03a:1\0", false),
        (b"\x03a b\0", false),
    ] {
        let server = Server::new(|query| vec![answer(query, 0, Some(name))]);
        let (one, report) = ask(&options(&[&server]));
        assert_eq!((one.is_some(), report.failed), (is_one, 0), "{name:?}");
    }
}

/// While no server answers, no address is forgotten, and addresses beyond the limit are counted.
#[test]
fn a_flood_of_addresses_is_bounded() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (_tmp, host) = host("");
    let options = ResolverOptions {
        servers: Some(vec![silent.local_addr().unwrap()]),
        timeout: Duration::from_secs(600),
        addresses_max: 4,
        forgets: true,
        ..ResolverOptions::default()
    };
    let resolver = Resolver::start(&host, &options).unwrap();
    (0..10).for_each(|n| resolver.want(Addr::V4([192, 0, 2, n])));
    let report = resolver.report();
    assert_eq!((report.waiting, report.over), (4, 6));
    assert_eq!(resolver.known(addr("192.0.2.3")), KnownName::Waiting);
    assert_eq!(resolver.known(addr("192.0.2.4")), KnownName::Unasked);
}
