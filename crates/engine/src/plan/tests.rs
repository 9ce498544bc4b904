#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;
use crate::testing::request;
use record::rows::{Sockets, need};
use record::{Expr, Test};

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
        "--by cannot take `owners`: a list of owners makes no group; take `process` or `pid`"
    );
    assert_eq!(
        error(|r| r.sort = Sort::parse_list("rtt_u")),
        "unknown field `rtt_u` in --sort; did you mean `rtt_us`?"
    );
    assert_eq!(
        error(|r| r.sort = Sort::parse_list("pid:down")),
        "unknown field `pid:down` in --sort; did you mean `pid:desc`?"
    );
    assert_eq!(
        error(|r| r.folds = vec![(Fold::Sum, "pid".into())]),
        "--sum cannot take `pid`: an identifier is no quantity"
    );
    assert_eq!(error(|r| r.folds = vec![(Fold::Max, "state".into())]), "--max cannot take `state`: it is no number");
    assert_eq!(
        error(|r| {
            r.by = vec!["state".into()];
            r.folds = vec![(Fold::Avg, "recv_q".into())];
            r.sort = Sort::parse_list("recv_q");
        }),
        "unknown field `recv_q` in --sort; did you mean `avg_recv_q`?"
    );
    assert_eq!(
        error(|r| {
            r.by = vec!["state".into()];
            r.sort = Sort::parse_list("process");
        }),
        "--sort cannot take `process`: it is no column of these groups"
    );
    let bad = Test { field: 0, op: record::Op::Match, operand: record::Operand::Regex("(".into()) };
    assert_eq!(error(|r| r.conjuncts = vec![Expr::Test(bad)]), "bad regular expression `(`: unclosed group");
}

#[test]
fn sort_keys_read_their_direction() {
    let sort = |name: &str, descending| Sort { name: name.into(), descending };
    assert_eq!(Sort::parse_list("a, b:desc,c:asc,"), [sort("a", false), sort("b", true), sort("c", false)]);
    assert_eq!(Sort::parse_list(""), []);
}

#[test]
fn only_what_is_used_is_demanded() {
    let request =
        PlanRequest { sort: Sort::parse_list("cookie"), ..request(&["state"], "user = root and local_port = 1") };
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
    request.by = vec!["peer".into(), "rtt".into()];
    request.sort = Sort::parse_list("port:desc,rtt");
    let plan = Plan::<Sockets>::new(request).unwrap();
    let names: Vec<&str> = plan.columns().0.iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["peer_addr", "peer_port", "rtt_us", "count"]);
    let Work::Group(grouping) = &plan.work else { panic!("groups") };
    assert_eq!(grouping.order, [(1, true), (2, false)]);
    let several = error(|r| r.folds = vec![(Fold::Max, "port".into())]);
    assert_eq!(several, "--max cannot take `port`: it stands for several fields");
}

#[test]
fn the_same_key_twice_is_one() {
    let request = PlanRequest { by: vec!["state".into(), "state".into()], ..request(&[], "") };
    let plan = Plan::<Sockets>::new(request).unwrap();
    let names: Vec<&str> = plan.columns().0.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["state", "count"]);
}
