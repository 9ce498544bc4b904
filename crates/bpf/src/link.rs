//! Links: programs at work, and the rows of iterators.
use sys::{Errno, Fd, SysError, bpf, fs};

use crate::error::BpfError;

/// An attached program. Dropping it detaches; so does the end of the process, whatever ends it.
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

    /// Starts a pass of an iterator. Each pass is one; begin another for the next.
    pub fn iterate(&self) -> Result<IterRows, BpfError> {
        if !self.iterates {
            return Err(BpfError::NoSuch { kind: "iter program", name: self.program.clone() });
        }
        let shown = || format!("BPF iterator {}", self.program);
        let fd = bpf::open_iterator(&self.fd).map_err(|errno| SysError::new("bpf_iter_create", shown(), errno))?;
        Ok(IterRows { program: self.program.clone(), fd })
    }
}

/// A pass of an iterator.
#[derive(Debug)]
pub struct IterRows {
    program: Box<str>,
    fd: Fd,
}

impl IterRows {
    /// Reads what the program wrote, as much as fits; 0 is the end. Take 64 KiB: what the program writes at once comes
    /// whole if `into` has room for it.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, BpfError> {
        loop {
            match fs::read(&self.fd, into) {
                Ok(got) => return Ok(got),
                // A million things went by without a row (kernel/bpf/bpf_iter.c, MAX_ITER_OBJECTS): it goes on there.
                Err(Errno::AGAIN) => {}
                Err(errno) => return Err(SysError::new("read", format!("BPF iterator {}", self.program), errno).into()),
            }
        }
    }
}
