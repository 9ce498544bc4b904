//! The switches of ss, and the callbacks that a writer needs in addition to its rows.

use record::{Comm, Proto};

/// The version whose layout is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Layout {
    /// iproute2 6.1 (Debian 12): owners and extras share the cell `Process`.
    V6_1,
    /// iproute2 6.15 (Debian 13): a cell for owners with `-p`, and a cell without a heading for extras.
    V6_15,
}

/// The security contexts to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// No contexts.
    None,
    /// Contexts of processes (`-Z`).
    Process,
    /// Contexts of processes and of sockets (`-z`).
    Socket,
}

/// The parts of the output that switches show and hide, as bits of [`Options::shows`].
#[rustfmt::skip]
pub mod show {
    /// A heading (not `-H`).
    pub const HEADER: u32 = 1;
    /// The column Netid: more than one socket table was requested.
    pub const NETID: u32 = 1 << 1;
    /// The column State: more than one state was requested.
    pub const STATE: u32 = 1 << 2;
    /// Recv-Q and Send-Q (not `-Q`).
    pub const QUEUES: u32 = 1 << 3;
    /// Numbers instead of names (`-n`).
    pub const NUMERIC: u32 = 1 << 4;
    /// Names of hosts (`-r`).
    pub const RESOLVE: u32 = 1 << 5;
    /// One line a socket (`-O`).
    pub const ONE_LINE: u32 = 1 << 6;
    /// The processes of a socket (`-p`).
    pub const PROCESSES: u32 = 1 << 7;
    /// Their threads (`-T`).
    pub const THREADS: u32 = 1 << 8;
    /// Timers: `-o`, and other switches with which ss shows them.
    pub const TIMERS: u32 = 1 << 9;
    /// Owner, inode and other numbers of a socket (`-e`).
    pub const DETAILS: u32 = 1 << 10;
    /// Memory (`-m`).
    pub const MEMORY: u32 = 1 << 11;
    /// Internal numbers of the protocol (`-i`).
    pub const INFO: u32 = 1 << 12;
    /// Type of service, priority and classes (`--tos`).
    pub const TOS: u32 = 1 << 13;
    /// The cgroup (`--cgroup`).
    pub const CGROUP: u32 = 1 << 14;
    /// Internal numbers of TIPC (`--tipcinfo`).
    pub const TIPC: u32 = 1 << 15;
    /// Socket options (`--inet-sockopt`).
    pub const SOCKOPT: u32 = 1 << 16;
    /// Socket filters (`-b`).
    pub const FILTERS: u32 = 1 << 17;
}

/// The requested output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The version whose layout is used.
    pub layout: Layout,
    /// Reproduces the old tool's known defects, and does not escape text from outside.
    pub bug_compatible: bool,
    /// Bits of [`show`].
    pub shows: u32,
    /// The security contexts to show.
    pub context: Context,
    /// Columns of the terminal, over which the table's columns are stretched. `None` for any other output.
    pub screen: Option<usize>,
}

impl Options {
    /// Plain `ss` in `layout`: Netid, State, queues, addresses; numbers instead of names.
    pub fn plain(layout: Layout) -> Options {
        let shows = show::HEADER | show::NETID | show::STATE | show::QUEUES | show::NUMERIC;
        Options { layout, bug_compatible: false, shows, context: Context::None, screen: None }
    }

    /// True if any of `bits` is shown.
    #[inline]
    pub fn has(&self, bits: u32) -> bool {
        self.shows & bits != 0
    }

    /// Shows `bits` also.
    #[must_use]
    pub fn with(self, bits: u32) -> Options {
        Options { shows: self.shows | bits, ..self }
    }

    /// Hides `bits`.
    #[must_use]
    pub fn without(self, bits: u32) -> Options {
        Options { shows: self.shows & !bits, ..self }
    }

    /// True if owners have a separate cell.
    pub(super) fn owners_apart(&self) -> bool {
        self.layout == Layout::V6_15 && self.owners()
    }

    /// True if owners are shown.
    pub fn owners(&self) -> bool {
        // 6.15 looks up threads, but shows them only if `-p` requests the column.
        let threads = if self.lacks_a_column() { 0 } else { show::THREADS };
        self.has(show::PROCESSES | threads) || self.context != Context::None
    }

    /// True if 6.15 omits the items that it shows next to processes, because it omits that column.
    fn lacks_a_column(&self) -> bool {
        self.bug_compatible && self.layout == Layout::V6_15
    }

    /// True if the additional items of netlink sockets are shown: 6.15 writes them into the column of processes.
    pub(super) fn shows_netlink(&self) -> bool {
        self.owners() || !self.lacks_a_column()
    }

    /// True if only the fixed columns are written.
    pub(super) fn is_plain(&self) -> bool {
        const MORE: u32 = show::TIMERS | show::DETAILS | show::MEMORY | show::INFO | show::TOS | show::CGROUP;
        !self.owners() && !self.has(MORE | show::SOCKOPT | show::FILTERS | show::TIPC)
    }
}

/// Returns the service name of a protocol and port, if the port should have one; for a raw socket, the IP protocol's
/// name.
pub type Services<'s> = &'s dyn Fn(Proto, u16) -> Option<&'s [u8]>;

/// Appends the name of the process with this pid; returns false without such a process.
pub type Processes<'s> = &'s dyn Fn(u32, &mut Vec<u8>) -> bool;

/// A source of facts about owners that no lookup has.
pub trait Tasks {
    /// Passes id, name and descriptor to `each` for every thread, except the first, of a process that has the socket
    /// `inode` open: threads in order of creation, descriptors ascending. A thread may have a separate table of
    /// descriptors (CLONE_FILES undone).
    fn threads(&self, pid: u32, inode: u32, each: &mut dyn FnMut(u32, Comm, u32));
    /// Appends the security context of a thread; returns false if it is unknown.
    fn put_context(&self, tid: u32, out: &mut Vec<u8>) -> bool;
    /// Appends the security context of a descriptor's socket; returns false if it is unknown.
    fn put_socket_context(&self, tid: u32, fd: u32, out: &mut Vec<u8>) -> bool;
}
