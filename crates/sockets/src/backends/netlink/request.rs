//! Builds the sock_diag request for each table.
use netlink::Request;
use record::Proto;
use record::rows::need::{self, STORAGES};
use sys::caps::{self, Cap};

use crate::backends::netlink::inet_diag::{DumpParameters, ext_of};
use crate::backends::netlink::{netlink_diag, packet_diag, tipc_diag, unix_diag, vsock_diag, xdp_diag};
use crate::keys::Table;
use crate::pushdown::STATES_ALL;
use crate::pushdown::TableFilter;

/// NETLINK_SOCK_DIAG (include/uapi/linux/netlink.h).
pub(crate) const NETLINK_SOCK_DIAG: i32 = 4;

// bpf_capable() in the kernel.
fn may_ask_storages() -> bool {
    caps::effective().is_ok_and(|set| set.contains(Cap::Bpf) || set.contains(Cap::SysAdmin))
}

pub(crate) fn request_of(
    table: Table,
    filter: &TableFilter,
    program: &[u8],
    need: u64,
    as_asked: Option<u32>,
) -> Request {
    let TableFilter { states, sport, dport, .. } = *filter;
    // Without the privilege the kernel would refuse the whole request.
    let storages = need & STORAGES != 0 && may_ask_storages();
    // Only SCTP has attributes with numbers of associations.
    let of_table = if table.proto() == Proto::Sctp { need } else { need & !need::SCTP };
    let states = match table.proto() {
        Proto::Sctp | Proto::Vsock | Proto::Tipc => as_asked.unwrap_or(states),
        // PARTOPEN is a separate state: 13, and 14 since 6.8.
        Proto::Dccp => as_asked.unwrap_or(STATES_ALL | 3 << 13),
        _ => states,
    };
    let wanted = DumpParameters { ext: ext_of(of_table), states, sport, dport, bytecode: program, storages };
    match table {
        Table::Tcp => wanted.legacy(),
        Table::Unix => unix_diag::request(states, unix_diag::show_of(need)),
        Table::Packet => packet_diag::request(packet_diag::show_of(need)),
        Table::Netlink => netlink_diag::request(netlink_diag::show_of(need)),
        Table::Vsock => vsock_diag::request(states),
        Table::Tipc => tipc_diag::request(states),
        Table::Xdp => xdp_diag::request(xdp_diag::show_of(need)),
        table => wanted.by_family(table.family(), table.proto()),
    }
}
