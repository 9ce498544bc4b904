//! Whether the rules of nftables have changed: the kernel's notifications, of which only the kind is looked at.

use netlink::Messages;
use sys::{Errno, NetlinkSocket, SysError};

/// include/uapi/linux/netlink.h
const NETLINK_NETFILTER: i32 = 12;
/// NFNLGRP_NFTABLES (7), as a bit: include/uapi/linux/netfilter/nfnetlink.h
const NFTABLES: u32 = 1 << 6;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
/// NFT_MSG_DELRULE, the last of the messages on tables, chains and rules. Those that follow are of sets, whose elements
/// may change many times a second and change no rule. include/uapi/linux/netfilter/nf_tables.h
const LAST_OF_RULES: u16 = 8;
/// Notifications are some hundred bytes each; what finds no room counts as a change.
const BUFFER_BYTES: i32 = 1 << 20;
/// Notifications that are received at one time, so that whoever changes rules without end keeps no caller.
const AT_ONCE: usize = 10_000;

/// Hears of changes in one network namespace.
#[derive(Debug)]
pub struct RuleChanges {
    socket: NetlinkSocket,
    place: Vec<u8>,
}

impl RuleChanges {
    /// Listens in the calling thread's namespace: changes from now on are heard. Needs CAP_NET_ADMIN.
    pub fn open() -> Result<RuleChanges, SysError> {
        let socket = NetlinkSocket::open(NETLINK_NETFILTER)?;
        socket.make_room(BUFFER_BYTES);
        socket.join(NFTABLES)?;
        Ok(RuleChanges { socket, place: vec![0; 64 << 10] })
    }

    /// True if tables, chains or rules may have changed since the last call. One system call where nothing has.
    pub fn have_come(&mut self) -> Result<bool, SysError> {
        let mut changed = false;
        for _ in 0..AT_ONCE {
            match self.socket.receive_waiting(&mut self.place) {
                Ok(None) => return Ok(changed),
                Ok(Some(received)) => changed |= is_of_rules(self.place.get(..received.bytes).unwrap_or_default()),
                // Some are missing, or one was too long.
                Err(error) if matches!(error.errno, Errno::NOBUFS | Errno::MSGSIZE) => changed = true,
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// True if a message of a datagram is about a table, a chain or a rule, or not to be understood.
fn is_of_rules(datagram: &[u8]) -> bool {
    Messages::new(datagram).any(|message| match message {
        Ok(message) => message.kind >> 8 == NFNL_SUBSYS_NFTABLES && message.kind & 0xff <= LAST_OF_RULES,
        Err(_) => true,
    })
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
        assert!(!changes.have_come().unwrap(), "nothing yet");
        lab.nft("table inet t { set s { type inet_service; }\n chain c { log group 1\n }\n }");
        assert!(changes.have_come().unwrap());
        assert!(!changes.have_come().unwrap(), "once");
        lab.nft("add element inet t s { 22 }");
        assert!(!changes.have_come().unwrap(), "a set is no rule");
        lab.nft("flush chain inet t c");
        assert!(changes.have_come().unwrap());
        drop(inside);
    }
}
