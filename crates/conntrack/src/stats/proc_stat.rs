//! Reads the same counters from /proc/net/stat/nf_conntrack, which needs no privilege: a line of names, then a line per
//! CPU.
//!
//! Numbers are hexadecimal. Two names differ from ctnetlink's, and one column changed its meaning: `delete_list` became
//! `chainlength` when the kernel started to count chains that are too long (5.15).
use record::rows::{StatCounter, StatCounts};
use sys::{Host, SysError, fs};

use super::counters::{CPUS_MAX, CpuCounts};

/// The file of the calling thread's namespace; /proc/net without `thread-self` is the main thread's.
const PATH: &str = "/proc/thread-self/net/stat/nf_conntrack";

/// Names of the columns; the number of entries comes first and is the same in each line.
const COLUMNS: &[(&str, StatCounter)] = &[
    ("clashres", StatCounter::ClashResolve),
    ("found", StatCounter::Found),
    ("new", StatCounter::New),
    ("invalid", StatCounter::Invalid),
    ("ignore", StatCounter::Ignore),
    ("delete", StatCounter::Delete),
    ("chainlength", StatCounter::ChainTooLong),
    ("insert", StatCounter::Insert),
    ("insert_failed", StatCounter::InsertFailed),
    ("drop", StatCounter::Drop),
    ("early_drop", StatCounter::EarlyDrop),
    ("icmp_error", StatCounter::Error),
    ("expect_new", StatCounter::ExpectNew),
    ("expect_create", StatCounter::ExpectCreate),
    ("expect_delete", StatCounter::ExpectDelete),
    ("search_restart", StatCounter::SearchRestart),
];
const ENTRIES: &str = "entries";

/// Content of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StatFile {
    pub(super) entries: Option<u64>,
    pub(super) cpus: Vec<CpuCounts>,
}

pub(super) fn read(host: &Host, netns_id: u64) -> Result<StatFile, SysError> {
    let mut text = Vec::new();
    host.bytes(&format!("{PATH}@{netns_id}"), "", &mut text, |into| fs::read_file(&host.real_path(PATH), into))?;
    Ok(parse(&text))
}

/// The lines do not name their CPU. They list the possible CPUs in order, and except on unusual machines these are
/// numbered without gaps.
pub(super) fn parse(text: &[u8]) -> StatFile {
    let mut found = StatFile::default();
    let mut lines = text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    for (cpu, line) in (0..).zip(lines.filter(|line| !line.trim().is_empty())).take(CPUS_MAX) {
        let mut counts = StatCounts::default();
        for (name, word) in names.iter().zip(line.split_ascii_whitespace()) {
            let value = u64::from_str_radix(word, 16).ok();
            if *name == ENTRIES {
                found.entries = found.entries.or(value);
            }
            if let Some((_, counter)) = COLUMNS.iter().find(|(column, _)| column == name) {
                counts.set(*counter, value);
            }
        }
        found.cpus.push(CpuCounts { cpu, counts });
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_file_of_618_and_an_older_one() {
        let found = parse(
            b"entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop \
              icmp_error  expect_new expect_create expect_delete search_restart\n\
              000003e8  00000001 00000002 00000000 00000003 00000000 00000000 00000004 00000005 00000006 0000000a \
              00000008 00000009  0000000b 0000000c 0000000d 0000000e\n\
              000003e8  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 ffffffff \
              00000000 00000000  00000000 00000000 00000000 00000000\n",
        );
        assert_eq!((found.entries, found.cpus.len(), found.cpus[1].cpu), (Some(1000), 2, 1));
        let counts = found.cpus[0].counts;
        let of = |counter| counts.get(counter).unwrap();
        assert_eq!((of(StatCounter::ClashResolve), of(StatCounter::ChainTooLong), of(StatCounter::Drop)), (1, 4, 10));
        assert_eq!((of(StatCounter::Error), of(StatCounter::SearchRestart)), (9, 14));
        assert_eq!(found.cpus[1].counts.get(StatCounter::Drop), Some(u64::from(u32::MAX)));
        let old = parse(b"entries searched delete_list drop\n00000001 00000002 00000003 0000000f\n");
        let counts = old.cpus[0].counts;
        assert_eq!((counts.get(StatCounter::Drop), counts.get(StatCounter::ChainTooLong)), (Some(15), None));
    }

    proptest! {
        #[test]
        fn any_text(text in "([a-z]{0,4} ?){0,5}\n(([0-9a-f]{0,20} ?){0,5}\n){0,4}") {
            let found = parse(text.as_bytes());
            prop_assert!(found.cpus.len() <= 4);
        }
    }
}
