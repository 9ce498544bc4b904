//! Removes rights, for tests: a child process really experiences what a user without these rights does.
//!
//! [`confine`] prepares a [`Command`]; each [`Limit`] is applied in the child between fork and exec. The other
//! functions act on the calling thread and cannot be undone: call them in a child or in a dedicated thread.
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sys::caps::{Cap, CapSet};
use sys::{Errno, SysError, fs, rights};

/// A restriction of a child process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Limit {
    /// The child permanently lacks these capabilities (also in the bounding set, so exec as root does not restore
    /// them).
    WithoutCaps(Vec<Cap>),
    /// `socket(family, _, protocol)` fails with this errno; every protocol if `None`.
    NoSocket {
        /// Address family (AF_NETLINK = 16).
        family: i32,
        /// Protocol (NETLINK_SOCK_DIAG = 4).
        protocol: Option<i32>,
        /// The error of socket().
        errno: Errno,
    },
    /// bpf(2) fails with this errno for every command.
    NoBpf(Errno),
    /// The child runs as this user and group, without supplementary groups and without capabilities.
    User {
        /// User id.
        uid: u32,
        /// Group id.
        gid: u32,
    },
    /// The child runs in a new, empty network namespace.
    EmptyNetwork,
    /// The child runs in the network namespace at this path.
    Network(PathBuf),
    /// /proc is remounted with this `hidepid=` value (0, 1, 2) in a mount namespace of its own.
    HidePid(u8),
    /// `with` is mounted over `place` (a bind mount, a file over a file or a directory over a directory).
    Cover {
        /// The file or directory that the child sees.
        with: PathBuf,
        /// The path at which it sees it.
        place: PathBuf,
    },
    /// At most this many open files.
    OpenFiles(u64),
    /// At most this many bytes of address space.
    AddressSpace(u64),
    /// SIGHUP is not ignored, even if the caller runs under nohup(1).
    HangupHeard,
    /// The child gets these files as descriptors 3, 4 …, as a service manager passes them.
    Files(Vec<Arc<OwnedFd>>),
}

/// Makes `command` run under these limits, applied in this order. Limits that need privileges (mounts, namespaces)
/// should come before limits that remove privileges.
pub fn confine(command: &mut Command, limits: &[Limit]) -> Result<(), SysError> {
    let steps = limits.iter().map(Step::prepare).collect::<Result<Vec<_>, _>>()?;
    let apply = move || {
        for step in &steps {
            step.take().map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        }
        Ok(())
    };
    // SAFETY: only async-signal-safe calls are allowed between fork and exec. `apply` makes bare system calls on
    // values prepared before the fork: no allocation, no lock, no printing.
    unsafe { command.pre_exec(apply) };
    Ok(())
}

/// Permanently drops capabilities of the calling thread.
pub fn drop_caps(dropped: &[Cap]) -> Result<(), SysError> {
    without_caps(dropped).map_err(|errno| SysError::new("capset", "own capabilities", errno))
}

/// Permanently makes `socket(family, …)` fail with `errno` on the calling thread.
pub fn refuse_socket(family: i32, errno: Errno) -> Result<(), SysError> {
    install(&Filter::refuse_family(family, None, errno))
        .map_err(|errno| SysError::new("seccomp", "socket filter", errno))
}

/// Gives the calling thread a mount namespace of its own, so that its changes affect no other process. Needs
/// CAP_SYS_ADMIN.
pub fn make_mount_namespace() -> Result<(), SysError> {
    unshare_mounts().map_err(|errno| SysError::new("unshare", "mount namespace", errno))
}

/// Mounts `with` over `place`; call [`make_mount_namespace`] first.
pub fn bind_mount(with: &Path, place: &Path) -> Result<(), SysError> {
    let failed = |errno| SysError::on_bytes("mount", place.as_os_str().as_bytes(), errno);
    let (with, place) = (c_path(with)?, c_path(place)?);
    mount(Some(&with), &place, None, libc::MS_BIND | libc::MS_REC, None).map_err(failed)
}

/// Mounts an empty file system of `bytes` bytes at `place`; call [`make_mount_namespace`] first.
pub fn small_tmpfs(place: &Path, bytes: u64) -> Result<(), SysError> {
    let name = place.as_os_str().as_bytes();
    let failed = |errno| SysError::on_bytes("mount", name, errno);
    let options = CString::new(format!("size={bytes},mode=0700")).map_err(|_| failed(Errno::INVAL))?;
    mount(Some(c"none"), &c_path(place)?, Some(c"tmpfs"), 0, Some(&options)).map_err(failed)
}

