#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::testing::{CannedSource, TextSink, field, request};
use record::rows::{Endpoint, Socket, Sockets, need};
use record::{Expr, Key, Lookup, Lookups, Test, Value};

fn error(change: impl FnOnce(&mut PlanRequest)) -> String {
    let mut request = request(&["state"], "");
    change(&mut request);
    match Plan::<Sockets>::new(request) {
        Ok(_) => panic!("planned"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    assert_eq!(error(|r| r.by = vec!["peer_a".into()]), "unknown field `peer_a` in --by; did you mean `peer_addr`?");
    assert_eq!(
        error(|r| r.by = vec!["zzzz".into()]),
        "unknown field `zzzz` in --by; `--columns help` lists the fields"
    );
    assert_eq!(
        error(|r| r.by = vec!["owners".into()]),
        "--by cannot use `owners`: a list of owners cannot be grouped; use `process` or `pid`"
    );
    assert_eq!(
        error(|r| r.sort = SortKey::parse_list("rtt_u")),
        "unknown field `rtt_u` in --sort; did you mean `rtt_us`?"
    );
    assert_eq!(
        error(|r| r.sort = SortKey::parse_list("pid:down")),
        "unknown field `pid:down` in --sort; did you mean `pid:desc`?"
    );
    assert_eq!(
        error(|r| r.folds = vec![(Fold::Sum, "pid".into())]),
        "--sum cannot use `pid`: an identifier is not a quantity"
    );
    assert_eq!(error(|r| r.folds = vec![(Fold::Max, "state".into())]), "--max cannot use `state`: it is not a number");
    assert_eq!(
        error(|r| {
            r.by = vec!["state".into()];
            r.folds = vec![(Fold::Avg, "recv_q".into())];
            r.sort = SortKey::parse_list("recv_q");
        }),
        "unknown field `recv_q` in --sort; did you mean `avg_recv_q`?"
    );
    assert_eq!(
        error(|r| {
            r.by = vec!["state".into()];
            r.sort = SortKey::parse_list("process");
        }),
        "--sort cannot use `process`: it is not a column of these groups"
    );
    let bad = Test { field: 0, op: record::Op::Match, operand: record::Operand::Regex("(".into()) };
    assert_eq!(error(|r| r.conjuncts = vec![Expr::Test(bad)]), "bad regular expression `(`: unclosed group");
}

/// Names of the interfaces of a namespace.
struct Names;

impl Lookup for Names {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Pair(_, 3) => Value::Bytes(b"eth0"),
            Key::Pair(_, 4) => Value::Bytes(b"eth1"),
            _ => Value::Null,
        }
    }
}

/// The peers in rows and groups of connections with `fe80::2` on three links, with two of them on the first.
fn peers(request: PlanRequest) -> Vec<String> {
    let end = |text: &str| Endpoint { addr: text.parse().unwrap(), port: 22 };
    let row = |ifindex, peer| Socket { ifindex, peer: end(peer), ..Socket::EMPTY };
    let rows = [row(3, "fe80::2"), row(4, "fe80::2"), row(3, "fe80::2"), row(7, "fe80::2"), row(3, "2001:db8::1")];
    let plan = Plan::<Sockets>::new(request).unwrap();
    assert!(plan.may_need_lookup(LookupId::Ifaces) || plan.columns().0.iter().any(|column| column.name.contains('/')));
    let source = CannedSource { rows: rows.to_vec(), ..CannedSource::default() };
    let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &Names);
    let mut seen = TextSink::default();
    crate::testing::run_once(&plan, &source, &lookups, &mut seen).unwrap();
    seen.rows
}

