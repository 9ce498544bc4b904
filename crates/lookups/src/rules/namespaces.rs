//! The rules of all namespaces of a session.

use super::history::RuleHistory;
use super::listings::RuleSet;
use crate::session::Session;
use foldhash::fast::RandomState;
use record::Accounting;
use std::cell::Cell;
use std::collections::HashMap;
use sys::{Share, SysError, clock};

/// Rows wait while rules are listed. Three kinds of listings have separate shares of the time: the run's own namespace,
/// first listings of other namespaces, and later listings of other namespaces. Each share is one part in
/// `SHARE_OF_TIME`, and up to the credit at once after a pause. So other namespaces cannot delay the run's own. They
/// compete with each other: if rules change constantly in one, the rules of others may be listed late.
///
/// Bound: parts of the time: at most one is spent on first listings of other namespaces, and one on their later
/// listings. Beyond: rows have no rule until the next listing; counted (exit code 3). By: the owners of namespaces, by
/// changing rules.
const SHARE_OF_TIME: u64 = 10;
const CREDIT_NS_MAX: u64 = 1_000_000_000;
const OWN_CREDIT_NS_MAX: u64 = 2_000_000_000;
/// After a failure, the rules of a namespace are not listed again for this time.
const RETRY_NS: u64 = 1_000_000_000;
/// A namespace without rows for this time is forgotten: the socket that receives its changes keeps it alive.
const UNUSED_NS: u64 = 60_000_000_000;

/// The reason why the current rules of a namespace are not known.
#[derive(Debug, Clone)]
pub(super) enum NotListed {
    /// The first listing would exceed the share of the time.
    New,
    /// They have changed, and another listing would exceed the share of the time.
    Changed,
    /// They could not be listed.
    Failed(SysError),
    /// The namespace could not be entered, or was removed.
    Unentered(SysError),
}

/// The rules of one namespace.
struct NetnsHistory<R> {
    /// `None` before the first listing.
    history: Option<RuleHistory<R>>,
    /// The reason if the newest listing is not current.
    not_listed: Option<NotListed>,
    /// The rules are not listed before this time.
    retry_ns: u64,
    /// Number of blocks of rows since the newest listing.
    blocks: u32,
    /// True if rows needed them since the last removal of unused ones.
    is_used: Cell<bool>,
}

impl<R> Default for NetnsHistory<R> {
    fn default() -> NetnsHistory<R> {
        NetnsHistory { history: None, not_listed: None, retry_ns: 0, blocks: 0, is_used: Cell::new(false) }
    }
}

impl<R: RuleSet> NetnsHistory<R> {
    /// Notes that a listing is not made now; true if the rules are no longer current because of that.
    fn postpone(&mut self) -> bool {
        let reason = match &mut self.history {
            None => NotListed::New,
            Some(history) => {
                // The counters of rules increase without a change of rules.
                history.listings.note_change();
                let _ = history.check_changes();
                if !history.is_stale() {
                    return false;
                }
                NotListed::Changed
            }
        };
        // The reason of a failure remains until the next try.
        let was_current = self.not_listed.is_none();
        self.not_listed.get_or_insert(reason);
        was_current
    }

    /// Notes that a listing has failed.
    fn fail(&mut self, reason: NotListed) {
        if let Some(history) = &mut self.history {
            history.listings.note_change();
            // nft gives up if rules change while it lists them.
            if history.check_changes().unwrap_or(false) {
                self.not_listed = Some(NotListed::Changed);
                return;
            }
        }
        self.not_listed = Some(reason);
        self.retry_ns = clock::monotonic_ns().saturating_add(RETRY_NS);
    }
}

/// The rules of the namespaces of a session.
pub(super) struct NetnsRules<R> {
    with_texts: bool,
    /// True if the session searches again for namespaces that it does not know.
    searches: bool,
    namespaces: HashMap<u64, NetnsHistory<R>, RandomState>,
    /// Shares of the time for all listings of the run's own namespace, for first listings of others, and for their
    /// later listings.
    own: Share,
    first: Share,
    again: Share,
    /// Time of the last removal of unused namespaces.
    swept_ns: u64,
}