/// Raises this process's limit of open files as far as its rights allow; returns the new limit. For load generators:
/// as root up to `wanted`.
pub fn raise_open_files(wanted: u64) -> Result<u64, SysError> {
    let failed = |errno| SysError::new("setrlimit", "limit of open files", errno);
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live rlimit64 to be filled.
    check_result(unsafe { libc::getrlimit64(libc::RLIMIT_NOFILE, &raw mut limit) }).map_err(failed)?;
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    // First as far as root may, then as far as any user may. Even root may not exceed nr_open.
    let mut text = Vec::new();
    let _ = fs::read_file(Path::new("/proc/sys/fs/nr_open"), &mut text);
    let ceiling = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1 << 20);
    let wanted = wanted.min(ceiling);
    for (now, most) in [(wanted, limit.rlim_max.max(wanted)), (wanted.min(limit.rlim_max), limit.rlim_max)] {
        if limit_resource(libc::RLIMIT_NOFILE, now, most).is_ok() {
            return Ok(now);
        }
    }
    Ok(limit.rlim_cur)
}

/// A limit with everything that applying it needs already allocated.
enum Step {
    Caps(Vec<Cap>),
    Filter(Filter),
    User(u32, u32),
    EmptyNetwork,
    Network(CString),
    HidePid(CString),
    Cover(CString, CString),
    LimitKind(LimitKind, u64),
    HangupHeard,
    Files(Vec<OwnedFd>),
}

impl Step {
    fn prepare(limit: &Limit) -> Result<Step, SysError> {
        Ok(match limit {
            Limit::WithoutCaps(dropped) => Step::Caps(dropped.clone()),
            Limit::NoSocket { family, protocol, errno } => {
                Step::Filter(Filter::refuse_family(*family, *protocol, *errno))
            }
            Limit::NoBpf(errno) => Step::Filter(Filter::refusing_call(libc::SYS_bpf, *errno)),
            Limit::User { uid, gid } => Step::User(*uid, *gid),
            Limit::EmptyNetwork => Step::EmptyNetwork,
            Limit::Network(path) => Step::Network(c_path(path)?),
            Limit::HidePid(value) => Step::HidePid(
                CString::new(format!("hidepid={value}")).map_err(|_| SysError::new("mount", "/proc", Errno::INVAL))?,
            ),
            Limit::Cover { with, place } => Step::Cover(c_path(with)?, c_path(place)?),
            Limit::OpenFiles(most) => Step::LimitKind(libc::RLIMIT_NOFILE, *most),
            Limit::AddressSpace(most) => Step::LimitKind(libc::RLIMIT_AS, *most),
            Limit::HangupHeard => Step::HangupHeard,
            Limit::Files(files) => {
                Step::Files(files.iter().map(|file| duplicate_above(file)).collect::<Result<_, _>>()?)
            }
        })
    }

    // Runs between fork and exec: bare system calls only.
    fn take(&self) -> Result<(), Errno> {
        match self {
            Step::Caps(dropped) => without_caps(dropped),
            Step::Filter(filter) => install(filter),
            Step::User(uid, gid) => become_user(*uid, *gid),
            Step::EmptyNetwork => unshare(libc::CLONE_NEWNET),
            Step::Network(path) => enter_network(path),
            Step::HidePid(option) => {
                unshare_mounts()?;
                mount(Some(c"proc"), c"/proc", Some(c"proc"), 0, Some(option))
            }
            Step::Cover(with, place) => {
                unshare_mounts()?;
                mount(Some(with), place, None, libc::MS_BIND | libc::MS_REC, None)
            }
            Step::LimitKind(resource, most) => limit_resource(*resource, *most, *most),
            Step::HangupHeard => handle_hangup(),
            Step::Files(files) => files.iter().zip(3..).try_for_each(|(file, number)| {
                // SAFETY: dup2 takes two integers; it only changes descriptors of the new process.
                check_result(unsafe { libc::dup2(file.as_raw_fd(), number) }).map(|_| ())
            }),
        }
    }
}

