//! Rules of source NAT, as nft(8) lists them; nothing is changed.

use crate::nft::{self, NftError};
use record::rows::SnatRule;
use std::cell::Cell;
use std::time::{Duration, Instant};
use sys::{Errno, Host, SysError};

/// Bytes of a listing at most: whoever owns a namespace decides how long its listing is. Rules of a longer one count as
/// unknown, which costs the range of ports in the answer.
const LISTING_BYTES_MAX: usize = 16 << 20;
/// How long the listing of one namespace may take, and those of all namespaces together; then rules count as unknown.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_OF_ALL: Duration = Duration::from_secs(10);

/// Reads rules, of one namespace after the other.
pub(in crate::commands) struct SnatRules {
    /// What is left of the time for all.
    left: Cell<Duration>,
}

impl SnatRules {
    /// A reader with all its time.
    pub(in crate::commands) fn new() -> SnatRules {
        SnatRules { left: Cell::new(PATIENCE_OF_ALL) }
    }

    /// The rules of the namespace `netns_id` that the calling thread is in; `None` where nft is missing, refuses, is
    /// too slow, or prints what is not understood. A process and some milliseconds; a recording holds the listing.
    pub(in crate::commands) fn read(&self, host: &Host, netns_id: u64) -> Option<Vec<SnatRule>> {
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
        // Without the elements of sets, of which there may be millions.
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