impl<R: RuleSet> Default for NetnsRules<R> {
    fn default() -> NetnsRules<R> {
        NetnsRules { searches: true, ..NetnsRules::new(true) }
    }
}

impl<R: RuleSet> NetnsRules<R> {
    /// Lists nothing yet.
    pub(super) fn new(with_texts: bool) -> NetnsRules<R> {
        let share = |credit_ns_max| Share::one_in(SHARE_OF_TIME, credit_ns_max);
        NetnsRules {
            with_texts,
            searches: false,
            namespaces: HashMap::default(),
            own: share(OWN_CREDIT_NS_MAX),
            first: share(CREDIT_NS_MAX),
            again: share(CREDIT_NS_MAX),
            swept_ns: clock::monotonic_ns(),
        }
    }

    /// The rules of a namespace; `None` if they were never listed.
    pub(super) fn history(&self, netns_id: u64) -> Option<&RuleHistory<R>> {
        self.namespaces.get(&netns_id)?.history.as_ref()
    }

    /// The rules for a row of a namespace, and the reason if they are not current.
    pub(super) fn for_row(&self, netns_id: u64) -> (Option<&RuleHistory<R>>, Option<&NotListed>) {
        let Some(netns) = self.namespaces.get(&netns_id) else { return (None, Some(&NotListed::New)) };
        netns.is_used.set(true);
        (netns.history.as_ref(), netns.not_listed.as_ref())
    }

    /// Lists the rules of the calling thread's namespace, for the first time or again.
    pub(super) fn list_here(&mut self, session: &Session, netns_id: u64) {
        let (host, is_own) = (session.host(), netns_id == session.netns_id());
        let netns = self.namespaces.entry(netns_id).or_default();
        let listed = match &mut netns.history {
            Some(history) => history.list_again(host),
            history => RuleHistory::open(host, netns_id, is_own, self.with_texts).map(|opened| *history = Some(opened)),
        };
        match listed {
            Ok(()) => (netns.not_listed, netns.blocks) = (None, 0),
            Err(error) => netns.fail(NotListed::Failed(error)),
        }
    }

    /// Lists the rules of a namespace, for the first time or again. If that would exceed the share of the time, or has
    /// just failed, notes that they are not current. Returns false if nothing has changed by that.
    pub(super) fn list(&mut self, session: &Session, netns_id: u64) -> bool {
        let (begun_ns, is_own) = (clock::monotonic_ns(), netns_id == session.netns_id());
        let netns = self.namespaces.entry(netns_id).or_default();
        let (is_first, is_due) = (netns.history.is_none(), begun_ns >= netns.retry_ns);
        // A recording contains the listings that were within the share.
        let may_start = session.host().is_replay() || is_due && self.share(is_own, is_first).may_start(begun_ns);
        if !may_start {
            return self.namespaces.entry(netns_id).or_default().postpone();
        }
        if self.searches && is_first {
            session.find_namespace(netns_id);
        }
        if let Err(error) = session.in_namespace(netns_id, || self.list_here(session, netns_id)) {
            self.namespaces.entry(netns_id).or_default().fail(NotListed::Unentered(error));
        }
        self.share(is_own, is_first).charge(clock::monotonic_ns().saturating_sub(begun_ns));
        true
    }

    fn share(&self, is_own: bool, is_first: bool) -> &Share {
        match (is_own, is_first) {
            (true, _) => &self.own,
            (false, true) => &self.first,
            (false, false) => &self.again,
        }
    }

    /// Checks all namespaces for changed rules. Costs one system call per namespace. Rules that cannot be checked count
    /// as changed; the error is reported when they are listed again.
    pub(super) fn check_changes(&mut self) {
        for history in self.namespaces.values_mut().filter_map(|netns| netns.history.as_mut()) {
            let _ = history.check_changes();
        }
    }

