#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::pushdown::bytecode::tests::row;
use proptest::prelude::*;
use record::rows::{UnixPart, UnixType};
use record::{Addr, Field, Get, Key, Lookups, Prefix, Value, field_index};

/// Interfaces 1 `lo`, 2 `eth0`; everything is permitted.
struct Lab {
    marks: bool,
}

impl PushdownContext for Lab {
    fn ifindex(&self, name: &[u8]) -> Option<u32> {
        match name {
            b"lo" => Some(1),
            b"eth0" => Some(2),
            _ => None,
        }
    }

    fn may_ask_marks(&self) -> bool {
        self.marks
    }
}

fn test(name: &str, op: Op, operand: Operand) -> Expr {
    Expr::Test(Test { field: field_index::<Sockets>(name).unwrap(), op, operand })
}

fn words(words: &[&str]) -> Operand {
    Operand::Words(words.iter().map(|word| word.as_bytes().into()).collect())
}

// Models the engine: a comparison with null is false, except for `= null`.
fn engine(expr: &Expr, row: &Socket<'_>) -> bool {
    match expr {
        Expr::And(parts) => parts.iter().all(|part| engine(part, row)),
        Expr::Or(parts) => parts.iter().any(|part| engine(part, row)),
        Expr::Not(part) => !engine(part, row),
        Expr::Test(test) => holds(test, cell(&Sockets::FIELDS[test.field], row)),
    }
}

fn cell<'r>(field: &Field<Sockets>, row: &'r Socket<'_>) -> Value<'r> {
    match field.get {
        // Looks up interfaces as Lab defines them.
        Get::Joined { key, .. } if field.name == "iface" => match key(row) {
            Key::Pair(_, 1) => Value::Name("lo"),
            Key::Pair(_, 2) => Value::Name("eth0"),
            _ => Value::Null,
        },
        _ => field.cell(row, &Lookups::empty()),
    }
}

fn holds(test: &Test, value: Value<'_>) -> bool {
    let equal = match (&test.operand, value) {
        (Operand::Null, value) => return (value == Value::Null) == (test.op == Op::Eq),
        (_, Value::Null) => return false,
        (Operand::Number(n), Value::U64(v)) => match test.op {
            Op::Lt => return v < *n,
            Op::Le => return v <= *n,
            Op::Gt => return v > *n,
            Op::Ge => return v >= *n,
            _ => v == *n,
        },
        (Operand::Ranges(ranges), Value::U64(v)) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&v)),
        (Operand::Masked { value, mask }, Value::U64(v)) => v & mask == *value,
        (Operand::Addr(addr), Value::Addr(v)) => v == *addr,
        (Operand::Prefixes(prefixes), Value::Addr(v)) => prefixes.iter().any(|prefix| prefix.contains(v)),
        (Operand::Words(words), Value::Name(v)) => words.iter().any(|word| &**word == v.as_bytes()),
        (Operand::Words(words), Value::Bytes(v)) => words.iter().any(|word| &**word == v),
        (Operand::Regex(_), _) => true,
        other => panic!("{other:?}"),
    };
    equal == (test.op == Op::Eq)
}

fn operand_of(name: &'static str) -> BoxedStrategy<(Op, Operand)> {
    let equality = || prop_oneof![Just(Op::Eq), Just(Op::Ne)];
    let order = prop_oneof![Just(Op::Eq), Just(Op::Ne), Just(Op::Lt), Just(Op::Le), Just(Op::Gt), Just(Op::Ge)];
    let number =
        prop_oneof![Just(0u64), Just(1), Just(80), Just(443), Just(65535), Just(65536), Just(u64::MAX), 0u64..20];
    let null = equality().prop_map(|op| (op, Operand::Null));
    let some = |list: &'static [&'static str]| {
        let word = prop::sample::subsequence(list, 0..3).prop_map(|list| words(&list));
        (equality(), word).boxed()
    };
    match name {
        "local_port" | "peer_port" | "cgroup_id" | "mark" => prop_oneof![
            (order, number.clone()).prop_map(|(op, n)| (op, Operand::Number(n))),
            (equality(), prop::collection::vec((number.clone(), number), 0..4))
                .prop_map(|(op, r)| (op, Operand::Ranges(r))),
            (equality(), 0u64..20, 0u64..20).prop_map(|(op, value, mask)| (op, Operand::Masked { value, mask })),
            null,
        ]
        .boxed(),
        "local_addr" | "peer_addr" => {
            let addr =
                prop::sample::select(vec!["0.0.0.0", "::", "127.0.0.1", "10.1.2.3", "fd77::1", "::ffff:10.1.2.3"]);
            let addr = addr.prop_map(|text| text.parse::<Addr>().unwrap());
            let prefix =
                (addr.clone(), 0u8..=128).prop_map(|(addr, len)| Prefix::new(addr, len.min(addr.bits())).unwrap());
            prop_oneof![
                (equality(), addr).prop_map(|(op, addr)| (op, Operand::Addr(addr))),
                (equality(), prop::collection::vec(prefix, 0..3)).prop_map(|(op, p)| (op, Operand::Prefixes(p))),
                null,
            ]
            .boxed()
        }
        "state" => some(&["listen", "established", "syn_recv", "unconn", "close", "time_wait", "bound_inactive"]),
        "proto" => some(&["tcp", "udp", "unix"]),
        "family" => some(&["inet", "inet6", "unix"]),
        "iface" => some(&["lo", "eth0", "gone"]),
        "path" => prop_oneof![Just((Op::Match, Operand::Regex("x".into()))), null].boxed(),
        other => panic!("{other}"),
    }
}

