#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod lists;

use super::*;
use crate::filter::conjuncts;
use crate::testing::*;
use proptest::prelude::*;
use record::rows::{Endpoint, Flow, Flows, Socket, Sockets, UnixPart, UnixType};
use record::{Addr, Key, Prefix, Schema, State, Timer, Value};

/// A socket with many fields set, two owners and a known user.
fn row() -> Socket<'static> {
    Socket {
        inode: 5,
        uid: Some(1000),
        mark: Some(0x1f),
        timer: Timer(2),
        timer_ms: 1_500,
        cong: Some(b"bbr"),
        rqueue: 1_000,
        ..socket(State::ESTABLISHED, 443, "10.1.2.3", 50_000)
    }
}

fn table() -> FakeOwners {
    FakeOwners {
        owners: vec![(5, vec![owner(70, "nginx"), owner(80, "php-fpm")])],
        users: vec![(1000, b"root\xff".to_vec())],
        containers: FakeNames(vec![(Key::Id(80), b"shop".to_vec()), (Key::Pair(9, 0), b"gone".to_vec())]),
    }
}

fn holds(filter: &str, row: &Socket<'_>) -> bool {
    let predicate =
        Predicate::<Sockets>::new(&conjuncts(Schema::from_table::<Sockets>(), filter).expect(filter)).unwrap();
    predicate.matches(row, &table().lookups())
}

#[test]
// long: one table of cases.
fn every_operator_and_kind() {
    for (filter, expected) in [
        ("", true),
        // Words.
        ("state = established", true),
        ("state != established", false),
        ("state in (listen, established)", true),
        ("state not in (listen, established)", false),
        ("state ~ ^est", true),
        ("state !~ ^est", false),
        ("proto = udp", false),
        // Numbers.
        ("local_port = 443", true),
        ("local_port != 443", false),
        ("local_port < 443", false),
        ("local_port <= 443", true),
        ("local_port > 442", true),
        ("local_port >= 444", false),
        ("local_port in (1, 400-500, 450-460, 7)", true),
        ("local_port in (1, 400-442, 444)", false),
        ("local_port not in (1, 400-442, 444)", true),
        ("recv_q = 1k", true),
        ("timer > 1s", true),
        ("timer_ms >= 2s", false),
        // Masks.
        ("mark = 0x10/0xf0", true),
        ("mark = 0x20/0xf0", false),
        ("mark != 0x20/0xf0", true),
        // Addresses.
        ("peer = 10.1.2.3", true),
        ("peer != 10.1.2.3", false),
        ("peer in 10.0.0.0/8", true),
        ("peer in (192.168.0.0/16, ::/0)", false),
        ("peer in (192.168.0.0/16, 0.0.0.0/0)", true),
        ("peer not in 10.0.0.0/8", false),
        ("peer = 10.1.2.3:50000", true),
        ("peer = 10.1.2.3:50001", false),
        ("peer != 10.1.2.3:50001", true),
        ("peer = :50000", true),
        ("peer_addr > 10.1.2.2", true),
        ("peer_addr < 10.1.2.3", false),
        ("peer_addr < ::", true),
        // Text.
        ("congestion = bbr", true),
        ("congestion in (cubic, bbr)", true),
        ("congestion in (a,b,c,d,e,f,g,h,i,bbr)", true),
        ("congestion not in (a,b,c,d,e,f,g,h,i,bbr)", false),
        ("congestion ~ \"^b{2}r$\"", true),
        ("congestion ~ BBR", false),
        ("congestion ~ \"(?i)BBR\"", true),
        ("user = \"root\\xff\"", true),
        ("user ~ \"t\\xff$\"", true),
        // Lists: any owner matches; none with a negated operator.
        ("process = nginx", true),
        ("process = php-fpm", true),
        ("process != nginx", false),
        ("process != sshd", true),
        ("process ~ fpm", true),
        ("process !~ fpm", false),
        ("pid > 75", true),
        ("pid > 80", false),
        ("pid in (80)", true),
        ("owners != null", true),
        ("owners = null", false),
        // Values found through owners: any owner's value matches; the first owner's is unknown here.
        ("container = shop", true),
        ("container != shop", false),
        ("container != web", true),
        ("container ~ ^sh", true),
        ("container = null", false),
        ("pod = null", true),
        ("pod != x", false),
        // Joined parts.
        ("state = listen or pid = 80", true),
        ("state = listen and pid = 80", false),
        ("not (state = listen and pid = 80)", true),
        ("not state = listen and not proto = udp", true),
    ] {
        assert_eq!(holds(filter, &row()), expected, "{filter}");
        if !filter.is_empty() {
            assert_eq!(holds(&format!("not ({filter})"), &row()), !expected, "not ({filter})");
        }
    }
    let local = Endpoint { addr: Addr::ANY6, port: 80 };
    let listener = Socket { local, v6only: Some(true), state: State::LISTEN, ..Socket::EMPTY };
    for (filter, expected) in [("v6only = true", true), ("v6only = false", false), ("v6only != false", true)] {
        assert_eq!(holds(filter, &listener), expected, "{filter}");
    }
}

