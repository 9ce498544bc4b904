//! Distinguishes a process, and the program that it runs, from others with the same pid.
use record::Comm;
use record::text::put_u64;
use sys::fs::{self, CPath};
use sys::{Errno, Fd, Host, SysError};

/// Duration of a tick in ns: `USER_HZ` is 100 (include/uapi/asm-generic/param.h).
const TICK_NS: u64 = 10_000_000;

/// Number of bytes read of the file; it has about 350.
const STAT_BYTES: usize = 1024;

/// Ticks since boot at this time of CLOCK_BOOTTIME.
pub(super) fn ticks(boottime_ns: u64) -> u64 {
    if boottime_ns == u64::MAX { u64::MAX } else { boottime_ns / TICK_NS }
}

/// Identifies a process by its start, and its program.
///
/// Pid and start time stay the same for the life of the process. The name and the addresses of code, stack and
/// arguments belong to its current program: they change when it executes another. Without the privilege to trace the
/// process the addresses are 0, and only the name identifies the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Start time in hundredths of a second since boot.
    pub started: u64,
    /// True if all its threads have ended: its program is then unknown.
    pub has_ended: bool,
    name: Comm,
    image: [u64; 3],
}

impl Identity {
    /// Reads the identity; fails if the process does not exist.
    pub fn read(host: &Host, pid: u32) -> Result<Identity, SysError> {
        let mut text = Vec::new();
        read_recorded(host, pid, &mut text)?;
        parse(&text).ok_or_else(|| SysError::new("read", format!("process {pid}"), Errno::INVAL))
    }

    /// True if it started after `seen_ns` of CLOCK_BOOTTIME, to a hundredth of a second: its pid belonged to another
    /// process then.
    pub fn started_after(&self, seen_ns: u64) -> bool {
        self.started > ticks(seen_ns)
    }

    /// True if the process started at `started`: the lowest 32 bits of its start in units of 2^20 ns since boot; 0
    /// matches any.
    pub fn is_of(&self, started: u32) -> bool {
        // It started at some moment within the tick.
        let begin_ns = self.started.saturating_mul(TICK_NS);
        let [first, last] = [begin_ns, begin_ns.saturating_add(TICK_NS - 1)].map(|ns| (ns >> 20) as u32);
        started == 0 || started.wrapping_sub(first) <= last.wrapping_sub(first)
    }

    /// Reads the identity from the process's open directory; `ESRCH` or `ENOENT` once it has ended.
    pub(super) fn of(dir: &Fd, pid: &[u8], path: &mut CPath, text: &mut Vec<u8>) -> Result<Identity, Errno> {
        read_stat(dir, pid, path, text)?;
        parse(text).ok_or(Errno::INVAL)
    }
}

/// Facts from /proc about a process, except its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stat {
    /// Start time in ns since boot, with a resolution of 10 ms.
    pub(crate) started_ns: u64,
    /// Pid of its parent.
    pub(crate) parent: u32,
    /// Number of its threads.
    pub(crate) threads: u64,
}

impl Stat {
    /// Reads the facts; fails if the process does not exist.
    pub(crate) fn read(host: &Host, pid: u32) -> Result<Stat, SysError> {
        let mut text = Vec::new();
        read_recorded(host, pid, &mut text)?;
        let garbled = || SysError::new("read", format!("process {pid}"), Errno::INVAL);
        let number = |field| number_of(&text, field).ok_or_else(garbled);
        Ok(Stat {
            started_ns: number(22)?.saturating_mul(TICK_NS),
            parent: u32::try_from(number(4)?).unwrap_or(0),
            threads: number(20)?,
        })
    }
}

