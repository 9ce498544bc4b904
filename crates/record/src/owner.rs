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
    /// Number of the file descriptor in that process; [`Owner::IN_RING`] and [`Owner::IN_FLIGHT`] mark other ones.
    pub fd: u32,
    /// Process name.
    pub process: Comm,
    /// Start time of the process in hundredths of a second since boot; 0 if unknown.
    pub started: u32,
}

/// How a process holds a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldingKind {
    /// It has a file descriptor of the socket.
    Descriptor,
    /// The socket is registered with an io_uring of the process.
    Ring,
    /// The socket is in a message that a unix socket of the process has not delivered yet (SCM_RIGHTS).
    InFlight,
}

impl HoldingKind {
    /// Every name.
    pub const NAMES: &'static [&'static str] = &["descriptor", "io_uring", "in_flight"];

    /// The name in filters and output.
    pub fn name(self) -> &'static str {
        match self {
            HoldingKind::Descriptor => "descriptor",
            HoldingKind::Ring => "io_uring",
            HoldingKind::InFlight => "in_flight",
        }
    }
}

impl Owner {
    /// Marks `fd` as the descriptor of an io_uring that the socket is registered with. Descriptors have 30 bits.
    pub const IN_RING: u32 = 1 << 31;
    /// Marks `fd` as the descriptor of the unix socket that will deliver the socket.
    pub const IN_FLIGHT: u32 = 3 << 30;

    /// How the process holds the socket.
    pub fn holding(&self) -> HoldingKind {
        match self.fd & Owner::IN_FLIGHT {
            Owner::IN_FLIGHT => HoldingKind::InFlight,
            Owner::IN_RING => HoldingKind::Ring,
            _ => HoldingKind::Descriptor,
        }
    }

    /// Returns the descriptor of the socket; `None` if the process holds the socket without one.
    pub fn descriptor(&self) -> Option<u32> {
        (self.holding() == HoldingKind::Descriptor).then_some(self.fd)
    }

    /// Returns the descriptor through which the process reaches the socket: of the socket itself, of the io_uring or of
    /// the unix socket.
    pub fn reached_through(&self) -> u32 {
        self.descriptor().unwrap_or(self.fd & !Owner::IN_FLIGHT)
    }

    /// Returns the number of processes in `owners` after the first one. Entries of one process must be adjacent.
    pub fn count_other_processes(owners: &[Owner]) -> u32 {
        let processes = owners.chunk_by(|a, b| a.pid == b.pid).count();
        u32::try_from(processes.saturating_sub(1)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_sockets_without_a_descriptor() {
        for (mark, holding, descriptor) in [
            (0, HoldingKind::Descriptor, Some(7)),
            (Owner::IN_RING, HoldingKind::Ring, None),
            (Owner::IN_FLIGHT, HoldingKind::InFlight, None),
        ] {
            let owner = Owner { pid: 1, fd: 7 | mark, process: Comm::EMPTY, started: 0 };
            assert_eq!((owner.holding(), owner.descriptor(), owner.reached_through()), (holding, descriptor, 7));
            assert!(HoldingKind::NAMES.contains(&holding.name()));
        }
    }
}