#[test]
fn nothing_compares_with_null() {
    let row = Socket { uid: None, ..Socket::EMPTY };
    for field in
        ["mark", "peer_port", "peer_addr", "timer", "timer_ms", "congestion", "v6only", "process", "pid", "user"]
    {
        let value = match field {
            "timer" => "keepalive",
            "peer_addr" => "10.0.0.1",
            "v6only" => "true",
            "timer_ms" => "1s",
            _ => "1",
        };
        for filter in [
            format!("{field} = {value}"),
            format!("{field} != {value}"),
            format!("{field} in ({value})"),
            format!("{field} not in ({value})"),
        ] {
            assert!(!holds(&filter, &row), "{filter}");
            assert!(holds(&format!("not {filter}"), &row), "not {filter}");
        }
        assert!(holds(&format!("{field} = null"), &row), "{field}");
        assert!(!holds(&format!("{field} != null"), &row), "{field}");
        assert!(holds(&format!("{field} in ({value}, null)"), &row), "{field}");
        assert!(!holds(&format!("{field} not in ({value}, null)"), &row), "{field}");
    }
    for filter in [
        "mark > 0",
        "mark >= 0",
        "mark < 1",
        "mark = 0/0",
        "peer_addr <= ::",
        "process ~ x",
        "process !~ x",
        "user !~ x",
    ] {
        assert!(!holds(filter, &row), "{filter}");
    }
}

#[test]
fn a_socket_without_owner_is_found_by_its_cgroup() {
    let row = Socket { inode: 0, cgroup_id: Some(9), ..row() };
    assert!(holds("container = gone and container != shop and process = null", &row));
    assert!(holds("container = null", &Socket { cgroup_id: Some(8), ..row }));
}

#[test]
fn addresses_of_dual_stack_sockets_are_ipv4() {
    let mapped = Endpoint { addr: addr("::ffff:10.1.2.3"), port: 1 };
    let row = Socket { peer: mapped, ..row() };
    assert!(holds("peer in 10.0.0.0/8 and peer = ::ffff:10.1.2.3 and peer in ::ffff:0:0/96", &row));
    assert!(!holds("peer in ::/0", &row));
}

#[test]
fn shell_patterns_of_the_faces() {
    let unix = UnixPart {
        kind: UnixType(1),
        path: Some(b"/run/x.sock"),
        peer_inode: None,
        vfs: None,
        refs: None,
        flags: None,
        icons: None,
    };
    let row = Socket { unix: Some(unix), ..Socket::EMPTY };
    for (op, pattern, expected) in [
        (Op::Match, "/run/*", true),
        (Op::NotMatch, "/run/*", false),
        (Op::Match, "*.pid", false),
        (Op::Eq, "/run/?.sock", true),
    ] {
        let test = Test { field: field("path"), op, operand: Operand::Glob(pattern.as_bytes().into()) };
        let predicate = Predicate::<Sockets>::new(&[Expr::Test(test)]).unwrap();
        assert_eq!(predicate.matches(&row, &Lookups::empty()), expected, "{pattern}");
    }
}

#[test]
fn what_does_not_fit_is_false_either_way() {
    for op in [Op::Lt, Op::Match, Op::NotMatch] {
        let operand = if op == Op::Lt { Operand::Words(vec![]) } else { Operand::Number(1) };
        let test = Expr::Test(Test { field: field("state"), op, operand });
        let predicate = Predicate::<Sockets>::new(&[test]).unwrap();
        assert!(!predicate.matches(&row(), &Lookups::empty()), "{op:?}");
    }
    let nowhere = Expr::Test(Test { field: 10_000, op: Op::Eq, operand: Operand::Null });
    assert!(!Predicate::<Sockets>::new(&[nowhere]).unwrap().matches(&row(), &Lookups::empty()));
}

