//! The table of flows as a source: two steps, the user's filter, the row counts.
#![allow(clippy::unwrap_used)]

mod rows;

use flows::{Conjunct, FlowOptions, FlowSource, Rule};
use record::rows::{Flow, Flows, Socket, Sockets};
use record::{
    Accounting, Comm, Demand, Expr, FilterPushdown, Key, Lookup, LookupId, Lookups, Next, Op, Operand, Owner, Proto,
    Source, State, Test, Value, field_index,
};
use rows::{Rows, listener, tcp, udp, udp_service};

fn wanted(fields: &[&str]) -> Demand<Flows> {
    let shown: Vec<usize> = fields.iter().map(|name| field_index::<Flows>(name).unwrap()).collect();
    Demand::new(&shown, Vec::new())
}

fn words(field: &str, words: &[&str]) -> Expr {
    let operand = Operand::Words(words.iter().map(|w| w.as_bytes().into()).collect());
    Expr::Test(Test { field: field_index::<Sockets>(field).unwrap(), op: Op::Eq, operand })
}

fn run(source: &mut FlowSource<'_>, demand: &Demand<Flows>) -> (Vec<String>, Accounting) {
    let mut lines = Vec::new();
    let stats = source
        .run(demand, &mut |flow: &Flow<'_>| {
            let owner = flow.owners.first().map(|o| String::from_utf8_lossy(o.process.as_bytes()).into_owned());
            lines.push(format!(
                "{} {} {} {} {}",
                flow.proto.name(),
                flow.direction.name(),
                flow.peer_addr,
                flow.connections,
                owner.unwrap_or_default()
            ));
            Next::More
        })
        .unwrap();
    (lines, stats)
}

fn table() -> Vec<Socket<'static>> {
    vec![
        tcp("192.0.2.1:80", "198.51.100.1:40000"),
        tcp("192.0.2.1:80", "198.51.100.1:40001"),
        Socket { state: State::TIME_WAIT, inode: 0, ..tcp("192.0.2.1:80", "198.51.100.2:40002") },
        tcp("192.0.2.1:40009", "198.51.100.3:443"),
        udp("192.0.2.1:40010", "198.51.100.4:53"),
        udp("192.0.2.1:500", "198.51.100.5:40000"),
        udp_service("0.0.0.0:500"),
        // Listeners come last, because the kernel's order must not matter.
        listener("192.0.2.1:80"),
        Socket { proto: Proto::Unix, ..Socket::EMPTY },
    ]
}

#[test]
fn listeners_first_then_connections() {
    let sockets = Rows::new(table());
    let mut source = FlowSource::new(&sockets, Lookups::empty(), FlowOptions::default());
    let (lines, stats) = run(&mut source, &wanted(&["connections"]));
    assert_eq!(
        lines,
        [
            "tcp in 198.51.100.1 2 ",
            "tcp out 198.51.100.3 1 ",
            "tcp in 198.51.100.2 1 ",
            "udp out 198.51.100.4 1 ",
            "udp in 198.51.100.5 1 ",
        ]
    );
    // Six sockets and five flows; once the caller has emitted the flows, the row counts balance.
    assert_eq!((stats.seen, stats.grouped, stats.filtered), (6 + 5, 6, 0));
    assert!(Accounting { emitted: 5, ..stats.clone() }.balances());
    assert_eq!(stats.via, ["rows"]);
    // A second round starts from the beginning.
    assert_eq!(run(&mut source, &wanted(&["connections"])).0, lines);
    drop(source);
    assert_eq!(sockets.asked.borrow().len(), 6);
    assert_eq!(sockets.asked.borrow()[0].conjuncts, [words("proto", &["tcp"]), words("state", &["listen"])]);
    assert_eq!(sockets.asked.borrow()[1].conjuncts, [words("proto", &["udp"]), words("state", &["unconn"])]);
    assert!(!sockets.asked.borrow()[2].wants("bytes_in"));
}

