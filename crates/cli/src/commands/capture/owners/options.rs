//! Options of the process that looks up owners, passed on its command line.

use std::ffi::OsString;

/// The options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::capture) struct OwnerOptions {
    /// True to look in every network namespace.
    pub(in crate::commands::capture) all_netns: bool,
    /// Bits of `capture_need`.
    pub(in crate::commands::capture) need: u64,
}

impl OwnerOptions {
    /// The options as words of a command line.
    pub(super) fn words(self) -> [String; 2] {
        [u8::from(self.all_netns).to_string(), self.need.to_string()]
    }

    pub(super) fn parse(mut words: impl Iterator<Item = OsString>) -> Option<OwnerOptions> {
        let mut number = || words.next()?.to_str()?.parse::<u64>().ok();
        Some(OwnerOptions { all_netns: number()? == 1, need: number()? })
    }
}
