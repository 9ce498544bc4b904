//! Data from /proc about the processes that hold sockets: command line, cgroups, pid in their own pid namespace,
//! security context.
//!
//! Reads only the requested pids, and only the requested files: each costs about 6 µs. All files of a process are read
//! below one open directory /proc/PID, which still refers to this process if the pid is reused; its start time shows
//! whether it is the intended process.
mod cmdline_reader;
mod identity;

use record::{Key, Lookup, Value};
use sys::fs::{self, CPath};
use sys::{Blocks, Errno, Fd, Host, SysError};

use crate::HostError;
use crate::texts::Texts;
use cmdline_reader::{BYTES_MAX, CmdlineRead, CmdlineReader, CmdlineRequest};
pub use identity::Identity;
pub(crate) use identity::Stat;
use record::text::put_u64;

/// Name of the stream in a recording.
const STREAM: &str = "processes";

/// Size at which a block is handed out.
const BLOCK_FULL: usize = 60 << 10;

/// Bound: bytes of all command lines. Beyond: further command lines are empty; counted. This also affects other users.
/// By: a user with as many processes.
const TEXTS_BYTES_MAX: usize = 256 << 20;

/// One file of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ProcessPart {
    Cmdline,
    Cgroup,
    Status,
    Context,
    /// Start time in ticks since boot, u64 little endian: not a separate file.
    Started,
}

impl ProcessPart {
    const ALL: [ProcessPart; 5] =
        [ProcessPart::Cmdline, ProcessPart::Cgroup, ProcessPart::Status, ProcessPart::Context, ProcessPart::Started];

    fn file(self) -> &'static [u8] {
        match self {
            ProcessPart::Cmdline => b"cmdline",
            ProcessPart::Cgroup => b"cgroup",
            ProcessPart::Status => b"status",
            ProcessPart::Context => b"attr/current",
            ProcessPart::Started => b"",
        }
    }
}

/// The parts to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessParts {
    /// Command lines.
    pub cmdlines: bool,
    /// Paths of cgroups, for [`crate::Containers`].
    pub cgroups: bool,
    /// Pids in their own pid namespaces.
    pub container_pids: bool,
    /// Security contexts.
    pub contexts: bool,
}

impl ProcessParts {
    fn has(self, part: ProcessPart) -> bool {
        match part {
            ProcessPart::Cmdline => self.cmdlines,
            ProcessPart::Cgroup => self.cgroups,
            ProcessPart::Status => self.container_pids,
            ProcessPart::Context => self.contexts,
            ProcessPart::Started => false,
        }
    }
}

/// The data of each process.
#[derive(Debug, Default)]
pub struct Processes {
    cmdlines: Cmdlines,
    cgroups: Texts<u32>,
    container_pids: ContainerPids,
    contexts: Contexts,
    /// pid and start time in ticks since boot; in ascending order.
    started: Vec<(u32, u64)>,
    report: ProcessesReport,
}

/// Missing data after reading processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessesReport {
    /// Number of files that could not be read although the process existed.
    pub unreadable: u32,
    /// The reason for the first of them.
    pub refusal: Option<Errno>,
    /// Number of command lines that did not arrive in time, because reading them never ended.
    pub stuck: u32,
    /// Number of files beyond the total limit of 256 MiB, which are not kept.
    pub over: u32,
    /// Why the read ended early, if it did.
    pub ended: Option<SysError>,
}

impl ProcessesReport {
    /// One line for each missing part, for the end of a run.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.unreadable > 0 {
            let why = self.refusal.unwrap_or(Errno::ACCES);
            lines.push(format!("{} files of processes below /proc unreadable: {why}", self.unreadable));
        }
        if self.stuck > 0 {
            lines.push(format!("{} {STUCK}", self.stuck));
        }
        if self.over > 0 {
            lines.push(format!(
                "{} files of processes left out: the limit is {} MiB",
                self.over,
                TEXTS_BYTES_MAX >> 20
            ));
        }
        if let Some(error) = &self.ended {
            lines.push(format!("containers and command lines of processes are incomplete: {error}"));
        }
        lines
    }
}

/// Follows the number of command lines that did not arrive.
pub const STUCK: &str = "command lines left out: their processes blocked the read";

/// pid → command line.
#[derive(Debug, Default)]
pub struct Cmdlines(Texts<u32>);