    /// Begins a block of rows: lists changed rules again. From the second block on after a listing, rows were made
    /// after it, so earlier rules do not matter to them. Returns false if nothing has changed by that.
    pub(super) fn begin_block(&mut self, session: &Session) -> bool {
        self.forget_unused(session);
        self.check_changes();
        let is_stale = |netns: &NetnsHistory<R>| netns.history.as_ref().is_some_and(RuleHistory::is_stale);
        let (mut stale, mut has_changed) = (Vec::new(), false);
        for (netns_id, netns) in &mut self.namespaces {
            if is_stale(netns) {
                stale.push(*netns_id);
                continue;
            }
            netns.blocks = netns.blocks.saturating_add(1);
            if let (2, Some(history)) = (netns.blocks, &mut netns.history) {
                history.listings.forget_earlier();
                has_changed = true;
            }
        }
        for netns_id in stale {
            has_changed |= self.list(session, netns_id);
        }
        has_changed
    }

    /// Number of namespaces.
    pub(super) fn len(&self) -> usize {
        self.namespaces.len()
    }

    /// Forgets all namespaces but these.
    pub(super) fn keep_only(&mut self, is_kept: impl Fn(u64) -> bool) {
        self.namespaces.retain(|netns_id, _| is_kept(*netns_id));
    }

    /// Forgets namespaces without listings, which may be listed now.
    pub(super) fn forget_failed(&mut self) {
        self.namespaces.retain(|_, netns| netns.history.is_some());
    }

    /// Forgets namespaces that no row has needed for a while.
    pub(super) fn forget_unused(&mut self, session: &Session) {
        let now_ns = clock::monotonic_ns();
        if session.host().is_replay() || now_ns.saturating_sub(self.swept_ns) < UNUSED_NS {
            return;
        }
        self.swept_ns = now_ns;
        let own = session.netns_id();
        self.namespaces.retain(|netns_id, netns| netns.is_used.take() || *netns_id == own);
    }
}

/// The number of rows whose rules could not be listed, with the first error.
#[derive(Debug, Default)]
pub(super) struct FailedRows {
    failed: (u64, Option<SysError>),
    unentered: (u64, Option<SysError>),
}

impl FailedRows {
    /// Counts rows without their rule after a failed listing.
    pub(super) fn add(&mut self, reason: &NotListed, count: u64) {
        let (rows, error) = match reason {
            NotListed::Failed(error) => (&mut self.failed, error),
            NotListed::Unentered(error) => (&mut self.unentered, error),
            NotListed::New | NotListed::Changed => return,
        };
        rows.0 = rows.0.saturating_add(count);
        rows.1.get_or_insert_with(|| error.clone());
    }

