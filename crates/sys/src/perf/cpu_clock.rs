//! The sampling timer of one CPU.
use std::os::fd::AsRawFd;

use crate::errno::{Errno, SysError};
use crate::fd::Fd;
use crate::host::Host;
use crate::syscall::call;

/// `PERF_TYPE_SOFTWARE`; its counter 0 is `PERF_COUNT_SW_CPU_CLOCK`.
const SOFTWARE: u32 = 1;
/// `PERF_FLAG_FD_CLOEXEC`
const CLOEXEC: u64 = 1 << 3;
/// Bits of `struct perf_event_attr`.
const DISABLED: u64 = 1;
const FREQUENCY: u64 = 1 << 10;
const NO_CHAIN_OF_USER: u64 = 1 << 22;
/// `PERF_EVENT_IOC_ENABLE`, `PERF_EVENT_IOC_DISABLE`, `PERF_EVENT_IOC_SET_BPF`
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_BPF: libc::c_ulong = 0x4004_2408;

/// `struct perf_event_attr` up to `PERF_ATTR_SIZE_VER5` (Linux 4.8).
#[repr(C)]
#[derive(Default)]
struct EventAttr {
    kind: u32,
    size: u32,
    config: u64,
    frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    user_registers: u64,
    user_stack_bytes: u32,
    clock: i32,
    interrupted_registers: u64,
    aux_watermark: u32,
    stack_depth: u16,
    reserved: u16,
}
const _: () = assert!(size_of::<EventAttr>() == 112);

/// A timer that samples one CPU. Dropping it ends the sampling.
#[derive(Debug)]
pub struct CpuClock {
    fd: Fd,
    cpu: u32,
}

impl CpuClock {
    /// Opens the timer of `cpu` with `hz` samples per second, not started. ENODEV: the CPU is offline. EACCES:
    /// CAP_PERFMON is missing. EINVAL: the rate exceeds the kernel's maximum (kernel.perf_event_max_sample_rate).
    pub fn open(cpu: u32, hz: u32) -> Result<CpuClock, SysError> {
        CpuClock::open_with(cpu, hz, 0, 0)
    }

    /// Opens a timer like [`CpuClock::open`]; `sample_type` (`PERF_SAMPLE_…`) selects the contents of a sample,
    /// `stack_depth` the maximum length of a call chain.
    pub(super) fn open_with(cpu: u32, hz: u32, sample_type: u64, stack_depth: u16) -> Result<CpuClock, SysError> {
        let attr = EventAttr {
            kind: SOFTWARE,
            size: size_of::<EventAttr>() as u32,
            frequency: hz.into(),
            sample_type,
            flags: DISABLED | FREQUENCY | NO_CHAIN_OF_USER,
            stack_depth,
            ..EventAttr::default()
        };
        let every_process: libc::pid_t = -1;
        let no_group: libc::c_int = -1;
        // SAFETY: EventAttr is the layout of struct perf_event_attr in its size of Linux 4.8, which it states; the
        // kernel only reads it (and writes `size` if it rejects it).
        let open = || unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attr,
                every_process,
                cpu as libc::c_int,
                no_group,
                CLOEXEC,
            )
        };
        let failed = |errno| SysError::new("perf_event_open", format!("CPU {cpu}"), errno);
        let fd = call("perf_event_open", open).map_err(failed)?;
        // SAFETY: the kernel just returned this descriptor to us alone.
        Ok(CpuClock { fd: unsafe { Fd::take(fd) }, cpu })
    }

    /// The number of the CPU.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Runs `program` (of type `BPF_PROG_TYPE_PERF_EVENT`) for each sample from now on.
    pub fn run(&self, program: &Fd) -> Result<(), SysError> {
        self.control(SET_BPF, program.as_raw_fd())
    }

    /// Starts the timer.
    pub fn start(&self) -> Result<(), SysError> {
        self.control(ENABLE, 0)
    }

    /// Stops the timer.
    pub fn stop(&self) -> Result<(), SysError> {
        self.control(DISABLE, 0)
    }

    pub(super) fn fd(&self) -> &Fd {
        &self.fd
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_int) -> Result<(), SysError> {
        // SAFETY: these requests take an integer or nothing.
        let done = call("ioctl", || unsafe { libc::ioctl(self.fd.raw(), request as _, argument) }.into());
        done.map(drop).map_err(|errno| SysError::new("ioctl", format!("samples of CPU {}", self.cpu), errno))
    }
}

/// The numbers of the CPUs that are online (/sys/devices/system/cpu/online), ascending.
pub fn online_cpus(host: &Host) -> Result<Vec<u32>, SysError> {
    const PATH: &str = "devices/system/cpu/online";
    let (path, mut text) = (host.sys_path(PATH), Vec::new());
    crate::fs::read_file(&path, &mut text)?;
    ranges(&text).ok_or_else(|| SysError::new("read", path.display().to_string(), Errno::INVAL))
}

/// Parses `0-3,5`: at most 65,536 numbers.
fn ranges(text: &[u8]) -> Option<Vec<u32>> {
    const CPUS_MAX: u32 = 1 << 16;
    let mut all = Vec::new();
    for part in std::str::from_utf8(text).ok()?.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= CPUS_MAX {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(ranges(b"0-3,5\n"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!(ranges(b"0\n"), Some(vec![0]));
        for wrong in [&b""[..], b"3-1", b"0-4294967295", b"x"] {
            assert_eq!(ranges(wrong), None, "{wrong:?}");
        }
        assert!(online_cpus(&Host::live()).is_ok_and(|cpus| !cpus.is_empty()));
    }
}
