//! Lists the rules of one namespace, again whenever they have changed.

use super::listings::{Listing, ListingHead, Listings, NUMBER, RuleSet};
use crate::nft::{self, ListingBounds};
use host::rule_changes::{Changed, RuleChanges};
use host::rule_texts::RuleTexts;
use sys::{Errno, Host, SysError, clock};

/// Maximum delay of the kernel's notification after a change.
const NOTICE_NS: u64 = 10_000_000;
/// Maximum number of listings to read from a recording.
const RECORDED_MAX: u64 = 1 << 16;
/// Bytes of a number in a recording.
const NUMBER_BYTES: usize = size_of::<u64>();

/// The rules of one namespace over time.
pub(super) struct RuleHistory<R> {
    netns_id: u64,
    bounds: ListingBounds,
    /// True if texts are needed.
    with_texts: bool,
    /// `None` in a replay.
    changes: Option<RuleChanges>,
    pub(super) listings: Listings<R>,
    /// Time when they were last known to be unchanged since their listing, in ns since 1970.
    confirmed_ns: u64,
    /// The changes since the listing, and the times of the first and the last notification.
    changed: Changed,
    changed_ns: (u64, u64),
    /// Number of the newest listing, starting at 1.
    number: u64,
}

impl<R: RuleSet> RuleHistory<R> {
    /// Lists the rules of the calling thread's namespace, and watches for changes from now on. `is_own` is true for
    /// the run's own namespace. In a replay, reads all numbered listings of the recording, or the first of those
    /// without a number.
    pub(super) fn open(host: &Host, netns_id: u64, is_own: bool, with_texts: bool) -> Result<RuleHistory<R>, SysError> {
        let mut history = RuleHistory {
            netns_id,
            bounds: if is_own { ListingBounds::USUAL } else { R::OTHERS },
            with_texts,
            changes: if host.is_replay() { None } else { Some(RuleChanges::open()?) },
            listings: Listings::default(),
            confirmed_ns: 0,
            changed: Changed::Never,
            changed_ns: (0, 0),
            number: 0,
        };
        let at_once = if host.is_replay() && R::HEAD.contains(&NUMBER) { RECORDED_MAX } else { 1 };
        for _ in 0..at_once {
            if !history.list(host)? {
                break;
            }
        }
        Ok(history)
    }

    /// Checks for changed rules since the last call; true if there are any. Costs one system call. After an error,
    /// rules count as changed.
    pub(super) fn check_changes(&mut self) -> Result<bool, SysError> {
        let Some(changes) = &mut self.changes else { return Ok(false) };
        let begun_ns = clock::wall_ns();
        let received = changes.receive_changes();
        let changed = *received.as_ref().unwrap_or(&Changed::Unlistable);
        self.note(changed, begun_ns, clock::wall_ns());
        received.map(|changed| changed != Changed::Never)
    }

    /// Notes how rules have changed, as a check between these times found, in ns since 1970.
    fn note(&mut self, changed: Changed, begun_ns: u64, now_ns: u64) {
        match (self.changed, changed) {
            (Changed::Never, Changed::Never) => self.confirmed_ns = begun_ns.saturating_sub(NOTICE_NS),
            (_, Changed::Never) => {}
            (Changed::Never, _) => {
                (self.changed, self.changed_ns) = (changed, (now_ns, now_ns));
                self.listings.end(now_ns);
            }
            _ => (self.changed, self.changed_ns.1) = (self.changed.max(changed), now_ns),
        }
    }

    /// True if rules have changed since they were listed.
    pub(super) fn is_stale(&self) -> bool {
        self.changed != Changed::Never
    }

    /// True if the newest listing may differ from the rules in force at this time, in ns since 1970.
    pub(super) fn is_behind(&self, time_ns: u64) -> bool {
        self.is_stale() && time_ns > self.confirmed_ns
    }

    /// Lists the rules of the calling thread's namespace.
    pub(super) fn list_again(&mut self, host: &Host) -> Result<(), SysError> {
        self.check_changes()?;
        self.list(host).map(drop)
    }

