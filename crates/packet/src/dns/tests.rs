#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use proptest::prelude::*;
use record::Addr;

fn text(name: Name<'_>) -> String {
    let mut text = Vec::new();
    name.put_text(&mut text);
    String::from_utf8(text).unwrap()
}

fn question(query: &PtrQuery) -> String {
    let message = Message::parse(query.as_bytes()).unwrap();
    assert!(!message.is_response() && !message.is_truncated());
    let question = message.questions().next().unwrap().unwrap();
    assert_eq!((question.rtype, question.class, message.questions().count()), (rtype::PTR, class::IN, 1));
    assert_eq!(message.records().count(), 0);
    text(question.name)
}

/// The wire form of a name without compression.
fn wire(name: &str) -> Vec<u8> {
    let labels = name.split('.').filter(|label| !label.is_empty());
    let mut bytes: Vec<u8> = labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    bytes.push(0);
    bytes
}

fn record(owner: &[u8], rtype: u16, data: &[u8]) -> Vec<u8> {
    let head = [rtype.to_be_bytes(), class::IN.to_be_bytes(), [0, 0], [14, 16], (data.len() as u16).to_be_bytes()];
    [owner, head.as_flattened(), data].concat()
}

/// An answer to `query` with these records in its answer section.
fn answer(query: &PtrQuery, rcode: u8, records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = query.as_bytes().to_vec();
    bytes[2] |= 0x80;
    bytes[3] = 0x80 | rcode;
    bytes[7] = records.len() as u8;
    bytes.extend(records.concat());
    bytes
}

/// A pointer to the question's name.
const ASKED: &[u8] = &[0xc0, 12];

fn answer_to(query: &PtrQuery, bytes: &[u8]) -> String {
    match query.find_answer(bytes) {
        Some(PtrAnswer::Name(name)) => text(name),
        Some(PtrAnswer::NoName) => "no name".into(),
        Some(PtrAnswer::Failed(rcode)) => format!("failed {rcode}"),
        None => "not ours".into(),
    }
}

fn query(addr: &str) -> PtrQuery {
    PtrQuery::new(0x1234, addr.parse().unwrap())
}

#[test]
fn what_is_asked() {
    for (addr, name) in [
        ("192.0.2.5", "5.2.0.192.in-addr.arpa"),
        ("255.100.99.0", "0.99.100.255.in-addr.arpa"),
        ("::ffff:10.0.0.1", "1.0.0.10.in-addr.arpa"),
        ("2001:db8::567:89ab", "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"),
    ] {
        assert_eq!(question(&query(addr)), name);
    }
    assert_eq!(query("::").as_bytes().len(), 90);
    // dig sends the same bytes without EDNS.
    assert_eq!(
        query("192.0.2.5").as_bytes(),
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x015\x012\x010\x03192\x07in-addr\x04arpa\x00\x00\x0c\x00\x01"
    );
}

#[test]
fn what_is_answered() {
    let query = query("192.0.2.5");
    let ptr = |owner: &[u8], name| record(owner, rtype::PTR, &wire(name));
    let cname = |owner: &[u8], name| record(owner, rtype::CNAME, &wire(name));
    let asked = wire("5.2.0.192.In-Addr.ARPA");
    for (rcode, records, expected) in [
        (0, vec![ptr(ASKED, "host.example.org")], "host.example.org"),
        (0, vec![ptr(&asked, "upper.case.owner")], "upper.case.owner"),
        (0, vec![ptr(ASKED, "one"), ptr(ASKED, "two")], "one"),
        (0, vec![ptr(&wire("other.owner"), "evil")], "no name"),
        (0, vec![cname(ASKED, "5.0-31.2.0.192.in-addr.arpa"), ptr(&wire("5.0-31.2.0.192.in-addr.arpa"), "h")], "h"),
        (0, vec![ptr(&wire("x"), "h"), cname(ASKED, "x")], "h"),
        (0, vec![cname(ASKED, "x"), cname(&wire("x"), "y"), cname(&wire("y"), "x")], "no name"),
        (0, vec![record(ASKED, 1, &[1, 2, 3, 4])], "no name"),
        (0, vec![], "no name"),
        (3, vec![], "no name"),
        (2, vec![], "failed 2"),
        (5, vec![ptr(ASKED, "host")], "failed 5"),
        (0, vec![ptr(ASKED, "")], "."),
        (0, vec![record(ASKED, rtype::PTR, &[0xc0])], "failed 0"),
        (0, vec![record(ASKED, rtype::PTR, b"\x01a\0extra")], "failed 0"),
        (0, vec![record(ASKED, rtype::PTR, b"\x0da.b\\c\x1b[31m\xff\x00d\0")], r"a\.b\\c\027[31m\255\000d"),
    ] {
        assert_eq!(answer_to(&query, &answer(&query, rcode, &records)), expected);
    }
}

