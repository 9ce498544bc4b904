//! The kernel's unchanged messages about TCP sockets, for files that other tools read.

use netlink::{AnswerMessage, DumpEnd, DumpError, Query};
use record::Proto;
use record::rows::need;
use std::ops::ControlFlow;
use sys::Host;

use crate::address_families::{AF_INET, AF_INET6};
use crate::backends::netlink::inet_diag::{DumpParameters, ext_of};

/// NETLINK_SOCK_DIAG, include/uapi/linux/netlink.h.
const PROTOCOL: i32 = 4;
/// `INET_DIAG_MEMINFO`, the older form of `SKMEMINFO`: tools that request one request both.
const MEMINFO: u8 = 1;

/// Passes every message about the TCP sockets of one family (IPv6 if `six`) in the calling thread's namespace, whose
/// inode is `netns_id`, to `each`. `states` is the kernel's mask, `demanded` the `need` bits whose attributes are
/// requested.
pub fn dump_tcp(
    host: &Host,
    netns_id: u64,
    six: bool,
    states: u32,
    demanded: u64,
    each: impl FnMut(&AnswerMessage<'_>) -> ControlFlow<()>,
) -> Result<DumpEnd, DumpError> {
    let meminfo = if demanded & need::SKMEM != 0 { MEMINFO } else { 0 };
    let ext = ext_of(demanded) | meminfo;
    let wanted = DumpParameters { ext, states, sport: 0, dport: 0, bytecode: &[], storages: false };
    let request = wanted.by_family(if six { AF_INET6 } else { AF_INET }, Proto::Tcp);
    let family = if six { "6" } else { "4" };
    let key = format!("raw tcp{family} states {states:x} ext {ext:x}@{netns_id}");
    netlink::dump(
        host,
        &Query { what: "tcp sockets", protocol: PROTOCOL, request: &request, key: &key, note: "", netns: None },
        each,
    )
}
