//! What /proc tells of the processes that hold sockets: command line, cgroups, number in their own pid namespace,
//! security context.
//!
//! Only of the pids that are asked for, and only the files that are demanded: each costs about 6 µs.
use record::{Key, Lookup, Value};
use sys::fs::{self, CPath};
use sys::{Blocks, Errno, Fd, Host, SysError};

use crate::HostError;
use crate::texts::Texts;
use record::text::put_u64;

/// Name of the stream on a recording.
const STREAM: &str = "processes";

/// A block goes out when it has reached this size.
const BLOCK_FULL: usize = 60 << 10;

/// Bytes read of a file at most. A command line may have two megabytes; nobody reads on after this many.
const BYTES_MAX: usize = 4 << 10;

/// Bytes kept in all. What is over is counted.
const KEPT_MAX: usize = 256 << 20;

/// One file of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Cmdline,
    Cgroup,
    Status,
    Context,
}

impl Part {
    const ALL: [Part; 4] = [Part::Cmdline, Part::Cgroup, Part::Status, Part::Context];

    fn file(self) -> &'static [u8] {
        match self {
            Part::Cmdline => b"/cmdline",
            Part::Cgroup => b"/cgroup",
            Part::Status => b"/status",
            Part::Context => b"/attr/current",
        }
    }
}

/// Which parts are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessParts {
    /// Command lines.
    pub cmdlines: bool,
    /// Paths of cgroups, for [`crate::Containers`].
    pub cgroups: bool,
    /// Numbers in their own pid namespaces.
    pub container_pids: bool,
    /// Security contexts.
    pub contexts: bool,
}

impl ProcessParts {
    fn has(self, part: Part) -> bool {
        match part {
            Part::Cmdline => self.cmdlines,
            Part::Cgroup => self.cgroups,
            Part::Status => self.container_pids,
            Part::Context => self.contexts,
        }
    }
}

/// What was read of each process.
#[derive(Debug, Default)]
pub struct Processes {
    cmdlines: Cmdlines,
    cgroups: Texts<u32>,
    container_pids: ContainerPids,
    contexts: Contexts,
    report: ProcessesReport,
}

/// What a reading of processes missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessesReport {
    /// Files that could not be read, though their process was there.
    pub unreadable: u32,
    /// Why the first of them could not.
    pub refusal: Option<Errno>,
    /// Files beyond the bound of 256 MiB in all, not kept.
    pub over: u32,
    /// Why the reading ended early, if it did.
    pub ended: Option<SysError>,
}

impl ProcessesReport {
    /// One line for each thing that is missing, for the end of a run.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.unreadable > 0 {
            let why = self.refusal.unwrap_or(Errno::ACCES);
            lines.push(format!("{} files of processes below /proc unreadable: {why}", self.unreadable));
        }
        if self.over > 0 {
            lines.push(format!("{} files of processes left out: 256 MiB are kept", self.over));
        }
        if let Some(error) = &self.ended {
            lines.push(format!("what surrounds processes is incomplete: {error}"));
        }
        lines
    }
}

/// pid → command line.
#[derive(Debug, Default)]
pub struct Cmdlines(Texts<u32>);

impl Lookup for Cmdlines {
    fn value(&self, key: Key) -> Value<'_> {
        Value::text(pid_of(key).and_then(|pid| self.0.get(pid)))
    }
}

/// pid → security context; nothing where no security module has one.
#[derive(Debug, Default)]
pub struct Contexts(Texts<u32>);

impl Lookup for Contexts {
    fn value(&self, key: Key) -> Value<'_> {
        Value::text(pid_of(key).and_then(|pid| self.0.get(pid)))
    }
}

/// pid → number in the process's own pid namespace; nothing where that is the reader's.
#[derive(Debug, Default)]
pub struct ContainerPids(Vec<(u32, u32)>);

