//! Detects changes of nftables rules from the kernel's notifications, of which only the type is read.

use crate::group_rules;
use netlink::Messages;
use sys::{Errno, NetlinkSocket, SysError};

/// include/uapi/linux/netlink.h
const NETLINK_NETFILTER: i32 = 12;
/// NFNLGRP_NFTABLES (7), as a bit: include/uapi/linux/netfilter/nfnetlink.h
const NFTABLES: u32 = 1 << 6;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
/// NFT_MSG_DELRULE, the last of the messages about tables, chains and rules. The messages after it are about sets,
/// whose elements may change many times per second without changing a rule. include/uapi/linux/netfilter/nf_tables.h
const LAST_OF_RULES: u16 = 8;
/// NFT_MSG_NEWGEN, the last message of a transaction.
const END_OF_TRANSACTION: u16 = 15;
/// Notifications have some hundred bytes each; if the buffer is full, that counts as a change.
const BUFFER_BYTES: i32 = 1 << 20;
/// Maximum number of notifications received in one call, so that endless changes do not keep the caller in it.
const AT_ONCE: usize = 10_000;

/// Receives notifications about changes in one network namespace.
#[derive(Debug)]
pub struct RuleChanges {
    socket: NetlinkSocket,
    place: Vec<u8>,
    heard: Heard,
}

/// How rules have changed. A caller that lists them before and afterwards needs to know whether it has seen all of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changed {
    /// No change.
    Never,
    /// Every rule that logs to a group and was in force in between existed before, or was added last.
    Listable,
    /// Rules that log were added before the last transaction, which may have removed them; or notifications are
    /// missing.
    Unlistable,
}

/// State from the messages of transactions.
#[derive(Debug, Default)]
struct Heard {
    /// The current messages belong to a transaction that has changed rules.
    is_within: bool,
    /// The newest transaction has added a rule that logs.
    adds_logging: bool,
    /// An earlier transaction has done so since the rules were listed.
    has_added: bool,
}

impl RuleChanges {
    /// Subscribes in the calling thread's namespace: changes from now on are detected. Needs CAP_NET_ADMIN.
    pub fn open() -> Result<RuleChanges, SysError> {
        let socket = NetlinkSocket::open(NETLINK_NETFILTER)?;
        socket.make_room(BUFFER_BYTES);
        socket.join(NFTABLES)?;
        Ok(RuleChanges { socket, place: vec![0; 64 << 10], heard: Heard::default() })
    }

    /// Receives the notifications since the last call; returns how tables, chains or rules have changed. Costs one
    /// system call if nothing has changed.
    pub fn receive_changes(&mut self) -> Result<Changed, SysError> {
        let mut changed = Changed::Never;
        for _ in 0..AT_ONCE {
            match self.socket.try_recv(&mut self.place) {
                Ok(None) => return Ok(changed),
                Ok(Some(received)) => {
                    let datagram = self.place.get(..received.bytes).unwrap_or_default();
                    changed = changed.max(self.heard.add(datagram));
                }
                // Notifications are missing, or one was too long.
                Err(error) if matches!(error.errno, Errno::NOBUFS | Errno::MSGSIZE) => changed = Changed::Unlistable,
                Err(error) => return Err(error),
            }
        }
        Ok(Changed::Unlistable)
    }

    /// Counts additions from now on: every rule was listed, and there was no change since then.
    pub fn are_listed(&mut self) {
        self.heard = Heard { is_within: self.heard.is_within, ..Heard::default() };
    }
}

impl Heard {
    /// Evaluates the messages of a datagram.
    fn add(&mut self, datagram: &[u8]) -> Changed {
        let mut changed = Changed::Never;
        for message in Messages::new(datagram) {
            let Ok(message) = message else { return Changed::Unlistable };
            if message.kind >> 8 != NFNL_SUBSYS_NFTABLES {
                continue;
            }
            match message.kind & 0xff {
                0..=LAST_OF_RULES => {
                    if !std::mem::replace(&mut self.is_within, true) {
                        self.has_added |= std::mem::take(&mut self.adds_logging);
                        let this = if self.has_added { Changed::Unlistable } else { Changed::Listable };
                        changed = changed.max(this);
                    }
                    self.adds_logging |= group_rules::adds_logging(message.kind, message.payload);
                }
                END_OF_TRANSACTION => self.is_within = false,
                _ => {}
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use testkit::netns::Lab;

    #[test]
    fn root_changes_of_rules_are_heard_and_those_of_sets_are_not() {
        testkit::require_root!();
        testkit::require_tool!("nft");
        let lab = Lab::new("rulechange");
        let inside = lab.enter();
        let mut changes = RuleChanges::open().unwrap();
        assert_eq!(changes.receive_changes().unwrap(), Changed::Never, "nothing yet");
        for (script, is_listed, expected) in [
            ("table inet t { set s { type inet_service; }\n chain c { log group 1\n }\n }", true, Changed::Listable),
            ("add element inet t s { 22 }", true, Changed::Never),
            ("flush chain inet t c\nadd rule inet t c log group 2", false, Changed::Listable),
            // It may have removed the rule that the previous transaction added.
            ("flush chain inet t c", false, Changed::Unlistable),
            ("add table inet other", true, Changed::Unlistable),
            ("add chain inet other c", false, Changed::Listable),
            ("add rule inet other c counter", false, Changed::Listable),
            ("add rule inet other c log prefix \"to the kernel's log\"", false, Changed::Listable),
            ("add rule inet other c log group 3", false, Changed::Listable),
            ("delete table inet other", false, Changed::Unlistable),
        ] {
            lab.nft(script);
            assert_eq!(changes.receive_changes().unwrap(), expected, "{script}");
            assert_eq!(changes.receive_changes().unwrap(), Changed::Never, "once");
            if is_listed {
                changes.are_listed();
            }
        }
        lab.nft("add table inet t\nadd chain inet t c\nadd rule inet t c log group 3");
        lab.nft("flush chain inet t c");
        assert_eq!(changes.receive_changes().unwrap(), Changed::Unlistable);
        drop(inside);
    }
}
