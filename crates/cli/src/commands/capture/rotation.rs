//! The `--rotate-…` flags with `-w`.

use crate::command::ParsedWords;
use crate::flags::rotation::{ROTATE_FLAGS, ROTATE_SIZES, rotate_age, rotate_keep};
use packet_files::{FileLimits, RotationRequest};
use std::ffi::OsString;
use std::path::Path;

/// Maximum value of `--rotate-packets`.
const PACKETS_MAX: u64 = 1 << 40;

/// Parses the rotation from a command line; None without a rotation flag.
pub(super) fn parse_rotation(words: &ParsedWords<'_>) -> Result<Option<RotationRequest>, String> {
    let Some(path) = words.file("write") else {
        let alone = ["rotate-packets", "rotate-command"].into_iter().find(|flag| words.is_given(flag));
        return alone.map_or(Ok(None), |flag| Err(format!("--{flag} needs --write FILE")));
    };
    let flags = ROTATE_FLAGS.into_iter().chain(["rotate-packets", "rotate-command"]);
    let Some(given) = { flags }.find(|flag| words.is_given(flag)) else { return Ok(None) };
    if path == Path::new("-") || path.file_name().is_none() {
        return Err(format!("--{given} needs a file name"));
    }
    if words.has("rotate-zstd") {
        return Err("--rotate-zstd needs --to; with --write, a FILE that ends in .zst is compressed".to_owned());
    }
    let given_value = |flag| words.value(flag).filter(|_| words.is_given(flag));
    let packets = |text: &str| {
        let number = text.parse().ok().filter(|number| (1..=PACKETS_MAX).contains(number));
        number.ok_or_else(|| format!("--rotate-packets takes a number of packets (at least 1), not `{text}`"))
    };
    let limits = FileLimits {
        bytes_max: words.bytes("rotate-size", ROTATE_SIZES)?,
        age_max: given_value("rotate-age").map(|text| rotate_age(text, 1)).transpose()?,
        packets_max: given_value("rotate-packets").map(packets).transpose()?,
    };
    if limits == FileLimits::default() {
        let needed = "--rotate-size, --rotate-age or --rotate-packets";
        return Err(format!("--{given} needs {needed}, which start new files"));
    }
    let keep = given_value("rotate-keep").map(rotate_keep).transpose()?;
    let command = given_value("rotate-command").map(OsString::from);
    if keep == Some(1) && command.is_some() {
        return Err("--rotate-keep 1 keeps only the current file: --rotate-command needs at least 2".to_owned());
    }
    Ok(Some(RotationRequest { limits, keep: keep.map(|keep| keep as usize), command }))
}
