//! Reads source NAT rules with nft(8); changes nothing.

use lookups::nft::{self, ListingBounds};
use record::rows::SnatRule;
use std::cell::Cell;
use std::time::{Duration, Instant};
use sys::{Errno, Host, SysError};

/// Maximum time for all namespaces together; after that, rules count as unknown, and the result lacks the port range.
///
/// Bound: for the listings of all namespaces. Beyond: the remaining rules are unknown; reported. This also affects
/// other users. By: the owners of many namespaces.
const PATIENCE_OF_ALL: Duration = Duration::from_secs(10);

/// Reads rules of one namespace after another.
pub struct SnatRules {
    /// Time left for all namespaces.
    left: Cell<Duration>,
}

/// A reader with the full time budget.
impl Default for SnatRules {
    fn default() -> SnatRules {
        SnatRules { left: Cell::new(PATIENCE_OF_ALL) }
    }
}

impl SnatRules {
    /// Reads the rules of the namespace `netns_id`, which the calling thread is in; `None` if nft is missing, refuses,
    /// is too slow, or prints unknown output. Costs a process and some milliseconds; a recording contains the listing.
    pub fn read(&self, host: &Host, netns_id: u64) -> Option<Vec<SnatRule>> {
        let listing = self.listing(host, &format!("nft ruleset@{netns_id}")).ok()?;
        host::snat_rules::parse(&listing)
    }

    /// Like [`SnatRules::read`], but returns the listing, which a recording contains as `key`.
    pub fn listing(&self, host: &Host, key: &str) -> Result<Vec<u8>, SysError> {
        let mut listing = Vec::new();
        host.bytes(key, "", &mut listing, |into| {
            *into = self.list()?;
            Ok(())
        })?;
        Ok(listing)
    }

    fn list(&self) -> Result<Vec<u8>, SysError> {
        let (begun, left) = (Instant::now(), self.left.get());
        if left.is_zero() {
            return Err(SysError::new("run", "nft", Errno::TIMEDOUT));
        }
        let usual = ListingBounds::USUAL;
        let listed = nft::list_json(ListingBounds { patience: usual.patience.min(left), ..usual });
        self.left.set(left.saturating_sub(begun.elapsed()));
        listed
    }
}
