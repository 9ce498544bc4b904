//! Members of multicast groups whose packets were dropped.

use record::Addr;

use super::cause::VAGUE;
use super::drops::DropSeen;
use super::ends::Holder;

/// Membership of an interface in a group whose packets were dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupSeen {
    /// The interface.
    pub iface: String,
    /// The group.
    pub group: Addr,
    /// The only sources that programs want; empty for any source.
    pub sources: Vec<Addr>,
}

/// A UDP socket at the port of a group's packets that were dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupListener {
    /// Its port.
    pub port: u16,
    /// Its owner.
    pub owner: Holder,
}

/// True for a group beyond the link: bridges flood the others, and every host joins some of them.
fn is_routed(addr: Addr) -> bool {
    match addr {
        Addr::V4([a, b, c, _]) => (224..240).contains(&a) && [a, b, c] != [224, 0, 0],
        Addr::V6([0xff, scope, ..]) => scope & 0xf > 2,
        Addr::V6(_) => false,
    }
}

impl DropSeen {
    /// Returns the group that it was for, if that is a group beyond the link.
    pub(crate) fn group(&self) -> Option<Addr> {
        self.ends.map(|(_, to)| to.unmapped()).filter(|to| is_routed(*to))
    }

    /// Returns group and port if the host's IP layer dropped it without a reason, as packets of groups without a member
    /// on their interface.
    pub fn unjoined(&self) -> Option<(Addr, u16)> {
        let is_ip = ["ip_rcv_finish_core", "ip_rcv_core", "ip_route_input_rcu", "ip6_mc_input"].contains(&&*self.place);
        let is_it = is_ip && self.proto == "udp" && VAGUE.contains(&&*self.reason);
        Some((self.group().filter(|_| is_it)?, self.ports?.1))
    }
}