/// A duplicate with a number above the first descriptors.
fn duplicate_above(file: &OwnedFd) -> Result<OwnedFd, SysError> {
    let raw = file.as_raw_fd();
    // SAFETY: fcntl with F_DUPFD_CLOEXEC takes integers.
    let fd = check_result(unsafe { libc::fcntl(raw, libc::F_DUPFD_CLOEXEC, 500) })
        .map_err(|errno| SysError::new("fcntl", "file for a child", errno))?;
    // SAFETY: fcntl just returned this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

// glibc has its own enum type for it, musl an int.
#[cfg(target_env = "gnu")]
type LimitKind = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type LimitKind = libc::c_int;

fn c_path(path: &Path) -> Result<CString, SysError> {
    let bytes = path.as_os_str().as_bytes();
    CString::new(bytes).map_err(|_| SysError::on_bytes("openat", bytes, Errno::INVAL))
}

fn unshare(what: libc::c_int) -> Result<(), Errno> {
    // SAFETY: takes a flag word; changes namespaces, no memory.
    check_result(unsafe { libc::unshare(what) })?;
    Ok(())
}

fn unshare_mounts() -> Result<(), Errno> {
    unshare(libc::CLONE_NEWNS)?;
    // Without this, mounts made here would propagate back to the host if / is shared (systemd).
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)
}

fn mount(
    from: Option<&std::ffi::CStr>,
    place: &std::ffi::CStr,
    kind: Option<&std::ffi::CStr>,
    flags: libc::c_ulong,
    options: Option<&std::ffi::CStr>,
) -> Result<(), Errno> {
    let pointer = |text: Option<&std::ffi::CStr>| text.map_or(std::ptr::null(), std::ffi::CStr::as_ptr);
    let (from, kind, options) = (pointer(from), pointer(kind), pointer(options));
    // SAFETY: every pointer is null or a NUL-terminated string that lives through the call.
    check_result(unsafe { libc::mount(from, place.as_ptr(), kind, flags, options.cast()) })?;
    Ok(())
}

fn enter_network(path: &std::ffi::CStr) -> Result<(), Errno> {
    // SAFETY: `path` is NUL-terminated.
    let fd = check_result(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })?;
    // The descriptor closes itself at exec.
    // SAFETY: setns takes a descriptor and a flag; changes a namespace, no memory.
    check_result(unsafe { libc::setns(fd as libc::c_int, libc::CLONE_NEWNET) })?;
    Ok(())
}

fn limit_resource(resource: LimitKind, now: u64, most: u64) -> Result<(), Errno> {
    let limit = libc::rlimit64 { rlim_cur: now, rlim_max: most };
    // SAFETY: `limit` is a live rlimit64 to be read.
    check_result(unsafe { libc::setrlimit64(resource, &raw const limit) })?;
    Ok(())
}

fn handle_hangup() -> Result<(), Errno> {
    // SAFETY: SIG_DFL installs no handler; no code of ours runs for the signal.
    match unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) } {
        libc::SIG_ERR => Err(Errno::INVAL),
        _ => Ok(()),
    }
}

// The raw calls instead of glibc's wrappers: those stop all threads of the process to change them together, which is
// not possible between fork and exec.
fn become_user(uid: u32, gid: u32) -> Result<(), Errno> {
    let none = std::ptr::null::<libc::gid_t>();
    // SAFETY: an empty list needs no memory.
    check_result(unsafe { libc::syscall(libc::SYS_setgroups, 0, none) })?;
    // SAFETY: takes three integers.
    check_result(unsafe { libc::syscall(libc::SYS_setresgid, gid, gid, gid) })?;
    // SAFETY: takes three integers. Leaving uid 0 clears the effective and permitted capabilities.
    check_result(unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) })?;
    Ok(())
}

// Allocates nothing unless it fails.
fn without_caps(dropped: &[Cap]) -> Result<(), Errno> {
    rights::keep_only(CapSet(!CapSet::from_caps(dropped).0)).map(|_| ()).map_err(|error| error.errno)
}

/// The result of a system call, or the error that it has left in errno.
fn check_result(result: impl Into<i64>) -> Result<i64, Errno> {
    match result.into() {
        ..0 => Err(Errno::last_error()),
        result => Ok(result),
    }
}

/// A seccomp program; a fixed array, so that installing it allocates nothing.
struct Filter([libc::sock_filter; 9]);

// struct seccomp_data (include/uapi/linux/seccomp.h): nr s32, arch u32, ip u64, args u64[6].
const DATA_NR: u32 = 0;
const DATA_ARGS: u32 = 16;
const LOW: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };

