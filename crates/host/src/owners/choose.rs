//! Chooses the interface through which socket owners are read.
use sys::caps::{self, CapSet};
use sys::fs::{self, Stat};
use sys::{Errno, Host, SysError};

use crate::HostError;

/// The interface through which socket owners are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OwnersBackend {
    /// The iterator over all open files: `iter/task_file`.
    Bpf,
    /// /proc/PID/fd of every process.
    #[default]
    Proc,
}

impl OwnersBackend {
    /// Name of its stream in a recording, and in `--cost`.
    pub fn stream(self) -> &'static str {
        match self {
            OwnersBackend::Bpf => "owners@bpf",
            OwnersBackend::Proc => "owners@proc",
        }
    }
}

/// Input of the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Open files on the host; a file open in two processes counts once.
    pub(super) files: u64,
    /// Processes on the host.
    pub(super) processes: u64,
    /// True if the BPF backend is built in, our privileges suffice and /proc belongs to this kernel.
    pub(super) may_bpf: bool,
    /// True if /proc does not show us the files of process 1: then it probably hides others as well.
    pub(super) is_refused: bool,
}

/// Costs in ns of CPU time, as measured on 6.18: a process and a descriptor with /proc, a descriptor with BPF, and
/// loading the program before anything is read. Both are equal at 1,700 descriptors in a hundred processes.
const PROCESS_NS: u64 = 12_000;
const FILE_NS: u64 = 2_600;
const FILE_BPF_NS: u64 = 300;
const LOAD_NS: u64 = 5_000_000;

/// The cheaper backend; also BPF if /proc is known to be incomplete.
pub(super) fn choose(facts: &Facts) -> OwnersBackend {
    let by_proc = facts.processes.saturating_mul(PROCESS_NS).saturating_add(facts.files.saturating_mul(FILE_NS));
    let by_bpf = facts.files.saturating_mul(FILE_BPF_NS).saturating_add(LOAD_NS);
    if facts.may_bpf && (facts.is_refused || by_bpf < by_proc) { OwnersBackend::Bpf } else { OwnersBackend::Proc }
}

/// Key in a recording.
const KEY: &str = "owners-clues";

/// In a recording: files u64, processes u64, may_bpf u8, is_refused u8; little endian.
const BYTES: usize = 18;

/// The inode of the root of procfs (PROC_ROOT_INO, include/linux/proc_fs.h); a directory that only looks like /proc has
/// another.
pub(super) const PROC_ROOT_INODE: u64 = 1;

impl Facts {
    /// Takes four system calls. A replay without these facts chooses by the recorded streams.
    pub(super) fn read(host: &Host) -> Result<Facts, HostError> {
        if !host.contains(KEY) {
            let may_bpf = host.contains(OwnersBackend::Bpf.stream());
            return Ok(Facts { may_bpf, is_refused: may_bpf, ..Facts::default() });
        }
        let mut bytes = Vec::new();
        host.bytes(KEY, "", &mut bytes, |into| {
            into.extend_from_slice(&Facts::look(host).to_bytes());
            Ok(())
        })?;
        Facts::from_bytes(&bytes).ok_or(HostError::Garbled { what: "clues to owners", at: 0 })
    }

    // An unreadable number counts as 0: then /proc is read, which reports the problem.
    fn look(host: &Host) -> Facts {
        let root = fs::stat(&host.proc_path(""));
        let is_procfs = root.as_ref().is_ok_and(|stat| stat.inode == PROC_ROOT_INODE);
        // CAP_DAC_READ_SEARCH is enough to open the folder; only a link in it shows whether access is permitted.
        let first = fs::read_link(&host.proc_path("1/fd/0"), &mut Vec::new()).map_err(|error| error.errno);
        Facts {
            files: open_files(host).unwrap_or(0),
            processes: root.as_ref().map_or(0, processes),
            may_bpf: cfg!(feature = "bpf") && is_procfs && has_rights(),
            is_refused: first.is_err_and(Errno::is_denied),
        }
    }

    fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let numbers = self.files.to_le_bytes().into_iter().chain(self.processes.to_le_bytes());
        let all = numbers.chain([u8::from(self.may_bpf), u8::from(self.is_refused)]);
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Facts> {
        let (files, rest) = bytes.split_first_chunk()?;
        let (processes, rest) = rest.split_first_chunk()?;
        let [may_bpf, is_refused] = *rest.first_chunk()?;
        Some(Facts {
            files: u64::from_le_bytes(*files),
            processes: u64::from_le_bytes(*processes),
            may_bpf: may_bpf != 0,
            is_refused: is_refused != 0,
        })
    }
}

// /proc has a link for each process of the host, apart from its fixed ones (proc_root_getattr, fs/proc/root.c).
fn processes(root: &Stat) -> u64 {
    root.links
}

fn open_files(host: &Host) -> Result<u64, SysError> {
    let mut text = Vec::new();
    fs::read_file(&host.proc_path("sys/fs/file-nr"), &mut text)?;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    Ok(digits.fold(0u64, |n, digit| n.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}

fn has_rights() -> bool {
    caps::effective().is_ok_and(CapSet::may_trace)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_files_by_proc_many_by_bpf() {
        let facts = |files, processes| Facts { files, processes, may_bpf: true, is_refused: false };
        for (files, processes, expected) in [
            (0, 0, OwnersBackend::Proc),
            (500, 60, OwnersBackend::Proc),
            (1_000, 100, OwnersBackend::Proc),
            (5_000, 100, OwnersBackend::Bpf),
            (2_000, 3_000, OwnersBackend::Bpf),
            (u64::MAX, u64::MAX, OwnersBackend::Proc),
            (100_000, 20, OwnersBackend::Bpf),
        ] {
            assert_eq!(choose(&facts(files, processes)), expected, "{files} files, {processes} processes");
            assert_eq!(choose(&Facts { may_bpf: false, ..facts(files, processes) }), OwnersBackend::Proc);
        }
        assert_eq!(choose(&Facts { is_refused: true, ..facts(1, 1) }), OwnersBackend::Bpf);
    }

    #[test]
    fn this_host_has_files_and_processes() {
        let facts = Facts::read(&Host::live()).unwrap();
        assert!(facts.files > 0 && facts.processes > 1, "{facts:?}");
        let tmp = tempfile::tempdir().unwrap();
        let fake = Host::with_roots(tmp.path().into(), "/sys".into(), "/etc".into());
        assert!(!Facts::read(&fake).unwrap().may_bpf, "BPF knows nothing of a tree of files");
    }

    proptest! {
        #[test]
        fn clues_travel(files: u64, processes: u64, may_bpf: bool, is_refused: bool) {
            let facts = Facts { files, processes, may_bpf, is_refused };
            prop_assert_eq!(Facts::from_bytes(&facts.to_bytes()), Some(facts));
            prop_assert_eq!(Facts::from_bytes(&facts.to_bytes()[1..]), None);
        }
    }
}
