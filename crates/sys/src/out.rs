//! Unbuffered writing to a descriptor, completely or with an error. Sinks do the buffering.
use std::fmt;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::errno::{Errno, SysError};
use crate::fault;
use crate::fd::Fd;
use crate::syscall::{call, length};

/// The reason why bytes could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutError {
    /// The reader closed its end (`| head`). This is not a failure: the run ends successfully.
    Closed,
    /// Any other error, for example a full disk.
    Failed(SysError),
}

impl fmt::Display for OutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutError::Closed => f.write_str("the reader of the output has closed it"),
            OutError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OutError {}

/// True if standard output was closed when the program started.
static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// Runs before `main`, and before Rust's own startup code, which opens /dev/null in place of a closed descriptor 0, 1
// or 2. After that, output would vanish without an error.
#[used]
#[unsafe(link_section = ".init_array")]
static CHECK_STDOUT: extern "C" fn() = check_stdout;

extern "C" fn check_stdout() {
    // SAFETY: fcntl with F_GETFD takes two integers and changes nothing; an atomic does not need Rust's startup code.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STDOUT_WAS_CLOSED.store(flags < 0, Relaxed);
}

/// An unbuffered output.
#[derive(Debug)]
pub struct Out {
    raw: RawFd,
    // Keeps a file of ours open; standard output must not be closed here.
    _owned: Option<Fd>,
    name: Box<str>,
}

impl Out {
    /// Standard output. If it was closed when the program started, every write fails with EBADF.
    pub fn stdout() -> Out {
        Out { raw: libc::STDOUT_FILENO, _owned: None, name: "standard output".into() }
    }

    /// Standard error.
    pub fn stderr() -> Out {
        Out { raw: libc::STDERR_FILENO, _owned: None, name: "standard error".into() }
    }

    /// An open descriptor, called `name` in errors.
    pub fn from_fd(fd: Fd, name: &str) -> Out {
        Out { raw: fd.raw(), _owned: Some(fd), name: name.into() }
    }

    /// Its name in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes all of `bytes`; continues after interruptions and short writes, and waits for a non-blocking descriptor.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), OutError> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                // write(2) never returns 0 for a non-empty buffer on the files that we write to; if it did, this would
                // loop forever.
                Ok(0) => return Err(self.write_error(Errno::IO)),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_writable()?,
                Err(Errno::PIPE) => return Err(OutError::Closed),
                Err(errno) => return Err(self.write_error(errno)),
            }
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.raw == libc::STDOUT_FILENO && self._owned.is_none() && STDOUT_WAS_CLOSED.load(Relaxed) {
            return Err(Errno::BADF);
        }
        let most = fault::shorten("write", bytes.len());
        // SAFETY: `bytes` is borrowed and at least `most` long.
        let written = call("write", || unsafe { libc::write(self.raw, bytes.as_ptr().cast(), most) } as i64)?;
        Ok(length(written, most))
    }

    fn wait_writable(&self) -> Result<(), OutError> {
        let mut poll = libc::pollfd { fd: self.raw, events: libc::POLLOUT, revents: 0 };
        // SAFETY: `poll` is one live pollfd.
        match call("poll", || unsafe { libc::poll(&raw mut poll, 1, -1) }.into()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(self.write_error(errno)),
        }
    }

    fn write_error(&self, errno: Errno) -> OutError {
        OutError::Failed(SysError { call: "write", object: self.name.clone(), errno })
    }
}

/// Creates a pipe: (reading end, writing end). For tests and for waking a waiting thread.
pub fn pipe() -> Result<(Fd, Fd), SysError> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors.
    call("pipe2", || unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())
        .map_err(|errno| SysError::new("pipe2", "pipe", errno))?;
    let [read, write] = ends;
    // SAFETY: pipe2 just returned both descriptors to us alone.
    Ok(unsafe { (Fd::take(read.into()), Fd::take(write.into())) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::fault::{Fault, arm, disarm_all};
    use crate::fs;
    use std::path::Path;

    #[test]
    fn a_closed_pipe_is_distinguished() {
        let (reader, writer) = pipe().unwrap();
        let mut out = Out::from_fd(writer, "pipe");
        out.write_all(b"hello").unwrap();
        let mut got = [0; 16];
        assert_eq!(fs::read(&reader, &mut got).unwrap(), 5);
        drop(reader);
        assert_eq!(out.write_all(b"more"), Err(OutError::Closed));
    }

    fn writable(path: &Path) -> Out {
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).open(path).unwrap();
        Out::from_fd(Fd::from(std::os::fd::OwnedFd::from(file)), &path.display().to_string())
    }

    #[test]
    fn a_full_disk_is_reported() {
        let mut out = writable(Path::new("/dev/full"));
        let error = out.write_all(b"x").unwrap_err();
        assert_eq!(error.to_string(), "cannot write to /dev/full: no space left on device");
    }

    #[test]
    fn a_descriptor_that_does_not_block_is_waited_for() {
        let (writer, mut reader) = std::os::unix::net::UnixStream::pair().unwrap();
        writer.set_nonblocking(true).unwrap();
        let text: Vec<u8> = (0..=255).cycle().take(2_000_000).collect();
        let mut out = Out::from_fd(Fd::from(std::os::fd::OwnedFd::from(writer)), "socket");
        let got = std::thread::spawn(move || {
            let mut got = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut got).unwrap();
            got
        });
        out.write_all(&text).unwrap();
        drop(out);
        assert!(got.join().unwrap() == text);
    }

    #[test]
    fn short_and_interrupted_writes_arrive_whole() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("out");
        let text: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let mut out = writable(&path);
        arm("write", 2, 2, Fault::Fails(Errno::INTR));
        arm("write", 0, 20, Fault::Short(3));
        let written = out.write_all(&text);
        disarm_all();
        written.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), text);
    }
}
