//! Reads the rules of one namespace, again whenever they have changed.

use super::book::{Listing, RuleBook, RuleMatch, Window};
use host::log_rules;
use host::rule_changes::{Changed, RuleChanges};
use host::rule_texts::RuleTexts;
use lookups::nft::{self, ListingBounds};
use record::rows::LogRecord;
use sys::{Errno, Host, Share, SysError, clock};

/// Listing the rules of a namespace may take one part in `SHARE_OF_TIME` of the time, and up to `CREDIT_NS_MAX` at
/// once after a pause.
const SHARE_OF_TIME: u64 = 10;
const CREDIT_NS_MAX: u64 = 2_000_000_000;
/// Maximum delay of the kernel's notification after a change.
const NOTICE_NS: u64 = 10_000_000;
/// Maximum number of listings to read from a recording.
const RECORDED_MAX: u64 = 1 << 16;

/// The rules of one namespace.
pub(super) struct NetnsRules {
    pub(super) netns_id: u64,
    /// True if texts are needed.
    with_texts: bool,
    /// `None` in a replay.
    changes: Option<RuleChanges>,
    book: RuleBook,
    /// Time when they were last known to be unchanged since their listing, in ns since 1970.
    confirmed_ns: u64,
    /// The changes since the listing, and the times of the first and the last notification.
    changed: Changed,
    changed_ns: (u64, u64),
    share: Share,
    /// Number of the newest listing, starting at 1.
    number: u64,
}

/// The rule that logged a record.
pub(super) enum Answer<'b> {
    /// The result of the lookup.
    Known(RuleMatch<'b>),
    /// Unknown: the rules have changed and were not listed again yet, or the rules of that time were never listed or
    /// not kept.
    Late,
}

/// Length of a listing's header in the recording: its number, the earliest time when it may have been in force, and
/// the latest time of the previous one ([`NetnsRules::head`]), all in native byte order.
const HEAD: usize = 24;

impl NetnsRules {
    /// Lists the rules of the calling thread's namespace, and watches for changes from now on.
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
            share: Share::one_in(SHARE_OF_TIME, CREDIT_NS_MAX),
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

    /// Checks for changed rules since the last call; true if there are any. Costs one system call.
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

    /// True if the listing may differ from the rules in force when a record arrived.
    pub(super) fn is_behind(&self, received_ns: u64) -> bool {
        self.is_stale() && received_ns > self.confirmed_ns
    }

    /// True if the share allows another listing now.
    pub(super) fn may_list(&self) -> bool {
        self.share.allows(clock::monotonic_ns())
    }

    /// Lists the rules of the calling thread's namespace.
    pub(super) fn list_again(&mut self, host: &Host) -> Result<(), SysError> {
        self.hear()?;
        self.list(host).map(drop)
    }

    /// Lists the rules; false if a recording has no more listings.
    fn list(&mut self, host: &Host) -> Result<bool, SysError> {
        let (begun_ns, begun_wall_ns) = (clock::monotonic_ns(), clock::wall_ns());
        let (mut bytes, mut has_changed) = (Vec::new(), false);
        let read = host.bytes(&format!("log rules@{}", self.netns_id), "", &mut bytes, |into| {
            let start = into.len();
            into.resize(start + HEAD, 0);
            let listed = nft::put_ruleset(self.with_texts, ListingBounds::USUAL, into);
            // Changes made during the listing may or may not be in it.
            has_changed = listed.and_then(|()| self.hear()).inspect_err(|_| into.truncate(start))?;
            let head = self.head();
            let place = into.iter_mut().skip(start);
            place.zip(head.iter().flat_map(|number| number.to_ne_bytes())).for_each(|(to, from)| *to = from);
            Ok(())
        });
        self.share.charge(clock::monotonic_ns().saturating_sub(begun_ns));
        read?;
        let malformed = || SysError::new("read", "nft's list of rules", Errno::INVAL);
        let (head, listing) = bytes.split_at_checked(HEAD).ok_or_else(malformed)?;
        let number = |at: usize| head.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
        let [number, from_ns, until_ns] = [0, 8, 16].map(|at| number(at).unwrap_or(0));
        // The recording repeats its last listing.
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

    /// The header of a listing made just now. Its time overlaps with the previous listing's, unless rules were in
    /// force in between that neither of them contains.
    fn head(&self) -> [u64; 3] {
        let ((first_ns, last_ns), confirmed_ns) = (self.changed_ns, self.confirmed_ns);
        let number = self.number + 1;
        match self.changed {
            // The first listing covers all earlier times.
            _ if number == 1 => [number, 0, 0],
            Changed::Unlistable => [number, last_ns, confirmed_ns],
            _ => [number, confirmed_ns, first_ns],
        }
    }

    /// Finds the rule that logged a record made within the window.
    pub(super) fn find(&self, record: &LogRecord<'_>, window: Window) -> Answer<'_> {
        if self.is_behind(window.1) {
            Answer::Late
        } else {
            self.book.find(record, window).map_or(Answer::Late, Answer::Known)
        }
    }
}