#[test]
fn a_link_local_address_has_its_interface_unless_that_is_a_column() {
    let by = |names: &[&str]| PlanRequest { by: names.iter().map(|name| (*name).into()).collect(), ..request(&[], "") };
    assert_eq!(
        peers(request(&["peer_addr"], "")),
        ["fe80::2%eth0", "fe80::2%eth1", "fe80::2%eth0", "fe80::2%7", "2001:db8::1"]
    );
    assert_eq!(peers(request(&["peer_addr", "iface"], "peer_addr = fe80::2 and ifindex = 3"))[0], "fe80::2 eth0");
    let mut groups = peers(by(&["peer_addr"]));
    groups.sort_unstable();
    assert_eq!(groups, ["2001:db8::1 1", "fe80::2%7 1", "fe80::2%eth0 2", "fe80::2%eth1 1"]);
    let mut groups = peers(by(&["peer_addr", "iface"]));
    groups.sort_unstable();
    assert_eq!(groups, ["2001:db8::1 eth0 1", "fe80::2 - 1", "fe80::2 eth0 2", "fe80::2 eth1 1"]);
    let mut networks = peers(by(&["peer_addr/64"]));
    networks.sort_unstable();
    assert_eq!(networks, ["2001:db8::/64 1", "fe80::/64 4"]);
}

#[test]
fn an_unusual_column_is_no_part_of_the_demand() {
    let unusual = PlanRequest {
        unusual: vec![field("iface")],
        optional: vec![field("iface")],
        ..request(&["peer_addr", "iface", "state"], "")
    };
    let plan = Plan::<Sockets>::new(unusual).unwrap();
    assert!(!plan.needs_lookup(LookupId::Ifaces) && plan.may_need_lookup(LookupId::Ifaces));
    assert!(!plan.demand().wants("iface") && plan.demand().need & need::IFACE_MARK != 0);
    assert_eq!(plan.named_need() & need::IFACE_MARK, 0);
    assert_eq!(plan.columns().0.len(), 3);
}

#[test]
fn sort_keys_read_their_direction() {
    let sort = |name: &str, descending| SortKey { name: name.into(), descending };
    let keys = [sort("a", None), sort("b", Some(true)), sort("c", Some(false)), sort("d", Some(true))];
    assert_eq!(SortKey::parse_list("a, b:desc,c:asc,-d"), keys);
    assert_eq!(SortKey::parse_list("-b:desc,"), [sort("b", Some(true))]);
    assert_eq!(SortKey::parse_list(""), []);
    assert_eq!(
        error(|r| r.sort = SortKey::parse_list("-state:asc")),
        "unknown field `-state` in --sort; did you mean `state`?"
    );
}