#[test]
fn numbers_below_zero_are_less_than_all() {
    let rule = |op, operand| rule::Rule::compile(&Test { field: 0, op, operand }, record::Kind::Count).unwrap();
    for (op, operand, expected) in [
        (Op::Lt, Operand::Number(0), true),
        (Op::Le, Operand::Number(5), true),
        (Op::Gt, Operand::Number(0), false),
        (Op::Eq, Operand::Number(u64::MAX), false),
        (Op::Ne, Operand::Number(u64::MAX), true),
        (Op::Eq, Operand::Ranges(vec![(0, u64::MAX)]), false),
        (Op::Ne, Operand::Null, true),
    ] {
        assert_eq!(rule(op, operand.clone()).matches(&Value::I64(-1)), expected, "{op:?} {operand:?}");
    }
    assert!(rule(Op::Eq, Operand::Number(3)).matches(&Value::I64(3)));
}

#[test]
fn flows_are_filtered_too() {
    let owners = [owner(1, "a")];
    let flow = Flow {
        direction: record::rows::Direction::In,
        local_addr: addr("10.0.0.1"),
        local_port: Some(443),
        peer_addr: addr("8.8.8.8"),
        connections: 12,
        owners: &owners,
        bytes_out: Some(5),
        ..Flow::EMPTY
    };
    for (filter, expected) in [
        ("direction = in and connections > 10 and peer_scope = public", true),
        ("peer = :53", false),
        ("peer_port = null and local = 10.0.0.1:443", true),
        ("process = a and owners != null", true),
        ("guessed = true", false),
    ] {
        let predicate = Predicate::<Flows>::new(&conjuncts(Schema::from_table::<Flows>(), filter).unwrap()).unwrap();
        assert_eq!(predicate.matches(&flow, &Lookups::empty()), expected, "{filter}");
    }
}

#[test]
fn cheap_parts_come_first() {
    let parts = conjuncts(
        Schema::from_table::<Sockets>(),
        "process ~ x and user = y and pid = 1 and state = listen and local_port = 1",
    )
    .unwrap();
    let predicate = Predicate::<Sockets>::new(&parts).unwrap();
    let order: Vec<usize> = predicate.parts.iter().map(|(place, _)| *place).collect();
    assert_eq!(order, [4, 3, 1, 2, 0]);
    assert!(!predicate.residual_filter(&[]).is_empty());
    assert!(predicate.residual_filter(&[FilterPushdown::Exact; 5]).is_empty());
}

#[test]
fn patterns_are_bounded() {
    for pattern in ["(a{1000}){1000}", &"(".repeat(1_000), "[", "\\p{Greek}"] {
        assert!(compile_regex(pattern).is_err(), "{pattern}");
    }
    let test = Test { field: field("process"), op: Op::Match, operand: Operand::Regex("[".into()) };
    let error = Predicate::<Sockets>::new(&[Expr::Test(test)]).err().unwrap();
    assert_eq!(&*error.pattern, "[");
    assert!(!error.why.contains('\n'));
}

// A second, naive evaluator: every field becomes the list of its values.

fn values(row: &Socket<'_>, name: usize, known: &FakeOwners) -> Vec<String> {
    let field = &Sockets::FIELDS[name];
    match field.get {
        Get::Owners { key, part } => {
            known.lookups().owners(key(row)).iter().map(|o| part.map_or(String::new(), |p| cell_text(&p(o)))).collect()
        }
        Get::OwnersJoined { key, of, orphan, lookup } => {
            let (lookups, key) = (known.lookups(), key(row));
            let mut keys: Vec<_> = lookups.owners(key).iter().map(|owner| of(key, owner)).collect();
            if keys.is_empty() {
                keys.push(orphan(row));
            }
            let values = keys.into_iter().map(|key| lookups.value(lookup, key));
            values.filter(|value| !value.is_null()).map(|value| cell_text(&value)).collect()
        }
        _ => match field.cell(row, &known.lookups()) {
            Value::Null => vec![],
            value => vec![cell_text(&value)],
        },
    }
}

