//! A trace instance for this process alone. It is removed at the end. The next run removes an instance that a killed
//! process has left; until then it keeps tracing at the same cost.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use sys::{Errno, Host, SysError};

use super::format::{self, TraceFormat};
use super::page::{self, TracedDrop};
use crate::error::DropsError;

/// Buffer for waiting drops per CPU, in KiB: some 80,000 drops.
///
/// Bound: KiB of the kernel's trace for each CPU, without BPF. Beyond: overwritten drops are counted as lost (exit code
/// 3). This also affects other users. By: anyone whose packets are dropped faster than they are read.
const BUFFER_KB: &str = "4096";
/// Maximum number of pages read from a CPU at one time, so that a flood cannot keep the reader in the loop.
///
/// Bound: pages of the kernel's trace that are read of a CPU in one turn. Beyond: the next turn reads the rest;
/// overwritten drops are counted as lost (exit code 3). By: anyone whose packets are dropped faster than they are read.
const PAGES_MAX: usize = 2048;
/// Maximum size of a page.
const PAGE_BYTES: usize = 64 << 10;
/// Prefix of instance names; pid and start time follow.
const PREFIX: &str = "netwren-";
const EVENT: &str = "events/skb/kfree_skb";

/// The running instance.
#[derive(Debug)]
pub(crate) struct TraceInstance {
    place: InstanceDirectory,
    /// One pipe per CPU.
    pipes: Vec<File>,
    format: TraceFormat,
    page: Vec<u8>,
    drops: Vec<TracedDrop>,
}

/// The directory, which is removed with this value.
#[derive(Debug)]
struct InstanceDirectory(PathBuf);

impl Drop for InstanceDirectory {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join(EVENT).join("enable"), "0");
        let _ = fs::remove_dir(&self.0);
    }
}

/// Directories of instances: in tracefs, or in debugfs.
fn roots(host: &Host) -> [PathBuf; 2] {
    ["kernel/tracing/instances", "kernel/debug/tracing/instances"].map(|path| host.sys_path(path))
}

/// True if tracefs is available and this process may create instances.
pub(crate) fn is_there(host: &Host) -> bool {
    roots(host).iter().any(|root| sys::fs::may_write(root).is_ok())
}

impl TraceInstance {
    /// Creates the instance and starts to trace drops.
    pub(crate) fn open(host: &Host) -> Result<TraceInstance, DropsError> {
        let roots = roots(host);
        let root = roots.iter().find(|path| path.is_dir()).ok_or_else(|| {
            let denied = fs::read_dir(host.sys_path("kernel/tracing")).err();
            let denied = denied.filter(|error| error.kind() == io::ErrorKind::PermissionDenied);
            DropsError::NoTrace(match denied {
                Some(error) => format!("/sys/kernel/tracing: {}", failed("open", Path::new(""), &error).errno).into(),
                None => "tracefs is not mounted (mount -t tracefs tracefs /sys/kernel/tracing)".into(),
            })
        })?;
        remove_stale(host, root);
        let own = identity(&host.proc_path("self/stat")).ok_or(DropsError::NoTrace("/proc is not mounted".into()))?;
        let path = root.join(format!("{PREFIX}{own}"));
        fs::create_dir(&path).map_err(|error| failed("mkdir", &path, &error))?;
        let place = InstanceDirectory(path);
        TraceInstance::begin(place)
    }

    fn begin(place: InstanceDirectory) -> Result<TraceInstance, DropsError> {
        let event = place.0.join(EVENT);
        let text = fs::read_to_string(event.join("format")).map_err(|error| failed("read", &event, &error))?;
        let format = format::parse(&text).ok_or(DropsError::NoTrace("the tracepoint's format is unknown".into()))?;
        for (file, value) in [("trace_clock", "mono"), ("buffer_size_kb", BUFFER_KB)] {
            let path = place.0.join(file);
            fs::write(&path, value).map_err(|error| failed("write", &path, &error))?;
        }
        let mut pipes = Vec::new();
        for path in cpus(&place.0)? {
            let path = path.join("trace_pipe_raw");
            let opened = OpenOptions::new().read(true).custom_flags(sys::fs::NONBLOCK).open(&path);
            pipes.push(opened.map_err(|error| failed("open", &path, &error))?);
        }
        fs::write(event.join("enable"), "1").map_err(|error| failed("write", &event, &error))?;
        Ok(TraceInstance { place, pipes, format, page: vec![0; PAGE_BYTES], drops: Vec::new() })
    }