/// Returns the sort keys with their directions: `a` ascending, `-a` descending.
fn order_of(change: impl FnOnce(&mut PlanRequest)) -> String {
    let mut request = request(&["recv_q", "local_port", "state", "pid", "rtt_us"], "");
    change(&mut request);
    let plan = Plan::<Sockets>::new(request).unwrap();
    let keys = match &plan.work {
        RowWork::Sort(order) => &order.keys,
        RowWork::Group(grouping) => &grouping.order.keys,
        RowWork::Stream => return String::new(),
    };
    let text =
        |&(place, down): &(usize, bool)| format!("{}{}", if down { "-" } else { "" }, plan.columns.0[place].name);
    keys.iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn quantities_descend_and_identifiers_ascend() {
    for (sort, keys) in [
        ("recv_q", "-recv_q"),
        ("recv_q:asc", "recv_q"),
        ("rtt,state", "-rtt_us state"),
        ("local_port,pid", "local_port pid"),
        ("-local_port,-state", "-local_port -state"),
        ("recv_q,pid:desc", "-recv_q -pid"),
    ] {
        assert_eq!(order_of(|r| r.sort = SortKey::parse_list(sort)), keys, "{sort}");
    }
}

#[test]
fn groups_come_in_the_order_of_what_is_folded() {
    let by = |sort: &str, folds: &[(Fold, &str)]| {
        order_of(|r| {
            r.by = vec!["state".into(), "local_port".into()];
            r.folds = folds.iter().map(|(fold, name)| (*fold, Box::from(*name))).collect();
            r.sort = SortKey::parse_list(sort);
        })
    };
    assert_eq!(by("", &[]), "-count");
    assert_eq!(by("", &[(Fold::Sum, "recv_q"), (Fold::Max, "pid")]), "-sum_recv_q -count");
    assert_eq!(by("max_pid,count:asc,local_port", &[(Fold::Max, "pid")]), "-max_pid count local_port");
}

#[test]
fn an_end_is_grouped_by_its_address_and_an_address_by_its_network() {
    fn names<T: record::Table>(by: &str) -> Result<String, String> {
        let by = by.split(',').map(Box::from).collect();
        let plan = Plan::<T>::new(PlanRequest { by, ..PlanRequest::default() }).map_err(|wrong| wrong.to_string())?;
        Ok(plan.columns.0.iter().map(|column| &*column.name).collect::<Vec<_>>().join(" "))
    }
    for (by, sockets, nat) in [
        ("peer", "peer_addr count", "orig_dst count"),
        ("dst", "peer_addr count", "orig_dst count"),
        (
            "local,port",
            "local_addr local_port peer_port count",
            "orig_src orig_sport orig_dport reply_sport reply_dport count",
        ),
        ("peer/24", "peer_addr count", "orig_dst count"),
        ("addr/16/48", "local_addr peer_addr count", "orig_src orig_dst reply_src reply_dst count"),
    ] {
        assert_eq!(names::<Sockets>(by).as_deref(), Ok(sockets), "{by}");
        assert_eq!(names::<record::rows::Nat>(by).as_deref(), Ok(nat), "{by}");
    }
    let wrong = |by: &str| names::<Sockets>(by).unwrap_err();
    assert!(
        wrong("peer/129").starts_with("--by cannot use `peer/129`: a network is FIELD/BITS"),
        "{}",
        wrong("peer/129")
    );
    assert_eq!(wrong("state/8"), "--by cannot use `state/8`: only an address can be grouped by network");
    assert_eq!(wrong("peer_a/8"), "unknown field `peer_a` in --by; did you mean `peer_addr`?");
    assert!(wrong("peer/8,peer_addr/16").contains("already a key"), "{}", wrong("peer/8,peer_addr/16"));
}

#[test]
fn only_what_is_used_is_demanded() {
    let request =
        PlanRequest { sort: SortKey::parse_list("cookie"), ..request(&["state"], "user = root and local_port = 1") };
    let plan = Plan::<Sockets>::new(request).unwrap();
    let demand = plan.demand();
    for (name, wanted) in [("state", true), ("cookie", true), ("user", true), ("local_port", true), ("pid", false)] {
        assert_eq!(demand.wants(name), wanted, "{name}");
    }
    assert_eq!(demand.need, need::COOKIE | need::UID);
    assert!(plan.needs_lookup(LookupId::Users) && !plan.needs_lookup(LookupId::Owners) && !plan.is_streaming());
    assert_eq!(plan.columns().0.len(), 1);
}

#[test]
fn issue_15_words_stand_for_fields_in_groups_and_orders() {
    let mut request = request(&["state"], "");
    request.by = vec!["peer_addr".into(), "dport".into(), "rtt".into()];
    request.sort = SortKey::parse_list("port:desc,rtt");
    let plan = Plan::<Sockets>::new(request).unwrap();
    let names: Vec<&str> = plan.columns().0.iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["peer_addr", "peer_port", "rtt_us", "count"]);
    let RowWork::Group(grouping) = &plan.work else { panic!("groups") };
    assert_eq!(grouping.order.keys, [(1, true), (2, true)]);
    let several = error(|r| r.folds = vec![(Fold::Max, "port".into())]);
    assert_eq!(several, "--max cannot use `port`: it means several fields");
}

#[test]
fn the_same_key_twice_is_one() {
    let request = PlanRequest { by: vec!["state".into(), "state".into()], ..request(&[], "") };
    let plan = Plan::<Sockets>::new(request).unwrap();
    let names: Vec<&str> = plan.columns().0.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["state", "count"]);
}
