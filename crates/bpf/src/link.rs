//! Links: attached programs, and the rows that iterators write.
use sys::{Errno, Fd, SysError, bpf, fs};

use crate::error::BpfError;

/// An attached program. Dropping the link detaches it; so does the end of the process, however it ends.
#[derive(Debug)]
pub struct Link {
    program: Box<str>,
    fd: Fd,
    iterates: bool,
}

impl Link {
    pub(crate) fn new(program: &str, fd: Fd, iterates: bool) -> Link {
        Link { program: program.into(), fd, iterates }
    }

    /// Starts one pass of an iterator over all objects. Fails for programs that are not iterators.
    pub fn iterate(&self) -> Result<IterRows, BpfError> {
        if !self.iterates {
            return Err(BpfError::NoSuch { kind: "iter program", name: self.program.clone() });
        }
        let shown = || format!("BPF iterator {}", self.program);
        let fd = bpf::open_iterator(&self.fd).map_err(|errno| SysError::new("bpf_iter_create", shown(), errno))?;
        Ok(IterRows { program: self.program.clone(), fd })
    }
}

/// One pass of an iterator: a descriptor that yields the rows.
#[derive(Debug)]
pub struct IterRows {
    program: Box<str>,
    fd: Fd,
}

impl IterRows {
    /// Reads rows into `into` and returns the number of bytes; 0 at the end. With 64 KiB, each write of the program
    /// arrives in one piece.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, BpfError> {
        loop {
            match fs::read(&self.fd, into) {
                Ok(got) => return Ok(got),
                // The kernel passed a million objects without a row (MAX_ITER_OBJECTS, kernel/bpf/bpf_iter.c). The
                // next read continues from there.
                Err(Errno::AGAIN) => {}
                Err(errno) => return Err(SysError::new("read", format!("BPF iterator {}", self.program), errno).into()),
            }
        }
    }
}