#[test]
fn what_is_no_answer() {
    let query = query("192.0.2.5");
    let good = answer(&query, 0, &[record(ASKED, rtype::PTR, &wire("h"))]);
    assert_eq!(answer_to(&query, &good), "h");
    assert_eq!(answer_to(&query, query.as_bytes()), "not ours", "a query");
    assert_eq!(answer_to(&query, &[]), "not ours");
    assert_eq!(answer_to(&PtrQuery::new(0x1235, "192.0.2.5".parse().unwrap()), &good), "not ours", "another id");
    assert_eq!(answer_to(&PtrQuery::new(0x1234, "192.0.2.6".parse().unwrap()), &good), "not ours", "another question");
    let mut two = good.clone();
    two[5] = 2;
    assert_eq!(answer_to(&query, &two), "not ours", "more questions than one");
    two[5] = 0;
    assert_eq!(answer_to(&query, &two), "not ours", "no question");
    // With a cut inside a record the answer fails; with a cut inside the question it is not an answer.
    let question = query.as_bytes().len();
    for cut in 0..good.len() {
        assert_eq!(answer_to(&query, &good[..cut]), if cut < question { "not ours" } else { "failed 0" }, "{cut}");
    }
}

#[test]
fn pointers_that_would_never_end() {
    let error = |at: usize, bytes: &[u8]| Name::parse(bytes, at).unwrap_err();
    assert_eq!(error(0, &[0xc0, 0]), DnsError { what: "a pointer backwards", at: 0 });
    assert_eq!(error(2, &[0xc0, 2, 0xc0, 0]), DnsError { what: "a pointer backwards", at: 0 });
    assert_eq!(error(0, &[1, b'a', 0xc0, 0]), DnsError { what: "a pointer backwards", at: 2 });
    assert_eq!(error(0, &[0xc0, 9, 0]).what, "a pointer backwards");
    assert_eq!(error(0, &[0x40, 0]).what, "a label");
    assert_eq!(error(0, &[3, b'a', b'b']).what, "a label");
    assert_eq!(error(0, &[]).to_string(), "no DNS message: a label expected at byte 0");
    // 127 labels of one byte are 255 bytes with the root; one more is too many.
    let long: Vec<u8> = [1, b'a'].repeat(127);
    assert_eq!(Name::parse(&[&long[..], &[0]].concat(), 0).unwrap().0.labels().count(), 127);
    assert_eq!(error(0, &[&long[..], &[1, b'a', 0]].concat()).what, "a name of at most 255 bytes");
    // Each pointer leads to the previous pointer: the message bounds their number, and the name does not get longer.
    let mut chain = vec![0, 0];
    for n in 0u16..8000 {
        chain.extend((0xc000 | (n * 2)).to_be_bytes());
    }
    assert!(Name::parse(&chain, chain.len() - 2).unwrap().0.is_root());
}

proptest! {
    #[test]
    fn any_address_comes_back(octets4: [u8; 4], octets6: [u8; 16], id: u16) {
        for addr in [Addr::V4(octets4), Addr::V6(octets6)] {
            let query = PtrQuery::new(id, addr);
            prop_assert_eq!(query.id(), id);
            let name = question(&query);
            let labels: Vec<&str> = name.split('.').rev().skip(2).collect();
            let back = match labels.len() {
                4 => Addr::V4(std::array::from_fn(|i| labels[i].parse().unwrap())),
                _ => Addr::V6(std::array::from_fn(|i| {
                    u8::from_str_radix(&[labels[i * 2], labels[i * 2 + 1]].concat(), 16).unwrap()
                })),
            };
            prop_assert_eq!(back, addr.unmapped());
        }
    }

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz_dns(&bytes);
    }

    /// Bytes that pass more checks: a header with small counts, lengths and pointers that are likely to fit.
    #[test]
    fn likely_bytes_end(
        counts in prop::array::uniform4(0u8..4),
        rest in prop::collection::vec(
            prop_oneof![Just(0u8), Just(0xc0), 0u8..16, Just(12), any::<u8>()], 0..300),
    ) {
        let [a, b, c, d] = counts;
        let header = [0, 0, 0x80, 0, 0, a, 0, b, 0, c, 0, d];
        fuzz_dns(&[&header[..], &rest].concat());
    }

    #[test]
    fn a_good_answer_with_a_wrong_byte(at in 0usize..80, byte: u8) {
        let query = PtrQuery::new(7, Addr::V4([192, 0, 2, 5]));
        let name = wire("host.example.org");
        let mut bytes = answer(&query, 0, &[record(ASKED, rtype::PTR, &name), record(&name, 1, &[1, 2, 3, 4])]);
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        let _ = query.find_answer(&bytes);
        fuzz_dns(&bytes);
    }
}
