//! Finds the lines of /proc/net/unix that the kernel wrote, as opposed to parts of a path.
//!
//! The kernel writes a path unescaped (net/unix/af_unix.c, unix_seq_show). A path with a line break in it therefore
//! reads like several lines, and its owner chooses everything after the break: for example a complete line of a socket
//! that does not exist, or of another socket. unix_diag returns the same path with its length. These lengths determine
//! where each line ends, so that every line start is known from the first one on: [`kernel_lines`]. A file without
//! repeated inodes needs no such proof as long as each line is joined to a socket that netlink has: a line that
//! imitates a socket would be a second line of that socket ([`Lines::Plain`]).
use std::collections::{HashMap, HashSet};

use record::rows::Socket;

use crate::backends::proc::unix::parse_proc_unix_line;

/// `UNIX_PATH_MAX` (include/uapi/linux/un.h): maximum bytes of a path.
const PATH_MAX: usize = 108;

/// The note if lines were left out.
pub(crate) const LEFT_OUT: &str = "lines of /proc/net/unix left out: netlink has no such sockets (closed since then, \
                                   or forged by a path with a line break)";

/// Fields of a socket that only /proc/net/unix has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Counts {
    refs: u32,
    flags: u32,
}

/// The names of all unix sockets, as far as they affect the ends of lines.
#[derive(Debug, Default)]
pub(crate) struct SocketNames {
    of: HashMap<u32, SocketName>,
    /// The names of listeners: connections that wait for accept show them, and have no inode.
    listeners: HashSet<Box<[u8]>>,
}

/// The name of the socket with an inode.
#[derive(Debug, PartialEq, Eq)]
enum SocketName {
    /// It has no line break, or is missing.
    Plain,
    /// The name in the form of the file.
    Broken(Box<[u8]>),
    /// Inodes of sockets wrap around at 2^32: two sockets have this one, and not both names are plain.
    Several,
}

impl SocketNames {
    /// Adds a socket from netlink.
    pub(crate) fn add(&mut self, inode: u32, name: Option<&[u8]>, listens: bool) {
        let shown = |name: &[u8]| -> Box<[u8]> { name.iter().map(|&b| if b == 0 { b'@' } else { b }).collect() };
        if let Some(name) = name.filter(|_| listens) {
            self.listeners.insert(shown(name));
        }
        let broken = name.filter(|name| name.contains(&b'\n'));
        let name = broken.map_or(SocketName::Plain, |name| SocketName::Broken(shown(name)));
        let is_plain = name == SocketName::Plain;
        match self.of.get_mut(&inode) {
            None => drop(self.of.insert(inode, name)),
            Some(SocketName::Plain) if is_plain => {}
            Some(known) => *known = SocketName::Several,
        }
    }

    // A line without a path is unambiguous; a line of inode 0 always has the path of a listener.
    fn contains(&self, inode: u32) -> bool {
        self.of.contains_key(&inode)
    }

    // Length of the name at the start of `text`; `None` if it is uncertain.
    fn length(&self, inode: u32, text: &[u8]) -> Option<usize> {
        let to_break = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
        let stands = |name: &[u8]| text.strip_prefix(name).is_some_and(|rest| rest.first().is_none_or(|&b| b == b'\n'));
        if inode != 0 {
            return match self.of.get(&inode)? {
                SocketName::Broken(name) if stands(name) => Some(name.len()),
                SocketName::Plain => Some(to_break),
                SocketName::Broken(_) | SocketName::Several => None,
            };
        }
        let mut broken = self.listeners.iter().filter(|name| name.contains(&b'\n') && stands(name));
        let whole = text.get(..to_break).filter(|name| self.listeners.contains(*name));
        // If two names fit, one of them was made to swallow the line after the other.
        match (broken.next(), broken.next(), whole) {
            (Some(name), None, None) => Some(name.len()),
            (None, _, Some(name)) => Some(name.len()),
            _ => None,
        }
    }
}

/// The fixed columns at the start of a line.
struct LineColumns {
    inode: u32,
    counts: Counts,
    /// Offset of the path, or of the end of the line.
    path_at: usize,
    has_path: bool,
}

