//! Reads the rules of one namespace, again whenever they have changed.

use super::book::{Listing, RuleBook, RuleMatch, Window};
use crate::nft::{self, ListingBounds};
use crate::refreshing_lookups::Budget;
use host::log_rules;
use host::rule_changes::{Changed, RuleChanges};
use host::rule_texts::RuleTexts;
use record::rows::LogRecord;
use sys::{Errno, Host, SysError, clock};

/// Listing the rules of a namespace may take one part in so many of the time, and so much of it at once after a pause.
const SHARE_OF_TIME: u64 = 10;
const CREDIT_NS_MAX: u64 = 2_000_000_000;
/// The kernel's notification comes this much after the change at most.
const NOTICE_NS: u64 = 10_000_000;
/// Listings of a recording that are read.
const RECORDED_MAX: u64 = 1 << 16;

/// The rules of one namespace.
pub(super) struct NetnsRules {
    pub(super) netns_id: u64,
    /// Whether texts are wanted.
    with_texts: bool,
    /// `None` in a replay.
    changes: Option<RuleChanges>,
    book: RuleBook,
    /// When they were last known to be unchanged since they were listed, ns since 1970.
    confirmed_ns: u64,
    /// How they have changed since they were listed, and when that was heard for the first and the last time.
    changed: Changed,
    changed_ns: (u64, u64),
    budget: Budget,
    /// Number of the newest listing; the first is 1.
    number: u64,
}

/// Which rule logged a record.
pub(super) enum Answer<'b> {
    /// What was found.
    Known(RuleMatch<'b>),
    /// The rules have changed and were not listed again yet, or those of then were never listed or are not kept.
    Late,
}

/// Bytes of a listing's head on the tape: its number, the earliest time at which it may have been in force, the latest
/// of the one before ([`NetnsRules::head`]), all in native byte order.
const HEAD: usize = 24;

impl NetnsRules {
    /// Lists the rules of the namespace that the calling thread is in, and hears of changes from now on.
    pub(super) fn open(host: &Host, netns_id: u64, with_texts: bool) -> Result<NetnsRules, SysError> {
        let changes = if host.is_replay() { None } else { Some(RuleChanges::open()?) };
        let mut rules = NetnsRules {
            netns_id,
            with_texts,
            changes,
            book: RuleBook::default(),
            confirmed_ns: 0,
            changed: Changed::Never,
            changed_ns: (0, 0),
            budget: Budget::new(SHARE_OF_TIME, CREDIT_NS_MAX),
            number: 0,
        };
        if host.is_replay() {
            for _ in 0..RECORDED_MAX {
                if !rules.list(host)? {
                    break;
                }
            }
        } else {
            rules.list(host)?;
        }
        Ok(rules)
    }

    /// Notes whether rules have changed since the last call; true if so. One system call.
    pub(super) fn hear(&mut self) -> Result<bool, SysError> {
        let Some(changes) = &mut self.changes else { return Ok(false) };
        let begun_ns = clock::wall_ns();
        let changed = changes.have_come()?;
        let now_ns = clock::wall_ns();
        match (self.changed, changed) {
            (Changed::Never, Changed::Never) => self.confirmed_ns = begun_ns.saturating_sub(NOTICE_NS),
            (_, Changed::Never) => {}
            (Changed::Never, _) => {
                (self.changed, self.changed_ns) = (changed, (now_ns, now_ns));
                self.book.end(now_ns);
            }
            _ => (self.changed, self.changed_ns.1) = (self.changed.max(changed), now_ns),
        }
        Ok(changed != Changed::Never)
    }

    /// True if rules have changed since they were listed.
    pub(super) fn is_stale(&self) -> bool {
        self.changed != Changed::Never
    }

    /// True if what was listed may not be what was in force when a record came.
    pub(super) fn is_behind(&self, received_ns: u64) -> bool {
        self.is_stale() && received_ns > self.confirmed_ns
    }

    /// True if rules may be listed again now.
    pub(super) fn may_list(&self) -> bool {
        self.budget.allows(clock::monotonic_ns())
    }

    /// Lists the rules of the namespace that the calling thread is in.
    pub(super) fn list_again(&mut self, host: &Host) -> Result<(), SysError> {
        self.hear()?;
        self.list(host).map(drop)
    }

    /// Lists the rules; false where a recording has no further listing.
    fn list(&mut self, host: &Host) -> Result<bool, SysError> {
        let (begun_ns, begun_wall_ns) = (clock::monotonic_ns(), clock::wall_ns());
        let (mut bytes, mut has_changed) = (Vec::new(), false);
        let read = host.bytes(&format!("log rules@{}", self.netns_id), "", &mut bytes, |into| {
            let start = into.len();
            into.resize(start + HEAD, 0);
            let listed = nft::put_ruleset(self.with_texts, ListingBounds::USUAL, into);
            // What has changed meanwhile may be in the listing, or not.
            has_changed = listed.and_then(|()| self.hear()).inspect_err(|_| into.truncate(start))?;
            let head = self.head();
            let place = into.iter_mut().skip(start);
            place.zip(head.iter().flat_map(|number| number.to_ne_bytes())).for_each(|(to, from)| *to = from);
            Ok(())
        });
        self.budget.used(clock::monotonic_ns().saturating_sub(begun_ns));
        read?;
        let malformed = || SysError::new("read", "nft's list of rules", Errno::INVAL);
        let (head, listing) = bytes.split_at_checked(HEAD).ok_or_else(malformed)?;
        let number = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        let [number, from_ns, until_ns] = [0, 8, 16].map(|at| number(at).unwrap_or(0));
        // The tape gives its last one again and again.
        if number <= self.number {
            return Ok(false);
        }
        let (json, texts) = nft::split_ruleset(listing).ok_or_else(malformed)?;
        let rules = log_rules::parse(json).ok_or_else(malformed)?;
        self.book.end(until_ns);
        self.book.add(Listing::new(from_ns, rules, &RuleTexts::parse(texts)));
        (self.number, self.changed) = (number, Changed::Never);
        self.confirmed_ns = begun_wall_ns.saturating_sub(NOTICE_NS);
        if has_changed {
            let last_ns = self.changed_ns.1;
            (self.changed, self.changed_ns.0) = (Changed::Listable, last_ns);
            self.book.end(last_ns);
        } else if let Some(changes) = &mut self.changes {
            changes.are_listed();
        }
        Ok(true)
    }

    /// The head of a listing that was made just now. Its time and that of the one before overlap, unless there were
    /// rules in between that are in neither.
    fn head(&self) -> [u64; 3] {
        let ((first_ns, last_ns), confirmed_ns) = (self.changed_ns, self.confirmed_ns);
        let number = self.number + 1;
        match self.changed {
            // The first one stands for all that was before.
            _ if number == 1 => [number, 0, 0],
            Changed::Unlistable => [number, last_ns, confirmed_ns],
            _ => [number, confirmed_ns, first_ns],
        }
    }

    /// Which rule logged a record that was made in that time.
    pub(super) fn find(&self, record: &LogRecord<'_>, window: Window) -> Answer<'_> {
        if self.is_behind(window.1) {
            Answer::Late
        } else {
            self.book.find(record, window).map_or(Answer::Late, Answer::Known)
        }
    }
}
