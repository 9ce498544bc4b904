//! Why a table could not be read.
use std::error::Error;
use std::fmt;

use netlink::DumpError;
use record::{Proto, SourceFault};
use sys::{Errno, SysError};

/// Neither netlink nor /proc could be read.
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

/// The kernel was built without the part that lists these sockets, and no file of /proc lists them.
#[derive(Debug)]
pub(crate) struct NoKernelPart<E> {
    proto: Proto,
    cause: E,
}

impl<E> NoKernelPart<E> {
    /// Replaces `cause` with this error if it means that the kernel lacks the part for `proto`; otherwise returns
    /// `cause`.
    pub(crate) fn explain(proto: Proto, errno: Option<Errno>, cause: E) -> Box<dyn Error + Send + Sync>
    where
        E: Error + Send + Sync + 'static,
    {
        let lacks = matches!(
            errno,
            Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::SOCKTNOSUPPORT)
        );
        if lacks && has_no_file(proto) { Box::new(NoKernelPart { proto, cause }) } else { Box::new(cause) }
    }
}

const GONE: &str = " (6.16 and later have no DCCP at all)";

impl<E: fmt::Display> fmt::Display for NoKernelPart<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoKernelPart { proto, cause } = self;
        let (option, gone) = (kernel_option(*proto), if *proto == Proto::Dccp { GONE } else { "" });
        write!(f, "this kernel has no {option}{gone}, neither built in nor as a loadable module: {cause}")
    }
}

impl<E: Error + 'static> Error for NoKernelPart<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

/// The kernel configuration option for listing sockets of `proto` over netlink.
pub(crate) fn kernel_option(proto: Proto) -> &'static str {
    match proto {
        Proto::Tcp => "CONFIG_INET_TCP_DIAG",
        Proto::Udp | Proto::UdpLite => "CONFIG_INET_UDP_DIAG",
        Proto::Unix => "CONFIG_UNIX_DIAG",
        Proto::Raw => "CONFIG_INET_RAW_DIAG",
        Proto::Mptcp => "CONFIG_INET_MPTCP_DIAG",
        Proto::Packet => "CONFIG_PACKET_DIAG",
        Proto::Netlink => "CONFIG_NETLINK_DIAG",
        Proto::Sctp => "CONFIG_INET_SCTP_DIAG",
        Proto::Dccp => "CONFIG_INET_DCCP_DIAG",
        Proto::Vsock => "CONFIG_VSOCKETS_DIAG",
        Proto::Tipc => "CONFIG_TIPC_DIAG",
        Proto::Xdp => "CONFIG_XDP_SOCKETS_DIAG",
    }
}

/// True for families that no file in /proc/net lists.
pub(crate) fn has_no_file(proto: Proto) -> bool {
    matches!(proto, Proto::Sctp | Proto::Dccp | Proto::Vsock | Proto::Tipc | Proto::Xdp)
}

/// The recorded run did not read this table.
#[derive(Debug)]
pub(crate) struct UnrecordedTable(pub(crate) &'static str);

impl fmt::Display for UnrecordedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the recording holds no {} (`netwren record FILE` records everything)", self.0)
    }
}

impl Error for UnrecordedTable {}

pub(crate) fn fault_of(errno: Option<Errno>) -> SourceFault {
    match errno {
        Some(errno) if errno.is_denied() => SourceFault::Denied,
        Some(errno) if errno.is_unsupported() => SourceFault::Unsupported,
        _ => SourceFault::Io,
    }
}

// True if the kernel has no such table, or the recorded run found none.
pub(crate) fn lacks_table(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOT_RECORDED)
}
