//! The kernel's numbers: include/uapi/linux/netfilter/nfnetlink.h and nfnetlink_conntrack.h.
#![allow(missing_docs, reason = "each is documented in the kernel's header under the same name")]

/// Netlink protocol.
pub const NETLINK_NETFILTER: i32 = 12;
/// Subsystem of entries; the upper byte of a message's type.
pub const NFNL_SUBSYS_CTNETLINK: u16 = 1;
/// Subsystem of expectations.
pub const NFNL_SUBSYS_CTNETLINK_EXP: u16 = 2;
/// `struct nfgenmsg`: family u8, version u8, resource id be16.
pub const NFGENMSG: usize = 4;

pub const AF_INET: u8 = 2;
pub const AF_INET6: u8 = 10;

/// Message types within a subsystem, `IPCTNL_MSG_…`.
pub mod msg {
    pub const CT_NEW: u16 = 0;
    pub const CT_GET: u16 = 1;
    pub const CT_DELETE: u16 = 2;
    pub const CT_GET_CTRZERO: u16 = 3;
    pub const CT_GET_STATS_CPU: u16 = 4;
    pub const CT_GET_STATS: u16 = 5;
    pub const CT_GET_DYING: u16 = 6;
    pub const CT_GET_UNCONFIRMED: u16 = 7;
    pub const EXP_NEW: u16 = 0;
    pub const EXP_GET: u16 = 1;
    pub const EXP_DELETE: u16 = 2;
    pub const EXP_GET_STATS_CPU: u16 = 3;
}

/// Attributes of an entry, `CTA_…`.
pub mod cta {
    pub const TUPLE_ORIG: u16 = 1;
    pub const TUPLE_REPLY: u16 = 2;
    pub const STATUS: u16 = 3;
    pub const PROTOINFO: u16 = 4;
    pub const HELP: u16 = 5;
    pub const NAT_SRC: u16 = 6;
    pub const TIMEOUT: u16 = 7;
    pub const MARK: u16 = 8;
    pub const COUNTERS_ORIG: u16 = 9;
    pub const COUNTERS_REPLY: u16 = 10;
    pub const USE: u16 = 11;
    pub const ID: u16 = 12;
    pub const NAT_DST: u16 = 13;
    pub const TUPLE_MASTER: u16 = 14;
    pub const SEQ_ADJ_ORIG: u16 = 15;
    pub const SEQ_ADJ_REPLY: u16 = 16;
    pub const ZONE: u16 = 18;
    pub const SECCTX: u16 = 19;
    pub const TIMESTAMP: u16 = 20;
    pub const MARK_MASK: u16 = 21;
    pub const LABELS: u16 = 22;
    pub const LABELS_MASK: u16 = 23;
    pub const SYNPROXY: u16 = 24;
    pub const FILTER: u16 = 25;
    pub const STATUS_MASK: u16 = 26;
    pub const TIMESTAMP_EVENT: u16 = 27;
    /// The last attribute of 6.18; higher numbers come from a newer kernel.
    pub const LAST_KNOWN: u16 = TIMESTAMP_EVENT;
}

/// Attributes of a tuple, `CTA_TUPLE_…`.
pub mod tuple {
    pub const IP: u16 = 1;
    pub const PROTO: u16 = 2;
    pub const ZONE: u16 = 3;
}

/// Addresses of a tuple, `CTA_IP_…`.
pub mod ip {
    pub const V4_SRC: u16 = 1;
    pub const V4_DST: u16 = 2;
    pub const V6_SRC: u16 = 3;
    pub const V6_DST: u16 = 4;
}

/// Protocol-specific parts of a tuple, `CTA_PROTO_…`. A GRE key takes the place of a port.
pub mod proto {
    pub const NUM: u16 = 1;
    pub const SRC_PORT: u16 = 2;
    pub const DST_PORT: u16 = 3;
    pub const ICMP_ID: u16 = 4;
    pub const ICMP_TYPE: u16 = 5;
    pub const ICMP_CODE: u16 = 6;
    pub const ICMPV6_ID: u16 = 7;
    pub const ICMPV6_TYPE: u16 = 8;
    pub const ICMPV6_CODE: u16 = 9;
}