impl Lookup for Cmdlines {
    fn value(&self, key: Key) -> Value<'_> {
        Value::text(pid_of(key).and_then(|pid| self.0.get(pid)))
    }
}

/// pid → security context; empty if no security module provides one.
#[derive(Debug, Default)]
pub struct Contexts(Texts<u32>);

impl Lookup for Contexts {
    fn value(&self, key: Key) -> Value<'_> {
        Value::text(pid_of(key).and_then(|pid| self.0.get(pid)))
    }
}

/// pid → pid in the process's own pid namespace; empty for processes in the reader's.
#[derive(Debug, Default)]
pub struct ContainerPids(Vec<(u32, u32)>);

impl ContainerPids {
    /// The pid of `pid` in its own namespace.
    pub fn get(&self, pid: u32) -> Option<u32> {
        let at = self.0.binary_search_by_key(&pid, |pair| pair.0).ok()?;
        self.0.get(at).map(|pair| pair.1)
    }
}

impl Lookup for ContainerPids {
    fn value(&self, key: Key) -> Value<'_> {
        Value::number(pid_of(key).and_then(|pid| self.get(pid)))
    }
}

fn pid_of(key: Key) -> Option<u32> {
    match key {
        Key::Id(pid) => u32::try_from(pid).ok(),
        _ => None,
    }
}

impl Processes {
    /// Reads `parts` of these processes, which were seen at `seen_ns` of CLOCK_BOOTTIME ([`crate::Owners::seen_ns`]).
    /// Processes that have ended or are unreadable have no data; neither have processes that started later, because the
    /// pid belonged to another process then.
    ///
    /// Start times have a resolution of a hundredth of a second, so a pid that is reused within that time goes
    /// unnoticed.
    pub fn read(host: &Host, pids: &[u32], parts: ProcessParts, seen_ns: u64) -> Result<Processes, HostError> {
        Processes::read_from(host, STREAM, pids, parts, seen_ns)
    }

    /// Reads one process, with a separate key in a recording.
    pub fn read_one(host: &Host, pid: u32, parts: ProcessParts) -> Result<Processes, HostError> {
        let key = format!("{STREAM}/{pid}");
        // Recordings of 1.x have all processes under one key.
        let key = if host.contains(&key) { &key } else { STREAM };
        Processes::read_from(host, key, &[pid], parts, u64::MAX)
    }

    fn read_from(
        host: &Host,
        key: &str,
        pids: &[u32],
        parts: ProcessParts,
        seen_ns: u64,
    ) -> Result<Processes, HostError> {
        let mut blocks = host.stream(key, "", || Ok(Box::new(ProcessWalk::open(host, pids, parts, seen_ns)?)))?;
        let mut gather = Gather::default();
        loop {
            match blocks.next() {
                Ok(Some(block)) => {
                    gather.add(block).map_err(|at| HostError::Garbled { what: "facts about processes", at })?;
                }
                Ok(None) => break,
                Err(error) => {
                    gather.report.ended = Some(error);
                    break;
                }
            }
        }
        Ok(gather.finish())
    }

    /// Command lines, with words joined by spaces.
    pub fn cmdlines(&self) -> &Cmdlines {
        &self.cmdlines
    }

    /// Pids in pid namespaces below the reader's.
    pub fn container_pids(&self) -> &ContainerPids {
        &self.container_pids
    }

    /// Security contexts.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// /proc/PID/cgroup of each process, in ascending order of pids.
    pub fn cgroups(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.cgroups.each()
    }

    /// Processes that started after `seen_ns` of CLOCK_BOOTTIME, in ascending order of pids: at that time their pids
    /// belonged to other processes.
    pub fn started_after(&self, seen_ns: u64) -> Vec<u32> {
        let ticks = identity::ticks(seen_ns);
        self.started.iter().filter(|(_, started)| *started > ticks).map(|(pid, _)| *pid).collect()
    }

    /// The missing data.
    pub fn report(&self) -> &ProcessesReport {
        &self.report
    }
}

/// In a recording: pid u32, part u8, length u32, bytes; or pid 0, a byte of [`count`], a number u32 and an errno i32.
/// Little endian.
const FACT: usize = 9;

/// The counts in a recording.
mod count {
    pub(super) const UNREADABLE: u8 = 0;
    pub(super) const STUCK: u8 = 1;
}

