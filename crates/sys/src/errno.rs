//! Error numbers with their messages, and the error of one system call.
//!
//! This module does not know what the caller wanted; the caller adds the next step for the user.
use std::fmt;

/// An error number from the kernel (positive), or one of our own (negative).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Errno(pub i32);

impl Errno {
    /// Operation not permitted: a capability is missing, or seccomp denied the call.
    pub const PERM: Errno = Errno(libc::EPERM);
    /// The file does not exist; for sock_diag: the handler does not exist.
    pub const NOENT: Errno = Errno(libc::ENOENT);
    /// The process does not exist.
    pub const SRCH: Errno = Errno(libc::ESRCH);
    /// Interrupted by a signal.
    pub const INTR: Errno = Errno(libc::EINTR);
    /// Input/output error.
    pub const IO: Errno = Errno(libc::EIO);
    /// Bad file descriptor.
    pub const BADF: Errno = Errno(libc::EBADF);
    /// Try again.
    pub const AGAIN: Errno = Errno(libc::EAGAIN);
    /// The operation timed out.
    pub const TIMEDOUT: Errno = Errno(libc::ETIMEDOUT);
    /// Out of memory.
    pub const NOMEM: Errno = Errno(libc::ENOMEM);
    /// Permission denied.
    pub const ACCES: Errno = Errno(libc::EACCES);
    /// Busy.
    pub const BUSY: Errno = Errno(libc::EBUSY);
    /// It exists already.
    pub const EXIST: Errno = Errno(libc::EEXIST);
    /// The device does not exist.
    pub const NODEV: Errno = Errno(libc::ENODEV);
    /// The path is not a directory.
    pub const NOTDIR: Errno = Errno(libc::ENOTDIR);
    /// Is a directory.
    pub const ISDIR: Errno = Errno(libc::EISDIR);
    /// Invalid argument.
    pub const INVAL: Errno = Errno(libc::EINVAL);
    /// This process has too many open files.
    pub const MFILE: Errno = Errno(libc::EMFILE);
    /// The file is not a terminal.
    pub const NOTTY: Errno = Errno(libc::ENOTTY);
    /// File larger than a limit.
    pub const FBIG: Errno = Errno(libc::EFBIG);
    /// The device has no space left.
    pub const NOSPC: Errno = Errno(libc::ENOSPC);
    /// Broken pipe: the reader closed its end.
    pub const PIPE: Errno = Errno(libc::EPIPE);
    /// Name too long.
    pub const NAMETOOLONG: Errno = Errno(libc::ENAMETOOLONG);
    /// The kernel has no such system call.
    pub const NOSYS: Errno = Errno(libc::ENOSYS);
    /// Message longer than the buffer.
    pub const MSGSIZE: Errno = Errno(libc::EMSGSIZE);
    /// Protocol not built into this kernel.
    pub const PROTONOSUPPORT: Errno = Errno(libc::EPROTONOSUPPORT);
    /// Operation not supported.
    pub const OPNOTSUPP: Errno = Errno(libc::EOPNOTSUPP);
    /// Address family not built into this kernel.
    pub const AFNOSUPPORT: Errno = Errno(libc::EAFNOSUPPORT);
    /// The kernel has no such type of socket.
    pub const SOCKTNOSUPPORT: Errno = Errno(libc::ESOCKTNOSUPPORT);
    /// Messages were lost because a socket buffer was full.
    pub const NOBUFS: Errno = Errno(libc::ENOBUFS);
    /// Too many symbolic links; with O_NOFOLLOW: the path is a symbolic link.
    pub const LOOP: Errno = Errno(libc::ELOOP);
    /// The device or address does not exist; for a pipe: it has no reader.
    pub const NXIO: Errno = Errno(libc::ENXIO);
    /// Connection refused.
    pub const CONNREFUSED: Errno = Errno(libc::ECONNREFUSED);

    /// Our own: a replay requested something that the recording does not contain.
    pub const NOT_RECORDED: Errno = Errno(-1);
    /// Our own: the recording ends here because the file is truncated or corrupt.
    pub const RECORDING_BROKEN: Errno = Errno(-2);

