//! Walks a table of descriptors by number, without listing it first.
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::fd::AsFd;

use sys::{Errno, Fd, fs};

/// Smaller tables are listed: one getdents64 returns all their numbers.
const DESCRIPTORS_MIN: u64 = 256;

/// Number of misses after which probing stops, plus one more for this many hits: looking up a missing descriptor costs
/// as much as listing an existing one.
const MISSES_FREE: u32 = 64;
const HITS_PER_MISS: u32 = 8;

/// Descriptor n is at the directory's position n + 2, after `.` and `..` (proc_readfd_common, fs/proc/fd.c).
const DOTS: u64 = 2;

/// The numbers tried so far. Tables are dense, because the kernel assigns the lowest free number; in a sparse table
/// probing ends early. The rest is listed afterwards, so no descriptor that stays open is missed.
#[derive(Debug)]
pub(super) struct DescriptorProbe {
    next: u32,
    hits: u32,
    misses: u32,
    /// Number of descriptors at the start.
    expected: u64,
}

impl DescriptorProbe {
    /// A probe for the table of this procfs directory, if it is large. The kernel reports its size since 6.2
    /// (proc_fd_getattr, fs/proc/fd.c); on older kernels every table is listed.
    pub(super) fn worth(dir: &Fd) -> Option<DescriptorProbe> {
        let expected = fs::stat_fd(dir).ok()?.size;
        (expected >= DESCRIPTORS_MIN).then_some(DescriptorProbe { next: 0, hits: 0, misses: 0, expected })
    }

    /// The next number to try; `None` when it is time to list the rest.
    pub(super) fn next(&mut self) -> Option<u32> {
        let found_all = u64::from(self.hits) >= self.expected;
        if found_all || self.misses > MISSES_FREE + self.hits / HITS_PER_MISS {
            return None;
        }
        let number = self.next;
        self.next = number.checked_add(1)?;
        self.hits += 1;
        Some(number)
    }

    /// Records that the last number from [`DescriptorProbe::next`] is free.
    pub(super) fn missed(&mut self) {
        self.hits = self.hits.saturating_sub(1);
        self.misses += 1;
    }

    /// Makes the directory continue after the numbers that were tried.
    pub(super) fn leave(&self, dir: &Fd) -> Result<(), Errno> {
        let failed = |error: std::io::Error| Errno(error.raw_os_error().unwrap_or(Errno::IO.0));
        // A duplicate shares its position with the original.
        let mut twin = File::from(dir.as_fd().try_clone_to_owned().map_err(failed)?);
        twin.seek(SeekFrom::Start(u64::from(self.next) + DOTS)).map_err(failed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::io::Write;
    use std::path::Path;

    fn tried(expected: u64, is_open: impl Fn(u32) -> bool) -> u32 {
        let mut probe = DescriptorProbe { next: 0, hits: 0, misses: 0, expected };
        while let Some(number) = probe.next() {
            if !is_open(number) {
                probe.missed();
            }
        }
        probe.next
    }

    #[test]
    fn dense_tables_are_gone_through_and_sparse_ones_given_up() {
        assert_eq!(tried(1000, |_| true), 1000);
        assert_eq!(tried(1000, |n| n % 10 != 0), 1112);
        assert_eq!(tried(1000, |n| n >= 500), 65);
        assert!(tried(1000, |n| n % 2 == 0) < 200);
        assert!(tried(1000, |n| n < 900) < 1100);
    }

    #[test]
    fn the_listing_continues_after_the_probe() {
        let held: Vec<File> = (0..300).map(|_| File::open("/dev/null").unwrap()).collect();
        let dir = fs::open_dir(Path::new("/proc/self/fd")).unwrap();
        let Some(probe) = DescriptorProbe::worth(&dir) else {
            let _ = std::io::stderr().write_all(b"skipped: this kernel does not tell the size of a table\n");
            return;
        };
        DescriptorProbe { next: 200, ..probe }.leave(&dir).unwrap();
        let mut entries = fs::Entries::new();
        let mut seen = Vec::new();
        while let Some(entry) = entries.next(&dir).unwrap() {
            seen.push(entry.number().unwrap());
        }
        use std::os::fd::AsRawFd;
        let expected: Vec<u32> = held.iter().map(|file| file.as_raw_fd() as u32).filter(|n| *n >= 200).collect();
        assert!(seen.iter().all(|n| *n >= 200), "{seen:?}");
        assert!(expected.iter().all(|n| seen.contains(n)), "{expected:?} in {seen:?}");
    }
}
