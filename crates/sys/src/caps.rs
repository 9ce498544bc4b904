//! The rights of this process: its effective capabilities and user.
use crate::errno::{Errno, SysError};
use crate::syscall::call;

/// The capabilities that netwren's features can need (include/uapi/linux/capability.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Cap {
    /// Read and write other users' files. No feature needs it as such: it is kept if a target's folder belongs to
    /// another user.
    DacOverride = 1,
    /// Read other users' files and directories, including /proc/PID/fd.
    DacReadSearch = 2,
    /// Sysctls, netfilter, socket marks.
    NetAdmin = 12,
    /// Raw and packet sockets.
    NetRaw = 13,
    /// Inspect other processes.
    SysPtrace = 19,
    /// Enter namespaces, mount, and much more.
    SysAdmin = 21,
    /// Read the kernel log and see kernel addresses.
    Syslog = 34,
    /// Load tracing programs.
    Perfmon = 38,
    /// Load BPF programs.
    Bpf = 39,
}

impl Cap {
    /// The capabilities that features need, in numerical order.
    pub const ALL: [Cap; 8] = [
        Cap::DacReadSearch,
        Cap::NetAdmin,
        Cap::NetRaw,
        Cap::SysPtrace,
        Cap::SysAdmin,
        Cap::Syslog,
        Cap::Perfmon,
        Cap::Bpf,
    ];

    /// Name such as `CAP_NET_ADMIN`.
    pub fn name(self) -> &'static str {
        match self {
            Cap::DacOverride => "CAP_DAC_OVERRIDE",
            Cap::DacReadSearch => "CAP_DAC_READ_SEARCH",
            Cap::NetAdmin => "CAP_NET_ADMIN",
            Cap::NetRaw => "CAP_NET_RAW",
            Cap::SysPtrace => "CAP_SYS_PTRACE",
            Cap::SysAdmin => "CAP_SYS_ADMIN",
            Cap::Syslog => "CAP_SYSLOG",
            Cap::Perfmon => "CAP_PERFMON",
            Cap::Bpf => "CAP_BPF",
        }
    }
}

/// A set of capabilities, bit n = capability n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CapSet(pub u64);

impl CapSet {
    /// The set of these capabilities.
    pub fn from_caps(caps: &[Cap]) -> CapSet {
        CapSet(caps.iter().fold(0, |set, cap| set | 1 << *cap as u8))
    }

    /// True if the set contains `cap`.
    pub fn contains(self, cap: Cap) -> bool {
        self.0 & (1 << cap as u8) != 0
    }

    /// True if the set permits loading tracing programs: CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN, which was required
    /// before Linux 5.8.
    pub fn may_trace(self) -> bool {
        self.contains(Cap::SysAdmin) || (self.contains(Cap::Bpf) && self.contains(Cap::Perfmon))
    }
}

/// The effective capabilities of the calling thread. One system call.
pub fn effective() -> Result<CapSet, SysError> {
    Ok(CapSet(read().map_err(|errno| SysError::new("capget", "own capabilities", errno))?.effective))
}

/// The effective user id; 0 is root.
pub fn euid() -> u32 {
    // SAFETY: geteuid has no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The effective group id.
pub fn egid() -> u32 {
    // SAFETY: getegid has no arguments and cannot fail.
    unsafe { libc::getegid() }
}

/// True if the kernel gave this program more rights than its caller has: a set-user-id or set-group-id file, file
/// capabilities, or a domain transition by a security module (AT_SECURE). No cost.
pub fn has_more_than_its_caller() -> bool {
    // SAFETY: getauxval reads the process's own auxiliary vector; an unknown type gives 0.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// `_LINUX_CAPABILITY_VERSION_3`: two 32-bit words per set.
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Word {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The capability sets of a thread.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sets {
    pub(crate) effective: u64,
    pub(crate) permitted: u64,
    pub(crate) inheritable: u64,
}

pub(crate) fn read() -> Result<Sets, Errno> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut words = [Word::default(); 2];
    // SAFETY: with version 3 the kernel fills exactly two words; both pointers are to live, exclusive values.
    call("capget", || unsafe { libc::syscall(libc::SYS_capget, &mut header, words.as_mut_ptr()) } as i64)?;
    let [low, high] = words;
    let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    Ok(Sets {
        effective: join(low.effective, high.effective),
        permitted: join(low.permitted, high.permitted),
        inheritable: join(low.inheritable, high.inheritable),
    })
}

// The truncation by the masks is intended: a set is stored as two 32-bit words.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn write(sets: Sets) -> Result<(), Errno> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let word = |shift: u32| Word {
        effective: (sets.effective >> shift) as u32,
        permitted: (sets.permitted >> shift) as u32,
        inheritable: (sets.inheritable >> shift) as u32,
    };
    let words = [word(0), word(32)];
    // SAFETY: with version 3 the kernel reads exactly two words; both pointers are to live values.
    call("capset", || unsafe { libc::syscall(libc::SYS_capset, &mut header, words.as_ptr()) } as i64)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn agrees_with_proc() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        assert_eq!(effective().unwrap().0, u64::from_str_radix(line.trim(), 16).unwrap());
        let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
        assert_eq!(uid.split_whitespace().nth(1).unwrap(), euid().to_string());
    }

    #[test]
    fn names_follow_numbers() {
        assert!(CapSet(1 << 12).contains(Cap::NetAdmin) && !CapSet(1 << 12).contains(Cap::NetRaw));
        assert!(Cap::ALL.windows(2).all(|pair| (pair[0] as u8) < pair[1] as u8));
    }
}
