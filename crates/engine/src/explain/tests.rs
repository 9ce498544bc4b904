#![allow(clippy::unwrap_used)]
use super::*;
use crate::plan::{Fold, PlanRequest, SortKey};
use crate::testing::{plan, request};
use record::rows::need;

#[test]
fn rows_in_words() {
    let request = PlanRequest {
        sort: SortKey::parse_list("rtt_us:desc,state"),
        limit: Some(5),
        ..request(&["state", "process"], "state = established and peer in 10.0.0.0/8 and process ~ ^ng")
    };
    let offer = Offer {
        backend: "netlink",
        pushdown: vec![FilterPushdown::Exact, FilterPushdown::Inexact],
        lacks: need::TCP_INFO,
        backends: Vec::new(),
        explain: vec!["one dump for both families".to_owned()],
    };
    assert_eq!(
        explain(&plan(request), &offer),
        "\
table    sockets
backend  netlink
         one dump for both families
filter   state = established  [kernel]
filter   peer_addr in (10.0.0.0/8)  [kernel, then netwren]
filter   process ~ \"^ng\"  [netwren]
then     keep the rows, order by a field that is not shown descending, state
then     show the first 5
columns  state process
reads    state (idiag_state), peer_addr (idiag_dst), process
lacks    rtt_us (tcpi_rtt)  (this backend has no such field)
fills    owners of sockets
"
    );
}

#[test]
fn groups_in_words() {
    let request = PlanRequest {
        by: vec!["state".into(), "peer_addr".into()],
        folds: vec![(Fold::Sum, "recv_q".into())],
        ..request(&[], "")
    };
    let text = explain(&plan(request), &Offer { backend: "proc", ..Offer::default() });
    assert_eq!(
        text,
        "\
table    sockets
backend  proc
filter   none
then     count by state, peer_addr
then     fold into sum_recv_q
then     order by sum_recv_q descending, count descending
columns  state peer_addr count sum_recv_q
reads    state (idiag_state), recv_q (idiag_rqueue), peer_addr (idiag_dst)
"
    );
    let all = PlanRequest { folds: vec![(Fold::Max, "recv_q".into())], ..PlanRequest::default() };
    assert!(explain(&plan(all), &Offer::default()).contains("then     count all rows\n"));
    let stream = PlanRequest { limit: Some(1), ..crate::testing::request(&["state"], "") };
    assert!(explain(&plan(stream), &Offer::default()).contains("then     stop reading after 1\n"));
}
