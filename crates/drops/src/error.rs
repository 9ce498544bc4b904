//! Why drops could not be counted.
use std::error::Error;
use std::fmt;

use record::{SourceError, SourceFault};
use sys::{Errno, SysError};

/// The thing that is read, for messages.
const WHAT: &str = "dropped packets";

/// A fault on the way from the kernel's drops to their rows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DropsError {
    /// netwren was built without BPF.
    WithoutBpf,
    /// The program could not be loaded or read: in words, and with the errno if there was one.
    #[cfg(feature = "bpf")]
    Bpf(bpf::BpfError),
    /// Counters know no packet.
    NoPackets,
    /// The kernel's trace cannot be had.
    NoTrace(Box<str>),
    /// The kernel's drop monitor cannot be had.
    NoMonitor(Box<str>),
    /// Neither BPF nor the kernel's trace nor its drop monitor can be had.
    NoneOf {
        /// The error of BPF.
        bpf: Box<DropsError>,
        /// The error of the trace.
        trace: Box<DropsError>,
        /// The error of the drop monitor.
        net_dm: Box<DropsError>,
    },
    /// A recording that holds no drops, or another system call.
    Io(SysError),
    /// A block of a recording that makes no sense.
    Malformed(&'static str),
}

impl fmt::Display for DropsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DropsError::WithoutBpf => f.write_str("netwren was built without BPF, which counts them"),
            #[cfg(feature = "bpf")]
            DropsError::Bpf(error) => error.fmt(f),
            DropsError::NoPackets => f.write_str("counters know no single packet"),
            DropsError::NoTrace(why) | DropsError::NoMonitor(why) => write!(f, "{why}"),
            DropsError::NoneOf { bpf, trace, net_dm } => {
                write!(f, "{bpf}; nor by the kernel's trace: {trace}; nor by its drop monitor: {net_dm}")
            }
            DropsError::Io(SysError { errno: Errno::NOT_RECORDED, .. }) => {
                f.write_str("not in the recording (`netwren drops --record FILE` records them)")
            }
            DropsError::Io(error) => error.fmt(f),
            DropsError::Malformed(why) => write!(f, "the recording makes no sense: {why}"),
        }
    }
}

impl Error for DropsError {}

#[cfg(feature = "bpf")]
impl From<bpf::BpfError> for DropsError {
    fn from(error: bpf::BpfError) -> DropsError {
        DropsError::Bpf(error)
    }
}

impl From<SysError> for DropsError {
    fn from(error: SysError) -> DropsError {
        DropsError::Io(error)
    }
}

impl From<DropsError> for SourceError {
    fn from(error: DropsError) -> SourceError {
        let cause = match &error {
            DropsError::NoneOf { bpf, .. } => &**bpf,
            error => error,
        };
        let fault = match cause {
            DropsError::WithoutBpf
            | DropsError::NoPackets
            | DropsError::NoTrace(_)
            | DropsError::NoMonitor(_)
            | DropsError::NoneOf { .. } => SourceFault::Unsupported,
            #[cfg(feature = "bpf")]
            DropsError::Bpf(bpf::BpfError::Denied { .. }) => SourceFault::Denied,
            #[cfg(feature = "bpf")]
            DropsError::Bpf(error) if error.is_unavailable() => SourceFault::Unsupported,
            #[cfg(feature = "bpf")]
            DropsError::Bpf(_) => SourceFault::Io,
            DropsError::Io(error) if error.errno.is_denied() => SourceFault::Denied,
            DropsError::Io(_) => SourceFault::Io,
            DropsError::Malformed(_) => SourceFault::Malformed,
        };
        SourceError { what: WHAT, fault, cause: Box::new(error) }
    }
}
