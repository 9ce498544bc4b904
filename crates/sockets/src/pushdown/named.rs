//! Finds the tables that a demand names.
//!
//! Some tables are expensive or load kernel modules, so they are read only if the filter or a column mentions them. A
//! table that the kernel lacks is reported only to a user who named it.
use record::rows::Sockets;
use record::rows::need::NETLINK;
use record::{Demand, Op, Operand, Proto, Table as _, Test};

use crate::pushdown::only_in;

/// True for tables that every kernel in use has.
pub(crate) fn is_in_every_kernel(proto: Proto) -> bool {
    matches!(proto, Proto::Tcp | Proto::Udp | Proto::Unix)
}

/// True if the filter tests `proto`, with any operand, or a field that only this table has. Columns that must be
/// requested from netlink_diag also mention the table of netlink sockets.
pub(crate) fn tests_table(demand: &Demand<Sockets>, proto: Proto) -> bool {
    let has_column = proto == Proto::Netlink && demand.need & NETLINK != 0;
    has_column || any_test(demand, |field, _| field == "proto" || only_in(field) == Some(proto))
}

/// True if the user expects rows of this table, so that its absence is worth a message.
///
/// `proto != tcp` mentions every table. A table that many kernels lack is expected only if its name (`proto = sctp`) or
/// a field that only it has is tested.
pub(crate) fn expects_table(demand: &Demand<Sockets>, proto: Proto) -> bool {
    match proto {
        Proto::Sctp | Proto::Dccp | Proto::Vsock | Proto::Tipc | Proto::Xdp => any_test(demand, |field, test| {
            only_in(field) == Some(proto) || (field == "proto" && equals_name_of(test, proto))
        }),
        _ => tests_table(demand, proto),
    }
}

fn equals_name_of(test: &Test, proto: Proto) -> bool {
    let Operand::Words(words) = &test.operand else { return false };
    test.op == Op::Eq && words.iter().any(|word| **word == *proto.name().as_bytes())
}

/// True if `holds` accepts any test of the filter, given the name of its field.
fn any_test(demand: &Demand<Sockets>, holds: impl Fn(&str, &Test) -> bool) -> bool {
    let mut any = false;
    for part in &demand.conjuncts {
        part.for_each_test(&mut |test| {
            any |= Sockets::FIELDS.get(test.field).is_some_and(|field| holds(field.name, test));
        });
    }
    any
}