#[test]
fn the_users_filter_chooses_connections_not_listeners() {
    let sockets = Rows::new(table());
    let expr = words("state", &["established"]);
    let test = Box::new(|row: &Socket<'_>| row.state == State::ESTABLISHED);
    let only_tcp = Conjunct { expr: words("proto", &["tcp"]), test: Box::new(|row| row.proto == Proto::Tcp) };
    let options =
        FlowOptions { conjuncts: vec![Conjunct { expr: expr.clone(), test }, only_tcp], ..FlowOptions::default() };
    let mut source = FlowSource::new(&sockets, Lookups::empty(), options);
    let demand = wanted(&["bytes_in"]);
    let offer = source.prepare(&demand).offer();
    assert_eq!(offer.explain.len(), 2, "{:?}", offer.explain);
    assert!(offer.explain[0].starts_with("step 1") && offer.explain[1].starts_with("step 2"));
    let (lines, stats) = run(&mut source, &demand);
    assert_eq!(lines, ["tcp in 198.51.100.1 2 ", "tcp out 198.51.100.3 1 "]);
    assert_eq!((stats.seen, stats.grouped, stats.filtered), (4 + 2, 3, 1));
    drop(source);
    // UDP was not read at all, the user's conjunct was passed on, and the bytes were requested.
    assert_eq!(sockets.asked.borrow().len(), 2);
    assert!(sockets.asked.borrow()[1].conjuncts.contains(&expr));
    assert!(sockets.asked.borrow()[1].wants("bytes_in"));
}

#[test]
fn what_the_source_does_exactly_is_not_tested_again() {
    let sockets = Rows { push: FilterPushdown::Exact, ..Rows::new(table()) };
    let never = Conjunct { expr: words("family", &["inet"]), test: Box::new(|_| false) };
    let options = FlowOptions { conjuncts: vec![never], ..FlowOptions::default() };
    let mut source = FlowSource::new(&sockets, Lookups::empty(), options);
    assert_eq!(run(&mut source, &wanted(&["connections"])).1.grouped, 6);
}

struct Owned;

impl Lookup for Owned {
    fn value(&self, _: Key) -> Value<'_> {
        Value::Null
    }

    fn owners(&self, key: Key) -> &[Owner] {
        use std::sync::OnceLock;
        static BOTH: OnceLock<[Owner; 2]> = OnceLock::new();
        let both = BOTH.get_or_init(|| {
            [(7, b"listener"), (8, b"acceptor")].map(|(pid, name)| Owner {
                pid,
                fd: 3,
                process: Comm::new(name),
                started: 0,
            })
        });
        match key {
            Key::Id(7) => &both[..1],
            Key::Id(8) => &both[1..],
            _ => &[],
        }
    }
}

/// A time-wait socket has no owner, so its flow has the owners of the service.
#[test]
fn owners_only_when_asked_for() {
    let sockets = Rows::new(table());
    let lookups = Lookups::empty().with_lookup(LookupId::Owners, &Owned);
    let mut source = FlowSource::new(&sockets, lookups, FlowOptions::default());
    let (lines, _) = run(&mut source, &wanted(&["process"]));
    assert_eq!(
        lines[..3],
        ["tcp in 198.51.100.1 2 acceptor", "tcp out 198.51.100.3 1 acceptor", "tcp in 198.51.100.2 1 listener"]
    );
    let (lines, _) = run(&mut source, &wanted(&["connections"]));
    assert_eq!(lines[0], "tcp in 198.51.100.1 2 ");
}

#[test]
fn lstf_rule_counts_bound_sockets_and_no_udp() {
    let mut rows = table();
    rows.push(Socket { state: State::CLOSE, ..tcp("192.0.2.1:9", "0.0.0.0:0") });
    let sockets = Rows::new(rows);
    let tcp_only = || Conjunct { expr: words("proto", &["tcp"]), test: Box::new(|row| row.proto == Proto::Tcp) };
    let options = |rule| FlowOptions { rule, conjuncts: vec![tcp_only()], ..FlowOptions::default() };
    let (lines, stats) =
        run(&mut FlowSource::new(&sockets, Lookups::empty(), options(Rule::Lstf)), &wanted(&["connections"]));
    // The listener is bound to one address, so lstf does not see it and folds nothing at the peer.
    assert_eq!(stats.grouped, 5);
    assert!(lines.iter().all(|l| l.starts_with("tcp out")), "{lines:?}");
    let (_, stats) =
        run(&mut FlowSource::new(&sockets, Lookups::empty(), options(Rule::Right)), &wanted(&["connections"]));
    assert_eq!(stats.grouped, 4);
}