impl ContainerPids {
    /// The number of `pid` in its own namespace.
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
    /// Reads `parts` of these processes. One that has ended, or refuses, has no cells.
    ///
    /// A pid may have been given to another process since it was learnt: then these are the other's, as with every tool
    /// that reads /proc.
    pub fn read(host: &Host, pids: &[u32], parts: ProcessParts) -> Result<Processes, HostError> {
        let mut blocks = host.stream(STREAM, "", || Ok(Box::new(Walk::open(host, pids, parts)?)))?;
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

    /// Command lines, their words joined by blanks.
    pub fn cmdlines(&self) -> &Cmdlines {
        &self.cmdlines
    }

    /// Numbers in pid namespaces below the reader's.
    pub fn container_pids(&self) -> &ContainerPids {
        &self.container_pids
    }

    /// Security contexts.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// /proc/PID/cgroup of each, ascending by pid.
    pub fn cgroups(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.cgroups.each()
    }

    /// What was missed.
    pub fn report(&self) -> &ProcessesReport {
        &self.report
    }
}

/// On the tape: pid u32, part u8, length u32, bytes; or pid 0, then unreadable u32 and errno i32. Little endian.
const FACT: usize = 9;

#[derive(Default)]
struct Gather {
    /// Command lines, cgroups, contexts.
    arena: [Vec<u8>; 3],
    places: [Vec<(u32, u32, u32)>; 3],
    numbers: Vec<(u32, u32)>,
    report: ProcessesReport,
}

impl Gather {
    // `Err` holds the offset of what makes no sense.
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
                self.report.unreadable = number;
                self.report.refusal = Some(Errno(i32::from_le_bytes(*errno))).filter(|errno| errno.0 != 0);
                rest = after;
                continue;
            }
            let part = *Part::ALL.get(usize::from(part)).ok_or(at)?;
            let (text, after) = rest.split_at_checked(number as usize).ok_or(at)?;
            rest = after;
            self.keep(pid, part, text);
        }
        Ok(())
    }

    fn keep(&mut self, pid: u32, part: Part, text: &[u8]) {
        let [cmdlines, cgroups, contexts] = &mut self.arena;
        if cmdlines.len() + cgroups.len() + contexts.len() + text.len() > KEPT_MAX {
            self.report.over += 1;
            return;
        }
        let (arena, places) = match (part, &mut self.places) {
            (Part::Cmdline, [places, ..]) => (cmdlines, places),
            (Part::Cgroup, [_, places, _]) => (cgroups, places),
            (Part::Context, [.., places]) => (contexts, places),
            (Part::Status, _) => return self.numbers.extend(inner_pid(text).map(|inner| (pid, inner))),
        };
        let start = arena.len();
        match part {
            Part::Cmdline => put_words(text, arena),
            // SELinux ends it with a NUL, AppArmor with a newline.
            Part::Context => {
                let end = text.iter().position(|byte| matches!(byte, 0 | b'\n')).unwrap_or(text.len());
                arena.extend_from_slice(text.get(..end).unwrap_or_default());
            }
            _ => arena.extend_from_slice(text),
        }
        // A process of the kernel has no command line.
        if arena.len() > start {
            // KEPT_MAX is far below 2^32.
            places.push((pid, start as u32, arena.len() as u32));
        }
    }

    fn finish(mut self) -> Processes {
        let [cmdline_arena, cgroup_arena, context_arena] = self.arena;
        let [cmdlines, cgroups, contexts] = self.places;
        self.numbers.sort_unstable();
        self.numbers.dedup_by_key(|pair| pair.0);
        Processes {
            cmdlines: Cmdlines(Texts::new(cmdline_arena, cmdlines)),
            cgroups: Texts::new(cgroup_arena, cgroups),
            container_pids: ContainerPids(self.numbers),
            contexts: Contexts(Texts::new(context_arena, contexts)),
            report: self.report,
        }
    }
}

// Words end with a NUL each; a process that has written over its command line may have fewer, or blanks behind it.
fn put_words(text: &[u8], into: &mut Vec<u8>) {
    let end = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let words = text.get(..end).unwrap_or_default();
    into.extend(words.iter().map(|&byte| if byte == 0 { b' ' } else { byte }));
}

// The last number behind `NSpid:`, if there is more than one: the first is ours.
fn inner_pid(status: &[u8]) -> Option<u32> {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"NSpid:"))?;
    let mut numbers = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    numbers.next()?;
    std::str::from_utf8(numbers.next_back()?).ok()?.parse().ok()
}

