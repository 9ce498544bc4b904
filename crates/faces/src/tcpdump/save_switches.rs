//! The switches of `-w`.

use super::rare::leading_number;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A switch handled by this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SaveSwitch {
    /// `-w`
    Path,
    /// `-C`
    Size,
    /// `-W`
    Files,
    /// `-G`
    Seconds,
    /// `-z`
    Command,
    /// `--print`
    Print,
}

/// The values of these switches.
#[derive(Debug, Default)]
pub(super) struct SaveSwitches {
    /// `-w`
    pub(super) path: Option<PathBuf>,
    /// `-C`, in bytes.
    pub(super) bytes_max: Option<u64>,
    /// `-W`
    pub(super) files_max: Option<u64>,
    /// `-G` in seconds; 0 for none.
    pub(super) seconds: u64,
    /// The time when the switches were parsed.
    pub(super) begun_s: i64,
    /// `-z`
    pub(super) command: Option<OsString>,
    /// `-U`
    pub(super) is_unbuffered: bool,
    /// `--print`
    pub(super) prints: bool,
}

/// The unit of `-C` without a letter.
const MILLION: u64 = 1_000_000;

impl SaveSwitches {
    /// Applies a switch; the error is the message.
    pub(super) fn set(&mut self, what: SaveSwitch, value: Vec<u8>) -> Result<(), String> {
        let shown = sys::escape_bytes(&value);
        match what {
            SaveSwitch::Path => self.path = Some(PathBuf::from(OsString::from_vec(value))),
            SaveSwitch::Size => self.bytes_max = Some(bytes(&value)?),
            SaveSwitch::Files => {
                let files = leading_number(&value).filter(|files| *files > 0);
                self.files_max = Some(files.ok_or_else(|| format!("invalid number of output files {shown}"))?);
            }
            SaveSwitch::Seconds => {
                let text = value.trim_ascii_start();
                if text.starts_with(b"-") && text.iter().any(|byte| (b'1'..=b'9').contains(byte)) {
                    return Err(format!("invalid number of seconds {shown}"));
                }
                self.seconds = leading_number(&value).unwrap_or(0);
                self.begun_s = sys::clock::wall().seconds;
            }
            SaveSwitch::Command => self.command = Some(OsString::from_vec(value)),
            SaveSwitch::Print => self.prints = true,
        }
        Ok(())
    }

    /// True if packets are printed as lines.
    pub(super) fn is_printing(&self, count_only: bool) -> bool {
        if self.path.is_some() { self.prints } else { !count_only }
    }

    /// The path, if the run writes several files. After standard output, the next file would be called `-1`.
    pub(super) fn several(&self) -> Option<&Path> {
        let several = self.bytes_max.is_some() || self.seconds > 0;
        self.path.as_deref().filter(|path| several && *path != Path::new("-"))
    }
}

/// Parses a size in millions of bytes, or in units of 1024 by their letter as in tcpdump 4.99.6.
fn bytes(value: &[u8]) -> Result<u64, String> {
    let shown = sys::escape_bytes(value);
    let invalid = || format!("invalid file size {shown}");
    let text = std::str::from_utf8(value).map_err(|_| invalid())?.trim_start();
    let text = text.strip_prefix('+').filter(|rest| !rest.starts_with('+')).unwrap_or(text);
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "" => MILLION,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return Err(invalid()),
    };
    let number = digits.parse::<i64>().ok().filter(|number| *number > 0 && !digits.starts_with('+'));
    let number = number.and_then(|number| u64::try_from(number).ok()).ok_or_else(invalid)?;
    let bytes = number.checked_mul(unit).filter(|bytes| i64::try_from(*bytes).is_ok());
    bytes.ok_or_else(|| format!("file size {shown} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_millions_or_have_a_letter() {
        let read = ["1", " 20", "+3", "5k", "5M", "2G"].map(|text| bytes(text.as_bytes()).ok());
        let k = 1024;
        assert_eq!(read, [1_000_000, 20_000_000, 3_000_000, 5 * k, 5 * k * k, 2 * k * k * k].map(Some));
        for text in ["", "0", "-1", "x", "1x", "1kk", "1 ", "++1", "99999999999999999999"] {
            let refused = format!("invalid file size {text}");
            assert_eq!(bytes(text.as_bytes()), Err(refused), "{text}");
        }
        assert_eq!(bytes(b"9999999999999"), Err("file size 9999999999999 is too large".to_owned()));
    }
}