#[test]
fn without_udp_services_the_table_still_comes() {
    let sockets = Rows { fails_for: Some(Proto::Udp), ..Rows::new(table()) };
    let mut source = FlowSource::new(&sockets, Lookups::empty(), FlowOptions::default());
    let (lines, stats) = run(&mut source, &wanted(&["connections"]));
    assert_eq!(lines.len(), 5);
    assert!(stats.why[0].text.contains("no such table"), "{stats:?}");
    let sockets = Rows { fails_for: Some(Proto::Tcp), ..Rows::new(table()) };
    let source = FlowSource::new(&sockets, Lookups::empty(), FlowOptions::default());
    // If listeners cannot be read, directions become guesses, but the table is not an error.
    let mut guessed = Vec::new();
    let stats = source.run(&wanted(&["connections"]), &mut |flow| {
        guessed.push((flow.proto, flow.guessed));
        Next::More
    });
    assert!(stats.unwrap().why[0].text.contains("TCP listeners are unknown, directions are guessed"));
    assert!(guessed.iter().any(|(proto, _)| *proto == Proto::Tcp));
    assert!(guessed.iter().all(|(proto, guessed)| *guessed == (*proto == Proto::Tcp)), "{guessed:?}");
}

/// Listeners of a namespace that was not entered do not matter for others; in a namespace that was partly read they may
/// be missing.
#[test]
fn issue_10_only_listeners_that_may_be_missing_make_a_guess() {
    for (only_namespaces_missing, guesses) in [(true, false), (false, true)] {
        let sockets = Rows { incomplete: Some(only_namespaces_missing), ..Rows::new(table()) };
        let source = FlowSource::new(&sockets, Lookups::empty(), FlowOptions::default());
        let mut guessed = 0;
        let stats = source.run(&wanted(&["connections"]), &mut |flow| {
            guessed += u64::from(flow.guessed);
            Next::More
        });
        let stats = stats.unwrap();
        assert_eq!((guessed > 0, stats.incomplete), (guesses, true));
        assert_eq!(stats.only_namespaces_missing, only_namespaces_missing);
    }
}

#[test]
fn nothing_is_read_when_no_protocol_is_left() {
    let sockets = Rows::new(table());
    let unix = Conjunct { expr: words("proto", &["unix"]), test: Box::new(|row| row.proto == Proto::Unix) };
    let mut source =
        FlowSource::new(&sockets, Lookups::empty(), FlowOptions { conjuncts: vec![unix], ..FlowOptions::default() });
    assert_eq!(run(&mut source, &wanted(&["connections"])).0, [""; 0]);
    drop(source);
    assert!(sockets.asked.borrow().is_empty());
}

/// Round-trip times make the kernel's replies longer.
#[test]
fn issue_10_round_trips_are_asked_for_only_when_shown() {
    for (field, asked) in [("connections", false), ("bytes_in", false), ("min_rtt_us", true), ("max_rtt_us", true)] {
        let sockets = Rows::new(table());
        run(&mut FlowSource::new(&sockets, Lookups::empty(), FlowOptions::default()), &wanted(&[field]));
        let all = sockets.asked.borrow();
        let step = all.last().unwrap();
        assert_eq!([step.wants("rtt_us"), step.wants("min_rtt_us")], [asked; 2], "{field}");
    }
}

/// If the ends of connections are joined, the backend does not apply the filter, but must provide its fields.
#[test]
fn what_the_filter_looks_at_is_asked_for() {
    for netns_addresses in [None, Some(flows::NetnsAddresses::new())] {
        let sockets = Rows::new(table());
        let expr = words("user", &["root"]);
        let conjuncts = vec![Conjunct { expr: expr.clone(), test: Box::new(|_| true) }];
        let joins = netns_addresses.is_some();
        let options = FlowOptions { conjuncts, netns_addresses, ..FlowOptions::default() };
        let mut source = FlowSource::new(&sockets, Lookups::empty(), options);
        run(&mut source, &wanted(&["connections"]));
        run(&mut source, &wanted(&["process"]));
        drop(source);
        let all = sockets.asked.borrow();
        let asked: Vec<_> = all.iter().filter(|demand| demand.wants("peer_port")).collect();
        assert!(asked.len() == 2 && asked.iter().all(|demand| demand.wants("user")));
        assert!(asked.iter().all(|demand| demand.conjuncts.contains(&expr) != joins));
        // The inode is needed for the owners, and has a cost.
        assert_eq!([asked[0].wants("inode"), asked[1].wants("inode")], [false, true]);
    }
}
