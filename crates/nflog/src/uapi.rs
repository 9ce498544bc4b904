//! The kernel's numbers: include/uapi/linux/netfilter/nfnetlink_log.h and nfnetlink.h.

/// Netlink protocol.
pub(crate) const NETLINK_NETFILTER: i32 = 12;
/// Subsystem of the log; the upper byte of a message's type.
pub(crate) const NFNL_SUBSYS_ULOG: u16 = 4;
/// `struct nfgenmsg`: family u8, version u8, resource id be16 (the group).
pub(crate) const NFGENMSG: usize = 4;

/// Message types, `NFULNL_MSG_…`.
pub(crate) mod msg {
    pub(crate) const PACKET: u16 = 0;
    pub(crate) const CONFIG: u16 = 1;
}

/// Attributes of a record, `NFULA_…`.
pub(crate) mod nfula {
    pub(crate) const PACKET_HDR: u16 = 1;
    pub(crate) const MARK: u16 = 2;
    pub(crate) const TIMESTAMP: u16 = 3;
    pub(crate) const IFINDEX_INDEV: u16 = 4;
    pub(crate) const IFINDEX_OUTDEV: u16 = 5;
    pub(crate) const IFINDEX_PHYSINDEV: u16 = 6;
    pub(crate) const IFINDEX_PHYSOUTDEV: u16 = 7;
    pub(crate) const HWADDR: u16 = 8;
    pub(crate) const PAYLOAD: u16 = 9;
    pub(crate) const PREFIX: u16 = 10;
    pub(crate) const UID: u16 = 11;
    pub(crate) const SEQ: u16 = 12;
    pub(crate) const SEQ_GLOBAL: u16 = 13;
    pub(crate) const GID: u16 = 14;
    pub(crate) const HWTYPE: u16 = 15;
    pub(crate) const HWHEADER: u16 = 16;
    pub(crate) const HWLEN: u16 = 17;
    pub(crate) const CT: u16 = 18;
    pub(crate) const CT_INFO: u16 = 19;
    pub(crate) const VLAN: u16 = 20;
    pub(crate) const L2HDR: u16 = 21;
}

/// Attribute inside [`nfula::VLAN`]: the tag's priority and id, be16.
pub(crate) const NFULA_VLAN_TCI: u16 = 2;

/// Attributes of a configuration, `NFULA_CFG_…`.
pub(crate) mod cfg {
    pub(crate) const CMD: u16 = 1;
    pub(crate) const MODE: u16 = 2;
    pub(crate) const NLBUFSIZ: u16 = 3;
    pub(crate) const TIMEOUT: u16 = 4;
    pub(crate) const QTHRESH: u16 = 5;
    pub(crate) const FLAGS: u16 = 6;
}

/// Values of [`cfg::CMD`].
pub(crate) const NFULNL_CFG_CMD_BIND: u8 = 1;
/// See [`NFULNL_CFG_CMD_BIND`].
pub(crate) const NFULNL_CFG_CMD_UNBIND: u8 = 2;
/// Value of [`cfg::MODE`]: records with the packet's bytes.
pub(crate) const NFULNL_COPY_PACKET: u8 = 2;
/// Bit of [`cfg::FLAGS`]: each record contains its number in the group.
pub(crate) const NFULNL_CFG_F_SEQ: u16 = 1;
/// Bit of [`cfg::FLAGS`]: each record contains its packet's connection-tracking entry (Linux 4.4, if the kernel has
/// CONFIG_NETFILTER_NETLINK_GLUE_CT).
pub(crate) const NFULNL_CFG_F_CONNTRACK: u16 = 4;
