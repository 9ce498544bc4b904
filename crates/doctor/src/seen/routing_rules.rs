//! Rules of policy routing.

use record::{Addr, Prefix};

use super::drops::DropSeen;

/// A rule of policy routing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutingRule {
    /// True for a rule of IPv6.
    pub is_v6: bool,
    /// Rules are tried in ascending order of this number.
    pub priority: u32,
    /// Packets from this prefix.
    pub from: Prefix,
    /// Packets to this prefix.
    pub to: Prefix,
    /// The transport protocol: `tcp`; empty for all.
    pub proto: &'static str,
    /// The first and the last destination port; `None` for all.
    pub dports: Option<(u16, u16)>,
    /// True if there is a further condition: an interface, a mark, a user, a source port, a TOS, or `not`.
    pub has_more: bool,
    /// The action for its packets.
    pub action: RuleAction,
    /// The condition in the words of `ip rule`: `from all to 192.0.2.7`.
    pub text: String,
}

/// The action of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleAction {
    /// It leads to a table.
    Lookup(u32),
    /// It drops packets: `blackhole`, `unreachable` or `prohibit`.
    Refuse(&'static str),
    /// It does something else, or leads to a table with restrictions.
    Other,
}

impl RoutingRule {
    /// True if the rule applies to the packets, as far as their addresses and ports are known.
    pub(crate) fn applies_to(&self, one: &DropSeen) -> bool {
        let Some((from, to)) = one.ends else { return false };
        let is_port = match (self.dports, one.ports) {
            (Some((first, last)), Some((_, port))) => (first..=last).contains(&port),
            _ => true,
        };
        // A negated rule has the prefixes that it does not apply to.
        let is_inside = self.from.contains(from.unmapped()) && self.to.contains(to.unmapped());
        let is_not = self.text.starts_with("not ");
        is_not || is_inside && is_port && (self.proto.is_empty() || self.proto == one.proto)
    }

    /// True if it leads all packets to this table.
    pub(crate) fn leads_all_to(&self, table: u32) -> bool {
        let has_condition = self.has_more || !self.proto.is_empty() || self.dports.is_some();
        self.action == RuleAction::Lookup(table) && !has_condition && self.from.is_empty() && self.to.is_empty()
    }

    /// The rule in the words of `ip rule`: `32765: from all to 192.0.2.7 prohibit`.
    pub(crate) fn words(&self) -> String {
        let RoutingRule { priority, text, .. } = self;
        match self.action {
            RuleAction::Lookup(table) => format!("{priority}: {text} lookup {table}"),
            RuleAction::Refuse(kind) => format!("{priority}: {text} {kind}"),
            RuleAction::Other => format!("{priority}: {text}"),
        }
    }

    /// `ip rule`, or `ip -6 rule`.
    pub(crate) fn command(&self) -> &'static str {
        if self.is_v6 { "ip -6 rule" } else { "ip rule" }
    }
}

/// The routing tables of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TablesSeen {
    /// Tables with at least one route, by family (true for IPv6) and number.
    pub used: std::collections::BTreeSet<(bool, u32)>,
    /// Tables with a default route, likewise.
    pub with_default: std::collections::BTreeSet<(bool, u32)>,
}

/// True for an address of IPv6.
pub(crate) fn is_v6(addr: Addr) -> bool {
    matches!(addr.unmapped(), Addr::V6(_))
}
