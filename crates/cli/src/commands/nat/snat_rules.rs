//! Rules of source NAT, as nft(8) lists them; nothing is changed.

use crate::nft::{self, NftError};
use record::rows::SnatRule;
use sys::{Errno, Host, SysError};

/// Bytes of a listing at most: whoever owns a namespace decides how long its listing is. Rules of a longer one count as
/// unknown, which costs the range of ports in the answer.
const LISTING_BYTES_MAX: usize = 16 << 20;

/// The rules of the namespace `netns_id` that the calling thread is in; `None` where nft is missing, refuses, or prints
/// what is not understood. A process and some milliseconds; a recording holds the listing.
pub(super) fn read(host: &Host, netns_id: u64) -> Option<Vec<SnatRule>> {
    let mut listing = Vec::new();
    let read = host.bytes(&format!("nft ruleset@{netns_id}"), "", &mut listing, |into| {
        // Without the elements of sets, of which there may be millions.
        let text = nft::list(&["--json", "--terse", "list", "ruleset"]).map_err(|error| failed(&error))?;
        if text.len() > LISTING_BYTES_MAX {
            return Err(SysError::new("read", "nft", Errno::FBIG));
        }
        into.extend_from_slice(text.as_bytes());
        Ok(())
    });
    read.ok().and_then(|()| host::snat_rules::parse(&listing))
}

fn failed(error: &NftError) -> SysError {
    let errno = match error {
        NftError::Io(error) => error.raw_os_error().map_or(Errno::INVAL, Errno),
        _ => Errno::NOENT,
    };
    SysError::new("run", "nft", errno)
}
