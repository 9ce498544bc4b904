//! Reasons why nothing was measured.
use std::error::Error;
use std::fmt;

use record::{SourceError, SourceFault};
use sys::{Errno, Missing, SysError};

/// An error between the kernel and the rows.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ProfileError {
    /// netwren was built without BPF.
    WithoutBpf,
    /// A program could not be loaded or read.
    #[cfg(feature = "bpf")]
    Bpf(bpf::BpfError),
    /// A recording without data of this kind, or another failed system call.
    Io(SysError),
    /// A malformed block in a recording.
    Malformed(&'static str),
}

impl ProfileError {
    /// Converts to the error of a source of samples.
    pub fn of_samples(self) -> SourceError {
        self.into_source_error("CPU time in the kernel")
    }

    /// Converts to the error of a source of stages.
    pub fn of_stages(self) -> SourceError {
        self.into_source_error("stages of packets")
    }

    /// Returns the missing requirement.
    pub(crate) fn missing_requirement(&self) -> Missing {
        match self {
            ProfileError::WithoutBpf => Missing::Build,
            #[cfg(feature = "bpf")]
            ProfileError::Bpf(error) => error.missing_requirement(),
            ProfileError::Io(error) => Missing::from_errno(error.errno),
            ProfileError::Malformed(_) => Missing::Other,
        }
    }

    fn into_source_error(self, what: &'static str) -> SourceError {
        let fault = match &self {
            ProfileError::WithoutBpf => SourceFault::Unsupported,
            #[cfg(feature = "bpf")]
            ProfileError::Bpf(bpf::BpfError::Denied { .. }) => SourceFault::Denied,
            #[cfg(feature = "bpf")]
            ProfileError::Bpf(error) if error.is_unavailable() => SourceFault::Unsupported,
            #[cfg(feature = "bpf")]
            ProfileError::Bpf(_) => SourceFault::Io,
            ProfileError::Io(error) if error.errno.is_denied() => SourceFault::Denied,
            ProfileError::Io(_) => SourceFault::Io,
            ProfileError::Malformed(_) => SourceFault::Malformed,
        };
        SourceError { what, fault, cause: Box::new(self) }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileError::WithoutBpf => f.write_str("netwren was built without BPF, which is needed to measure them"),
            #[cfg(feature = "bpf")]
            ProfileError::Bpf(error) => error.fmt(f),
            ProfileError::Io(SysError { errno: Errno::NOT_RECORDED, .. }) => {
                f.write_str("not in the recording (the same command with `--record FILE` records them)")
            }
            ProfileError::Io(error) => error.fmt(f),
            ProfileError::Malformed(why) => write!(f, "the recording is malformed: {why}"),
        }
    }
}

impl Error for ProfileError {}

#[cfg(feature = "bpf")]
impl From<bpf::BpfError> for ProfileError {
    fn from(error: bpf::BpfError) -> ProfileError {
        ProfileError::Bpf(error)
    }
}

impl From<SysError> for ProfileError {
    fn from(error: SysError) -> ProfileError {
        ProfileError::Io(error)
    }
}