fn naive(expr: &Expr, row: &Socket<'_>, known: &FakeOwners) -> bool {
    match expr {
        Expr::And(parts) => parts.iter().all(|p| naive(p, row, known)),
        Expr::Or(parts) => parts.iter().any(|p| naive(p, row, known)),
        Expr::Not(part) => !naive(part, row, known),
        Expr::Test(Test { field, op, operand: Operand::Field(other) }) => {
            let number = |field| values(row, field, known).first().map(|value| value.parse::<u64>().unwrap());
            let (Some(left), Some(right)) = (number(*field), number(*other)) else { return false };
            let test = Test { field: *field, op: *op, operand: Operand::Number(right) };
            naive_is(&left.to_string(), &test) != (*op == Op::Ne)
        }
        Expr::Test(test) => {
            let values = values(row, test.field, known);
            if values.is_empty() {
                return test.op == Op::Eq && test.operand == Operand::Null;
            }
            let any = values.iter().any(|value| naive_is(value, test));
            if matches!(test.op, Op::Ne | Op::NotMatch) { !any } else { any }
        }
    }
}

fn naive_is(value: &str, test: &Test) -> bool {
    let number = || value.parse::<u64>().unwrap();
    let order = |o: std::cmp::Ordering| match test.op {
        Op::Lt => o.is_lt(),
        Op::Le => o.is_le(),
        Op::Gt => o.is_gt(),
        Op::Ge => o.is_ge(),
        _ => o.is_eq(),
    };
    match &test.operand {
        Operand::Null => false,
        Operand::Bool(wanted) => value == wanted.to_string(),
        Operand::Number(n) => order(number().cmp(n)),
        Operand::Ranges(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&number())),
        Operand::Masked { value, mask } => number() & mask == *value,
        Operand::Addr(to) => order(addr(value).cmp(to)),
        Operand::Prefixes(prefixes) => prefixes.iter().any(|p| p.contains(addr(value))),
        Operand::Words(words) => words.iter().any(|w| **w == *value.as_bytes()),
        Operand::Endpoints(_) | Operand::Member { .. } | Operand::Field(_) | Operand::FarTime(_) => {
            unreachable!("sockets have no such field")
        }
        Operand::Regex(pattern) => value.contains(&**pattern),
        Operand::Glob(pattern) => value.starts_with(std::str::from_utf8(&pattern[..pattern.len() - 1]).unwrap()),
    }
}

fn any_addr() -> impl Strategy<Value = Addr> {
    prop_oneof![
        (0u8..3, 0u8..3).prop_map(|(a, b)| Addr::V4([10, a, 0, b])),
        (0u8..3).prop_map(|a| Addr::V6([0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a])),
        Just(Addr::ANY4),
    ]
}

fn any_row() -> impl Strategy<Value = Socket<'static>> {
    let small = 0u32..4;
    (
        any_addr(),
        0u16..4,
        1u8..12,
        small.clone(),
        small.clone(),
        proptest::option::of(small),
        any::<Option<bool>>(),
        0usize..3,
    )
        .prop_map(|(peer, port, state, inode, mark, uid, v6only, cong)| Socket {
            state: State(state),
            local: Endpoint { addr: addr("192.0.2.1"), port: 4 - port },
            peer: Endpoint { addr: peer, port },
            inode,
            mark: Some(mark),
            uid,
            v6only,
            cong: [None, Some(&b"bbr"[..]), Some(&b"cubic"[..])][cong],
            ..Socket::EMPTY
        })
}

