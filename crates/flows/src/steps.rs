//! The demands of each step for the source of sockets.

use record::rows::{Flow, Sockets};
use record::{Demand, Expr, Op, Operand, Proto, State, Test, field_index};

/// Fields that identify a service.
const SERVICE_FIELDS: &[&str] = &["netns_id", "proto", "state", "local_addr", "local_port", "v6only", "inode"];
/// Fields that a flow is built from.
const CONNECTION_FIELDS: &[&str] =
    &["netns_id", "proto", "state", "local_addr", "local_port", "peer_addr", "peer_port"];
/// The field that is needed to find owners.
const OWNER_FIELDS: &[&str] = &["inode"];
/// Fields that are needed for the sums.
const SUM_FIELDS: &[&str] = &["bytes_in", "bytes_out", "retrans_total"];
/// Fields that are needed for the round-trip times.
const RTT_FIELDS: &[&str] = &["rtt_us", "min_rtt_us"];
/// Fields that are needed for the rates.
const RATE_FIELDS: &[&str] = &["bytes_in_per_s", "bytes_out_per_s"];

/// States of a connection, for the kernel's mask. `close` is left out: requesting it makes the kernel return sockets
/// that were never connected.
const CONNECTED: &[State] = &[
    State::ESTABLISHED,
    State::SYN_SENT,
    State::SYN_RECV,
    State::FIN_WAIT1,
    State::FIN_WAIT2,
    State::TIME_WAIT,
    State::CLOSE_WAIT,
    State::LAST_ACK,
    State::CLOSING,
];

/// Step 1: every service of one protocol. The user's filter does not apply here.
pub(crate) fn services(proto: Proto) -> Demand<Sockets> {
    let state = if proto == Proto::Tcp { State::LISTEN } else { State::CLOSE };
    Demand::new(
        &indexes(SERVICE_FIELDS),
        vec![is_one_of("proto", &[proto.name()]), is_one_of("state", &[state.name(proto)])],
    )
}

/// Step 2: the connections of these protocols, with the user's conjuncts after the two of this step.
pub(crate) fn connections(
    protos: &[Proto],
    bound_too: bool,
    wanted: &Demand<record::rows::Flows>,
    user: impl Iterator<Item = Expr>,
) -> Demand<Sockets> {
    let mut fields = indexes(CONNECTION_FIELDS);
    if wanted.need & Flow::NEED_OWNERS != 0 {
        fields.extend(indexes(OWNER_FIELDS));
    }
    if wanted.need & Flow::NEED_TCP_INFO != 0 {
        fields.extend(indexes(SUM_FIELDS));
    }
    if wanted.need & Flow::NEED_RTT != 0 {
        fields.extend(indexes(RTT_FIELDS));
    }
    if wanted.need & Flow::NEED_RATES != 0 {
        fields.extend(indexes(RATE_FIELDS));
    }
    let protos: Vec<&str> = protos.iter().map(|p| p.name()).collect();
    let mut states: Vec<&str> = CONNECTED.iter().map(|s| s.name(Proto::Tcp)).collect();
    if bound_too {
        states.extend([State::CLOSE, State::BOUND_INACTIVE].map(|s| s.name(Proto::Tcp)));
    }
    let mut conjuncts = vec![is_one_of("proto", &protos), is_one_of("state", &states)];
    conjuncts.extend(user);
    let mut demand = Demand::new(&fields, conjuncts);
    demand.repeated = wanted.repeated;
    demand
}

/// Number of conjuncts of [`connections`] that do not come from the user.
pub(crate) const OURS: usize = 2;

/// The protocols that the user's conjuncts permit; the others are not read at all.
pub(crate) fn protocols<'e>(user: impl Iterator<Item = &'e Expr>) -> Vec<Proto> {
    let mut protos = vec![Proto::Tcp, Proto::Udp];
    let Some(field) = field_index::<Sockets>("proto") else { return protos };
    for expr in user {
        if let Expr::Test(Test { field: tested, op, operand: Operand::Words(words) }) = expr {
            let named = |p: &Proto| words.iter().any(|w| **w == *p.name().as_bytes());
            match (*tested == field, op) {
                (true, Op::Eq) => protos.retain(named),
                (true, Op::Ne) => protos.retain(|p| !named(p)),
                _ => {}
            }
        }
    }
    protos
}

fn indexes(names: &[&str]) -> Vec<usize> {
    names.iter().filter_map(|name| field_index::<Sockets>(name)).collect()
}

/// `field in (words)`. If the table lacks the field, the condition always holds: rows are tested again later.
fn is_one_of(name: &str, words: &[&str]) -> Expr {
    let words = words.iter().map(|w| w.as_bytes().into()).collect();
    match field_index::<Sockets>(name) {
        Some(field) => Expr::Test(Test { field, op: Op::Eq, operand: Operand::Words(words) }),
        None => Expr::And(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_field_exists() {
        for name in
            SERVICE_FIELDS.iter().chain(CONNECTION_FIELDS).chain(SUM_FIELDS).chain(RATE_FIELDS).chain(RTT_FIELDS)
        {
            assert!(field_index::<Sockets>(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_protocol_that_is_filtered_out_is_not_read() {
        let test = |op, words: &[&str]| {
            let Expr::Test(test) = is_one_of("proto", words) else { return Expr::And(Vec::new()) };
            Expr::Test(Test { op, ..test })
        };
        for (exprs, left) in [
            (vec![], vec![Proto::Tcp, Proto::Udp]),
            (vec![test(Op::Eq, &["tcp"])], vec![Proto::Tcp]),
            (vec![test(Op::Ne, &["tcp"])], vec![Proto::Udp]),
            (vec![test(Op::Eq, &["unix"])], vec![]),
            (vec![Expr::Not(Box::new(test(Op::Eq, &["tcp"])))], vec![Proto::Tcp, Proto::Udp]),
            (vec![test(Op::Eq, &["tcp", "udp"]), test(Op::Eq, &["udp"])], vec![Proto::Udp]),
        ] {
            assert_eq!(protocols(exprs.iter()), left, "{exprs:?}");
        }
    }
}