    /// The error number of the last failed libc call.
    pub fn last_error() -> Errno {
        Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// The text of strerror(3), as other tools print it.
    pub fn strerror(self) -> String {
        let mut text = std::io::Error::from_raw_os_error(self.0).to_string();
        let end = text.find(" (os error ").unwrap_or(text.len());
        text.truncate(end);
        text
    }

    /// True if the cause is a missing right (EPERM, EACCES).
    pub fn is_denied(self) -> bool {
        self == Errno::PERM || self == Errno::ACCES
    }

    /// True if the kernel does not have the requested feature: a file, a family, a protocol, a system call.
    pub fn is_unsupported(self) -> bool {
        const UNSUPPORTED: [Errno; 5] =
            [Errno::NOENT, Errno::OPNOTSUPP, Errno::PROTONOSUPPORT, Errno::AFNOSUPPORT, Errno::NOSYS];
        UNSUPPORTED.contains(&self)
    }

    /// True if the object does not exist or no longer exists: ENOENT, ESRCH, ENODEV.
    pub fn is_missing_object(self) -> bool {
        self == Errno::NOENT || self == Errno::SRCH || self == Errno::NODEV
    }
}

/// The text of strerror(3) with a small first letter.
impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Errno::NOT_RECORDED => f.write_str("not in the recording"),
            Errno::RECORDING_BROKEN => f.write_str("the recording breaks off here"),
            _ => {
                let text = self.strerror();
                let mut chars = text.chars();
                chars.next().map_or(Ok(()), |first| write!(f, "{}{}", first.to_ascii_lowercase(), chars.as_str()))
            }
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

/// A failed system call: its name, its object and the cause.
///
/// Displayed as in ``cannot open /proc/net/tcp: permission denied``.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysError {
    /// Name of the system call (`openat`), or of our own step (`replay`).
    pub call: &'static str,
    /// The object of the call, escaped for display.
    pub object: Box<str>,
    /// The cause.
    pub errno: Errno,
}

impl SysError {
    /// Creates an error; `object` must already be safe to display.
    pub fn new(call: &'static str, object: impl Into<Box<str>>, errno: Errno) -> SysError {
        SysError { call, object: object.into(), errno }
    }

    /// Creates an error for an object named by outside bytes (file names): control bytes and invalid UTF-8 are
    /// escaped.
    pub fn on_bytes(call: &'static str, object: &[u8], errno: Errno) -> SysError {
        SysError { call, object: escape_bytes(object), errno }
    }

    // The verb that a reader expects for a system call.
    fn verb(&self) -> &'static str {
        match self.call {
            "openat" | "socket" => "open",
            "getdents64" => "list",
            "read" | "pread64" | "readlinkat" | "capget" => "read",
            "fstatat" | "fstat" => "look at",
            "sendmsg" | "sendto" => "send to",
            "recvmsg" => "receive from",
            "write" => "write to",
            "setns" => "enter",
            "unshare" => "leave the shared",
            "setsockopt" => "set an option of",
            "getsockname" => "ask for the address of",
            "setrlimit" | "capset" => "change",
            "seccomp" | "rt_sigaction" => "install",
            "eventfd2" | "pipe2" | "timerfd_create" => "make",
            "ppoll" => "wait for",
            "flock" => "lock",
            "bind" => "bind to",
            "connect" => "connect to",
            "listen" => "listen on",
            "mmap" => "map",
            "poll" => "wait for",
            "bpf_map_create" => "create",
            "bpf_map_lookup" | "bpf_map_lookup_batch" => "look into",
            "bpf_map_update" => "write to",
            "bpf_map_delete" => "delete from",
            "bpf_map_freeze" => "freeze",
            "bpf_prog_load" | "bpf_btf_load" => "load",
            "bpf_prog_run" => "run",
            "bpf_prog_next_id" => "read",
            "bpf_raw_tracepoint_open" | "bpf_link_create" => "attach",
            "bpf_iter_create" => "start",
            other => other,
        }
    }
}

impl fmt::Display for SysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.verb(), self.object, self.errno)
    }
}

impl std::error::Error for SysError {}

/// The kernel's text for an error, or std's.
pub fn io_error_text(error: &std::io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |errno| Errno(errno).to_string())
}

/// Escapes outside bytes so that they cannot manipulate a terminal: `\n`, `\u{..}` and `\xNN` are spelled out.
pub fn escape_bytes(bytes: &[u8]) -> Box<str> {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || is_bidi(c) {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.into()
}

// Characters that reorder the text around them.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn errors_have_the_words_of_the_c_library() {
        assert_eq!(Errno::PERM.strerror(), "Operation not permitted");
        assert_eq!(Errno::PERM.to_string(), "operation not permitted");
        assert_eq!(Errno(99_999).to_string(), "unknown error 99999");
        assert_eq!(Errno::NOT_RECORDED.to_string(), "not in the recording");
        assert_eq!(format!("{:?}", Errno::ACCES), "Errno(13: permission denied)");
    }

    #[test]
    fn an_error_reads_like_a_sentence() {
        let error = SysError::new("openat", "/proc/net/tcp", Errno::ACCES);
        assert_eq!(error.to_string(), "cannot open /proc/net/tcp: permission denied");
    }

    #[test]
    fn hostile_names_are_escaped() {
        assert_eq!(&*escape_bytes(b"a\n\x1b[31m\xff\xe2\x80\xae."), "a\\n\\u{1b}[31m\\xff\\u{202e}.");
        assert_eq!(&*escape_bytes("grün".as_bytes()), "grün");
    }
}