    /// Names of reasons, with their numbers; empty before Linux 5.17.
    pub(crate) fn reasons(&self) -> &[(u32, Box<str>)] {
        &self.format.reasons
    }

    /// Takes the waiting drops, ordered by time.
    pub(crate) fn take(&mut self) -> Result<&[TracedDrop], SysError> {
        self.drops.clear();
        let (drops, format) = (&mut self.drops, &self.format);
        for pipe in &mut self.pipes {
            for _ in 0..PAGES_MAX {
                match pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(bytes) => {
                        let page = self.page.get(..bytes).unwrap_or_default();
                        page::read(page, format, &mut |drop| drops.push(*drop));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed("read", &self.place.0, &error)),
                }
            }
        }
        self.drops.sort_by_key(|drop| drop.ns);
        Ok(&self.drops)
    }

    /// Number of drops so far that did not fit into the buffer.
    pub(crate) fn lost(&self) -> Result<u64, SysError> {
        let mut lost = 0;
        for path in cpus(&self.place.0)? {
            let path = path.join("stats");
            let text = fs::read_to_string(&path).map_err(|error| failed("read", &path, &error))?;
            lost += lost_of(&text);
        }
        Ok(lost)
    }
}

impl Drop for TraceInstance {
    fn drop(&mut self) {
        // The directory cannot be removed while one of its files is open.
        self.pipes.clear();
    }
}

/// Number of events that were overwritten or not written, from a CPU's `stats` file.
fn lost_of(stats: &str) -> u64 {
    let number = |line: &str| {
        let (name, number) = line.split_once(": ")?;
        let is_loss = matches!(name, "overrun" | "commit overrun" | "dropped events");
        number.trim().parse::<u64>().ok().filter(|_| is_loss)
    };
    stats.lines().filter_map(number).sum()
}

/// The directories of the CPUs.
fn cpus(instance: &Path) -> Result<Vec<PathBuf>, SysError> {
    let path = instance.join("per_cpu");
    let entries = fs::read_dir(&path).map_err(|error| failed("read", &path, &error))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

/// `PID-START` of a process: a pid alone may belong to another process by now.
fn identity(stat: &Path) -> Option<String> {
    let text = fs::read_to_string(stat).ok()?;
    // The name is in parentheses, and may contain any byte.
    let (pid, _) = text.split_once(' ')?;
    let start = text.rsplit_once(')')?.1.split_whitespace().nth(19)?;
    Some(format!("{pid}-{start}"))
}

/// Removes instances of processes that have ended.
fn remove_stale(host: &Host, root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let Some((pid, _)) = owner.split_once('-').filter(|(pid, _)| pid.bytes().all(|byte| byte.is_ascii_digit()))
        else {
            continue;
        };
        if identity(&host.proc_path(&format!("{pid}/stat"))).as_deref() != Some(owner) {
            drop(InstanceDirectory(entry.path()));
        }
    }
}

fn failed(call: &'static str, path: &Path, error: &io::Error) -> SysError {
    SysError::new(call, path.display().to_string(), error.raw_os_error().map_or(Errno::IO, Errno))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn losses_of_a_cpu() {
        let stats = "entries: 33\noverrun: 7\ncommit overrun: 0\nbytes: 1452\ndropped events: 2\nread events: 9\n";
        assert_eq!((lost_of(stats), lost_of("")), (9, 0));
    }

    #[test]
    fn instances_of_the_dead_alone_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let own = identity(Path::new("/proc/self/stat")).unwrap();
        let name = |owner: &str| folder.path().join(format!("{PREFIX}{owner}"));
        let kept = [name(&own), name("x"), folder.path().join("other")];
        let pid = own.split('-').next().unwrap();
        let gone = [name(&format!("{pid}-1")), name("4999999-77")];
        kept.iter().chain(&gone).for_each(|path| fs::create_dir(path).unwrap());
        remove_stale(&Host::live(), folder.path());
        assert!(kept.iter().all(|path| path.is_dir()) && !gone.iter().any(|path| path.is_dir()));
    }
}