fn expr() -> impl Strategy<Value = Expr> {
    let names = vec![
        "local_port",
        "peer_port",
        "local_addr",
        "peer_addr",
        "mark",
        "cgroup_id",
        "state",
        "proto",
        "family",
        "iface",
        "path",
    ];
    let leaf = prop::sample::select(names)
        .prop_flat_map(|name| operand_of(name).prop_map(move |(op, operand)| test(name, op, operand)));
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Expr::And),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Expr::Or),
            inner.prop_map(|inner| Expr::Not(Box::new(inner))),
        ]
    })
}

fn any_row() -> impl Strategy<Value = Socket<'static>> {
    let kind = prop::sample::select(vec![Proto::Tcp, Proto::Udp, Proto::Unix]);
    (row(), kind).prop_map(|(row, proto)| match proto {
        Proto::Unix => {
            let part = UnixPart { path: Some(b"x"), ..crate::backends::netlink::unix_diag::empty_part(UnixType(1)) };
            Socket { proto, state: row.state, family: AF_UNIX, unix: Some(part), ..Socket::EMPTY }
        }
        proto => Socket { proto, ..row },
    })
}

/// If a field is renamed, it must be renamed here too; otherwise its filters are silently left to the engine.
#[test]
fn the_names_are_those_of_the_field_table() {
    let matched = ["local_port", "peer_port", "local_addr", "peer_addr", "iface", "mark", "cgroup_id"];
    for name in matched.iter().chain(&["state", "family", "proto", "unix_type", "timer", "timer_retransmits"]) {
        assert!(field_index::<Sockets>(name).is_some(), "{name}");
    }
}

const ORDER: [Proto; 3] = [Proto::Tcp, Proto::Udp, Proto::Unix];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    /// The kernel's part never drops a matching row, and `Exact` parts need no second check.
    #[test]
    fn the_split_is_the_filter(conjuncts in prop::collection::vec(expr(), 0..4),
        rows in prop::collection::vec(any_row(), 1..20), marks: bool) {
        let split = split(&conjuncts, &ORDER, Families::Both, &Lab { marks }, &|_| true);
        prop_assert_eq!(split.pushdown.len(), conjuncts.len());
        // The kernel's tables contain no closed TCP sockets: the mask relies on that.
        for row in rows.into_iter().filter(|row| row.proto != Proto::Tcp || row.state != State::CLOSE) {
            // Rows show marks only with the privilege.
            let row = Socket { mark: row.mark.filter(|_| marks), ..row };
            let sent = split.tables.iter().any(|table| table.proto == row.proto && table.accepts(&row));
            let engines = conjuncts.iter().zip(&split.pushdown).filter(|(_, push)| **push != FilterPushdown::Exact);
            let shown = sent && engines.clone().all(|(part, _)| engine(part, &row));
            let right = conjuncts.iter().all(|part| engine(part, &row));
            prop_assert_eq!(shown, right, "{:?} {:?} {:?}", &conjuncts, &split, row);
        }
    }

    /// If the backend cannot filter, only whole tables are left out.
    #[test]
    fn without_filters_only_tables_are_left_out(conjuncts in prop::collection::vec(expr(), 0..4), row in any_row()) {
        let split = split(&conjuncts, &ORDER, Families::Both, &Lab { marks: true }, &|_| false);
        let table = split.tables.iter().find(|table| table.proto == row.proto);
        let sent = table.is_some_and(|table| table.accepts(&row));
        let bare = |table: &TableFilter| *table == TableFilter::accept_all(row.proto, table.families);
        prop_assert!(table.is_none_or(bare));
        let engines = conjuncts.iter().zip(&split.pushdown).filter(|(_, push)| **push != FilterPushdown::Exact);
        prop_assert_eq!(sent && engines.clone().all(|(part, _)| engine(part, &row)),
            conjuncts.iter().all(|part| engine(part, &row)));
    }
}

