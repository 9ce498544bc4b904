//! Sockets whose own drop count grew.

use record::rows::Evidence;

use super::accepting::by_identity;
use crate::seen::Queue;

/// A socket that dropped packets or messages within the window.
pub(super) struct Loser<'s> {
    /// The socket at the second reading.
    pub(super) socket: &'s Queue,
    /// Drops at the first reading; `None` if they are unknown.
    pub(super) before: Option<u32>,
    /// Drops within the window.
    pub(super) grown: u32,
}

impl Loser<'_> {
    /// Returns its drops as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        Evidence {
            counter: format!("drops of {}", self.socket.name),
            before: self.before.map(i64::from),
            after: self.socket.drops.unwrap_or(0).into(),
            limit: None,
        }
    }
}

/// Returns the sockets of `after` whose drops grew since `before`, the largest growth first. Sockets are matched by
/// their identity; one that was not recorded before had no drops.
pub(super) fn losers<'s>(before: &[Queue], after: &'s [Queue]) -> Vec<Loser<'s>> {
    let old = by_identity(before);
    let of = |socket: &'s Queue| {
        let before = old.get(&socket.identity).map_or(Some(0), |old| old.drops);
        let grown = socket.drops?.checked_sub(before?)?;
        (grown > 0).then_some(Loser { socket, before, grown })
    };
    let mut all: Vec<Loser<'s>> = after.iter().filter_map(of).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.grown));
    all
}