/// Parses the columns in the kernel's format: `%pK: %08X %08X %08X %04X %02X %5lu`. `None` for anything else.
fn head(line: &[u8]) -> Option<LineColumns> {
    let mut at = line.iter().position(|&byte| byte == b' ')?;
    line.get(..at)?.strip_suffix(b":")?;
    let mut numbers = [0u32; 5];
    for (number, digits) in numbers.iter_mut().zip([8, 8, 8, 4, 2]) {
        let word = line.get(at..at + 1 + digits)?.strip_prefix(b" ")?;
        *number = u32::try_from(crate::backends::proc::line::hex(word)?).ok()?;
        at += 1 + digits;
    }
    let rest = line.get(at..)?.strip_prefix(b" ")?;
    let blanks = rest.iter().take_while(|&&byte| byte == b' ').count();
    let digits = rest.get(blanks..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if blanks + digits < 5 || (blanks > 0 && blanks + digits > 5) {
        return None;
    }
    let inode = crate::backends::proc::line::decimal(rest.get(blanks..blanks + digits)?)?;
    let end = at + 1 + blanks + digits;
    let has_path = match line.get(end) {
        None => false,
        Some(b' ') => true,
        Some(_) => return None,
    };
    let [refs, _, flags, _, _] = numbers;
    let path_at = end + usize::from(has_path);
    Some(LineColumns { inode: u32::try_from(inode).ok()?, counts: Counts { refs, flags }, path_at, has_path })
}

// Everything after the heading.
fn skip_heading(text: &[u8]) -> &[u8] {
    text.iter().position(|&byte| byte == b'\n').and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

/// Calls `each` with every line that the kernel wrote as one, including line breaks of its path; returns the number of
/// others. These belong to sockets that netlink does not have, or follow a line whose path may continue there.
pub(crate) fn kernel_lines(text: &[u8], names: &SocketNames, each: &mut dyn FnMut(&[u8]) -> bool) -> u64 {
    let (mut rest, mut left_out) = (skip_heading(text), 0);
    // Number of bytes of `rest` that may still be the path of a socket with an unknown name.
    let mut unsure = 0usize;
    while !rest.is_empty() {
        let to_break = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let line = rest.get(..to_break).unwrap_or_default();
        let head = head(line);
        let known_end = head.as_ref().and_then(|head| {
            if !head.has_path {
                return names.contains(head.inode).then_some(to_break);
            }
            let path = rest.get(head.path_at..).unwrap_or_default();
            names.length(head.inode, path).map(|length| head.path_at + length)
        });
        let mut end = to_break;
        match known_end.filter(|_| unsure == 0) {
            Some(whole) => {
                end = whole;
                if !each(rest.get(..end).unwrap_or_default()) {
                    return left_out;
                }
            }
            None => {
                left_out += 1;
                // If the kernel wrote this line, it extends up to here.
                let unknown = head.filter(|head| head.has_path).map_or(0, |head| head.path_at + PATH_MAX);
                unsure = unsure.max(known_end.unwrap_or(unknown));
            }
        }
        unsure = unsure.saturating_sub(end + 1);
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    left_out
}

/// True if a line has a path, so that the text after it may be part of the path.
pub(crate) fn has_paths(text: &[u8]) -> bool {
    skip_heading(text)
        .split(|&byte| byte == b'\n')
        .any(|line| !line.is_empty() && head(line).is_none_or(|head| head.has_path))
}

/// Reference counts and flags by inode, and lines of connections that wait for accept: netlink has neither.
#[derive(Debug, Default)]
pub(crate) struct UnixCounts {
    by_inode: HashMap<u32, Counts>,
    waiting: Vec<Box<[u8]>>,
    /// Number of lines without a socket in netlink.
    pub(crate) left_out: u64,
}

/// How far a text of /proc/net/unix can be trusted on its own.
#[derive(Debug)]
pub(crate) enum Lines {
    /// Each inode occurs once, and 0 never: after a join by inode no line can be a forged one.
    Plain(UnixCounts),
    /// The kernel's lines can only be identified with names from netlink.
    Ambiguous,
}

impl UnixCounts {
    /// Reads the lines without checking them against names.
    pub(crate) fn read_unchecked(text: &[u8]) -> Lines {
        let mut counts = UnixCounts::default();
        for line in skip_heading(text).split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            match head(line) {
                Some(head) if head.inode != 0 && counts.by_inode.insert(head.inode, head.counts).is_none() => {}
                _ => return Lines::Ambiguous,
            }
        }
        Lines::Plain(counts)
    }

    /// Reads only the lines that the kernel wrote.
    pub(crate) fn count_genuine(text: &[u8], names: &SocketNames) -> UnixCounts {
        let mut counts = UnixCounts::default();
        let left_out = kernel_lines(text, names, &mut |line| {
            match head(line.split(|&byte| byte == b'\n').next().unwrap_or_default()) {
                Some(head) if head.inode == 0 => counts.waiting.push(line.into()),
                Some(head) => drop(counts.by_inode.insert(head.inode, head.counts)),
                None => {}
            }
            true
        });
        UnixCounts { left_out, ..counts }
    }

    // The file's data about the socket with this inode.
    fn get(&self, inode: u32) -> Option<Counts> {
        self.by_inode.get(&inode).copied()
    }

    /// Fills in the fields of this socket that netlink lacks.
    pub(crate) fn complete(&self, row: &mut Socket<'_>) {
        if let (Some(Counts { refs, flags }), Some(part)) = (self.get(row.inode), &mut row.unix) {
            (part.refs, part.flags) = (Some(refs), Some(flags));
        }
    }

    /// Lines of connections that wait for accept.
    pub(crate) fn unaccepted_lines(&self) -> &[Box<[u8]>] {
        &self.waiting
    }
}

/// Reads any text of the file with any names, for the fuzzer: it must neither panic nor loop forever.
pub(crate) fn fuzz_lines(text: &[u8]) {
    let mut names = SocketNames::default();
    names.add(1, Some(b"a\nb"), true);
    names.add(2, text.get(..PATH_MAX.min(text.len())), true);
    let mut bytes = 0;
    let left_out = kernel_lines(text, &names, &mut |line| {
        bytes += line.len();
        let _ = parse_proc_unix_line(line, 1);
        true
    });
    assert!(bytes as u64 + left_out <= text.len() as u64 + 1);
    let _ = (UnixCounts::read_unchecked(text), UnixCounts::count_genuine(text, &names), has_paths(text));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    const HEADING: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n";

    fn line(inode: u32, path: &str) -> String {
        let blank = if path.is_empty() { "" } else { " " };
        format!("0000000055898{inode:03x}: 00000002 00000000 00010000 0001 01 {inode:5}{blank}{path}\n")
    }

    fn names(of: &[(u32, &str)]) -> SocketNames {
        let mut names = SocketNames::default();
        of.iter().for_each(|(inode, name)| {
            names.add(*inode, (!name.is_empty()).then_some(name.as_bytes()), true);
        });
        names
    }

    fn lines(text: &str, names: &SocketNames) -> (Vec<String>, u64) {
        let mut found = Vec::new();
        let left_out = kernel_lines(text.as_bytes(), names, &mut |line| {
            found.push(String::from_utf8(line.to_vec()).unwrap());
            true
        });
        (found, left_out)
    }

    #[test]
    fn a_path_with_a_line_break_is_one_line() {
        let forged = line(7, "/run/root");
        let hostile = format!("/tmp/x\n{}", forged.trim_end());
        let text = [HEADING.to_owned(), line(7, "/run/root"), line(9, &hostile), line(11, "")].concat();
        assert!(matches!(UnixCounts::read_unchecked(text.as_bytes()), Lines::Ambiguous));
        let names = names(&[(7, "/run/root"), (9, &hostile), (11, "")]);
        let (found, left_out) = lines(&text, &names);
        let whole = |inode, path| line(inode, path).trim_end().to_owned();
        assert_eq!(found, [whole(7, "/run/root"), whole(9, &hostile), whole(11, "")]);
        assert_eq!(left_out, 0);
        let row = parse_proc_unix_line(found[1].as_bytes(), 1).unwrap();
        assert_eq!(row.unix.unwrap().path, Some(hostile.as_bytes()));
    }

    #[test]
    fn connections_that_wait_for_accept_show_the_listeners_name() {
        let hostile = format!("/tmp/x\n{}", line(0, "/run/root").trim_end());
        let text = [HEADING.to_owned(), line(9, &hostile), line(0, &hostile), line(0, "/run/root")].concat();
        let names = names(&[(7, "/run/root"), (9, &hostile)]);
        let counts = UnixCounts::count_genuine(text.as_bytes(), &names);
        assert_eq!((counts.unaccepted_lines().len(), counts.left_out), (2, 0));
        assert!(counts.get(9).is_some() && counts.get(7).is_none());
    }

    #[test]
    fn a_socket_that_netlink_does_not_have_costs_what_its_path_may_reach() {
        let text = [HEADING.to_owned(), line(5, "/gone"), line(7, "/a"), line(8, "/b"), line(9, "/c")].concat();
        let names = names(&[(7, "/a"), (8, "/b"), (9, "/c")]);
        let (found, left_out) = lines(&text, &names);
        assert_eq!((found.len(), left_out), (1, 3), "{found:?}");
        // A line without a path ends at its line break.
        let text = [HEADING.to_owned(), line(5, ""), line(7, "/a")].concat();
        assert_eq!(lines(&text, &names).0.len(), 1);
    }

    #[test]
    fn two_sockets_with_one_inode_prove_nothing() {
        let hostile = format!("/x\n{}", line(7, "/run/root").trim_end());
        let text = [HEADING.to_owned(), line(9, &hostile), line(9, "/y")].concat();
        for several in [[(9, &*hostile), (9, "/y")], [(9, "/y"), (9, &*hostile)]] {
            assert_eq!(lines(&text, &names(&several)).0, [] as [String; 0]);
        }
        let plain = [HEADING.to_owned(), line(9, "/z"), line(9, "/y")].concat();
        assert_eq!(lines(&plain, &names(&[(9, "/z"), (9, "/y")])).0.len(), 2);
    }

    #[test]
    fn an_ordinary_file_needs_no_names() {
        let text = [HEADING.to_owned(), line(5, "@x"), line(7, ""), line(123_456, "/a b")].concat();
        let Lines::Plain(counts) = UnixCounts::read_unchecked(text.as_bytes()) else { panic!("it is plain") };
        assert_eq!(counts.get(123_456), Some(Counts { refs: 2, flags: 1 << 16 }));
        assert!(has_paths(text.as_bytes()) && !has_paths([HEADING.to_owned(), line(7, "")].concat().as_bytes()));
        for odd in ["x\n".to_owned(), line(0, "/a"), line(5, ""), "0: 2 0 0 0001 01 7\n".to_owned()] {
            let text = [HEADING.to_owned(), line(5, ""), odd.clone()].concat();
            assert!(matches!(UnixCounts::read_unchecked(text.as_bytes()), Lines::Ambiguous), "{odd}");
        }
    }

    proptest! {
        /// For any paths, the lines found are the sockets' lines, in order.
        #[test]
        fn every_line_is_found(paths in prop::collection::vec("[a/\n @0-9: \u{1}]{0,100}", 1..20),
            forge in any::<bool>()) {
            let mut paths = paths;
            if forge {
                paths.push(format!("/x\n{}", line(1, "/y").trim_end()));
                paths.push(format!("/x\n{}", line(3, "/y")));
            }
            let known: Vec<(u32, &str)> = (1..).zip(paths.iter().map(String::as_str)).collect();
            let written: Vec<String> = known.iter().map(|(inode, path)| line(*inode, path)).collect();
            let text = format!("{HEADING}{}", written.concat());
            let (found, left_out) = lines(&text, &names(&known));
            let expected: Vec<&str> = written.iter().map(|line| line.strip_suffix('\n').unwrap()).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(left_out, 0);
        }

        #[test]
        fn any_text_ends(text in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), Just(b'0'), any::<u8>()],
            0..300)) {
            fuzz_lines(&text);
        }
    }
}
