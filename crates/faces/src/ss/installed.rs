//! Finds the installed ss, because users of this machine know its layout.

use crate::ss::output::Layout;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// Folders to search after PATH; a user's PATH often lacks the sbin folders.
const FOLDERS: &[&str] = &["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Largest file that is searched. ss has 200 KB, so a larger file is a different program.
///
/// Bound: bytes of an installed `ss` whose version netwren looks up. Beyond: the file is ignored. By: root.
const SIZE_MAX: u64 = 16 << 20;

/// The string in iproute2's ss that precedes its version.
const MARK: &[u8] = b"ss utility, iproute2-";

/// Bytes per read, and bytes that are carried over to the next read in case a string crosses the boundary.
const WINDOW: usize = 16 << 10;
const KEPT: usize = 64;

/// The first version with a separate cell for processes. Versions from here to 7.1 have the layout called 6.15 here,
/// older versions have that from 6.1. The switches of 6.15 were added one at a time until 6.9.
const SPLIT: (u32, u32) = (6, 7);

/// The layout requested by `NETWREN_SS_LAYOUT` (6.1 or 6.15), else the layout of the installed ss, else the newest.
pub(super) fn layout() -> Layout {
    match std::env::var_os("NETWREN_SS_LAYOUT") {
        Some(version) if version == "6.1" => Layout::V6_1,
        Some(version) if version == "6.15" => Layout::V6_15,
        _ => find().unwrap_or(Layout::V6_15),
    }
}

/// Returns the layout of the first ss from iproute2 that it finds. The file is read, never run: a caller who controls
/// PATH can only choose between two layouts.
fn find() -> Option<Layout> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from));
    let us = sys::fs::stat(Path::new("/proc/self/exe")).ok().map(|stat| (stat.device, stat.inode));
    for file in folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join("ss")) {
        let Ok(stat) = sys::fs::stat(&file) else { continue };
        // Skip links to netwren itself.
        if Some((stat.device, stat.inode)) == us || stat.size > SIZE_MAX || !stat.is_file() {
            continue;
        }
        if let Some(layout) = sys::infile::open_regular(&file).ok().and_then(|file| layout_in(file.take(SIZE_MAX))) {
            return Some(layout);
        }
    }
    None
}

/// The layout of the ss in `program`; None if it is a different program or unreadable.
fn layout_in(mut program: impl Read) -> Option<Layout> {
    // A fixed window is cheaper than one buffer for the whole file, whose fresh pages would cost more than the reads.
    let mut window = [0; WINDOW];
    let (mut kept, mut is_ss) = (0, false);
    loop {
        let read = program.read(window.get_mut(kept..)?).ok()?;
        let filled = kept + read;
        let bytes = window.get(..filled)?;
        let strings = if is_ss { Some(bytes) } else { behind(MARK, bytes) };
        is_ss |= strings.is_some();
        // The version follows the mark among the program's strings.
        let whole = strings.and_then(|strings| strings.get(..strings.iter().rposition(|&b| b == 0)?));
        if let Some(version) = whole.and_then(|whole| whole.split(|&b| b == 0).find_map(version)) {
            return Some(if version < SPLIT { Layout::V6_1 } else { Layout::V6_15 });
        }
        if read == 0 {
            // Before 5.6 the version was a date, which does not parse as a version number.
            return is_ss.then_some(Layout::V6_1);
        }
        kept = filled.min(KEPT);
        window.copy_within(filled - kept..filled, 0);
    }
}

/// The bytes after the first `mark` in `bytes`. The search jumps between occurrences of the mark's last byte: 10 µs
/// for 200 KB.
fn behind<'b>(mark: &[u8], bytes: &'b [u8]) -> Option<&'b [u8]> {
    let (mut rest, mut at) = (bytes, 0);
    loop {
        match rest.skip_until(*mark.last()?) {
            Ok(passed) if passed > 0 => at += passed,
            _ => return None,
        }
        let (before, after) = bytes.split_at_checked(at)?;
        if before.ends_with(mark) {
            return Some(after);
        }
    }
}

/// Parses `6.15.0` to its first two numbers; None for any other text.
fn version(text: &[u8]) -> Option<(u32, u32)> {
    if text.len() > 12 {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let mut numbers = text.split('.').map(|part| part.parse::<u32>().ok());
    let version = (numbers.next()??, numbers.next()??);
    let third = numbers.next()??;
    (numbers.next().is_none() && version.0 >= 4 && third < 1_000).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_10_layouts_by_version() {
        let program = |version: &str| [b"\x7fELF\0ss utility, iproute2-%s\n\0x\0", version.as_bytes(), b"\0y"].concat();
        for (version, layout) in [
            ("ss200127", Layout::V6_1),
            ("5.10.0", Layout::V6_1),
            ("6.1.0", Layout::V6_1),
            ("6.6.0", Layout::V6_1),
            ("6.7.0", Layout::V6_15),
            ("6.15.0", Layout::V6_15),
            ("7.1.0", Layout::V6_15),
        ] {
            assert_eq!(layout_in(&*program(version)), Some(layout), "{version}");
            // The mark is found wherever a window ends.
            for before in (WINDOW - 60..WINDOW + 10).chain([3 * WINDOW]) {
                let program = [&vec![b'x'; before], &*program(version)].concat();
                assert_eq!(layout_in(&*program), Some(layout), "{version} behind {before} bytes");
            }
        }
        assert_eq!(layout_in(&b"\0other\0\x36.1.0\0"[..]), None);
        for text in ["", "6.1", "127.0.0.1", "6.x.0", "1.2.3", "66666666666.1.0"] {
            assert_eq!(super::version(text.as_bytes()), None, "{text}");
        }
    }
}