fn read_recorded(host: &Host, pid: u32, text: &mut Vec<u8>) -> Result<(), SysError> {
    let mut digits = Vec::with_capacity(10);
    put_u64(&mut digits, pid.into());
    host.bytes(&format!("process {pid}"), "", text, |into| {
        let failed = |errno| SysError::new("read", format!("process {pid}"), errno);
        let proc = fs::open_dir(&host.proc_path(""))?;
        let mut path = CPath::new();
        let dir = fs::open_dir_at(&proc, path.set(&[&digits])).map_err(failed)?;
        read_stat(&dir, &digits, &mut path, into).map_err(failed)
    })
}

// Returns the number in this field of proc_pid_stat(5); `field` is at least 4.
fn number_of(stat: &[u8], field: usize) -> Option<u64> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let mut fields = stat.get(end + 1..)?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    std::str::from_utf8(fields.nth(field.checked_sub(3)?)?).ok()?.parse().ok()
}

// Reads the first thread's file: the process's file adds up the times of all threads, which costs 1 µs per thread.
fn read_stat(dir: &Fd, pid: &[u8], path: &mut CPath, text: &mut Vec<u8>) -> Result<(), Errno> {
    text.clear();
    let file = fs::open_at(dir, path.set(&[b"task/", pid, b"/stat"]))?;
    fs::read_append(&file, text, STAT_BYTES).map(drop)
}

// Parses proc_pid_stat(5). The name may contain anything, also parentheses and spaces: the last parenthesis ends it.
fn parse(stat: &[u8]) -> Option<Identity> {
    let start = stat.iter().position(|&byte| byte == b'(')?;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let name = Comm::new(stat.get(start + 1..end)?);
    let fields = stat.get(end + 1..)?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    // The first element is field 3.
    let fields: Vec<&[u8]> = fields.collect();
    let number = |field: usize| -> Option<u64> { std::str::from_utf8(fields.get(field - 3)?).ok()?.parse().ok() };
    let image = [26, 28, 48].map(|field| number(field).unwrap_or(0));
    // The first thread may end before others: it stays a zombie while another is running.
    let has_ended = matches!(fields.first(), Some(&[b'Z' | b'X' | b'x'])) && number(20) <= Some(1);
    Some(Identity { started: number(22)?, has_ended, name, image })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_parentheses_moves_no_field() {
        let line = |name: &str| format!("7 ({name}) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 9 9 9 5 9 6 9\n");
        for name in ["sh", "a) S 1 (b", ") 9 9 (", ""] {
            let identity = parse(line(name).as_bytes()).unwrap();
            assert_eq!((identity.started, identity.name), (4711, Comm::new(name.as_bytes())), "{name}");
            assert_eq!(identity.image, [5, 6, 0]);
        }
        assert_eq!(parse(b"7 (x"), None);
        assert_eq!(parse(b"7 (x) S 1"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn issue_10_start_times_of_different_ticks_differ() {
        let of = |started| Identity { started, has_ended: false, name: Comm::new(b"a"), image: [0; 3] };
        for begin_ns in [0, 1 << 33, 50 << 52, u64::MAX / 4] {
            let start_ns = begin_ns + 20 * TICK_NS;
            let (started, ticks) = ((start_ns >> 20) as u32, start_ns / TICK_NS);
            assert!(of(ticks).is_of(started) && of(ticks).is_of(0));
            assert!(!of(ticks + 2).is_of(started) && !of(ticks - 2).is_of(started), "{begin_ns}");
        }
    }

    #[test]
    fn issue_10_the_same_process_runs_another_program() {
        let host = Host::live();
        let mut child = Command::new("sh")
            .args(["-c", "echo; read x; exec sleep 60"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let shell = Identity::read(&host, child.id()).unwrap();
        assert_eq!(Identity::read(&host, child.id()).unwrap(), shell);
        drop(child.stdin.take());
        let now = || Identity::read(&host, child.id()).unwrap();
        testkit::wait_until("it sleeps", || now().name == Comm::new(b"sleep"));
        assert_eq!(now().started, shell.started);
        assert_ne!(now(), shell);
        let pid = child.id();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(Identity::read(&host, pid).is_err());
    }
}
