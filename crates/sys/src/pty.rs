//! Pseudo-terminals for tests: a program gets a terminal of a given size, and the test reads its output. The product
//! never uses this.
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::errno::SysError;
use crate::syscall::call;
use crate::term::TermSize;

/// The terminal emulator's end of a pseudo-terminal.
#[derive(Debug)]
pub struct Pty {
    master: File,
}

impl Pty {
    /// Opens a pseudo-terminal of this size. Fails if /dev/ptmx does not exist.
    pub fn open(size: TermSize) -> io::Result<Pty> {
        let mut options = File::options();
        let master = options.read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx")?;
        let unlocked: libc::c_int = 0;
        // SAFETY: TIOCSPTLCK reads one live int.
        let asked = || unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked) }.into();
        call("ioctl", asked).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        let pty = Pty { master };
        pty.resize(size).map_err(io::Error::other)?;
        Ok(pty)
    }

    /// Reading it returns the program's output; bytes written to it are typed input.
    pub fn master(&self) -> &File {
        &self.master
    }

    /// Changes the terminal's size; its foreground program gets SIGWINCH.
    pub fn resize(&self, size: TermSize) -> Result<(), SysError> {
        let cells = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        // SAFETY: winsize holds integers, for which all bits zero is a value.
        let mut wanted: libc::winsize = unsafe { std::mem::zeroed() };
        (wanted.ws_row, wanted.ws_col) = (cells(size.rows), cells(size.columns));
        // SAFETY: TIOCSWINSZ reads one live winsize.
        let set = || unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const wanted) }.into();
        call("ioctl", set).map(drop).map_err(|errno| SysError::new("ioctl", "size of a terminal", errno))
    }

    /// Makes `command` run in a session of its own with this terminal on descriptors 0, 1 and 2.
    pub fn attach(&self, command: &mut Command) -> io::Result<()> {
        let mut number: libc::c_int = 0;
        // SAFETY: TIOCGPTN fills one live int.
        let asked = || unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCGPTN, &raw mut number) }.into();
        call("ioctl", asked).map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        let mut options = File::options();
        let terminal = options.read(true).write(true).custom_flags(libc::O_NOCTTY);
        let terminal = terminal.open(format!("/dev/pts/{number}"))?;
        let own = || terminal.try_clone().map(Stdio::from);
        command.stdin(own()?).stdout(own()?).stderr(own()?);
        let become_leader = || {
            // SAFETY: setsid has no arguments; TIOCSCTTY takes an integer; signal restores a default. All three are
            // async-signal-safe.
            let ok = unsafe {
                // The test runner may have been started with these signals ignored, as nohup(1) and background jobs
                // do.
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                libc::setsid() >= 0 && libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) >= 0
            };
            if ok { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: only async-signal-safe calls are allowed between fork and exec: see the closure.
        unsafe { command.pre_exec(become_leader) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::io::Read;

    #[test]
    fn a_program_sees_a_terminal_of_that_size() {
        let Ok(pty) = Pty::open(TermSize { rows: 30, columns: 97 }) else {
            eprintln!("skipped: no /dev/ptmx here");
            return;
        };
        let mut command = Command::new("sh");
        command.args(["-c", "stty size; tty >/dev/null && echo is one"]);
        pty.attach(&mut command).unwrap();
        let mut child = command.spawn().unwrap();
        // The command has copies of the other end, which would keep it open.
        drop(command);
        let (mut said, mut bytes) = (Vec::new(), [0; 256]);
        // EIO: the last program has closed the other end.
        while let Ok(n) = pty.master().read(&mut bytes) {
            said.extend_from_slice(&bytes[..n]);
        }
        child.wait().unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), "30 97\r\nis one\r\n");
    }
}
