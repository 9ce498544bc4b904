//! Whether a descriptor is a terminal, and the terminal's size.
use crate::syscall::call;

/// Standard output's descriptor.
pub const STDOUT: i32 = libc::STDOUT_FILENO;
/// Standard error's descriptor.
pub const STDERR: i32 = libc::STDERR_FILENO;

/// True if `fd` is a pipe or socket whose other end has been closed. One system call.
pub fn is_reader_closed(fd: i32) -> bool {
    // Requests no events: errors are always reported.
    let mut poll = libc::pollfd { fd, events: 0, revents: 0 };
    // SAFETY: one live pollfd; a timeout of 0 does not wait.
    let ready = call("poll", || unsafe { libc::poll(&raw mut poll, 1, 0) }.into());
    ready.is_ok_and(|ready| ready > 0) && poll.revents & libc::POLLERR != 0
}

/// True if the descriptor is a terminal.
pub fn is_terminal(fd: i32) -> bool {
    // SAFETY: isatty takes a number; it returns 0 for a closed descriptor.
    call("ioctl", || i64::from(unsafe { libc::isatty(fd) })).is_ok_and(|answer| answer == 1)
}

/// The size of a terminal in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermSize {
    /// Number of lines.
    pub rows: usize,
    /// Number of cells per line.
    pub columns: usize,
}

/// The size of the terminal `fd`; `None` if it is not a terminal or does not know its size.
pub fn size(fd: i32) -> Option<TermSize> {
    // SAFETY: winsize holds integers, for which all bits zero is a value.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: TIOCGWINSZ fills one winsize, which is live and exclusively borrowed.
    call("ioctl", || unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) }.into()).ok()?;
    let size = TermSize { rows: size.ws_row.into(), columns: size.ws_col.into() };
    (size.columns > 0).then_some(size)
}

/// Number of columns of the terminal `fd`, otherwise the value of the environment variable `COLUMNS`, otherwise
/// `None`.
pub fn width(fd: i32) -> Option<usize> {
    let given = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
    size(fd).map(|size| size.columns).or_else(given)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_file_is_no_terminal() {
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        assert!(!is_terminal(file.as_raw_fd()));
        assert!(!is_terminal(-1));
    }

    #[test]
    fn a_pseudo_terminal_is_one_and_has_a_width() {
        let Ok(master) = std::fs::File::options().read(true).write(true).open("/dev/ptmx") else {
            eprintln!("skipped: no /dev/ptmx here");
            return;
        };
        assert!(is_terminal(master.as_raw_fd()));
        // SAFETY: winsize holds integers, for which all bits zero is a value.
        let mut size: libc::winsize = unsafe { std::mem::zeroed() };
        size.ws_col = 97;
        // SAFETY: TIOCSWINSZ reads one live winsize.
        assert_eq!(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }, 0);
        assert_eq!(width(master.as_raw_fd()), Some(97));
    }
}
