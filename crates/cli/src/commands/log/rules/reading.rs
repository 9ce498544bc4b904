//! Reads the rules of one namespace, again whenever they have changed.

use super::book::{Listing, RuleBook, RuleMatch, Window};
use crate::nft::{self, ListingBounds};
use crate::refreshing_lookups::Budget;
use host::log_rules;
use host::rule_changes::RuleChanges;
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
    /// True if they have changed since they were listed.
    is_stale: bool,
    budget: Budget,
    /// Number of the newest listing; the first is 1.
    number: u64,
}

/// Which rule logged a record.
pub(super) enum Answer<'b> {
    /// What was found.
    Known(RuleMatch<'b>),
    /// The rules have changed and were not listed again yet.
    Late,
}

/// What stands before a listing on the tape: its number, the earliest time of it, the latest of the one before, all in
/// native byte order.
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
            is_stale: false,
            budget: Budget::new(SHARE_OF_TIME, CREDIT_NS_MAX),
            number: 0,
        };
        if host.is_replay() {
            for _ in 0..RECORDED_MAX {
                if !rules.list(host, u64::MAX)? {
                    break;
                }
            }
        } else {
            rules.list(host, 0)?;
        }
        Ok(rules)
    }

    /// Notes whether rules have changed; true if they must be listed again, and may be.
    pub(super) fn must_list(&mut self) -> Result<bool, SysError> {
        let Some(changes) = &mut self.changes else { return Ok(false) };
        let now_ns = clock::wall_ns();
        if changes.have_come()? {
            if !self.is_stale {
                self.book.end(now_ns);
            }
            self.is_stale = true;
        } else if !self.is_stale {
            self.confirmed_ns = now_ns.saturating_sub(NOTICE_NS);
        }
        Ok(self.is_stale && self.budget.allows(clock::monotonic_ns()))
    }

    /// Lists the rules of the namespace that the calling thread is in; false where a recording has no further listing.
    pub(super) fn list_again(&mut self, host: &Host) -> Result<(), SysError> {
        self.list(host, clock::wall_ns()).map(drop)
    }

    /// `changed_ns`: the latest time at which the listing before was in force.
    fn list(&mut self, host: &Host, changed_ns: u64) -> Result<bool, SysError> {
        let (begun_ns, begun_wall_ns) = (clock::monotonic_ns(), clock::wall_ns());
        let mut bytes = Vec::new();
        let head = [self.number + 1, self.confirmed_ns, changed_ns];
        host.bytes(&format!("log rules@{}", self.netns_id), "", &mut bytes, |into| {
            listed(head, self.with_texts, into)
        })?;
        self.budget.used(clock::monotonic_ns().saturating_sub(begun_ns));
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
        (self.number, self.is_stale) = (number, false);
        self.confirmed_ns = begun_wall_ns.saturating_sub(NOTICE_NS);
        Ok(true)
    }

    /// Which rule logged a record that was made in that time.
    pub(super) fn find(&self, record: &LogRecord<'_>, window: Window) -> Answer<'_> {
        if self.is_stale && window.1 > self.confirmed_ns {
            return Answer::Late;
        }
        Answer::Known(self.book.find(record, window))
    }
}

/// What nft prints, after the head.
fn listed(head: [u64; 3], with_texts: bool, into: &mut Vec<u8>) -> Result<(), SysError> {
    let start = into.len();
    head.iter().for_each(|number| into.extend_from_slice(&number.to_ne_bytes()));
    nft::put_ruleset(with_texts, ListingBounds::USUAL, into).inspect_err(|_| into.truncate(start))
}
