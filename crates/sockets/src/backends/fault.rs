//! Why a table could not be read.
use std::error::Error;
use std::fmt;

use netlink::DumpError;
use record::{Proto, SourceFault};
use sys::{Errno, SysError};

/// Neither backend opened.
#[derive(Debug)]
pub(crate) struct NoBackend {
    pub(crate) netlink: DumpError,
    pub(crate) proc: SysError,
}

impl fmt::Display for NoBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.netlink, self.proc)
    }
}

impl Error for NoBackend {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.proc)
    }
}

/// The kernel was built without what lists these sockets, and no file of /proc does.
#[derive(Debug)]
pub(crate) struct NoKernelPart<E> {
    /// What the kernel's configuration calls the part.
    option: &'static str,
    cause: E,
}

impl<E> NoKernelPart<E> {
    /// `cause` in these words, if it says that the kernel has no part for `proto`; else `cause` itself.
    pub(crate) fn explain(proto: Proto, errno: Option<Errno>, cause: E) -> Box<dyn Error + Send + Sync>
    where
        E: Error + Send + Sync + 'static,
    {
        let lacks = matches!(
            errno,
            Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::SOCKTNOSUPPORT)
        );
        match option_of(proto).filter(|_| lacks) {
            Some(option) => Box::new(NoKernelPart { option, cause }),
            None => Box::new(cause),
        }
    }
}

impl<E: fmt::Display> fmt::Display for NoKernelPart<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoKernelPart { option, cause } = self;
        write!(f, "this kernel has no {option}, neither built in nor as a module that it may load: {cause}")
    }
}

impl<E: Error + 'static> Error for NoKernelPart<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

/// The option of the kernel's configuration that lists sockets which no file of /proc lists.
pub(crate) fn option_of(proto: Proto) -> Option<&'static str> {
    match proto {
        Proto::Sctp => Some("CONFIG_INET_SCTP_DIAG"),
        Proto::Dccp => Some("CONFIG_INET_DCCP_DIAG (6.16 and later have no DCCP at all)"),
        Proto::Vsock => Some("CONFIG_VSOCKETS_DIAG"),
        Proto::Tipc => Some("CONFIG_TIPC_DIAG"),
        Proto::Xdp => Some("CONFIG_XDP_SOCKETS_DIAG"),
        _ => None,
    }
}

/// The run that made the recording did not read this table.
#[derive(Debug)]
pub(crate) struct NotRecorded(pub(crate) &'static str);

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the recording holds no {} (`netwren record FILE` records everything)", self.0)
    }
}

impl Error for NotRecorded {}

pub(crate) fn fault_of(errno: Option<Errno>) -> SourceFault {
    match errno {
        Some(errno) if errno.is_denied() => SourceFault::Denied,
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::NOSYS) => {
            SourceFault::Unsupported
        }
        _ => SourceFault::Io,
    }
}

// The kernel has no such table, or the run that was recorded found none.
pub(crate) fn lacks_table(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOT_RECORDED)
}