#[derive(Default)]
struct Gather {
    /// Memory and entries of command lines, cgroups, contexts.
    arena: [Vec<u8>; 3],
    places: [Vec<(u32, u32, u32)>; 3],
    numbers: Vec<(u32, u32)>,
    started: Vec<(u32, u64)>,
    report: ProcessesReport,
}

impl Gather {
    // `Err` contains the offset of the malformed part.
    fn add(&mut self, block: &[u8]) -> Result<(), usize> {
        let mut rest = block;
        while !rest.is_empty() {
            let at = block.len() - rest.len();
            let (&head, after) = rest.split_first_chunk::<FACT>().ok_or(at)?;
            let [p0, p1, p2, p3, part, n0, n1, n2, n3] = head;
            let (pid, number) = (u32::from_le_bytes([p0, p1, p2, p3]), u32::from_le_bytes([n0, n1, n2, n3]));
            rest = after;
            if pid == 0 {
                let (errno, after) = rest.split_first_chunk().ok_or(at)?;
                rest = after;
                if part == count::STUCK {
                    self.report.stuck = number;
                } else {
                    self.report.unreadable = number;
                    self.report.refusal = Some(Errno(i32::from_le_bytes(*errno))).filter(|errno| errno.0 != 0);
                }
                continue;
            }
            let part = *ProcessPart::ALL.get(usize::from(part)).ok_or(at)?;
            let (text, after) = rest.split_at_checked(number as usize).ok_or(at)?;
            rest = after;
            self.keep(pid, part, text);
        }
        Ok(())
    }

    fn keep(&mut self, pid: u32, part: ProcessPart, text: &[u8]) {
        let [cmdlines, cgroups, contexts] = &mut self.arena;
        if cmdlines.len() + cgroups.len() + contexts.len() + text.len() > TEXTS_BYTES_MAX {
            self.report.over += 1;
            return;
        }
        let (arena, places) = match (part, &mut self.places) {
            (ProcessPart::Cmdline, [places, ..]) => (cmdlines, places),
            (ProcessPart::Cgroup, [_, places, _]) => (cgroups, places),
            (ProcessPart::Context, [.., places]) => (contexts, places),
            (ProcessPart::Started, _) => {
                let ticks = text.first_chunk().map(|ticks| (pid, u64::from_le_bytes(*ticks)));
                return self.started.extend(ticks);
            }
            (ProcessPart::Status, _) => return self.numbers.extend(inner_pid(text).map(|inner| (pid, inner))),
        };
        let start = arena.len();
        match part {
            ProcessPart::Cmdline => put_words(text, arena),
            // SELinux ends it with a NUL, AppArmor with a newline.
            ProcessPart::Context => {
                let end = text.iter().position(|byte| matches!(byte, 0 | b'\n')).unwrap_or(text.len());
                arena.extend_from_slice(text.get(..end).unwrap_or_default());
            }
            _ => arena.extend_from_slice(text),
        }
        // A kernel thread has no command line.
        if arena.len() > start {
            // TEXTS_BYTES_MAX is far below 2^32.
            places.push((pid, start as u32, arena.len() as u32));
        }
    }

    fn finish(mut self) -> Processes {
        let [cmdline_arena, cgroup_arena, context_arena] = self.arena;
        let [cmdlines, cgroups, contexts] = self.places;
        self.numbers.sort_unstable();
        self.numbers.dedup_by_key(|pair| pair.0);
        self.started.sort_unstable();
        Processes {
            cmdlines: Cmdlines(Texts::new(cmdline_arena, cmdlines)),
            cgroups: Texts::new(cgroup_arena, cgroups),
            container_pids: ContainerPids(self.numbers),
            contexts: Contexts(Texts::new(context_arena, contexts)),
            started: self.started,
            report: self.report,
        }
    }
}

// Joins the words, each of which ends with a NUL. A process that has overwritten its command line may have fewer, or
// spaces after it.
fn put_words(text: &[u8], into: &mut Vec<u8>) {
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let words = text.get(..end).unwrap_or_default();
    into.extend(words.iter().map(|&byte| if byte == 0 { b' ' } else { byte }));
}

// The last number after `NSpid:`, if there is more than one: the first is in our namespace.
fn inner_pid(status: &[u8]) -> Option<u32> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"))?;
    let mut numbers = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    numbers.next()?;
    std::str::from_utf8(numbers.next_back()?).ok()?.parse().ok()
}

