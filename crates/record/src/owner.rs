//! Owners of a socket: a process and the number of its file descriptor.

/// A process name as the kernel keeps it (`comm`): at most 15 bytes, any bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Comm {
    bytes: [u8; 15],
    len: u8,
}

impl Comm {
    /// The empty name.
    pub const EMPTY: Comm = Comm { bytes: [0; 15], len: 0 };

    /// The first 15 bytes of `name`, up to a NUL.
    pub fn new(name: &[u8]) -> Comm {
        let end = name.iter().position(|&b| b == 0).unwrap_or(name.len()).min(15);
        let mut bytes = [0; 15];
        bytes[..end].copy_from_slice(&name[..end]);
        Comm { bytes, len: end as u8 }
    }

    /// The name, unescaped: it may contain any bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

/// One owner of a socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Owner {
    /// Process id in the reader's pid namespace.
    pub pid: u32,
    /// Number of the file descriptor in that process.
    pub fd: u32,
    /// Process name.
    pub process: Comm,
    /// Start time of the process in hundredths of a second since boot; 0 if unknown.
    pub started: u32,
}

impl Owner {
    /// Returns the number of processes in `owners` after the first one. Entries of one process must be adjacent.
    pub fn others(owners: &[Owner]) -> u32 {
        let processes = owners.chunk_by(|a, b| a.pid == b.pid).count();
        u32::try_from(processes.saturating_sub(1)).unwrap_or(u32::MAX)
    }
}