impl Filter {
    // Checks the call number and arguments, not the architecture: a 32-bit call would pass, but this only has to stop
    // our own binary, not an attacker.
    fn refuse_family(family: i32, protocol: Option<i32>, errno: Errno) -> Filter {
        let load = |offset: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
        // Falls through if equal, otherwise skips `skip` steps.
        let unless = |value: u32, skip: u8| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, value);
        let ret = |value: u32| step(libc::BPF_RET | libc::BPF_K, 0, 0, value);
        let fail = libc::SECCOMP_RET_ERRNO | (errno.0 as u32 & libc::SECCOMP_RET_DATA);
        let any = step(libc::BPF_JMP | libc::BPF_JA, 0, 0, 0);
        Filter([
            load(DATA_NR),
            unless(libc::SYS_socket as u32, 6),
            load(DATA_ARGS + LOW),
            unless(family as u32, 4),
            load(DATA_ARGS + 16 + LOW),
            protocol.map_or(any, |protocol| unless(protocol as u32, 2)),
            any,
            ret(fail),
            ret(libc::SECCOMP_RET_ALLOW),
        ])
    }

    /// A filter that makes one system call fail completely.
    fn refusing_call(number: libc::c_long, errno: Errno) -> Filter {
        let allow = step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW);
        let mut steps = [allow; 9];
        steps[0] = step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, DATA_NR);
        steps[1] = step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number as u32);
        let fail = libc::SECCOMP_RET_ERRNO | (errno.0 as u32 & libc::SECCOMP_RET_DATA);
        steps[2] = step(libc::BPF_RET | libc::BPF_K, 0, 0, fail);
        Filter(steps)
    }
}

fn step(code: u32, yes: u8, no: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k }
}

