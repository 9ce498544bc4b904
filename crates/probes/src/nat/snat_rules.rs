//! Reads source NAT rules with nft(8); changes nothing.

use lookups::nft::{self, NftError};
use record::rows::SnatRule;
use std::cell::Cell;
use std::time::{Duration, Instant};
use sys::{Errno, Host, SysError};

/// Maximum size of a listing in bytes, because the owner of a namespace controls the length. Rules of a longer listing
/// count as unknown, and the result then lacks the port range.
///
/// Bound: bytes of a listing of nft (`nft::issue_10_a_listing_is_bounded_in_bytes_and_time`). Beyond: the rules are
/// unknown; reported. By: the owner of a namespace, for that namespace.
const LISTING_BYTES_MAX: usize = 16 << 20;
/// Maximum time for listing one namespace, and for all namespaces together; after that, rules count as unknown.
///
/// Bound: for the listing of one namespace. Beyond: the rules are unknown; reported. By: the owner of a namespace, for
/// that namespace.
const PATIENCE: Duration = Duration::from_secs(2);
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
        let mut listing = Vec::new();
        let read = host.bytes(&format!("nft ruleset@{netns_id}"), "", &mut listing, |into| {
            *into = self.list().map_err(|error| failed(&error))?;
            Ok(())
        });
        read.ok().and_then(|()| host::snat_rules::parse(&listing))
    }

    fn list(&self) -> Result<Vec<u8>, NftError> {
        let (begun, left) = (Instant::now(), self.left.get());
        if left.is_zero() {
            return Err(NftError::Io(std::io::ErrorKind::TimedOut.into()));
        }
        // `--terse` leaves out the elements of sets, which may be millions.
        let words = ["--json", "--terse", "list", "ruleset"];
        let listed = nft::list_within(&words, LISTING_BYTES_MAX, PATIENCE.min(left));
        self.left.set(left.saturating_sub(begun.elapsed()));
        listed
    }
}

fn failed(error: &NftError) -> SysError {
    let errno = match error {
        NftError::Io(error) => error.raw_os_error().map_or(Errno::INVAL, Errno),
        _ => Errno::NOENT,
    };
    SysError::new("run", "nft", errno)
}
