//! Which ss is installed: its layout is the one that the users of this machine know.

use sinks::face::ss::Layout;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use sys::Host;

/// Where ss may be besides the folders of PATH, which a user's often lacks.
const FOLDERS: &[&str] = &["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Largest file that is looked into. A larger one is no ss (it has 200 KB), and counts as none.
const SIZE_MAX: u64 = 16 << 20;

/// The first version with a cell of its own for processes. All between it and 7.1 have the layout that is called 6.15
/// here, all before it that of 6.1; the switches of 6.15 came one by one until 6.9.
const SPLIT: (u32, u32) = (6, 7);

/// The layout that `NETWREN_SS_LAYOUT` wants (6.1 or 6.15), else that of the installed ss, else the newest.
pub(super) fn layout() -> Layout {
    match std::env::var_os("NETWREN_SS_LAYOUT") {
        Some(version) if version == "6.1" => Layout::V6_1,
        Some(version) if version == "6.15" => Layout::V6_15,
        _ => find().unwrap_or(Layout::V6_15),
    }
}

/// The layout of the first ss of iproute2 that is found. It is read, not run: whoever sets PATH may choose between two
/// layouts, and nothing else.
fn find() -> Option<Layout> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from));
    let us = sys::fs::stat(Path::new("/proc/self/exe")).ok().map(|stat| (stat.device, stat.inode));
    let mut text = Vec::new();
    for file in folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join("ss")) {
        let Ok(stat) = sys::fs::stat(&file) else { continue };
        // A link to netwren is what asks.
        if Some((stat.device, stat.inode)) == us || stat.size > SIZE_MAX || !stat.is_file() {
            continue;
        }
        // In one read.
        text.reserve(usize::try_from(stat.size).unwrap_or(0) + 1);
        let read = file.to_str().map(|path| Host::live().read_file(path, &mut text));
        if let (Some(Ok(())), Some(layout)) = (read, layout_in(&text)) {
            return Some(layout);
        }
    }
    None
}

/// The layout of the ss whose program this is; None if it is another program.
fn layout_in(program: &[u8]) -> Option<Layout> {
    // The version stands behind this text, among the strings of the program.
    let strings = behind(b"ss utility, iproute2-", program)?;
    // Before 5.6 the version was a day, which is no such number.
    let version = strings.split(|&b| b == 0).find_map(version).unwrap_or((0, 0));
    Some(if version < SPLIT { Layout::V6_1 } else { Layout::V6_15 })
}

/// What follows the first `mark` in `bytes`. It leaps from one last byte of the mark to the next: 10 µs for 200 KB.
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

/// `6.15.0` as its first two numbers; None for any other text.
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
            assert_eq!(layout_in(&program(version)), Some(layout), "{version}");
        }
        assert_eq!(layout_in(b"\0other\0\x36.1.0\0"), None);
        for text in ["", "6.1", "127.0.0.1", "6.x.0", "1.2.3", "66666666666.1.0"] {
            assert_eq!(super::version(text.as_bytes()), None, "{text}");
        }
    }
}