fn check(conjuncts: &[Expr], tables: &[&str], pushdown: &[FilterPushdown]) {
    let split = split(conjuncts, &ORDER, Families::Both, &Lab { marks: true }, &|_| true);
    let told: Vec<String> =
        split.tables.iter().map(|table| format!("{}: {}", table.proto.name(), table.words())).collect();
    assert_eq!(told, tables);
    assert_eq!(split.pushdown, pushdown);
}

#[test]
fn splits_by_example() {
    use FilterPushdown::{Exact, Inexact, Unsupported};
    check(&[], &["tcp: ", "udp: ", "unix: "], &[]);
    check(&[test("proto", Op::Eq, words(&["udp"]))], &["udp: "], &[Exact]);
    check(
        &[test("state", Op::Eq, words(&["listen"]))],
        &["tcp: state in (listen)", "udp: state in (listen)", "unix: state in (listen)"],
        &[Exact],
    );
    // A single port becomes part of the request, except for unix sockets.
    check(
        &[test("local_port", Op::Eq, Operand::Number(443))],
        &["tcp: local_port = 443", "udp: local_port = 443"],
        &[Exact],
    );
    check(
        &[test("local_port", Op::Ne, Operand::Ranges(vec![(22, 22), (80, 443)]))],
        &[
            "tcp: local_port in 1-21 or local_port in 23-79 or local_port in 444-65535",
            "udp: local_port in 1-21 or local_port in 23-79 or local_port in 444-65535",
        ],
        &[Exact],
    );
    let net = Operand::Prefixes(vec!["10.0.0.0/8".parse().unwrap()]);
    check(&[test("peer_addr", Op::Eq, net.clone())], &["tcp: peer in 10.0.0.0/8", "udp: peer in 10.0.0.0/8"], &[Exact]);
    // The kernel does not know processes: half of an `or` is useless, half of an `and` is not.
    let process = test("process", Op::Match, Operand::Regex("nginx".into()));
    let peer = test("peer_addr", Op::Eq, net);
    check(&[Expr::Or(vec![peer.clone(), process.clone()])], &["tcp: ", "udp: ", "unix: "], &[Unsupported]);
    check(
        &[Expr::Or(vec![
            Expr::And(vec![peer.clone(), process.clone()]),
            test("local_port", Op::Eq, Operand::Number(22)),
        ])],
        &["tcp: peer in 10.0.0.0/8 or local_port = 22", "udp: peer in 10.0.0.0/8 or local_port = 22"],
        &[Inexact],
    );
    check(&[peer, process], &["tcp: peer in 10.0.0.0/8", "udp: peer in 10.0.0.0/8"], &[Exact, Unsupported]);
    check(&[test("family", Op::Eq, words(&["inet6"]))], &["tcp: family = inet6", "udp: family = inet6"], &[Exact]);
    check(&[test("iface", Op::Eq, words(&["eth0"]))], &["tcp: interface 2", "udp: interface 2"], &[Exact]);
    check(&[test("iface", Op::Eq, words(&["gone"]))], &["tcp: ", "udp: "], &[Unsupported]);
    check(&[test("path", Op::Ne, Operand::Null)], &["unix: "], &[Unsupported]);
    check(
        &[test("mark", Op::Eq, Operand::Masked { value: 0x10, mask: 0xf0 })],
        &["tcp: mark = 0x10/0xf0 and not (mark = 0x0)", "udp: mark = 0x10/0xf0 and not (mark = 0x0)"],
        &[Exact],
    );
    check(
        &[test("state", Op::Eq, words(&["listen"])), test("state", Op::Eq, words(&["established"]))],
        &[],
        &[Exact, Exact],
    );
}

#[test]
fn listeners_alone_are_exactly_one_bit() {
    let only = split(
        &[test("state", Op::Eq, words(&["listen"]))],
        &[Proto::Tcp],
        Families::Both,
        &Lab { marks: true },
        &|_| true,
    );
    assert_eq!(only.tables[0].states, 1 << 10);
    let request = split(
        &[test("state", Op::Eq, words(&["syn_recv"]))],
        &[Proto::Tcp],
        Families::Both,
        &Lab { marks: true },
        &|_| true,
    );
    assert_eq!(request.tables[0].states, 1 << 3 | 1 << 12);
}
