//! Owners of sockets: the iterator over all open files of all processes (`c/owners_files.bpf.c`).
use sys::Host;

use crate::error::BpfError;
use crate::link::{IterRows, Link};
use crate::load::{LoadSpec, load};

const OBJECT: &[u8] = include_bytes!("../objects/owners_files.o");

/// The loaded program, ready for consecutive passes.
#[derive(Debug)]
pub struct OwnersFiles {
    link: Link,
}

impl OwnersFiles {
    /// Loads and attaches the program: takes a few milliseconds. Needs Linux 5.11, CAP_BPF and CAP_PERFMON.
    pub fn load(host: &Host) -> Result<OwnersFiles, BpfError> {
        OwnersFiles::load_with(host, "owners_files", 0)
    }

    /// Loads the program for files that keep a namespace alive: sockets and open namespace files. Each row has the
    /// inode of the namespace.
    pub fn load_by_netns(host: &Host) -> Result<OwnersFiles, BpfError> {
        OwnersFiles::load_with(host, "owners_files", 1)
    }

    /// Loads the program for sockets in messages that unix sockets have not delivered yet.
    pub fn load_in_flight(host: &Host) -> Result<OwnersFiles, BpfError> {
        OwnersFiles::load_with(host, "owners_in_flight", 0)
    }

    fn load_with(host: &Host, program: &str, by_netns: u32) -> Result<OwnersFiles, BpfError> {
        let constants: &[(&str, &[u8])] = &[("by_netns", &by_netns.to_ne_bytes())];
        let loaded = load(host, &LoadSpec { object: OBJECT, programs: &[program], constants, entries: &[] })?;
        Ok(OwnersFiles { link: loaded.program(program)?.attach()? })
    }

    /// Begins a pass over all files: 0.3 µs per file. The program's source describes the result of the reads. Passes
    /// of the same program must not overlap, because they share its memory.
    pub fn begin_pass(&self) -> Result<IterRows, BpfError> {
        self.link.iterate()
    }
}