fn any_test() -> impl Strategy<Value = Expr> {
    let order = prop_oneof![Just(Op::Eq), Just(Op::Ne), Just(Op::Lt), Just(Op::Le), Just(Op::Gt), Just(Op::Ge)];
    let same = prop_oneof![Just(Op::Eq), Just(Op::Ne)];
    let like = prop_oneof![Just(Op::Match), Just(Op::NotMatch)];
    let number =
        prop_oneof![Just("local_port"), Just("peer_port"), Just("mark"), Just("uid"), Just("pid"), Just("inode")];
    let text = prop_oneof![Just("state"), Just("congestion"), Just("process"), Just("user"), Just("container")];
    let word = prop_oneof![Just("bbr"), Just("established"), Just("close"), Just("a"), Just("b"), Just("u1"), Just("")];
    let range = (0u64..4, 0u64..4).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let prefix = (any_addr(), 0u8..=128).prop_map(|(a, len)| Prefix::new(a, len.min(a.bits())).unwrap());
    let any_field =
        prop_oneof![Just("state"), Just("peer_port"), Just("pid"), Just("user"), Just("owners"), Just("v6only")];
    let words =
        proptest::collection::vec(word.clone(), 0..12).prop_map(|w| w.iter().map(|w| w.as_bytes().into()).collect());
    prop_oneof![
        (number.clone(), order.clone(), (0u64..4).prop_map(Operand::Number)),
        (number.clone(), same.clone(), proptest::collection::vec(range, 0..6).prop_map(Operand::Ranges)),
        (
            number.clone(),
            same.clone(),
            (0u64..4, 0u64..4).prop_map(|(v, mask)| Operand::Masked { value: v & mask, mask })
        ),
        (number.clone(), order.clone(), number.prop_map(|other| Operand::Field(field(other)))),
        (Just("peer_addr"), order, any_addr().prop_map(Operand::Addr)),
        (Just("peer_addr"), same.clone(), proptest::collection::vec(prefix, 0..4).prop_map(Operand::Prefixes)),
        (text.clone(), same.clone(), words.prop_map(Operand::Words)),
        (text.clone(), like.clone(), word.clone().prop_map(|w| Operand::Regex(w.into()))),
        (text, like, word.prop_map(|w| Operand::Glob(format!("{w}*").into_bytes().into()))),
        (Just("v6only"), same.clone(), any::<bool>().prop_map(Operand::Bool)),
        (any_field, same, Just(Operand::Null)),
    ]
    .prop_map(|(name, op, operand)| Expr::Test(Test { field: field(name), op, operand }))
}

fn any_expr() -> impl Strategy<Value = Expr> {
    any_test().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Expr::And),
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Expr::Or),
            inner.prop_map(|p| Expr::Not(Box::new(p))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    #[test]
    fn agrees_with_the_plain_evaluator(exprs in proptest::collection::vec(any_expr(), 0..4),
        rows in proptest::collection::vec(any_row(), 1..12)) {
        let known = FakeOwners {
            owners: vec![(1, vec![owner(1, "a"), owner(2, "b")]), (2, vec![owner(3, "bbr")])],
            users: vec![(1, b"u1".to_vec()), (2, b"".to_vec())],
            containers: FakeNames(vec![(Key::Id(2), b"u1".to_vec()), (Key::Id(3), b"bbr".to_vec())]),
        };
        let predicate = Predicate::<Sockets>::new(&exprs).unwrap();
        for row in &rows {
            let expected = exprs.iter().all(|e| naive(e, row, &known));
            prop_assert_eq!(predicate.matches(row, &known.lookups()), expected, "{:?}", row);
        }
    }
}

#[test]
fn either_of_two_places_passes() {
    use record::rows::{CapturedPacket, CapturedPackets, HolderWords, PacketSocket};
    let socket = |uid| PacketSocket {
        inode: 0,
        proto: record::Proto::Tcp,
        state: record::State::LISTEN,
        uid,
        owners: Box::default(),
        words: std::rc::Rc::new(HolderWords::default()),
    };
    let (one, other) = (socket(Some(1)), socket(Some(2)));
    let both = CapturedPacket { src_socket: Some(&one), dst_socket: Some(&other), ..CapturedPacket::default() };
    let sent = CapturedPacket { dst_socket: None, ..both };
    let holds = |filter: &str, row: &CapturedPacket<'_>| {
        let ast = crate::filter::parse(filter).unwrap();
        let parts = crate::filter::bind(Schema::from_table::<CapturedPackets>(), &ast).unwrap().into_conjuncts();
        Predicate::<CapturedPackets>::new(&parts).unwrap().matches(row, &Lookups::empty())
    };
    for (filter, of_both, of_sent) in [
        ("uid = 1", true, true),
        ("uid = 2", true, false),
        ("uid = 3", false, false),
        ("uid != 2", false, true),
        ("uid > 1", true, false),
        ("uid = null", false, false),
        ("pid = null", true, true),
        ("dst_uid = null", false, true),
    ] {
        assert_eq!((holds(filter, &both), holds(filter, &sent)), (of_both, of_sent), "{filter}");
    }
}