/// Produces the files as a stream of blocks.
struct ProcessWalk<'p> {
    proc: Fd,
    pids: std::slice::Iter<'p, u32>,
    parts: ProcessParts,
    /// Processes that started after this tick are not the requested ones.
    until: u64,
    path: CPath,
    digits: Vec<u8>,
    text: Vec<u8>,
    reader: CmdlineReader,
    out: WalkOutput,
    done: bool,
}

/// What a walk has found.
struct WalkOutput {
    block: Vec<u8>,
    unreadable: u32,
    stuck: u32,
    refusal: Option<Errno>,
}

impl WalkOutput {
    fn put(&mut self, pid: u32, part: ProcessPart, text: &[u8]) {
        put_head(&mut self.block, pid, part as u8, text.len() as u32);
        self.block.extend_from_slice(text);
    }

    fn put_cmdline(&mut self, pid: u32, read: CmdlineRead) {
        match read {
            CmdlineRead::Text(text) => self.put(pid, ProcessPart::Cmdline, &text),
            CmdlineRead::Refused(errno) if errno.is_missing_object() => {}
            CmdlineRead::Refused(errno) => self.count(errno),
            CmdlineRead::Stuck => self.stuck += 1,
        }
    }

    fn count(&mut self, errno: Errno) {
        self.unreadable += 1;
        self.refusal.get_or_insert(errno);
    }

    fn put_count(&mut self, kind: u8, number: u32, errno: i32) {
        put_head(&mut self.block, 0, kind, number);
        self.block.extend_from_slice(&errno.to_le_bytes());
    }
}

impl<'p> ProcessWalk<'p> {
    fn open(host: &Host, pids: &'p [u32], parts: ProcessParts, seen_ns: u64) -> Result<ProcessWalk<'p>, SysError> {
        Ok(ProcessWalk {
            proc: fs::open_dir(&host.proc_path(""))?,
            pids: pids.iter(),
            parts,
            until: identity::ticks(seen_ns),
            path: CPath::new(),
            digits: Vec::with_capacity(10),
            text: Vec::with_capacity(BYTES_MAX),
            reader: CmdlineReader::new(),
            out: WalkOutput {
                block: Vec::with_capacity(BLOCK_FULL + ProcessPart::ALL.len() * (BYTES_MAX + FACT)),
                unreadable: 0,
                stuck: 0,
                refusal: None,
            },
            done: false,
        })
    }

    fn look(&mut self, pid: u32) {
        self.digits.clear();
        put_u64(&mut self.digits, pid.into());
        match fs::open_dir_at(&self.proc, self.path.set(&[&self.digits])) {
            Ok(dir) => self.look_into(pid, dir),
            Err(errno) if errno.is_missing_object() => {}
            Err(errno) => self.out.count(errno),
        }
    }

    // The open directory keeps referring to the same process.
    fn look_into(&mut self, pid: u32, dir: Fd) {
        let started = match Identity::of(&dir, &self.digits, &mut self.path, &mut self.text) {
            Ok(identity) if identity.started > self.until => return,
            Ok(Identity { started, .. }) => {
                self.out.put(pid, ProcessPart::Started, &started.to_le_bytes());
                started
            }
            Err(Errno::SRCH) => return,
            // A /proc without start times: only the pid identifies the process.
            Err(_) => 0,
        };
        let cmdline = self.parts.cmdlines.then(|| fs::open_at(&dir, self.path.set(&[ProcessPart::Cmdline.file()])));
        let parts = ProcessParts { cmdlines: false, ..self.parts };
        for part in ProcessPart::ALL.into_iter().filter(|part| parts.has(*part)) {
            match self.read(&dir, part) {
                Ok(()) => self.out.put(pid, part, &self.text),
                // Without a policy the file is unreadable or missing.
                Err(Errno::INVAL | Errno::NOENT) if part == ProcessPart::Context => {}
                Err(errno) if errno.is_missing_object() => return,
                Err(errno) => self.out.count(errno),
            }
        }
        match cmdline {
            Some(Ok(file)) => {
                let request = CmdlineRequest { process: (pid, started), digits: (*self.digits).into(), dir, file };
                self.reader.request(request, &mut |pid, read| self.out.put_cmdline(pid, read));
            }
            Some(Err(errno)) if !errno.is_missing_object() => self.out.count(errno),
            _ => {}
        }
    }

    // Reads the command line of the process with this pid.
    fn cmdline_of(&mut self, pid: u32) -> Result<Vec<u8>, Errno> {
        put_u64(&mut self.digits, pid.into());
        let dir = fs::open_dir_at(&self.proc, self.path.set(&[&self.digits]))?;
        let identity = Identity::of(&dir, &self.digits, &mut self.path, &mut self.text);
        let started = identity.map_or(0, |identity| identity.started);
        if started > self.until {
            return Err(Errno::SRCH);
        }
        let file = fs::open_at(&dir, self.path.set(&[ProcessPart::Cmdline.file()]))?;
        let request = CmdlineRequest { process: (pid, started), digits: (*self.digits).into(), dir, file };
        let mut found = Err(Errno::TIMEDOUT);
        let mut take = |_, read| match read {
            CmdlineRead::Text(text) => found = Ok(text),
            CmdlineRead::Refused(errno) => found = Err(errno),
            CmdlineRead::Stuck => {}
        };
        self.reader.request(request, &mut take);
        self.reader.finish(&mut take);
        found
    }

    fn read(&mut self, dir: &Fd, part: ProcessPart) -> Result<(), Errno> {
        self.text.clear();
        let file = fs::open_at(dir, self.path.set(&[part.file()]))?;
        // These files return everything at the first read, if it fits.
        fs::read_append(&file, &mut self.text, BYTES_MAX)?;
        Ok(())
    }
}

fn put_head(block: &mut Vec<u8>, pid: u32, part: u8, number: u32) {
    block.extend_from_slice(&pid.to_le_bytes());
    block.push(part);
    block.extend_from_slice(&number.to_le_bytes());
}

impl Blocks for ProcessWalk<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        self.out.block.clear();
        if self.done {
            return Ok(None);
        }
        while self.out.block.len() < BLOCK_FULL {
            let Some(&pid) = self.pids.next() else {
                self.done = true;
                self.reader.finish(&mut |pid, read| self.out.put_cmdline(pid, read));
                if self.out.stuck > 0 {
                    self.out.put_count(count::STUCK, self.out.stuck, 0);
                }
                // Earlier versions take the last count for this one.
                self.out.put_count(count::UNREADABLE, self.out.unreadable, self.out.refusal.map_or(0, |errno| errno.0));
                break;
            };
            self.look(pid);
        }
        Ok(Some(&self.out.block))
    }
}

