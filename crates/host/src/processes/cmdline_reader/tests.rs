#![allow(clippy::unwrap_used)]
//! A command line in a FIFO arrives when a test writes it.
use super::*;
use crate::{ProcessParts, Processes};
use record::{Key, Lookup, Value};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use sys::Host;

/// Held by one test at a time, because all share the list of stuck processes.
static ALONE: Mutex<()> = Mutex::new(());

/// A process whose command line does not arrive before the file that this returns is written or closed.
fn stuck_process(proc: &Path, pid: u32) -> File {
    let folder = proc.join(pid.to_string());
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("cgroup"), "0::/held\n").unwrap();
    let fifo = folder.join("cmdline");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    File::options().read(true).write(true).open(fifo).unwrap()
}

fn process(proc: &Path, pid: u32, cmdline: &str) {
    let folder = proc.join(pid.to_string());
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("cgroup"), "0::/free\n").unwrap();
    std::fs::write(folder.join("cmdline"), cmdline).unwrap();
}

fn request(proc: &Path, pid: u32) -> CmdlineRequest {
    let dir = fs::open_dir(&proc.join(pid.to_string())).unwrap();
    let file = fs::open_at(&dir, c"cmdline").unwrap();
    CmdlineRequest { process: (pid, 7), digits: pid.to_string().into_bytes().into(), dir, file }
}

#[test]
fn a_read_that_does_not_return_costs_one_command_line() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let proc = tempfile::tempdir().unwrap();
    process(proc.path(), 1, "first\0");
    let held = stuck_process(proc.path(), 2);
    process(proc.path(), 3, "third\0word\0");
    let host = Host::with_roots(proc.path().into(), "/sys".into(), "/etc".into());
    let parts = ProcessParts { cmdlines: true, cgroups: true, ..ProcessParts::default() };
    let read = || Processes::read(&host, &[1, 2, 3], parts, u64::MAX).unwrap();
    let processes = read();
    let cmdline = |pid| processes.cmdlines().value(Key::Id(pid));
    assert_eq!([cmdline(1), cmdline(2)], [Value::Bytes(b"first"), Value::Null]);
    assert_eq!(cmdline(3), Value::Bytes(b"third word"));
    assert_eq!(processes.cgroups().count(), 3, "the rest of the process is read");
    assert_eq!(processes.report().stuck, 1);
    assert!(processes.report().lines()[0].starts_with("1 command lines left out"));
    // It is not waited for again.
    let begun = Instant::now();
    assert_eq!((read().report().stuck, begun.elapsed() < WAIT), (1, true));
    drop(held);
    testkit::wait_until("the read has returned", || !stuck().contains(&(2, 0)));
}

#[test]
fn abandoned_reads_are_bounded() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let proc = tempfile::tempdir().unwrap();
    let held: Vec<File> = (101..104).map(|pid| stuck_process(proc.path(), pid)).collect();
    process(proc.path(), 104, "free\0");
    let mut reader = CmdlineReader { wait: Duration::from_millis(20), stuck_max: 3, ..CmdlineReader::new() };
    let mut ends = Vec::new();
    let mut take = |pid, read| ends.push((pid, matches!(read, CmdlineRead::Text(text) if text == b"free\0")));
    (101..=104).for_each(|pid| reader.request(request(proc.path(), pid), &mut take));
    reader.finish(&mut take);
    // The requests before the third one that is stuck.
    reader.request(request(proc.path(), 104), &mut take);
    reader.finish(&mut take);
    assert_eq!(ends, [(101, false), (102, false), (103, false), (104, true), (104, false)]);
    // A late answer is for no one, and makes room.
    held.iter().for_each(|mut file| file.write_all(b"late\0").unwrap());
    testkit::wait_until("all reads have returned", || stuck().iter().all(|(pid, _)| !(101..104).contains(pid)));
    let mut read = None;
    reader.request(request(proc.path(), 104), &mut |_, end| read = Some(end));
    reader.finish(&mut |_, end| read = Some(end));
    assert!(matches!(read, Some(CmdlineRead::Text(_))));
}

/// A process whose memory stays locked as long as this lives, because a file system of its owner does not answer.
struct HeldMemory {
    program: Child,
    pid: u32,
}

impl HeldMemory {
    fn start(folder: &Path) -> HeldMemory {
        // A mount namespace of its own, so that nothing stays mounted.
        let script = include_str!("held_memory.py");
        let mut command = Command::new("unshare");
        command.args(["-m", "python3", "-c", script]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
        HeldMemory { program, pid: line.trim().parse().unwrap() }
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        // The end of the program closes its file system, and kills the process.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn root_a_process_that_locks_its_memory_costs_its_own_command_line() {
    testkit::require_root!();
    if !Path::new("/dev/fuse").exists() {
        return testkit::print_loud("not tested here: no /dev/fuse");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let held = HeldMemory::start(folder.path());
    let (host, own) = (Host::live(), std::process::id());
    let parts = ProcessParts { cmdlines: true, cgroups: true, container_pids: true, contexts: true };
    let begun = Instant::now();
    let processes = Processes::read(&host, &[held.pid, own], parts, u64::MAX).unwrap();
    assert!(begun.elapsed() < 20 * WAIT, "{:?}", begun.elapsed());
    assert_eq!(processes.report().lines().len(), 1, "{:?}", processes.report());
    let cmdline = |pid: u32| processes.cmdlines().value(Key::Id(pid.into()));
    assert_eq!((cmdline(held.pid), cmdline(own).is_null()), (Value::Null, false));
    assert_eq!(processes.cgroups().count(), 2);
    let refused = crate::processes::read_cmdline(&host, held.pid, u64::MAX, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.errno, Errno::TIMEDOUT);
    let pid = held.pid;
    drop(held);
    testkit::wait_until("the read has returned", || stuck().iter().all(|(process, _)| *process != pid));
}
