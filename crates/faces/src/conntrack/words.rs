//! Parses lists of words: `-u`, `-e`, `-o`. Every prefix of a word is accepted; the first matching word counts.

use super::stop::Stop;
use super::want::Status;
use crate::text::warn;
use record::rows::CtStatus;

/// One bit per word of `-o`.
pub(super) mod output {
    pub(in super::super) const XML: u32 = 1;
    pub(in super::super) const EXTENDED: u32 = 1 << 1;
    pub(in super::super) const TIMESTAMP: u32 = 1 << 2;
    pub(in super::super) const ID: u32 = 1 << 3;
    pub(in super::super) const KTIMESTAMP: u32 = 1 << 4;
    pub(in super::super) const LABELS: u32 = 1 << 5;
    pub(in super::super) const SAVE: u32 = 1 << 6;
}

/// One bit per word of `-e`.
pub(super) mod event {
    pub(in super::super) const NEW: u32 = 1;
    pub(in super::super) const UPDATES: u32 = 1 << 1;
    pub(in super::super) const DESTROY: u32 = 1 << 2;
    pub(in super::super) const ALL: u32 = NEW | UPDATES | DESTROY;
}

type Names = &'static [(&'static str, u32)];

#[rustfmt::skip]
const STATUS: Names = &[
    ("ASSURED", CtStatus::ASSURED), ("SEEN_REPLY", CtStatus::SEEN_REPLY), ("UNSET", 0), ("FIXED_TIMEOUT", 1 << 10),
    ("EXPECTED", 1), ("OFFLOAD", CtStatus::OFFLOAD), ("HW_OFFLOAD", CtStatus::HW_OFFLOAD),
];
const EVENTS: Names =
    &[("ALL", event::ALL), ("NEW", event::NEW), ("UPDATES", event::UPDATES), ("DESTROY", event::DESTROY)];
#[rustfmt::skip]
const OUTPUT: Names = &[
    ("xml", output::XML), ("extended", output::EXTENDED), ("timestamp", output::TIMESTAMP), ("id", output::ID),
    ("ktimestamp", output::KTIMESTAMP), ("labels", output::LABELS), ("userspace", 0), ("save", output::SAVE),
];

/// Parses the list after `-e` and adds its bits to `bits`.
pub(super) fn events(list: &[u8], bits: &mut u32) -> Result<(), Stop> {
    plain(list, bits, EVENTS)
}

/// Parses the list after `-o` and adds its bits to `bits`.
pub(super) fn outputs(list: &[u8], bits: &mut u32) -> Result<(), Stop> {
    plain(list, bits, OUTPUT)
}

fn plain(list: &[u8], bits: &mut u32, names: Names) -> Result<(), Stop> {
    each(list, |word, rest| {
        *bits |= find(word, names).ok_or_else(|| bad(rest))?;
        Ok(())
    })
}

/// Parses the list after `-u`: `!` before a word requires the bit to be clear, and UNREPLIED is `!SEEN_REPLY`.
pub(super) fn status(list: &[u8], into: &mut Status) -> Result<(), Stop> {
    each(list, |word, rest| {
        if rest.starts_with(b"UNREPLIED") {
            into.unset |= CtStatus::SEEN_REPLY;
            return Ok(());
        }
        let (bits, word, rest) = match word.strip_prefix(b"!") {
            Some(word) => (&mut into.unset, word, rest.get(1..).unwrap_or_default()),
            None => (&mut into.set, word, rest),
        };
        if word.is_empty() {
            return Err(bad(rest));
        }
        *bits |= find(word, STATUS).ok_or_else(|| bad(rest))?;
        Ok(())
    })
}

/// Calls `take` with each comma-separated word, and with the list from that word on.
fn each(list: &[u8], mut take: impl FnMut(&[u8], &[u8]) -> Result<(), Stop>) -> Result<(), Stop> {
    let mut rest = list;
    loop {
        let comma = rest.iter().position(|&b| b == b',');
        let word = rest.get(..comma.unwrap_or(rest.len())).unwrap_or_default();
        if word.is_empty() {
            return Err(bad(rest));
        }
        take(word, rest)?;
        let Some(comma) = comma else { return Ok(()) };
        rest = rest.get(comma + 1..).unwrap_or_default();
    }
}

fn find(word: &[u8], names: Names) -> Option<u32> {
    let begins = |name: &str| name.as_bytes().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    // These were valid words of every list in older versions.
    for (name, switch) in [("SRC_NAT", "--src-nat"), ("DST_NAT", "--dst-nat")] {
        if begins(name) {
            warn(&format!("WARNING: ignoring {name}, use {switch} instead\n"));
            return Some(0);
        }
    }
    names.iter().find(|(name, _)| begins(name)).map(|(_, bits)| *bits)
}

fn bad(rest: &[u8]) -> Stop {
    Stop::about("Bad parameter `%'", rest)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn beginnings_of_words() {
        let read = |list: &str| {
            let mut bits = 0;
            outputs(list.as_bytes(), &mut bits).map(|()| bits).map_err(|stop| stop.text())
        };
        assert_eq!(read("x,ID,userspace"), Ok(output::XML | output::ID));
        assert_eq!(read("kt,e,sa"), Ok(output::KTIMESTAMP | output::EXTENDED | output::SAVE));
        assert_eq!(read("s"), Ok(0), "SRC_NAT comes first");
        for (list, rest) in
            [("x,,id", "`,id'"), ("x,", "`'"), ("", "`'"), ("nothing,x", "`nothing,x'"), ("xmls", "`xmls'")]
        {
            assert!(read(list).unwrap_err().contains(&format!("Bad parameter {rest}")), "{list}");
        }
    }

    #[test]
    fn status_bits() {
        let read = |list: &str| {
            let mut bits = Status::default();
            status(list.as_bytes(), &mut bits).map(|()| (bits.set, bits.unset)).map_err(|stop| stop.text())
        };
        assert_eq!(read("ASSURED,!SEEN_REPLY"), Ok((4, 2)));
        assert_eq!(read("UNREPLIED"), Ok((0, 2)));
        assert_eq!(read("UNSET"), Ok((0, 0)));
        assert_eq!(read("off,hw"), Ok((0x4000 | 0x8000, 0)));
        for (list, rest) in [("!", "`'"), ("!,ASSURED", "`,ASSURED'"), ("X", "`X'"), ("!X", "`X'")] {
            assert!(read(list).unwrap_err().contains(&format!("Bad parameter {rest}")), "{list}");
        }
    }
}