fn install(filter: &Filter) -> Result<(), Errno> {
    // SAFETY: takes integers only. Without it a seccomp filter needs CAP_SYS_ADMIN.
    check_result(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    let program = libc::sock_fprog { len: filter.0.len() as libc::c_ushort, filter: filter.0.as_ptr().cast_mut() };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: `program` points to `len` live steps; the kernel copies and checks them.
    check_result(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::{has_mounted_root, mounts_root, root_or_skip};

    fn output(limits: &[Limit], script: &str) -> (String, i32) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        confine(&mut command, limits).unwrap();
        let output = command.output().unwrap();
        (String::from_utf8_lossy(&output.stdout).trim().into(), output.status.code().unwrap_or(-1))
    }

    #[test]
    fn issue_10_a_plain_chroot_is_known_by_its_mounts() {
        let root = "31 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";
        let proc = "54 31 0:5 / /proc rw,nosuid - proc proc rw\n";
        assert!(mounts_root(format!("{root}{proc}").as_bytes()));
        assert!(!mounts_root(proc.as_bytes()) && !mounts_root(b""));
    }

    /// Uses a real chroot into a folder whose root is not a mount point.
    #[test]
    fn root_issue_10_a_plain_chroot_is_detected() {
        if !root_or_skip("a chroot") {
            return;
        }
        let folder = std::env::temp_dir().join(format!("nw-chroot-{}-0", std::process::id()));
        std::fs::create_dir_all(folder.join("proc")).unwrap();
        let seen = {
            let place = folder.clone();
            std::thread::spawn(move || {
                make_mount_namespace().unwrap();
                bind_mount(Path::new("/proc"), &place.join("proc")).unwrap();
                std::os::unix::fs::chroot(&place).unwrap();
                (Path::new("/proc/thread-self/mountinfo").exists(), has_mounted_root())
            })
            .join()
            .unwrap()
        };
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(seen, (true, false));
        assert!(has_mounted_root());
    }

    #[test]
    fn root_a_child_without_capabilities() {
        if !root_or_skip("dropping capabilities") {
            return;
        }
        let (caps, _) =
            output(&[Limit::WithoutCaps(vec![Cap::NetAdmin, Cap::SysPtrace])], "grep CapEff /proc/self/status");
        let set = u64::from_str_radix(caps.trim_start_matches("CapEff:").trim(), 16).unwrap();
        let set = CapSet(set);
        assert!(!set.contains(Cap::NetAdmin) && !set.contains(Cap::SysPtrace) && set.contains(Cap::SysAdmin), "{caps}");
    }

    #[test]
    fn root_a_child_as_another_user() {
        if !root_or_skip("changing the user") {
            return;
        }
        let (text, _) =
            output(&[Limit::User { uid: 65534, gid: 65534 }], "id -u; id -G; grep CapEff /proc/self/status");
        assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["65534", "65534", "CapEff:", "0000000000000000"]);
    }

    #[test]
    fn a_thread_without_netlink() {
        // Needs no privilege: seccomp with no_new_privs. The filter ends with the thread.
        let errors = std::thread::spawn(|| {
            refuse_socket(libc::AF_NETLINK, Errno::PERM).unwrap();
            let refused = sys::NetlinkSocket::open(libc::NETLINK_INET_DIAG).unwrap_err().errno;
            (refused, std::net::UdpSocket::bind("127.0.0.1:0").is_ok())
        });
        assert_eq!(errors.join().unwrap(), (Errno::PERM, true));
        assert!(sys::NetlinkSocket::open(libc::NETLINK_INET_DIAG).is_ok());
    }

    #[test]
    fn bpf_can_be_refused() {
        let refused = std::thread::spawn(|| {
            install(&Filter::refusing_call(libc::SYS_bpf, Errno::NOSYS)).unwrap();
            let shape = sys::bpf::MapShape { kind: 1, key_bytes: 4, value_bytes: 4, entries: 1, ..Default::default() };
            (sys::bpf::Map::create(shape, None).unwrap_err().errno, std::net::UdpSocket::bind("127.0.0.1:0").is_ok())
        });
        assert_eq!(refused.join().unwrap(), (Errno::NOSYS, true));
    }

    #[test]
    fn one_protocol_can_be_refused_alone() {
        let opened = std::thread::spawn(|| {
            let filter = Filter::refuse_family(libc::AF_NETLINK, Some(libc::NETLINK_INET_DIAG), Errno::OPNOTSUPP);
            install(&filter).unwrap();
            let open = |protocol| sys::NetlinkSocket::open(protocol).map_err(|error| error.errno).map(drop);
            (open(libc::NETLINK_INET_DIAG), open(libc::NETLINK_ROUTE))
        });
        assert_eq!(opened.join().unwrap(), (Err(Errno::OPNOTSUPP), Ok(())));
    }

    #[test]
    fn root_hidden_processes_and_covered_files() {
        if !root_or_skip("mounting") {
            return;
        }
        let limits = [Limit::HidePid(2), Limit::User { uid: 65534, gid: 65534 }];
        let (seen, _) = output(&limits, "test -e /proc/1 && echo seen || echo hidden");
        assert_eq!(seen, "hidden");
        let tmp = tempfile::tempdir().unwrap();
        let with = tmp.path().join("passwd");
        std::fs::write(&with, "only:x:1:1::/:/bin/sh\n").unwrap();
        let (text, _) = output(&[Limit::Cover { with, place: "/etc/passwd".into() }], "cat /etc/passwd");
        assert_eq!(text, "only:x:1:1::/:/bin/sh");
        assert_ne!(std::fs::read_to_string("/etc/passwd").unwrap().trim(), text, "the host's own file is untouched");
    }

    #[test]
    fn root_other_networks() {
        if !root_or_skip("entering network namespaces") {
            return;
        }
        let own = sys::netns::current_inode().unwrap().to_string();
        let (inode, _) = output(&[Limit::EmptyNetwork], "stat -L -c %i /proc/self/ns/net");
        assert_ne!(inode, own);
        let back = Limit::Network(format!("/proc/{}/ns/net", std::process::id()).into());
        let (inode, _) = output(&[Limit::EmptyNetwork, back], "stat -L -c %i /proc/self/ns/net");
        assert_eq!(inode, own);
    }

    #[test]
    fn resource_limits() {
        assert_eq!(output(&[Limit::OpenFiles(37)], "ulimit -n").0, "37");
        assert_eq!(output(&[Limit::AddressSpace(1 << 30)], "ulimit -v").0, "1048576");
        let before = raise_open_files(1).unwrap();
        assert!(raise_open_files(before).unwrap() >= before);
    }

    #[test]
    fn a_limit_that_cannot_be_set_stops_the_child() {
        let mut command = Command::new("/bin/true");
        confine(&mut command, &[Limit::Network("/nonexistent".into())]).unwrap();
        assert_eq!(command.status().unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}