    /// Lists the rules; false if a recording has no more listings.
    fn list(&mut self, host: &Host) -> Result<bool, SysError> {
        let (begun_ns, was_stale) = (clock::wall_ns(), self.is_stale());
        let (mut bytes, mut has_changed) = (Vec::new(), false);
        host.bytes(&format!("{} rules@{}", R::NAME, self.netns_id), "", &mut bytes, |into| {
            has_changed = self.put_listing(was_stale, into).inspect_err(|_| into.clear())?;
            Ok(())
        })?;
        let failed = |errno| SysError::new("read", "nft's list of rules", errno);
        let (head, listing) = self.split_head(was_stale, &bytes).ok_or_else(|| failed(Errno::INVAL))?;
        let [number, from_ns, until_ns, is_after_change] = head;
        // The recording repeats its last listing.
        if number <= self.number {
            return Ok(false);
        }
        let (json, texts) = nft::split_ruleset(listing).ok_or_else(|| failed(Errno::INVAL))?;
        let rules = R::parse(json, &RuleTexts::parse(texts)).map_err(failed)?;
        self.listings.end(until_ns);
        self.listings.add(Listing::new(from_ns, is_after_change != 0, rules));
        (self.number, self.changed) = (number, Changed::Never);
        self.confirmed_ns = begun_ns.saturating_sub(NOTICE_NS);
        if has_changed {
            let last_ns = self.changed_ns.1;
            (self.changed, self.changed_ns.0) = (Changed::Listable, last_ns);
            self.listings.end(last_ns);
        } else if let Some(changes) = &mut self.changes {
            changes.are_listed();
        }
        Ok(true)
    }

    /// Puts what a recording stores of a listing into an empty buffer. Returns true if rules changed meanwhile: such
    /// changes may or may not be in the listing.
    fn put_listing(&mut self, was_stale: bool, into: &mut Vec<u8>) -> Result<bool, SysError> {
        into.resize(NUMBER_BYTES * R::HEAD.len(), 0);
        nft::put_ruleset(self.with_texts, self.bounds, into)?;
        let has_changed = self.check_changes()?;
        let head = self.head(was_stale);
        let numbers = head.get(R::HEAD).into_iter().flatten().flat_map(|number| number.to_ne_bytes());
        into.iter_mut().zip(numbers).for_each(|(to, from)| *to = from);
        Ok(has_changed)
    }

    /// Splits the bytes of [`RuleHistory::put_listing`] into head and listing. A recording without a part of the head
    /// gets that of a listing made just now.
    fn split_head<'b>(&self, was_stale: bool, bytes: &'b [u8]) -> Option<(ListingHead, &'b [u8])> {
        let (numbers, listing) = bytes.split_at_checked(NUMBER_BYTES * R::HEAD.len())?;
        let mut head = self.head(was_stale);
        for (to, from) in head.get_mut(R::HEAD)?.iter_mut().zip(numbers.chunks_exact(NUMBER_BYTES)) {
            *to = u64::from_ne_bytes(from.try_into().ok()?);
        }
        Some((head, listing))
    }

    /// The head of a listing made just now. Its time overlaps with the previous listing's, unless rules were in force
    /// in between that neither of them contains.
    fn head(&self, was_stale: bool) -> ListingHead {
        let ((first_ns, last_ns), confirmed_ns) = (self.changed_ns, self.confirmed_ns);
        let number = self.number + 1;
        let (from_ns, until_ns) = match self.changed {
            // The first listing covers all earlier times.
            _ if number == 1 => (0, 0),
            Changed::Unlistable => (last_ns, confirmed_ns),
            _ => (confirmed_ns, first_ns),
        };
        [number, from_ns, until_ns, was_stale.into()]
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidates::DropRules;
    use super::*;

    /// After an error of the notifications, the time since the last check is one of unknown rules.
    #[test]
    fn unknown_changes_have_a_time() {
        let mut history = RuleHistory::<DropRules> {
            netns_id: 1,
            bounds: ListingBounds::USUAL,
            with_texts: false,
            changes: None,
            listings: Listings::default(),
            confirmed_ns: 0,
            changed: Changed::Never,
            changed_ns: (0, 0),
            number: 1,
        };
        history.note(Changed::Never, 100 + NOTICE_NS, 101 + NOTICE_NS);
        history.note(Changed::Unlistable, 200 + NOTICE_NS, 201 + NOTICE_NS);
        assert!(history.is_stale());
        assert_eq!(history.head(true), [2, 201 + NOTICE_NS, 100, 1]);
    }
}
