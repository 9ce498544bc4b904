#![allow(clippy::unwrap_used)]
use super::*;
use crate::testing::{TextSink, addr};
use record::Column;

/// Resolves `10.0.0.N` to `host-N`, once it has settled.
#[derive(Default)]
struct Book {
    asked: Vec<Addr>,
    settled: usize,
    known: Vec<(Addr, Vec<u8>)>,
}

impl Names for Book {
    fn request(&mut self, addr: Addr) {
        self.asked.push(addr);
    }
    fn wait_for_answers(&mut self) {
        self.settled += 1;
        let name = |a: &Addr| (*a, format!("host-{}", a.octets()[3]).into_bytes());
        self.known = self.asked.iter().filter(|a| a.octets()[0] == 10).map(name).collect();
    }
    fn name(&self, addr: Addr) -> Option<&[u8]> {
        self.known.iter().find(|(a, _)| *a == addr).map(|(_, name)| &name[..])
    }
}

fn columns() -> Columns {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    Columns(vec![column("local_addr", Kind::Addr), column("pid", Kind::Id), column("peer_addr", Kind::Addr)])
}

fn row(local: &str, pid: u64, peer: Option<&str>) -> [Value<'static>; 3] {
    [Value::Addr(addr(local)), Value::U64(pid), peer.map_or(Value::Null, |p| Value::Addr(addr(p)))]
}

#[test]
fn rows_wait_for_names() {
    let (mut inner, mut names) = (TextSink::default(), Book::default());
    let mut hold = ResolvingSink::new(&mut inner, &mut names);
    for _round in 0..2 {
        hold.begin(&columns(), None).unwrap();
        assert_eq!(hold.row(&row("10.0.0.1", 7, Some("192.0.2.1"))).unwrap(), Next::More);
        assert_eq!(hold.row(&row("10.0.0.1", 8, None)).unwrap(), Next::More);
        hold.end(&Accounting::default()).unwrap();
    }
    assert_eq!(inner.rows, ["host-1 7 192.0.2.1", "host-1 8 -", "host-1 7 192.0.2.1", "host-1 8 -"]);
    assert_eq!(names.asked, [addr("10.0.0.1"), addr("192.0.2.1")]);
    assert_eq!(names.settled, 2);
    assert_eq!(inner.totals, Some(Accounting::default()));
}

#[test]
fn names_are_added_to_kept_addresses() {
    let (mut inner, mut names) = (TextSink { keeps_addresses: true, ..TextSink::default() }, Book::default());
    let mut hold = ResolvingSink::new(&mut inner, &mut names);
    hold.begin(&columns(), None).unwrap();
    assert_eq!(hold.row(&row("10.0.0.1", 7, Some("192.0.2.1"))).unwrap(), Next::More);
    hold.end(&Accounting::default()).unwrap();
    assert_eq!(inner.header, ["local_addr", "pid", "peer_addr", "local_addr_name", "peer_addr_name"]);
    assert_eq!(inner.rows, ["10.0.0.1 7 192.0.2.1 host-1 -"]);
}

#[test]
fn without_rows_nothing_waits() {
    let (mut inner, mut names) = (TextSink::default(), Book::default());
    let mut hold = ResolvingSink::new(&mut inner, &mut names);
    hold.begin(&columns(), None).unwrap();
    hold.end(&Accounting::default()).unwrap();
    assert_eq!((names.settled, inner.rounds.len()), (0, 1));
    assert!(inner.totals.is_some());
}

#[test]
fn full_memory_lets_rows_pass_and_says_so() {
    let (mut inner, mut names) = (TextSink::default(), Book::default());
    let mut hold = ResolvingSink::with_limit(&mut inner, &mut names, 60);
    hold.begin(&columns(), None).unwrap();
    for pid in 0..5 {
        assert_eq!(hold.row(&row("10.0.0.1", pid, None)).unwrap(), Next::More);
    }
    hold.end(&Accounting::default()).unwrap();
    assert_eq!(inner.rows, ["10.0.0.1 0 -", "10.0.0.1 1 -", "10.0.0.1 2 -", "10.0.0.1 3 -", "10.0.0.1 4 -"]);
    assert_eq!(names.settled, 0);
    let why = inner.totals.unwrap().why;
    assert!(why.len() == 1 && why[0].text.contains("were waiting for names"), "{why:?}");
}

#[test]
fn a_reader_that_leaves_is_not_called_again() {
    let (mut inner, mut names) = (TextSink { stop_at: Some(1), ..TextSink::default() }, Book::default());
    let mut hold = ResolvingSink::new(&mut inner, &mut names);
    hold.begin(&columns(), None).unwrap();
    for pid in 0..5 {
        let _ = hold.row(&row("10.0.0.1", pid, None)).unwrap();
    }
    hold.end(&Accounting::default()).unwrap();
    assert_eq!(inner.rows.len(), 1);
}

#[test]
fn an_endpoint_keeps_its_port_after_the_name() {
    let (mut inner, mut names) = (TextSink::default(), Book::default());
    let mut hold = ResolvingSink::new(&mut inner, &mut names);
    hold.begin(&Columns(vec![Column { name: "client".into(), kind: Kind::Endpoint }; 3]), None).unwrap();
    let ends = [("10.0.0.1", Some(443)), ("10.0.0.2", None), ("192.0.2.1", Some(80))];
    let _ = hold.row(&ends.map(|(a, port)| Value::Endpoint(addr(a), port))).unwrap();
    hold.end(&Accounting::default()).unwrap();
    assert_eq!(inner.rows, ["host-1:443 host-2 192.0.2.1:80"]);
}
