//! Restricts the system calls to those needed for reading packets and writing rows (seccomp(2)).
use super::is_missing;
use super::program::CallProgram;
use crate::errno::{Errno, SysError};

/// Calls needed in addition to memory, time, open descriptors and rtnetlink requests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CallGroups {
    /// Opening files.
    pub reads_files: bool,
    /// Creating, changing and removing files.
    pub writes_files: bool,
    /// Creating and removing files in an open directory.
    pub makes_files: bool,
    /// Internet and unix sockets.
    pub uses_network: bool,
    /// Starting other programs.
    pub starts_programs: bool,
}

/// Flag with which `clone` creates a thread: `CLONE_THREAD` (include/uapi/linux/sched.h).
const THREAD: u32 = 0x0001_0000;
/// Requests to terminals and pipes: TCGETS, TCSETS, TIOCGPGRP, TIOCGWINSZ, FIONREAD, FIONBIO; and to sockets: TIOCOUTQ,
/// which returns the bytes that a receiver has not acknowledged (include/uapi/asm-generic/ioctls.h).
const REQUESTS: [u32; 7] = [0x5401, 0x5402, 0x540f, 0x5411, 0x5413, 0x541b, 0x5421];
const NETLINK: u32 = libc::AF_NETLINK as u32;
const OF_NETWORK: [u32; 4] = [NETLINK, libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32];

/// Memory, time, signals, threads, open descriptors.
const ALWAYS: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_ftruncate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_prlimit64,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_umask,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_tgkill,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getpgid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_capget,
    // Without capabilities, both can only remove rights.
    libc::SYS_capset,
    libc::SYS_prctl,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // For the ring's own socket, and rtnetlink.
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_bind,
    libc::SYS_getsockname,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
];

const READING: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_getdents64,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getcwd,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_fadvise64,
];

const WRITING: &[libc::c_long] = &[
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fallocate,
    libc::SYS_flock,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_sync_file_range,
    libc::SYS_copy_file_range,
    libc::SYS_truncate,
];

const MAKING: &[libc::c_long] = &[libc::SYS_openat, libc::SYS_unlinkat, libc::SYS_fchmod];

const NETWORKING: &[libc::c_long] = &[
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept4,
    libc::SYS_accept,
    libc::SYS_getpeername,
    libc::SYS_shutdown,
    libc::SYS_socketpair,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
];

const STARTING: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_kill,
    libc::SYS_setpgid,
    libc::SYS_setpriority,
    libc::SYS_set_tid_address,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
];

/// Older forms of the same calls, which newer architectures lack.
#[cfg(target_arch = "x86_64")]
mod older {
    pub(super) const ALWAYS: &[libc::c_long] = &[
        libc::SYS_stat,
        libc::SYS_lstat,
        libc::SYS_poll,
        libc::SYS_select,
        libc::SYS_pipe,
        libc::SYS_dup2,
        libc::SYS_epoll_wait,
        libc::SYS_time,
        libc::SYS_getpgrp,
        libc::SYS_arch_prctl,
    ];
    pub(super) const READING: &[libc::c_long] = &[libc::SYS_open, libc::SYS_access, libc::SYS_readlink];
    pub(super) const WRITING: &[libc::c_long] = &[
        libc::SYS_mkdir,
        libc::SYS_rmdir,
        libc::SYS_unlink,
        libc::SYS_rename,
        libc::SYS_renameat,
        libc::SYS_link,
        libc::SYS_symlink,
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_creat,
        libc::SYS_utimes,
    ];
    pub(super) const STARTING: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
}
#[cfg(not(target_arch = "x86_64"))]
mod older {
    pub(super) const ALWAYS: &[libc::c_long] = &[];
    pub(super) const READING: &[libc::c_long] = &[];
    pub(super) const WRITING: &[libc::c_long] = &[];
    pub(super) const STARTING: &[libc::c_long] = &[];
}

/// Restricts all threads of the process to these system calls: all others fail with EPERM. Returns false if the kernel
/// has no seccomp or the architecture is unknown. Needs [`super::forbid_new`].
pub fn restrict_calls(groups: CallGroups) -> Result<bool, SysError> {
    install_filter(groups, true)
}

fn install_filter(groups: CallGroups, in_all_threads: bool) -> Result<bool, SysError> {
    let Some(mut program) = CallProgram::new() else { return Ok(false) };
    let lists = [
        (true, ALWAYS, older::ALWAYS),
        (groups.reads_files || groups.writes_files, READING, older::READING),
        (groups.writes_files, WRITING, older::WRITING),
        (groups.makes_files, MAKING, &[]),
        (groups.uses_network, NETWORKING, &[]),
        (groups.starts_programs, STARTING, older::STARTING),
    ];
    for (_, calls, older) in lists.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
        calls.iter().chain(older).for_each(|number| program.allow(*number));
    }
    program.allow_values(libc::SYS_ioctl, 1, &REQUESTS);
    match groups.uses_network {
        true => program.allow_values(libc::SYS_socket, 0, &OF_NETWORK),
        false => program.allow_values(libc::SYS_socket, 0, &[NETLINK]),
    }
    match groups.starts_programs {
        true => program.allow(libc::SYS_clone),
        false => program.allow_bits(libc::SYS_clone, 0, THREAD),
    }
    // Its flags are in memory, which seccomp programs cannot read. With ENOSYS the C library falls back to `clone`.
    program.refuse(libc::SYS_clone3, Errno::NOSYS);
    match program.install(in_all_threads) {
        Ok(()) => Ok(true),
        Err(errno) if is_missing(errno) => Ok(false),
        Err(errno) => Err(SysError::new("seccomp", "list of system calls", errno)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::rights::forbid_new;
    use std::io::ErrorKind;

    /// The actions that the thread could still perform: create a thread, read a file, open a socket, start a program.
    fn tried(groups: CallGroups) -> Option<[bool; 5]> {
        let trying = move || {
            forbid_new().unwrap();
            if !install_filter(groups, false).unwrap() {
                return None;
            }
            let refused = |error: std::io::Error| assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            Some([
                std::thread::spawn(|| ()).join().is_ok(),
                crate::NetlinkSocket::open(0).is_ok(),
                std::fs::File::open("/dev/null").map_err(refused).is_ok(),
                std::net::UdpSocket::bind("127.0.0.1:0").map_err(refused).is_ok(),
                std::process::Command::new("true").status().map_err(refused).is_ok(),
            ])
        };
        std::thread::spawn(trying).join().unwrap()
    }

    #[test]
    fn only_what_is_needed_is_left() {
        let Some(plain) = tried(CallGroups::default()) else { return };
        assert_eq!(plain, [true, true, false, false, false]);
        let reads_files = CallGroups { reads_files: true, ..CallGroups::default() };
        assert_eq!(tried(reads_files), Some([true, true, true, false, false]));
        let makes_files = CallGroups { makes_files: true, ..CallGroups::default() };
        assert_eq!(tried(makes_files), Some([true, true, true, false, false]));
        let groups = CallGroups { uses_network: true, ..reads_files };
        assert_eq!(tried(groups), Some([true, true, true, true, false]));
        let groups = CallGroups { starts_programs: true, ..reads_files };
        assert_eq!(tried(groups), Some([true, true, true, false, true]));
    }
}