    /// Reports the rows, named by `rows`, and starts to count from 0 again.
    pub(super) fn report(&mut self, rows: &str, stats: &mut Accounting) {
        let FailedRows { failed, unentered } = std::mem::take(self);
        if let (count, Some(error)) = failed {
            stats.incomplete(count, format!("{rows} are shown without the rule: {error}"));
        }
        if let (count, Some(error)) = unentered {
            let why = format!("their network namespace was removed or cannot be entered ({error})");
            stats.incomplete(count, format!("{rows} are shown without the rule: {why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::nft::ListingBounds;
    use crate::session::SessionTarget;
    use host::rule_texts::RuleTexts;
    use std::ops::Range;
    use sys::Errno;
    use testkit::netns::Lab;

    /// A namespace that does not exist.
    const REMOVED: u64 = 1;

    /// A listing that is understood if `IS_VALID`.
    struct Listed<const IS_VALID: bool>;

    impl<const IS_VALID: bool> RuleSet for Listed<IS_VALID> {
        const NAME: &'static str = "test";
        const HEAD: Range<usize> = 0..0;
        const OTHERS: ListingBounds = ListingBounds::USUAL;
        const LISTINGS_MAX: usize = 3;

        fn parse(_: &[u8], _: &RuleTexts) -> Result<Listed<IS_VALID>, Errno> {
            if IS_VALID { Ok(Listed) } else { Err(Errno::INVAL) }
        }

        fn count(&self) -> usize {
            1
        }
    }

    /// A failure is not repeated for every row, and takes nothing from the share of the time until then.
    #[test]
    fn a_failed_listing_is_made_again_after_a_pause() {
        let session = Session::open(SessionTarget::default()).unwrap();
        let mut rules = NetnsRules::<Listed<false>>::new(false);
        for netns_id in [session.netns_id(), REMOVED] {
            assert!(rules.for_row(netns_id).0.is_none() && matches!(rules.for_row(netns_id).1, Some(NotListed::New)));
            assert!(rules.list(&session, netns_id), "it is tried");
            let tried_ns = rules.namespaces[&netns_id].retry_ns;
            (0..1000).for_each(|_| assert!(!rules.list(&session, netns_id)));
            assert_eq!(rules.namespaces[&netns_id].retry_ns, tried_ns);
            rules.namespaces.get_mut(&netns_id).unwrap().retry_ns = 0;
            assert!(rules.list(&session, netns_id) && rules.namespaces[&netns_id].retry_ns > tried_ns);
        }
        assert!(matches!(rules.for_row(session.netns_id()).1, Some(NotListed::Failed(_))));
        assert!(matches!(rules.for_row(REMOVED).1, Some(NotListed::Unentered(_))));
        rules.forget_failed();
        assert_eq!(rules.len(), 0);
    }

    #[test]
    fn other_namespaces_take_nothing_from_the_share_of_the_own() {
        let session = Session::open(SessionTarget::default()).unwrap();
        let mut rules = NetnsRules::<Listed<false>>::new(false);
        [&rules.first, &rules.again].iter().for_each(|share| share.charge(100 * CREDIT_NS_MAX));
        rules.list(&session, REMOVED);
        assert!(matches!(rules.for_row(REMOVED).1, Some(NotListed::New)), "it is not tried");
        assert!(rules.list(&session, session.netns_id()));
        assert!(matches!(rules.for_row(session.netns_id()).1, Some(NotListed::Failed(_))));
    }

    #[test]
    fn unused_namespaces_are_forgotten() {
        let session = Session::open(SessionTarget::default()).unwrap();
        let mut rules = NetnsRules::<Listed<false>>::new(false);
        for netns_id in [session.netns_id(), REMOVED] {
            rules.list(&session, netns_id);
            rules.for_row(netns_id);
        }
        for left in [2, 2, 1] {
            assert_eq!(rules.len(), left);
            rules.swept_ns = 0;
            rules.forget_unused(&session);
        }
        assert_eq!(rules.len(), 1, "the own remains");
    }

    /// Rules that have changed but may not be listed now are not current; another listing makes them so.
    #[test]
    fn root_changed_rules_are_not_current_until_they_are_listed() {
        testkit::require_root!();
        testkit::require_tool!("nft");
        let lab = Lab::new("rulesnow");
        let inside = lab.enter();
        let session = Session::open(SessionTarget::default()).unwrap();
        let own = session.netns_id();
        let mut rules = NetnsRules::<Listed<true>>::new(false);
        rules.list(&session, own);
        let is_current = |rules: &NetnsRules<Listed<true>>| rules.for_row(own).1.is_none();
        let listings = |rules: &NetnsRules<Listed<true>>| rules.history(own).unwrap().listings.list.len();
        assert!(is_current(&rules));
        rules.own.charge(100 * OWN_CREDIT_NS_MAX);
        assert!(!rules.list(&session, own) && is_current(&rules), "they have not changed");
        lab.nft("add table inet t");
        assert!(rules.begin_block(&session) && !rules.begin_block(&session), "the change is noticed once");
        assert!(matches!(rules.for_row(own).1, Some(NotListed::Changed)));
        rules.own = Share::one_in(1, OWN_CREDIT_NS_MAX);
        assert!(rules.begin_block(&session) && is_current(&rules));
        assert_eq!(listings(&rules), 2);
        assert!(!rules.begin_block(&session) && rules.begin_block(&session), "earlier rules do not matter any more");
        assert_eq!(listings(&rules), 1);
        drop(inside);
    }
}