/// Protocol-specific state of an entry, `CTA_PROTOINFO_…`; number 1 within each of them is the state.
pub mod protoinfo {
    pub const TCP: u16 = 1;
    pub const DCCP: u16 = 2;
    pub const SCTP: u16 = 3;
    pub const STATE: u16 = 1;
    pub const TCP_FLAGS_ORIG: u16 = 4;
    pub const TCP_FLAGS_REPLY: u16 = 5;
    pub const SCTP_VTAG_ORIG: u16 = 2;
    pub const SCTP_VTAG_REPLY: u16 = 3;
    pub const DCCP_ROLE: u16 = 2;
}

/// `CTA_COUNTERS_…`; kernels before 2.6.32 send the 32-bit forms.
pub mod counters {
    pub const PACKETS: u16 = 1;
    pub const BYTES: u16 = 2;
    pub const PACKETS_32: u16 = 3;
    pub const BYTES_32: u16 = 4;
}

/// `CTA_TIMESTAMP_…`, ns since 1970.
pub mod timestamp {
    pub const START: u16 = 1;
    pub const STOP: u16 = 2;
}

/// New addresses and ports of NAT, `CTA_NAT_…` and `CTA_PROTONAT_…`.
pub mod nat {
    pub const V4_MINIP: u16 = 1;
    pub const V4_MAXIP: u16 = 2;
    pub const PROTO: u16 = 3;
    pub const V6_MINIP: u16 = 4;
    pub const V6_MAXIP: u16 = 5;
    pub const PORT_MIN: u16 = 1;
    pub const PORT_MAX: u16 = 2;
}

/// `CTA_HELP_NAME` and `CTA_SECCTX_NAME`.
pub const NAME: u16 = 1;

/// `CTA_FILTER_…`, and the flags that select the compared fields (`CTA_FILTER_F_CTA_…`, u32 in machine byte order).
pub mod filter {
    pub const ORIG_FLAGS: u16 = 1;
    pub const REPLY_FLAGS: u16 = 2;
    pub const IP_SRC: u32 = 1;
    pub const IP_DST: u32 = 1 << 1;
    pub const TUPLE_ZONE: u32 = 1 << 2;
    pub const PROTO_NUM: u32 = 1 << 3;
    pub const SRC_PORT: u32 = 1 << 4;
    pub const DST_PORT: u32 = 1 << 5;
    pub const ICMP_TYPE: u32 = 1 << 6;
    pub const ICMP_CODE: u32 = 1 << 7;
    pub const ICMP_ID: u32 = 1 << 8;
    pub const ICMPV6_TYPE: u32 = 1 << 9;
    pub const ICMPV6_CODE: u32 = 1 << 10;
    pub const ICMPV6_ID: u32 = 1 << 11;
}

/// Attributes of an expectation, `CTA_EXPECT_…`.
pub mod expect {
    pub const MASTER: u16 = 1;
    pub const TUPLE: u16 = 2;
    pub const MASK: u16 = 3;
    pub const TIMEOUT: u16 = 4;
    pub const ID: u16 = 5;
    pub const HELP_NAME: u16 = 6;
    pub const ZONE: u16 = 7;
    pub const FLAGS: u16 = 8;
    pub const CLASS: u16 = 9;
    pub const NAT: u16 = 10;
    pub const FN: u16 = 11;
    /// The last attribute of 6.18.
    pub const LAST_KNOWN: u16 = FN;
    /// Inside the NAT attribute: the direction that is rewritten, and its new tuple.
    pub const NAT_DIR: u16 = 1;
    pub const NAT_TUPLE: u16 = 2;
}
