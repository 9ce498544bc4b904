//! Which ss is installed: its layout is the one that the users of this machine know.

use sinks::face::ss::Layout;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// Where ss may be besides the folders of PATH, which a user's often lacks.
const FOLDERS: &[&str] = &["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Largest file that is looked into. A larger one is no ss (it has 200 KB), and counts as none.
const SIZE_MAX: u64 = 16 << 20;

/// What ss of iproute2 has among its strings, before its version.
const MARK: &[u8] = b"ss utility, iproute2-";

/// Bytes that are read at once, and what is kept of them: a text that is cut, whose rest comes with the next ones.
const WINDOW: usize = 16 << 10;
const KEPT: usize = 64;

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
    for file in folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join("ss")) {
        let Ok(stat) = sys::fs::stat(&file) else { continue };
        // A link to netwren is what asks.
        if Some((stat.device, stat.inode)) == us || stat.size > SIZE_MAX || !stat.is_file() {
            continue;
        }
        if let Some(layout) = sys::infile::open_regular(&file).ok().and_then(|file| layout_in(file.take(SIZE_MAX))) {
            return Some(layout);
        }
    }
    None
}

/// The layout of the ss whose program this is; None if it is another program, or cannot be read.
fn layout_in(mut program: impl Read) -> Option<Layout> {
    // A buffer for all of it would cost more than reading it: memory that is new is paid by the page.
    let mut window = [0; WINDOW];
    let (mut kept, mut is_ss) = (0, false);
    loop {
        let read = program.read(window.get_mut(kept..)?).ok()?;
        let filled = kept + read;
        let bytes = window.get(..filled)?;
        let strings = if is_ss { Some(bytes) } else { behind(MARK, bytes) };
        is_ss |= strings.is_some();
        // The version stands behind the mark, among the strings of the program.
        let whole = strings.and_then(|strings| strings.get(..strings.iter().rposition(|&b| b == 0)?));
        if let Some(version) = whole.and_then(|whole| whole.split(|&b| b == 0).find_map(version)) {
            return Some(if version < SPLIT { Layout::V6_1 } else { Layout::V6_15 });
        }
        if read == 0 {
            // Before 5.6 the version was a day, which is no such number.
            return is_ss.then_some(Layout::V6_1);
        }
        kept = filled.min(KEPT);
        window.copy_within(filled - kept..filled, 0);
    }
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
            assert_eq!(layout_in(&*program(version)), Some(layout), "{version}");
            // Wherever a window ends.
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