/// Replaces `into` with the first 4 KiB of a process's command line, each word ended by a NUL. Fails if the process
/// seen at `seen_ns` of CLOCK_BOOTTIME has ended, even if its pid was reused.
pub fn read_cmdline(host: &Host, pid: u32, seen_ns: u64, into: &mut Vec<u8>) -> Result<(), SysError> {
    let key = format!("/proc/{pid}/cmdline");
    host.bytes(&key, "", into, |into| {
        let mut walk = ProcessWalk::open(host, &[], ProcessParts::default(), seen_ns)?;
        let found = walk.cmdline_of(pid).map_err(|errno| SysError::new("read", key.clone(), errno))?;
        into.extend_from_slice(&found);
        Ok(())
    })
}

/// Decodes any bytes as a recorded block. For the fuzzer: it must neither panic nor loop forever.
pub fn fuzz_processes(data: &[u8]) {
    let mut gather = Gather::default();
    if let Err(at) = gather.add(data) {
        assert!(at < data.len());
    }
    let processes = gather.finish();
    for (pid, text) in processes.cgroups() {
        assert!(text.len() <= data.len());
        let _ = (processes.cmdlines.value(Key::Id(pid.into())), processes.container_pids.get(pid));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    const ALL: ProcessParts = ProcessParts { cmdlines: true, cgroups: true, container_pids: true, contexts: true };

    #[test]
    fn this_process_and_one_that_is_gone() {
        let tmp = tempfile::tempdir().unwrap();
        let tape = tmp.path().join("tape");
        let pid = std::process::id();
        let host = Host::live().recording(&tape).unwrap();
        let live = Processes::read(&host, &[pid, u32::MAX], ALL, sys::clock::boottime_ns()).unwrap();
        host.finish().unwrap();
        let replayed = Processes::read(&Host::open_replay(&tape).unwrap(), &[], ALL, u64::MAX).unwrap();
        let expected = std::env::args_os().map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ");
        for processes in [live, replayed] {
            let cmdline = processes.cmdlines().value(Key::Id(pid.into()));
            assert_eq!(cmdline, Value::Bytes(expected.as_bytes()));
            assert_eq!(processes.cmdlines().value(Key::Id(u32::MAX.into())), Value::Null);
            assert_eq!(processes.container_pids().value(Key::Id(pid.into())), Value::Null);
            let cgroups: Vec<_> = processes.cgroups().collect();
            assert_eq!(cgroups, [(pid, &*std::fs::read("/proc/self/cgroup").unwrap())]);
            assert_eq!(*processes.report(), ProcessesReport::default());
        }
    }

    #[test]
    fn contexts_end_where_they_end() {
        let tmp = tempfile::tempdir().unwrap();
        let contexts =
            [(7, &b"system_u:system_r:sshd_t:s0-s0:c0.c1023\0"[..]), (8, b"/usr/sbin/cupsd (enforce)\n"), (9, b"")];
        for (pid, text) in contexts {
            let folder = tmp.path().join(format!("{pid}/attr"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("current"), text).unwrap();
        }
        std::fs::create_dir_all(tmp.path().join("10")).unwrap();
        let host = Host::with_roots(tmp.path().into(), "/sys".into(), "/etc".into());
        let only = ProcessParts { contexts: true, ..ProcessParts::default() };
        let processes = Processes::read(&host, &[7, 8, 9, 10], only, u64::MAX).unwrap();
        let context = |pid| processes.contexts().value(Key::Id(pid));
        assert_eq!(context(7), Value::Bytes(b"system_u:system_r:sshd_t:s0-s0:c0.c1023"));
        assert_eq!(context(8), Value::Bytes(b"/usr/sbin/cupsd (enforce)"));
        assert_eq!((context(9), context(10)), (Value::Null, Value::Null));
        assert_eq!(*processes.report(), ProcessesReport::default());
    }

    #[test]
    fn an_unreadable_file_is_reported() {
        use sys::fault::{Fault, arm, disarm_all};
        // openat of /proc, the process, its start time, then the command line.
        arm("openat", 3, 1, Fault::Fails(Errno::ACCES));
        let processes = Processes::read(&Host::live(), &[std::process::id()], ALL, u64::MAX).unwrap();
        disarm_all();
        assert_eq!(processes.report().lines(), ["1 files of processes below /proc unreadable: permission denied"]);
        assert_eq!(processes.cgroups().count(), 1);
    }

    #[test]
    fn issue_10_a_process_that_started_after_it_was_seen_is_another_one() {
        let before_ns = sys::clock::boottime_ns();
        testkit::wait_until("another tick", || identity::ticks(sys::clock::boottime_ns()) > identity::ticks(before_ns));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pids = [child.id(), std::process::id()];
        let read = |seen_ns| Processes::read(&Host::live(), &pids, ALL, seen_ns).unwrap();
        let (old, new) = (read(before_ns), read(sys::clock::boottime_ns()));
        assert_eq!(old.cgroups().map(|(pid, _)| pid).collect::<Vec<_>>(), [std::process::id()]);
        assert_eq!(new.cgroups().count(), 2);
        assert_eq!(new.started_after(before_ns), [child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn words_and_numbers() {
        let words = |text: &[u8]| {
            let mut into = Vec::new();
            put_words(text, &mut into);
            into
        };
        assert_eq!(words(b"nginx: worker process\0\0\0\0"), b"nginx: worker process");
        assert_eq!(words(b"a\0b c\0\0d\0"), b"a b c  d");
        assert_eq!(words(b"\0\0"), b"");
        assert_eq!(inner_pid(b"Name:\tx\nNSpid:\t100\t7\t1\nNSpgid:\t9\t9\n"), Some(1));
        assert_eq!(inner_pid(b"Name:\tx\nNSpid:\t100\n"), None);
        assert_eq!(inner_pid(b"NSpid:\t1\t4294967296\n"), None);
        assert_eq!(inner_pid(b"NSpid:"), None);
    }

    proptest! {
        #[test]
        fn any_block_ends(bytes in prop::collection::vec(0u8..3, 0..200)) {
            fuzz_processes(&bytes);
        }
    }
}
