//! The kernel's tables, and the namespace to which they belong.

use sys::NetNs;

use crate::uapi::{NFNL_SUBSYS_CTNETLINK, NFNL_SUBSYS_CTNETLINK_EXP, msg};

/// The kernel's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CtTable {
    /// Entries.
    Conntrack,
    /// Entries removed from the table that are still referenced, or whose destroy event could not be delivered.
    Dying,
    /// Entries whose first packet is still on its way through the kernel.
    Unconfirmed,
    /// Connections that helpers expect.
    Expect,
}

impl CtTable {
    /// Every table.
    pub const ALL: [CtTable; 4] = [CtTable::Conntrack, CtTable::Dying, CtTable::Unconfirmed, CtTable::Expect];

    /// Name of the table.
    pub fn name(self) -> &'static str {
        match self {
            CtTable::Conntrack => "conntrack",
            CtTable::Dying => "dying",
            CtTable::Unconfirmed => "unconfirmed",
            CtTable::Expect => "expect",
        }
    }

    /// Names the reader of this table in a recording, see [`sys::NetnsTarget::enter_for`].
    pub fn purpose(self) -> &'static str {
        match self {
            CtTable::Conntrack => "/conntrack",
            CtTable::Dying => "/dying",
            CtTable::Unconfirmed => "/unconfirmed",
            CtTable::Expect => "/expect",
        }
    }

    /// Name in messages: `cannot dump the dying list`.
    pub fn description(self) -> &'static str {
        match self {
            CtTable::Conntrack => "the connection-tracking table",
            CtTable::Dying => "dying connection-tracking entries",
            CtTable::Unconfirmed => "unconfirmed connection-tracking entries",
            CtTable::Expect => "connection-tracking expectations",
        }
    }

    pub(crate) fn kind(self) -> u16 {
        let (subsystem, message) = match self {
            CtTable::Conntrack => (NFNL_SUBSYS_CTNETLINK, msg::CT_GET),
            CtTable::Dying => (NFNL_SUBSYS_CTNETLINK, msg::CT_GET_DYING),
            CtTable::Unconfirmed => (NFNL_SUBSYS_CTNETLINK, msg::CT_GET_UNCONFIRMED),
            CtTable::Expect => (NFNL_SUBSYS_CTNETLINK_EXP, msg::EXP_GET),
        };
        subsystem << 8 | message
    }
}

/// A network namespace, and its number in a recording.
#[derive(Debug, Clone, Copy)]
pub struct NetnsRef<'p> {
    /// The namespace to read; `None` is the calling thread's.
    pub netns: Option<&'p NetNs>,
    /// Its inode, which is part of every row and of the stream's name in a recording.
    pub netns_id: u64,
}
