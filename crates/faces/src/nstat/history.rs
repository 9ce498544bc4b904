//! The counters of the previous call, in a file that belongs to the user.

use super::switches::NstatOptions;
use crate::nstat::output::{NSTAT_SOURCE, NstatStyle, NstatWriter};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use sys::outfile::{self, Contents, OutfileOptions};
use sys::{FileLock, Host, SysError};

/// Maximum number of bytes to read. The kernel has some 600 counters of 60 bytes each.
///
/// Bound: bytes of a history of `nstat`. Beyond: the rest is not compared. By: the user.
const BYTES_MAX: u64 = 4 << 20;

/// A counter and its value.
pub(super) type CounterEntry = (String, u64);

/// The reason why a history is unusable.
#[derive(Debug)]
pub(super) enum HistoryFault {
    /// It cannot be opened, read or created; symbolic links are rejected.
    Open(io::Error),
    /// It cannot be locked.
    Lock(SysError),
    /// It belongs to another user, or has several hard links.
    NotOurs,
    /// It has an invalid line.
    GarbledFile,
}

/// An open history file, locked against other processes.
#[derive(Debug)]
pub(super) struct History {
    file: FileLock<File>,
    counted: Option<Vec<CounterEntry>>,
}

/// The path of the file: NSTAT_HISTORY, or a per-user file in /tmp.
pub(super) fn path() -> PathBuf {
    let named = std::env::var_os("NSTAT_HISTORY").map(PathBuf::from);
    named.unwrap_or_else(|| format!("/tmp/.nstat.u{}", sys::caps::euid()).into())
}

impl History {
    /// Opens or creates the file, waits for its lock and reads it. A file older than the host's last boot is emptied,
    /// unless its counters are not used (`ignore`).
    pub(super) fn open(path: &Path, ignore: bool) -> Result<History, HistoryFault> {
        let file = outfile::open(path, OutfileOptions::private(Contents::Kept)).map_err(|error| {
            match error.raw_os_error() {
                None if !path.is_symlink() => HistoryFault::NotOurs,
                // Reports the tool's error, because the tool opens the file with O_NOFOLLOW.
                None => HistoryFault::Open(io::Error::from_raw_os_error(sys::Errno::LOOP.0)),
                Some(_) => HistoryFault::Open(error),
            }
        })?;
        let lock = FileLock::wait(file).map_err(HistoryFault::Lock)?;
        let file = lock.file();
        let meta = file.metadata().map_err(HistoryFault::Open)?;
        if !ignore && is_aged(meta.mtime()) {
            super::complain("history is aged out, resetting");
            file.set_len(0).map_err(HistoryFault::Open)?;
        }
        let mut text = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut text).map_err(HistoryFault::Open)?;
        let counted = parsed(&String::from_utf8_lossy(&text))?;
        Ok(History { file: lock, counted })
    }

    /// Takes the counters of the previous call; None if it was the first, or if they come from another source.
    pub(super) fn take(&mut self) -> Option<Vec<CounterEntry>> {
        self.counted.take()
    }

    /// Replaces the file's content.
    pub(super) fn replace(self, text: &[u8]) -> io::Result<()> {
        let mut file = self.file.file();
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text)
    }
}

/// True if the host has booted since the file was modified.
fn is_aged(mtime_s: i64) -> bool {
    let mut text = Vec::new();
    let read = Host::live().read_file("/proc/uptime", &mut text);
    let uptime = String::from_utf8_lossy(&text).split('.').next().and_then(|seconds| seconds.parse::<i64>().ok());
    read.is_ok() && uptime.is_some_and(|uptime| sys::clock::wall().seconds >= mtime_s.saturating_add(uptime))
}

/// Parses the counters of a history; None if it is empty or from another source.
fn parsed(text: &str) -> Result<Option<Vec<CounterEntry>>, HistoryFault> {
    let (mut counted, mut source) = (Vec::new(), "");
    for line in text.lines() {
        match line.strip_prefix('#') {
            Some(of) => source = of,
            None => counted.push(entry(line).ok_or(HistoryFault::GarbledFile)?),
        }
    }
    if counted.is_empty() {
        return Ok(None);
    }
    if !source.is_empty() && source != NSTAT_SOURCE {
        super::complain("history is stale, ignoring it.");
        return Ok(None);
    }
    Ok(Some(counted))
}

/// Parses a line of a history, or of the kernel's simple tables: a name and a value.
pub(super) fn entry(line: &str) -> Option<CounterEntry> {
    let mut words = line.split_ascii_whitespace();
    Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
}

/// The text of the next history. Counters that match no pattern keep their value from the previous call.
pub(super) fn text(options: &NstatOptions, now: &[CounterEntry], before: &[CounterEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = NstatWriter::begin(NstatStyle::Lines, &mut out);
    let mut rest = before;
    for (name, value) in now.iter().filter(|(_, value)| *value > 0 || options.zeros) {
        let mut kept = *value;
        if !options.matches(name) {
            if let Some(at) = rest.iter().position(|(known, _)| known == name) {
                kept = rest.get(at).map_or(kept, |(_, old)| *old);
                rest = rest.get(at + 1..).unwrap_or_default();
            }
        }
        writer.put(&mut out, name, kept, false);
    }
    writer.end(&mut out);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn histories_of_others_are_none() {
        let of = |text: &str| parsed(text).map_err(|fault| format!("{fault:?}"));
        assert_eq!(of("").unwrap(), None);
        assert_eq!(of("#kernel\n").unwrap(), None);
        assert_eq!(of("#kernel\nUdpNoPorts   7   0.0\n").unwrap(), Some(vec![("UdpNoPorts".to_owned(), 7)]));
        assert_eq!(of("UdpNoPorts 7\n").unwrap(), Some(vec![("UdpNoPorts".to_owned(), 7)]));
        assert_eq!(of("#3.sampling_interval=1\nUdpNoPorts 7 0.0\n").unwrap(), None);
        assert_eq!(of("#kernel\nUdpNoPorts\n").unwrap_err(), "GarbledFile");
        assert_eq!(of("UdpNoPorts x\n").unwrap_err(), "GarbledFile");
    }
}
