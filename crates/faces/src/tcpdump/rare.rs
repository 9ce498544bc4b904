//! Rarely used switches, and parsers for numeric values.

use crate::tcpdump::output::PacketType;
use pcapfilter::LinkType;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use sys::infile;

/// A switch handled by this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RareSwitch {
    /// `-d`, `-dd`, `-ddd`
    Program,
    /// `-y`
    LinkType,
    /// `-V`
    FileList,
    /// `-T`
    PacketType,
    /// `-I`
    Monitor,
    /// `-m`
    SmiModule,
    /// `-E`
    EspSecret,
    /// `-M`
    Md5Secret,
}

/// The values of these switches.
#[derive(Debug, Default)]
pub(super) struct RareSwitches {
    /// `-d`, `-dd`, `-ddd`: the format in which the program is printed; 0 for none.
    pub(super) program_form: u8,
    /// `-y`
    pub(super) link: Option<LinkType>,
    /// `-V`: a file with a list of file names.
    pub(super) file_list: Option<PathBuf>,
    /// `-T`
    pub(super) packet_type: Option<PacketType>,
    /// `-I`
    pub(super) monitor: bool,
}

/// Values of `-T` that are not decoded.
#[rustfmt::skip]
const UNDECODED: [&str; 18] = [
    "vat", "wb", "rpc", "rtp", "rtcp", "snmp", "cnfp", "tftp", "aodv", "carp", "radius", "zmtp1", "pgm", "pgm_zmtp1",
    "lmp", "resp", "ptp", "someip",
];

impl RareSwitches {
    /// Applies a switch; the error is the message.
    pub(super) fn set(&mut self, what: RareSwitch, value: Vec<u8>) -> Result<(), String> {
        let shown = sys::escape_bytes(&value);
        match what {
            RareSwitch::Program => self.program_form = self.program_form.saturating_add(1).min(3),
            RareSwitch::LinkType => {
                let link = std::str::from_utf8(&value).ok().and_then(LinkType::from_name);
                self.link = Some(link.ok_or_else(|| format!("invalid data link type {shown}"))?);
            }
            RareSwitch::FileList => self.file_list = Some(PathBuf::from(std::ffi::OsString::from_vec(value))),
            RareSwitch::PacketType => self.packet_type = Some(packet_type(&value)?),
            RareSwitch::Monitor => self.monitor = true,
            RareSwitch::SmiModule => {
                super::say(&format!("tcpdump: ignoring option `-m {shown}' (no libsmi support)"));
            }
            RareSwitch::EspSecret => {
                return Err(
                    "-E: decrypting ESP is not supported; without -E its packets are shown encrypted".to_owned()
                );
            }
            RareSwitch::Md5Secret => {
                return Err(
                    "-M: verifying MD5 signatures of TCP is not supported; without -M they are shown".to_owned()
                );
            }
        }
        Ok(())
    }

    /// Rejects invalid combinations.
    pub(super) fn check(&self, own_network_only: bool, reads_file: bool) -> Result<(), String> {
        if own_network_only && (reads_file || self.file_list.is_some()) {
            return Err("-f can not be used with -V or -r".to_owned());
        }
        if reads_file && self.file_list.is_some() {
            return Err("-V and -r are mutually exclusive.".to_owned());
        }
        Ok(())
    }
}

/// Bound: bytes of the list of files of `tcpdump -V`. Beyond: the list is refused. By: the user.
const LIST_MAX: u64 = 16 << 20;

/// Reads the lines of the file of `-V`; `-` means standard input.
pub(super) fn listed_files(list: &Path) -> Result<Vec<PathBuf>, String> {
    let text = match list == Path::new("-") {
        true => infile::read_input(std::io::stdin(), LIST_MAX),
        false => infile::read(list, LIST_MAX),
    };
    let text = text.map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => format!("the list of files is longer than {} MiB", LIST_MAX >> 20),
        _ => format!("Unable to open file: {}", crate::strerror::strerror(&error)),
    })?;
    let lines = text.strip_suffix(b"\n").unwrap_or(&text).split(|byte| *byte == b'\n');
    let lines = lines.map(|line| PathBuf::from(std::ffi::OsString::from_vec(line.to_vec())));
    Ok(if text.is_empty() { Vec::new() } else { lines.collect() })
}

fn packet_type(value: &[u8]) -> Result<PacketType, String> {
    match value.to_ascii_lowercase().as_slice() {
        b"domain" => Ok(PacketType::Domain),
        b"vxlan" => Ok(PacketType::Vxlan),
        other if UNDECODED.iter().any(|name| name.as_bytes() == other) => {
            Err(format!("packet type `{}' is not supported; domain and vxlan are", sys::escape_bytes(value)))
        }
        _ => Err(format!("unknown packet type `{}'", sys::escape_bytes(value))),
    }
}

/// Parses the value of `--time-stamp-precision`.
pub(super) fn is_nano(value: &[u8]) -> Result<bool, String> {
    match value {
        b"nano" => Ok(true),
        b"micro" => Ok(false),
        _ => Err("unsupported time stamp precision".to_owned()),
    }
}

/// Parses the number at the start of a value, as in atoi(3).
pub(super) fn leading_number(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii_start();
    let value = value.strip_prefix(b"+").unwrap_or(value);
    let digits = value.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(value.len());
    let number = std::str::from_utf8(value.get(..digits)?).ok()?.parse().ok();
    // The largest value of a C int.
    number.filter(|number| *number <= i32::MAX as u64)
}

/// Parses a whole value like strtol(3) with base 0: decimal, `0x` hexadecimal, `0` octal.
pub(super) fn number(value: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(value).ok()?.trim_start();
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    if digits.starts_with(['+', '-']) { None } else { u32::from_str_radix(digits, base).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        let read: Vec<_> = ["7", "+7", " 7", "0x40", "010", "0", "08", "7x", "", "-7", "+-7", "0x+1"]
            .iter()
            .map(|text| number(text.as_bytes()))
            .collect();
        let [seven, none] = [Some(7), None];
        assert_eq!(read, [seven, seven, seven, Some(64), Some(8), Some(0), none, none, none, none, none, none]);
        let read: Vec<_> = ["7", "+7x", " 7 ", "x", "", "-7", "99999999999"]
            .iter()
            .map(|text| leading_number(text.as_bytes()))
            .collect();
        assert_eq!(read, [seven.map(u64::from), seven.map(u64::from), seven.map(u64::from), None, None, None, None]);
    }
}
