//! Which tables a filter speaks of.
use record::rows::Sockets;
use record::rows::need::NETLINK;
use record::{Demand, Op, Operand, Proto, Table as _};

use crate::pushdown::only_in;

// Tables that every kernel of use has.
pub(crate) fn is_in_every_kernel(proto: Proto) -> bool {
    matches!(proto, Proto::Tcp | Proto::Udp | Proto::Unix)
}

// Whether the filter speaks of protocols or of what that table alone has, or such a column has to be asked for.
pub(crate) fn is_named(demand: &Demand<Sockets>, proto: Proto) -> bool {
    let mut named = proto == Proto::Netlink && demand.need & NETLINK != 0;
    for part in &demand.conjuncts {
        part.for_each_test(&mut |test| {
            let name = Sockets::FIELDS.get(test.field).map_or("", |field| field.name);
            named |= name == "proto" || only_in(name) == Some(proto);
        });
    }
    named
}

// Whether somebody waits for that table. Of those that many kernels lack only its own name says so: `proto != tcp`
// speaks of them as well.
pub(crate) fn is_told(demand: &Demand<Sockets>, proto: Proto) -> bool {
    if !matches!(proto, Proto::Sctp | Proto::Dccp | Proto::Vsock | Proto::Tipc | Proto::Xdp) {
        return is_named(demand, proto);
    }
    let mut told = false;
    for part in &demand.conjuncts {
        part.for_each_test(&mut |test| {
            let name = Sockets::FIELDS.get(test.field).map_or("", |field| field.name);
            let word = match (&test.operand, test.op) {
                (Operand::Words(words), Op::Eq) => words.iter().any(|word| **word == *proto.name().as_bytes()),
                _ => false,
            };
            told |= only_in(name) == Some(proto) || (name == "proto" && word);
        });
    }
    told
}
