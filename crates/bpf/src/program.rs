//! Programs: their types, running them, attaching them.
use sys::bpf::NetfilterPlace;
use sys::perf::CpuClock;
use sys::{Errno, Fd, SysError, bpf};

use crate::btf::TypeKind;
use crate::error::BpfError;
use crate::link::Link;

/// The type of a program, derived from its section's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramType<'a> {
    /// `syscall`: runs when [`Program::run`] is called.
    Called,
    /// `tp_btf/NAME`: runs at a tracepoint, with typed arguments.
    Tracepoint(&'a str),
    /// `iter/NAME`: runs for each kernel object of a kind and writes a row for it.
    Iterator(&'a str),
    /// `cgroup/sock_create`, `cgroup/sock_release`: runs for sockets of a cgroup. Holds the attach type.
    Cgroup(u32),
    /// `cgroup/getpeername4` and 6: runs when a process asks for its peer's address. Holds the attach type.
    PeerName(u32),
    /// `netfilter`: runs for packets at a netfilter hook.
    Netfilter,
    /// `perf_event`: runs for samples of a timer.
    PerfEvent,
}

/// `BPF_F_SLEEPABLE`
const SLEEPABLE: u32 = 1 << 4;
/// `BPF_CGROUP_INET_SOCK_CREATE`, `BPF_CGROUP_INET_SOCK_RELEASE`
const SOCK_CREATE: u32 = 2;
const SOCK_RELEASE: u32 = 34;
/// `BPF_CGROUP_INET4_GETPEERNAME`, `BPF_CGROUP_INET6_GETPEERNAME` (Linux 5.8)
const GETPEERNAME4: u32 = 29;
const GETPEERNAME6: u32 = 30;
/// `BPF_NETFILTER` (Linux 6.4)
const NETFILTER: u32 = 45;

impl<'a> ProgramType<'a> {
    /// The type that sees accept(2), which reports the peer's address.
    pub(crate) const ACCEPT: ProgramType<'static> = ProgramType::PeerName(GETPEERNAME4);

    /// The type for a section name; `None` for unknown names.
    pub(crate) fn of_section(section: &'a str) -> Option<ProgramType<'a>> {
        let program_type = match section.split_once('/') {
            None if section == "syscall" => ProgramType::Called,
            None if section == "netfilter" => ProgramType::Netfilter,
            None if section == "perf_event" => ProgramType::PerfEvent,
            Some(("tp_btf", name)) => ProgramType::Tracepoint(name),
            Some(("iter", name)) => ProgramType::Iterator(name),
            Some(("cgroup", "sock_create")) => ProgramType::Cgroup(SOCK_CREATE),
            Some(("cgroup", "sock_release")) => ProgramType::Cgroup(SOCK_RELEASE),
            Some(("cgroup", "getpeername4")) => ProgramType::PeerName(GETPEERNAME4),
            Some(("cgroup", "getpeername6")) => ProgramType::PeerName(GETPEERNAME6),
            _ => return None,
        };
        Some(program_type)
    }

    /// The kernel's numbers: (`enum bpf_prog_type`, `enum bpf_attach_type`, flags).
    pub(crate) fn numbers(self) -> (u32, u32, u32) {
        match self {
            ProgramType::Called => (31, 0, SLEEPABLE),
            ProgramType::Tracepoint(_) => (26, 23, 0),
            ProgramType::Iterator(_) => (26, 28, 0),
            ProgramType::Cgroup(attach) => (9, attach, 0),
            ProgramType::PeerName(attach) => (18, attach, 0),
            ProgramType::Netfilter => (32, NETFILTER, 0),
            ProgramType::PerfEvent => (7, 0, 0),
        }
    }

    /// Name and kind of the kernel's type that represents the target, and how an error names the target.
    pub(crate) fn target(self) -> Option<(String, TypeKind, &'static str, &'a str)> {
        match self {
            ProgramType::Tracepoint(name) => Some((format!("btf_trace_{name}"), TypeKind::TYPEDEF, "tracepoint", name)),
            ProgramType::Iterator(name) => Some((format!("bpf_iter_{name}"), TypeKind::FUNCTION, "iterator", name)),
            ProgramType::Called
            | ProgramType::Cgroup(_)
            | ProgramType::PeerName(_)
            | ProgramType::Netfilter
            | ProgramType::PerfEvent => None,
        }
    }

    /// The name for messages and the first kernel version that has the type.
    pub(crate) fn name_and_version(self) -> (&'static str, &'static str) {
        match self {
            ProgramType::Called => ("syscall", "5.14"),
            ProgramType::Tracepoint(_) => ("tp_btf", "5.5"),
            ProgramType::Iterator(_) => ("iter", "5.8"),
            ProgramType::Cgroup(SOCK_RELEASE) => ("cgroup/sock_release", "5.9"),
            ProgramType::Cgroup(_) => ("cgroup/sock_create", "4.10"),
            ProgramType::PeerName(_) => ("cgroup/getpeername", "5.8"),
            ProgramType::Netfilter => ("netfilter", "6.4"),
            ProgramType::PerfEvent => ("perf_event", "4.9"),
        }
    }

    /// The capabilities that loading and attaching need.
    pub(crate) fn needed_capabilities(self) -> &'static str {
        match self {
            ProgramType::Cgroup(_) | ProgramType::PeerName(_) => "CAP_BPF and CAP_NET_ADMIN",
            ProgramType::Netfilter => "CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
            _ => "CAP_BPF and CAP_PERFMON",
        }
    }
}

/// A loaded program.
#[derive(Debug)]
pub struct Program {
    name: Box<str>,
    fd: Fd,
    attach: Attach,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attach {
    None,
    Tracepoint,
    Iterator(u32),
    Cgroup(u32),
    Netfilter,
    PerfEvent,
}

impl Program {
    pub(crate) fn new(name: &str, fd: Fd, program_type: ProgramType<'_>) -> Program {
        let (_, number, _) = program_type.numbers();
        let attach = match program_type {
            ProgramType::Called => Attach::None,
            ProgramType::Tracepoint(_) => Attach::Tracepoint,
            ProgramType::Iterator(_) => Attach::Iterator(number),
            ProgramType::Cgroup(_) | ProgramType::PeerName(_) => Attach::Cgroup(number),
            ProgramType::Netfilter => Attach::Netfilter,
            ProgramType::PerfEvent => Attach::PerfEvent,
        };
        Program { name: name.into(), fd, attach }
    }

    /// Its name in the object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a `syscall` program once on `context`, which it may modify; returns the program's return value. One system
    /// call. May be called from several threads at once.
    pub fn run(&self, context: &mut [u8]) -> Result<u32, BpfError> {
        if self.attach != Attach::None {
            return Err(self.not("program that can be run"));
        }
        bpf::run(&self.fd, context).map_err(|errno| self.call_error("bpf_prog_run", errno))
    }

    /// Attaches a `tp_btf` or `iter` program; dropping the link detaches it.
    pub fn attach(&self) -> Result<Link, BpfError> {
        match self.attach {
            Attach::Tracepoint => {
                let link = bpf::attach_raw_tracepoint(&self.fd);
                Ok(Link::new(
                    &self.name,
                    link.map_err(|errno| self.call_error("bpf_raw_tracepoint_open", errno))?,
                    false,
                ))
            }
            Attach::Iterator(_) => self.attach_narrowed(&[]),
            _ => Err(self.not("tp_btf or iter program")),
        }
    }

    /// Attaches an `iter` program restricted to a task or map: `which` is a `union bpf_iter_link_info`.
    pub fn attach_narrowed(&self, which: &[u8]) -> Result<Link, BpfError> {
        let Attach::Iterator(attach) = self.attach else { return Err(self.not("iter program")) };
        let link = bpf::attach_iterator(&self.fd, attach, which);
        Ok(Link::new(&self.name, link.map_err(|errno| self.call_error("bpf_link_create", errno))?, true))
    }

    /// Attaches a `cgroup/…` program to a cgroup v2 directory; dropping the link detaches it.
    pub fn attach_cgroup(&self, cgroup: &Fd) -> Result<Link, BpfError> {
        let Attach::Cgroup(attach) = self.attach else { return Err(self.not("cgroup program")) };
        let link = bpf::attach_to(&self.fd, cgroup, attach);
        Ok(Link::new(&self.name, link.map_err(|errno| self.call_error("bpf_link_create", errno))?, false))
    }

    /// Number of runs that the kernel skipped because the program was already running on that CPU; see
    /// [`bpf::missed_runs`]. One system call.
    pub fn missed_runs(&self) -> Result<u64, BpfError> {
        bpf::missed_runs(&self.fd).map_err(|errno| self.call_error("bpf_obj_get_info_by_fd", errno))
    }

    /// Number of instructions that the verifier processed when it loaded the program; see
    /// [`bpf::verified_instructions`]. One system call.
    pub fn verified_instructions(&self) -> Result<u32, BpfError> {
        bpf::verified_instructions(&self.fd).map_err(|errno| self.call_error("bpf_obj_get_info_by_fd", errno))
    }

    /// Attaches a `netfilter` program to a hook of the calling thread's network namespace; dropping the link detaches
    /// it. Fails with [`BpfError::Taken`] if another program has this hook and priority.
    pub fn attach_netfilter(&self, place: NetfilterPlace) -> Result<Link, BpfError> {
        if self.attach != Attach::Netfilter {
            return Err(self.not("netfilter program"));
        }
        match bpf::attach_netfilter(&self.fd, NETFILTER, place) {
            Ok(link) => Ok(Link::new(&self.name, link, false)),
            Err(Errno::BUSY) => Err(BpfError::Taken { hook: hook_name(place.hook), priority: place.priority }),
            Err(errno) => Err(self.call_error("bpf_link_create", errno)),
        }
    }

    /// Runs a `perf_event` program for each sample of a timer, as long as the timer is open.
    pub fn run_at(&self, clock: &CpuClock) -> Result<(), BpfError> {
        if self.attach != Attach::PerfEvent {
            return Err(self.not("perf_event program"));
        }
        Ok(clock.run(&self.fd)?)
    }

    fn not(&self, kind: &'static str) -> BpfError {
        BpfError::NoSuch { kind, name: self.name.clone() }
    }

    fn call_error(&self, call: &'static str, errno: Errno) -> BpfError {
        BpfError::Io(SysError::new(call, format!("BPF program {}", self.name), errno))
    }
}

/// `enum nf_inet_hooks` (include/uapi/linux/netfilter.h).
fn hook_name(hook: u32) -> &'static str {
    const NAMES: [&str; 5] = ["PRE_ROUTING", "LOCAL_IN", "FORWARD", "LOCAL_OUT", "POST_ROUTING"];
    NAMES.get(hook as usize).copied().unwrap_or("unknown")
}
