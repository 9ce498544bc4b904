//! Errors of loading, running and reading BPF programs.
use std::fmt;

use sys::{Errno, Missing, SysError, Trial};

/// The reason why a program cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BpfError {
    /// A right is missing.
    Denied {
        /// The action that was denied (`BPF program walk_ehash`).
        what: Box<str>,
        /// The required rights.
        needs: &'static str,
        /// The kernel's error.
        errno: Errno,
    },
    /// A kernel before 5.11 counts maps against the limit of locked memory, which is exhausted.
    Locked {
        /// The map that did not fit.
        what: Box<str>,
    },
    /// The kernel does not publish its types.
    NoTypes(SysError),
    /// This kernel lacks something that the program needs.
    Missing {
        /// The missing kind of thing: `function`, `field`, `type`, `iterator`, `tracepoint`, `instruction`, `helper`.
        kind: &'static str,
        /// Its name.
        name: Box<str>,
        /// The first kernel version that has it, if known.
        since: Option<&'static str>,
    },
    /// The verifier refused the program.
    Refused {
        /// Its name.
        program: Box<str>,
        /// The error.
        errno: Errno,
        /// The last lines of the verifier's log, escaped.
        log: Box<str>,
    },
    /// Another BPF program in this namespace uses this priority at the netfilter hook.
    Taken {
        /// The hook (`POST_ROUTING`).
        hook: &'static str,
        /// The priority.
        priority: i32,
    },
    /// A map has reached its maximum number of entries.
    Full {
        /// Its name.
        map: Box<str>,
    },
    /// Bytes that are not an object file, or not types. The embedded ones are fine, so these came from elsewhere.
    Malformed {
        /// The kind of data.
        what: &'static str,
        /// Description of the error.
        why: &'static str,
    },
    /// The object has no program, map or variable with that name and kind.
    NoSuch {
        /// `program`, `map`, `variable`.
        kind: &'static str,
        /// The name.
        name: Box<str>,
    },
    /// Any other failed system call.
    Io(SysError),
}

impl BpfError {
    /// The errno that caused it, if there is one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            BpfError::Denied { errno, .. } | BpfError::Refused { errno, .. } => Some(*errno),
            BpfError::NoTypes(error) | BpfError::Io(error) => Some(error.errno),
            _ => None,
        }
    }

    /// Whether the kernel lacks an option or the caller lacks a right.
    pub fn missing_requirement(&self) -> Missing {
        match self {
            BpfError::Denied { .. } | BpfError::Locked { .. } => Missing::Right,
            BpfError::Missing { .. } => Missing::KernelOption,
            BpfError::NoTypes(error) if error.errno.is_denied() => Missing::Right,
            BpfError::NoTypes(_) => Missing::KernelOption,
            BpfError::Refused { errno, .. } => Missing::from_errno(*errno),
            BpfError::Io(error) => Missing::from_errno(error.errno),
            BpfError::Taken { .. } | BpfError::Full { .. } | BpfError::Malformed { .. } | BpfError::NoSuch { .. } => {
                Missing::Other
            }
        }
    }

    /// Converts the error to the result of a trial for `netwren support`.
    pub fn to_tried(&self) -> Trial {
        let words = match self {
            BpfError::Denied { needs, errno, .. } => format!("{errno}: needs {needs}"),
            error => error.to_string(),
        };
        Trial::new_missing(self.missing_requirement(), words)
    }

    /// Converts the error to a system error, which recordings can store: its object contains the message, and its
    /// errno follows. `what` names the reader that needs the program.
    pub fn to_sys(&self, what: &str) -> SysError {
        let words = match self {
            BpfError::Io(error) | BpfError::NoTypes(error) => return error.clone(),
            // The messages of these errors contain the errno already.
            BpfError::Denied { what, needs, .. } => format!("{what} (needs {needs}; see `netwren support`)"),
            BpfError::Refused { program, log, .. } => format!("the kernel refused BPF program {program}: {log}"),
            other => other.to_string(),
        };
        SysError::new("read", format!("{what}: {words}"), self.errno().unwrap_or(Errno::NOSYS))
    }

    /// True if rights, or parts of the kernel, are missing: the caller then tries another backend silently. Any other
    /// error must be shown.
    pub fn is_unavailable(&self) -> bool {
        match self {
            BpfError::Denied { .. }
            | BpfError::Locked { .. }
            | BpfError::NoTypes(_)
            | BpfError::Missing { .. }
            | BpfError::Taken { .. }
            | BpfError::Refused { .. } => true,
            BpfError::Io(error) => error.errno.is_denied() || error.errno == Errno::NOSYS,
            _ => false,
        }
    }
}

impl From<SysError> for BpfError {
    fn from(error: SysError) -> BpfError {
        BpfError::Io(error)
    }
}

impl fmt::Display for BpfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BpfError::Denied { what, needs, errno } => {
                write!(f, "cannot load {what}: {errno} (needs {needs}; see `netwren support`)")
            }
            BpfError::Locked { what } => write!(
                f,
                "cannot create {what}: the limit of locked memory is reached (kernels before 5.11 count BPF maps; \
                 raise `ulimit -l`)"
            ),
            BpfError::NoTypes(error) if error.errno.is_missing_object() => {
                write!(f, "{error}: this kernel was built without CONFIG_DEBUG_INFO_BTF")
            }
            BpfError::NoTypes(error) => write!(f, "{error}"),
            BpfError::Missing { kind, name, since: Some(since) } => {
                write!(f, "this kernel has no {kind} {name} (available since Linux {since})")
            }
            BpfError::Missing { kind, name, since: None } => write!(f, "this kernel has no {kind} {name}"),
            BpfError::Refused { program, errno, log } => {
                write!(f, "the kernel refused BPF program {program}: {errno}: {log}")
            }
            BpfError::Taken { hook, priority } => {
                write!(f, "another BPF program already uses hook {hook}, priority {priority}, in this namespace")
            }
            BpfError::Full { map } => write!(f, "BPF map {map} is full"),
            BpfError::Malformed { what, why } => write!(f, "cannot read {what}: {why}"),
            BpfError::NoSuch { kind, name } => write!(f, "the BPF object has no {kind} {name}"),
            BpfError::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for BpfError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_says_its_errno_once() {
        let denied = BpfError::Denied { what: "BPF map rows".into(), needs: "CAP_BPF", errno: Errno::PERM };
        let refused = BpfError::Refused { program: "walk".into(), errno: Errno::ACCES, log: "R1 is 0".into() };
        let full = BpfError::Full { map: "rows".into() };
        for (error, words) in [
            (
                denied,
                "cannot read owners: BPF map rows (needs CAP_BPF; see `netwren support`): operation not permitted",
            ),
            (refused, "cannot read owners: the kernel refused BPF program walk: R1 is 0: permission denied"),
            (full, "cannot read owners: BPF map rows is full: function not implemented"),
        ] {
            assert_eq!(error.to_sys("owners").to_string(), words);
        }
    }
}
