//! The rules of all namespaces of a session.

use super::history::RuleHistory;
use super::listings::RuleSet;
use crate::session::Session;
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use sys::{Share, SysError, clock};

/// Rows wait while rules are listed. That may take one part in `SHARE_OF_TIME` of the time, and up to `CREDIT_NS_MAX`
/// at once after a pause: once for first listings, once for changed rules of other namespaces, and once for those of
/// the run's own. A user who constantly changes rules therefore cannot prevent listings that others need.
///
/// Bound: parts of the time: at most one is spent on listing the rules of other namespaces. Beyond: rows have no rule
/// until the next listing; counted (exit code 3). By: the owners of namespaces, by changing rules.
const SHARE_OF_TIME: u64 = 10;
const CREDIT_NS_MAX: u64 = 1_000_000_000;
const OWN_CREDIT_NS_MAX: u64 = 2_000_000_000;

/// The rules of the namespaces of a session.
pub(super) struct NetnsRules<R> {
    with_texts: bool,
    pub(super) histories: HashMap<u64, RuleHistory<R>, RandomState>,
    /// Namespaces whose rules the run has tried to list.
    pub(super) tried: HashSet<u64>,
    /// Time shares for first listings, and for listing rules again: of other namespaces, and of the run's own.
    first: Share,
    again: Share,
    own_again: Share,
    /// The first error of a listing.
    pub(super) trouble: Option<SysError>,
}

impl<R: RuleSet> Default for NetnsRules<R> {
    fn default() -> NetnsRules<R> {
        NetnsRules::new(true)
    }
}

impl<R: RuleSet> NetnsRules<R> {
    /// Lists nothing yet.
    pub(super) fn new(with_texts: bool) -> NetnsRules<R> {
        let [first, again] = [(); 2].map(|()| Share::one_in(SHARE_OF_TIME, CREDIT_NS_MAX));
        let own_again = Share::one_in(SHARE_OF_TIME, OWN_CREDIT_NS_MAX);
        let (histories, tried) = Default::default();
        NetnsRules { with_texts, histories, tried, first, again, own_again, trouble: None }
    }

    /// Lists the rules of the calling thread's namespace for the first time.
    pub(super) fn open_here(&mut self, session: &Session, netns_id: u64) {
        let is_own = netns_id == session.netns_id();
        match RuleHistory::open(session.host(), netns_id, is_own, self.with_texts) {
            Ok(history) => _ = self.histories.insert(netns_id, history),
            Err(error) => _ = self.trouble.get_or_insert(error),
        }
    }

    /// Tries once to list the rules of a namespace for the first time, unless that would exceed the share of the time.
    pub(super) fn open(&mut self, session: &Session, netns_id: u64) {
        let begun_ns = clock::monotonic_ns();
        // A recording contains the listings that were within the share.
        if self.tried.contains(&netns_id) || !(session.host().is_replay() || self.first.may_start(begun_ns)) {
            return;
        }
        self.tried.insert(netns_id);
        in_netns(session, netns_id, &mut || self.open_here(session, netns_id));
        self.first.charge(clock::monotonic_ns().saturating_sub(begun_ns));
    }

    /// Lists the rules of a namespace again; false if that fails. If it would exceed the share of the time, only notes
    /// that the rules may have changed.
    pub(super) fn list_again(&mut self, session: &Session, netns_id: u64) -> bool {
        let Some(history) = self.histories.get_mut(&netns_id) else { return true };
        let share = if netns_id == session.netns_id() { &self.own_again } else { &self.again };
        let begun_ns = clock::monotonic_ns();
        if !session.host().is_replay() && !share.may_start(begun_ns) {
            history.listings.note_change();
            return true;
        }
        let mut listed = Ok(());
        in_netns(session, netns_id, &mut || listed = history.list_again(session.host()));
        share.charge(clock::monotonic_ns().saturating_sub(begun_ns));
        listed.map_err(|error| _ = self.trouble.get_or_insert(error)).is_ok()
    }

    /// Checks all namespaces for changed rules. Costs one system call per namespace.
    pub(super) fn check_changes(&mut self) {
        for history in self.histories.values_mut() {
            if let Err(error) = history.check_changes() {
                self.trouble.get_or_insert(error);
            }
        }
    }
}

/// Calls `visit` inside a namespace of the session, if it can be entered.
fn in_netns(session: &Session, netns_id: u64, visit: &mut dyn FnMut()) {
    if netns_id == session.netns_id() { visit() } else { session.in_namespace(netns_id, visit) }
}