/// The files, as a stream of blocks.
struct Walk<'p> {
    proc: Fd,
    pids: std::slice::Iter<'p, u32>,
    parts: ProcessParts,
    path: CPath,
    digits: Vec<u8>,
    text: Vec<u8>,
    block: Vec<u8>,
    unreadable: u32,
    refusal: Option<Errno>,
    done: bool,
}

impl<'p> Walk<'p> {
    fn open(host: &Host, pids: &'p [u32], parts: ProcessParts) -> Result<Walk<'p>, SysError> {
        Ok(Walk {
            proc: fs::open_dir(&host.proc_path(""))?,
            pids: pids.iter(),
            parts,
            path: CPath::new(),
            digits: Vec::with_capacity(10),
            text: Vec::with_capacity(BYTES_MAX),
            block: Vec::with_capacity(BLOCK_FULL + Part::ALL.len() * (BYTES_MAX + FACT)),
            unreadable: 0,
            refusal: None,
            done: false,
        })
    }

    fn look(&mut self, pid: u32) {
        self.digits.clear();
        put_u64(&mut self.digits, pid.into());
        let parts = self.parts;
        for part in Part::ALL.into_iter().filter(|part| parts.has(*part)) {
            match self.read(part) {
                Ok(()) => {
                    put_head(&mut self.block, pid, part as u8, self.text.len() as u32);
                    self.block.extend_from_slice(&self.text);
                }
                // Without a policy the file cannot be read, or is not there.
                Err(Errno::INVAL | Errno::NOENT) if part == Part::Context => {}
                Err(errno) if errno.is_gone() => return,
                Err(errno) => {
                    self.unreadable += 1;
                    self.refusal.get_or_insert(errno);
                }
            }
        }
    }

    fn read(&mut self, part: Part) -> Result<(), Errno> {
        self.text.clear();
        let file = fs::open_at(&self.proc, self.path.set(&[&self.digits, part.file()]))?;
        // These files give all they have to the first read, if it fits.
        fs::read_append(&file, &mut self.text, BYTES_MAX)?;
        Ok(())
    }
}

fn put_head(block: &mut Vec<u8>, pid: u32, part: u8, number: u32) {
    block.extend_from_slice(&pid.to_le_bytes());
    block.push(part);
    block.extend_from_slice(&number.to_le_bytes());
}

impl Blocks for Walk<'_> {
    fn next(&mut self) -> Result<Option<&[u8]>, SysError> {
        self.block.clear();
        if self.done {
            return Ok(None);
        }
        while self.block.len() < BLOCK_FULL {
            let Some(&pid) = self.pids.next() else {
                self.done = true;
                put_head(&mut self.block, 0, 0, self.unreadable);
                self.block.extend_from_slice(&self.refusal.map_or(0, |errno| errno.0).to_le_bytes());
                break;
            };
            self.look(pid);
        }
        Ok(Some(&self.block))
    }
}

/// Takes any bytes as a recorded block. For the fuzzer: it must neither panic nor fail to end.
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
        let live = Processes::read(&host, &[pid, u32::MAX], ALL).unwrap();
        host.finish().unwrap();
        let replayed = Processes::read(&Host::replaying(&tape).unwrap(), &[], ALL).unwrap();
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
        let processes = Processes::read(&host, &[7, 8, 9, 10], only).unwrap();
        let context = |pid| processes.contexts().value(Key::Id(pid));
        assert_eq!(context(7), Value::Bytes(b"system_u:system_r:sshd_t:s0-s0:c0.c1023"));
        assert_eq!(context(8), Value::Bytes(b"/usr/sbin/cupsd (enforce)"));
        assert_eq!((context(9), context(10)), (Value::Null, Value::Null));
        assert_eq!(*processes.report(), ProcessesReport::default());
    }

    #[test]
    fn a_file_that_refuses_is_told() {
        use sys::fault::{Fault, arm, disarm_all};
        arm("openat", 1, 1, Fault::Fails(Errno::ACCES));
        let processes = Processes::read(&Host::live(), &[std::process::id()], ALL).unwrap();
        disarm_all();
        assert_eq!(processes.report().lines(), ["1 files of processes below /proc unreadable: permission denied"]);
        assert_eq!(processes.cgroups().count(), 1);
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
