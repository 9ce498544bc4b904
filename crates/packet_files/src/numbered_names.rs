//! Names with a number and the time when the file was started, in dumpcap's form: `all_00001_20261124080512.pcap`.

use super::packing::unpacked_name;
use std::ffi::OsString;
use std::path::Path;

/// A sequence of names derived from one name.
#[derive(Debug, Clone)]
pub(super) struct NumberedNames {
    /// For example `all_`.
    stem: OsString,
    /// `.pcap`, `.pcap.gz`, or nothing.
    ending: OsString,
    number: u64,
    now: fn() -> i64,
}

impl NumberedNames {
    /// Derives names from the last part of `path`.
    pub(super) fn new(path: &Path) -> NumberedNames {
        NumberedNames::new_at(path, || sys::clock::wall().seconds)
    }

    fn new_at(path: &Path, now: fn() -> i64) -> NumberedNames {
        let mut stem = unpacked_name(path).file_stem().unwrap_or_default().to_owned();
        stem.push("_");
        let mut ending = OsString::new();
        let endings = [unpacked_name(path).extension(), path.extension().filter(|_| unpacked_name(path) != path)];
        for one in endings.into_iter().flatten() {
            ending.push(".");
            ending.push(one);
        }
        NumberedNames { stem, ending, number: 0, now }
    }

    /// The common prefix of the names.
    pub(super) fn stem(&self) -> &std::ffi::OsStr {
        &self.stem
    }
}

impl NumberedNames {
    /// The next name.
    pub(super) fn next_name(&mut self) -> OsString {
        self.number += 1;
        let time = sys::clock::format_local(c"%Y%m%d%H%M%S", (self.now)()).unwrap_or_default();
        let mut name = self.stem.clone();
        name.push(format!("{:05}_{}", self.number, String::from_utf8_lossy(&time)));
        name.push(&self.ending);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_number_and_time() {
        let mut names = NumberedNames::new_at(Path::new("dir/all.pcapng"), || 1_700_000_000);
        let first = names.next_name().into_string().unwrap_or_default();
        assert!(first.starts_with("all_00001_202311") && first.ends_with(".pcapng"), "{first}");
        assert_eq!(first.len(), "all_00001_20231114221320.pcapng".len());
        names.number = 99_999;
        assert!(names.next_name().into_string().unwrap_or_default().starts_with("all_100000_2023"));
        let packed = NumberedNames::new_at(Path::new("dir/all.pcap.gz"), || 0);
        assert_eq!((packed.stem.to_str(), packed.ending.to_str()), (Some("all_"), Some(".pcap.gz")));
        let mut plain = NumberedNames::new_at(Path::new("dump"), || 1_700_000_000);
        assert_eq!(plain.next_name().len(), "dump_00001_20231114221320".len());
    }
}
