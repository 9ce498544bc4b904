//! Pseudo-terminals, for tests: a program sees a terminal of a given size, and its bytes are ours. The program never
//! calls this.
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::errno::SysError;
use crate::syscall::call;
use crate::term::TermSize;

/// The end of a pseudo-terminal that a terminal emulator has.
#[derive(Debug)]
pub struct Pty {
    master: File,
}

impl Pty {
    /// A new one of that size. Fails where there is no /dev/ptmx.
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

    /// What the program writes can be read from it, what is written to it is typed.
    pub fn master(&self) -> &File {
        &self.master
    }

    /// Gives the terminal another size; the program in its foreground gets SIGWINCH.
    pub fn resize(&self, size: TermSize) -> Result<(), SysError> {
        let cells = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        // SAFETY: winsize holds integers, for which all bits zero is a value.
        let mut wanted: libc::winsize = unsafe { std::mem::zeroed() };
        (wanted.ws_row, wanted.ws_col) = (cells(size.rows), cells(size.columns));
        // SAFETY: TIOCSWINSZ reads one live winsize.
        let set = || unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const wanted) }.into();
        call("ioctl", set).map(drop).map_err(|errno| SysError::new("ioctl", "size of a terminal", errno))
    }

    /// Makes `command` run in a session of its own whose terminal this is, on descriptors 0, 1 and 2.
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
            // SAFETY: setsid takes nothing; TIOCSCTTY takes an integer; signal sets a default. All three are
            // async-signal-safe.
            let ok = unsafe {
                // Whoever runs the tests may ignore them, as nohup(1) and background jobs do.
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                libc::setsid() >= 0 && libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) >= 0
            };
            if ok { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec only async-signal-safe things may happen: see the closure.
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
        // The command holds copies of the other end, which would keep it open.
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
