//! Finds the events that a filter lets through: the kernel need not send the others.
use record::rows::{NatEventKind, NatEvents};
use record::{Demand, Expr, FilterPushdown, Op, Operand, Table};

use crate::events::netlink::subscribe::groups;

/// A set of event kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WantedEvents(u8);

const ALL: [NatEventKind; 4] = [NatEventKind::New, NatEventKind::Update, NatEventKind::Destroy, NatEventKind::Live];

impl WantedEvents {
    /// The kinds that pass every part of the filter which depends on the kind alone.
    pub(crate) fn from_demand(demand: &Demand<NatEvents>) -> WantedEvents {
        let passes =
            |what: &NatEventKind| demand.conjuncts.iter().all(|part| decide_by_kind(part, *what).unwrap_or(true));
        WantedEvents(ALL.iter().filter(|what| passes(what)).fold(0, |bits, what| bits | bit(*what)))
    }

    pub(crate) fn contains(self, what: NatEventKind) -> bool {
        self.0 & bit(what) != 0
    }

    /// True if new entries are the only wanted events.
    pub(crate) fn only_new(self) -> bool {
        self.0 & !bit(NatEventKind::Live) == bit(NatEventKind::New)
    }

    /// The multicast groups that report them.
    pub(crate) fn groups(self) -> u32 {
        let of = [
            (NatEventKind::New, groups::NEW),
            (NatEventKind::Update, groups::UPDATE),
            (NatEventKind::Destroy, groups::DESTROY),
        ];
        of.iter().filter(|(what, _)| self.contains(*what)).fold(0, |groups, (_, group)| groups | group)
    }
}

/// The parts of the filter that are done by handing out only the wanted events.
pub(crate) fn pushed_parts(demand: &Demand<NatEvents>) -> Vec<FilterPushdown> {
    let exact = |part: &Expr| {
        decide_by_kind(part, NatEventKind::New).map_or(FilterPushdown::Unsupported, |_| FilterPushdown::Exact)
    };
    demand.conjuncts.iter().map(exact).collect()
}

fn bit(what: NatEventKind) -> u8 {
    1 << what as u8
}

/// Whether a part of a filter holds for an event; `None` if that depends on other fields.
fn decide_by_kind(part: &Expr, what: NatEventKind) -> Option<bool> {
    match part {
        Expr::And(parts) => parts.iter().try_fold(true, |all, part| Some(decide_by_kind(part, what)? && all)),
        Expr::Or(parts) => parts.iter().try_fold(false, |any, part| Some(decide_by_kind(part, what)? || any)),
        Expr::Not(part) => decide_by_kind(part, what).map(|holds| !holds),
        Expr::Test(test) => {
            let is_event = NatEvents::FIELDS.get(test.field).is_some_and(|field| field.name == "event");
            let Operand::Words(words) = &test.operand else { return None };
            let named = words.iter().any(|word| **word == *what.name().as_bytes());
            match (is_event, test.op) {
                (true, Op::Eq) => Some(named),
                (true, Op::Ne) => Some(!named),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::{Test, field_index};

    fn event(op: Op, words: &[&str]) -> Expr {
        let words = words.iter().map(|word| word.as_bytes().into()).collect();
        Expr::Test(Test { field: field_index::<NatEvents>("event").unwrap(), op, operand: Operand::Words(words) })
    }

    fn port() -> Expr {
        let field = field_index::<NatEvents>("orig_dport").unwrap();
        Expr::Test(Test { field, op: Op::Eq, operand: Operand::Number(53) })
    }

    #[test]
    fn a_filter_chooses_groups() {
        let of = |conjuncts: Vec<Expr>| {
            let demand = Demand::new(&[], conjuncts);
            (WantedEvents::from_demand(&demand).groups(), pushed_parts(&demand))
        };
        assert_eq!(of(vec![]), (groups::ALL, vec![]));
        assert_eq!(of(vec![event(Op::Eq, &["new"])]), (groups::NEW, vec![FilterPushdown::Exact]));
        let both = vec![port(), event(Op::Ne, &["update"])];
        assert_eq!(of(both), (groups::NEW | groups::DESTROY, vec![FilterPushdown::Unsupported, FilterPushdown::Exact]));
        let mixed = Expr::Or(vec![event(Op::Eq, &["new"]), port()]);
        assert_eq!(of(vec![mixed]), (groups::ALL, vec![FilterPushdown::Unsupported]));
        let not = Expr::Not(Box::new(event(Op::Eq, &["new", "update"])));
        assert_eq!(of(vec![not]), (groups::DESTROY, vec![FilterPushdown::Exact]));
        assert_eq!(of(vec![event(Op::Eq, &["live"])]).0, 0);
        let only = WantedEvents::from_demand(&Demand::new(&[], vec![event(Op::Eq, &["new", "live"])]));
        assert!(only.only_new() && only.contains(NatEventKind::Live) && !only.contains(NatEventKind::Update));
    }
}
