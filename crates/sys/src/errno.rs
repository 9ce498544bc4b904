//! Error numbers with their names and messages, and the error of one system call.
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
    pub fn last() -> Errno {
        Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// Name such as `EPERM`; `E?` for an unknown number.
    pub fn name(self) -> &'static str {
        self.row().map_or("E?", |row| row.1)
    }

    /// The kernel's message: lower case, no full stop.
    pub fn words(self) -> &'static str {
        self.row().map_or("unknown error", |row| row.2)
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
    pub fn is_gone(self) -> bool {
        self == Errno::NOENT || self == Errno::SRCH || self == Errno::NODEV
    }

    // Linear search: errors are rare and the table is small.
    fn row(self) -> Option<&'static (i32, &'static str, &'static str)> {
        TABLE.iter().find(|row| row.0 == self.0)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row() {
            Some(row) => f.write_str(row.2),
            None => write!(f, "unknown error {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
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
        SysError { call, object: escaped(object), errno }
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

/// Escapes outside bytes so that they cannot manipulate a terminal: `\n`, `\u{..}` and `\xNN` are spelled out.
pub fn escaped(bytes: &[u8]) -> Box<str> {
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

/// Number, name, message. The messages are strerror's in lower case, so that they match those of other tools.
const TABLE: &[(i32, &str, &str)] = &[
    (-1, "NOT_RECORDED", "not in the recording"),
    (-2, "RECORDING_BROKEN", "the recording breaks off here"),
    (libc::EPERM, "EPERM", "operation not permitted"),
    (libc::ENOENT, "ENOENT", "no such file or directory"),
    (libc::ESRCH, "ESRCH", "no such process"),
    (libc::EINTR, "EINTR", "interrupted system call"),
    (libc::EIO, "EIO", "input/output error"),
    (libc::ENXIO, "ENXIO", "no such device or address"),
    (libc::E2BIG, "E2BIG", "argument list too long"),
    (libc::ENOEXEC, "ENOEXEC", "exec format error"),
    (libc::EBADF, "EBADF", "bad file descriptor"),
    (libc::ECHILD, "ECHILD", "no child processes"),
    (libc::EAGAIN, "EAGAIN", "resource temporarily unavailable"),
    (libc::ENOMEM, "ENOMEM", "cannot allocate memory"),
    (libc::EACCES, "EACCES", "permission denied"),
    (libc::EFAULT, "EFAULT", "bad address"),
    (libc::ENOTBLK, "ENOTBLK", "block device required"),
    (libc::EBUSY, "EBUSY", "device or resource busy"),
    (libc::EEXIST, "EEXIST", "file exists"),
    (libc::EXDEV, "EXDEV", "invalid cross-device link"),
    (libc::ENODEV, "ENODEV", "no such device"),
    (libc::ENOTDIR, "ENOTDIR", "not a directory"),
    (libc::EISDIR, "EISDIR", "is a directory"),
    (libc::EINVAL, "EINVAL", "invalid argument"),
    (libc::ENFILE, "ENFILE", "too many open files in system"),
    (libc::EMFILE, "EMFILE", "too many open files"),
    (libc::ENOTTY, "ENOTTY", "inappropriate ioctl for device"),
    (libc::ETXTBSY, "ETXTBSY", "text file busy"),
    (libc::EFBIG, "EFBIG", "file too large"),
    (libc::ENOSPC, "ENOSPC", "no space left on device"),
    (libc::ESPIPE, "ESPIPE", "illegal seek"),
    (libc::EROFS, "EROFS", "read-only file system"),
    (libc::EMLINK, "EMLINK", "too many links"),
    (libc::EPIPE, "EPIPE", "broken pipe"),
    (libc::EDOM, "EDOM", "numerical argument out of domain"),
    (libc::ERANGE, "ERANGE", "numerical result out of range"),
    (libc::EDEADLK, "EDEADLK", "resource deadlock avoided"),
    (libc::ENAMETOOLONG, "ENAMETOOLONG", "file name too long"),
    (libc::ENOLCK, "ENOLCK", "no locks available"),
    (libc::ENOSYS, "ENOSYS", "function not implemented"),
    (libc::ENOTEMPTY, "ENOTEMPTY", "directory not empty"),
    (libc::ELOOP, "ELOOP", "too many levels of symbolic links"),
    (libc::ENOMSG, "ENOMSG", "no message of desired type"),
    (libc::EIDRM, "EIDRM", "identifier removed"),
    (libc::ECHRNG, "ECHRNG", "channel number out of range"),
    (libc::EL2NSYNC, "EL2NSYNC", "level 2 not synchronized"),
    (libc::EL3HLT, "EL3HLT", "level 3 halted"),
    (libc::EL3RST, "EL3RST", "level 3 reset"),
    (libc::ELNRNG, "ELNRNG", "link number out of range"),
    (libc::EUNATCH, "EUNATCH", "protocol driver not attached"),
    (libc::ENOCSI, "ENOCSI", "no CSI structure available"),
    (libc::EL2HLT, "EL2HLT", "level 2 halted"),
    (libc::EBADE, "EBADE", "invalid exchange"),
    (libc::EBADR, "EBADR", "invalid request descriptor"),
    (libc::EXFULL, "EXFULL", "exchange full"),
    (libc::ENOANO, "ENOANO", "no anode"),
    (libc::EBADRQC, "EBADRQC", "invalid request code"),
    (libc::EBADSLT, "EBADSLT", "invalid slot"),
    (libc::EBFONT, "EBFONT", "bad font file format"),
    (libc::ENOSTR, "ENOSTR", "device not a stream"),
    (libc::ENODATA, "ENODATA", "no data available"),
    (libc::ETIME, "ETIME", "timer expired"),
    (libc::ENOSR, "ENOSR", "out of streams resources"),
    (libc::ENONET, "ENONET", "machine is not on the network"),
    (libc::ENOPKG, "ENOPKG", "package not installed"),
    (libc::EREMOTE, "EREMOTE", "object is remote"),
    (libc::ENOLINK, "ENOLINK", "link has been severed"),
    (libc::EADV, "EADV", "advertise error"),
    (libc::ESRMNT, "ESRMNT", "srmount error"),
    (libc::ECOMM, "ECOMM", "communication error on send"),
    (libc::EPROTO, "EPROTO", "protocol error"),
    (libc::EMULTIHOP, "EMULTIHOP", "multihop attempted"),
    (libc::EDOTDOT, "EDOTDOT", "rFS specific error"),
    (libc::EBADMSG, "EBADMSG", "bad message"),
    (libc::EOVERFLOW, "EOVERFLOW", "value too large for defined data type"),
    (libc::ENOTUNIQ, "ENOTUNIQ", "name not unique on network"),
    (libc::EBADFD, "EBADFD", "file descriptor in bad state"),
    (libc::EREMCHG, "EREMCHG", "remote address changed"),
    (libc::ELIBACC, "ELIBACC", "can not access a needed shared library"),
    (libc::ELIBBAD, "ELIBBAD", "accessing a corrupted shared library"),
    (libc::ELIBSCN, "ELIBSCN", ".lib section in a.out corrupted"),
    (libc::ELIBMAX, "ELIBMAX", "attempting to link in too many shared libraries"),
    (libc::ELIBEXEC, "ELIBEXEC", "cannot exec a shared library directly"),
    (libc::EILSEQ, "EILSEQ", "invalid or incomplete multibyte or wide character"),
    (libc::ERESTART, "ERESTART", "interrupted system call should be restarted"),
    (libc::ESTRPIPE, "ESTRPIPE", "streams pipe error"),
    (libc::EUSERS, "EUSERS", "too many users"),
    (libc::ENOTSOCK, "ENOTSOCK", "socket operation on non-socket"),
    (libc::EDESTADDRREQ, "EDESTADDRREQ", "destination address required"),
    (libc::EMSGSIZE, "EMSGSIZE", "message too long"),
    (libc::EPROTOTYPE, "EPROTOTYPE", "protocol wrong type for socket"),
    (libc::ENOPROTOOPT, "ENOPROTOOPT", "protocol not available"),
    (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT", "protocol not supported"),
    (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT", "socket type not supported"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP", "operation not supported"),
    (libc::EPFNOSUPPORT, "EPFNOSUPPORT", "protocol family not supported"),
    (libc::EAFNOSUPPORT, "EAFNOSUPPORT", "address family not supported by protocol"),
    (libc::EADDRINUSE, "EADDRINUSE", "address already in use"),
    (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL", "cannot assign requested address"),
    (libc::ENETDOWN, "ENETDOWN", "network is down"),
    (libc::ENETUNREACH, "ENETUNREACH", "network is unreachable"),
    (libc::ENETRESET, "ENETRESET", "network dropped connection on reset"),
    (libc::ECONNABORTED, "ECONNABORTED", "software caused connection abort"),
    (libc::ECONNRESET, "ECONNRESET", "connection reset by peer"),
    (libc::ENOBUFS, "ENOBUFS", "no buffer space available"),
    (libc::EISCONN, "EISCONN", "transport endpoint is already connected"),
    (libc::ENOTCONN, "ENOTCONN", "transport endpoint is not connected"),
    (libc::ESHUTDOWN, "ESHUTDOWN", "cannot send after transport endpoint shutdown"),
    (libc::ETOOMANYREFS, "ETOOMANYREFS", "too many references: cannot splice"),
    (libc::ETIMEDOUT, "ETIMEDOUT", "connection timed out"),
    (libc::ECONNREFUSED, "ECONNREFUSED", "connection refused"),
    (libc::EHOSTDOWN, "EHOSTDOWN", "host is down"),
    (libc::EHOSTUNREACH, "EHOSTUNREACH", "no route to host"),
    (libc::EALREADY, "EALREADY", "operation already in progress"),
    (libc::EINPROGRESS, "EINPROGRESS", "operation now in progress"),
    (libc::ESTALE, "ESTALE", "stale file handle"),
    (libc::EUCLEAN, "EUCLEAN", "structure needs cleaning"),
    (libc::ENOTNAM, "ENOTNAM", "not a XENIX named type file"),
    (libc::ENAVAIL, "ENAVAIL", "no XENIX semaphores available"),
    (libc::EISNAM, "EISNAM", "is a named type file"),
    (libc::EREMOTEIO, "EREMOTEIO", "remote I/O error"),
    (libc::EDQUOT, "EDQUOT", "disk quota exceeded"),
    (libc::ENOMEDIUM, "ENOMEDIUM", "no medium found"),
    (libc::EMEDIUMTYPE, "EMEDIUMTYPE", "wrong medium type"),
    (libc::ECANCELED, "ECANCELED", "operation cancelled"),
    (libc::ENOKEY, "ENOKEY", "required key not available"),
    (libc::EKEYEXPIRED, "EKEYEXPIRED", "key has expired"),
    (libc::EKEYREVOKED, "EKEYREVOKED", "key has been revoked"),
    (libc::EKEYREJECTED, "EKEYREJECTED", "key was rejected by service"),
    (libc::EOWNERDEAD, "EOWNERDEAD", "owner died"),
    (libc::ENOTRECOVERABLE, "ENOTRECOVERABLE", "state not recoverable"),
    (libc::ERFKILL, "ERFKILL", "operation not possible due to RF-kill"),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn names_and_words() {
        assert_eq!(Errno::PERM.name(), "EPERM");
        assert_eq!(Errno::PERM.words(), "operation not permitted");
        assert_eq!(Errno(99_999).name(), "E?");
        assert_eq!(Errno(99_999).to_string(), "unknown error 99999");
    }

    #[test]
    fn every_name_is_there_once() {
        for (i, row) in TABLE.iter().enumerate() {
            assert!(TABLE.iter().skip(i + 1).all(|other| other.0 != row.0 && other.1 != row.1), "{row:?} twice");
            assert!(!row.2.ends_with('.') && !row.2.is_empty());
        }
    }

    #[test]
    fn an_error_reads_like_a_sentence() {
        let error = SysError::new("openat", "/proc/net/tcp", Errno::ACCES);
        assert_eq!(error.to_string(), "cannot open /proc/net/tcp: permission denied");
    }

    #[test]
    fn hostile_names_are_escaped() {
        assert_eq!(&*escaped(b"a\n\x1b[31m\xff\xe2\x80\xae."), "a\\n\\u{1b}[31m\\xff\\u{202e}.");
        assert_eq!(&*escaped("grün".as_bytes()), "grün");
    }
}
