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

/// The requested output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The version whose layout is used.
    pub layout: Layout,
    /// The old tool's known defects, and unescaped text from outside.
    pub bug_compatible: bool,
    /// Print a heading (not `-H`).
    pub header: bool,
    /// Print the column Netid: more than one socket table was requested.
    pub netid: bool,
    /// Print the column State: more than one state was requested.
    pub state: bool,
    /// Print Recv-Q and Send-Q (not `-Q`).
    pub queues: bool,
    /// `-p`
    pub processes: bool,
    /// `-T`
    pub threads: bool,
    /// `-Z`, `-z`
    pub context: Context,
    /// `-o`
    pub timers: bool,
    /// `-e`
    pub details: bool,
    /// `-m`
    pub memory: bool,
    /// `-i`
    pub info: bool,
    /// `--tos`
    pub tos: bool,
    /// `--cgroup`
    pub cgroup: bool,
    /// `--tipcinfo`
    pub tipc: bool,
    /// `--inet-sockopt`
    pub sockopt: bool,
    /// `-b`
    pub filters: bool,
    /// `-O`
    pub one_line: bool,
    /// `-n`
    pub numeric: bool,
    /// `-r`
    pub resolve: bool,
    /// Columns of the terminal, over which the table's columns are stretched. `None` for any other output.
    pub screen: Option<usize>,
}

impl Options {
    /// Plain `ss` in `layout`: Netid, State, queues, addresses; numbers instead of names.
    pub fn plain(layout: Layout) -> Options {
        Options {
            layout,
            bug_compatible: false,
            header: true,
            netid: true,
            state: true,
            queues: true,
            processes: false,
            threads: false,
            context: Context::None,
            timers: false,
            details: false,
            memory: false,
            info: false,
            tos: false,
            cgroup: false,
            tipc: false,
            sockopt: false,
            filters: false,
            one_line: false,
            numeric: true,
            resolve: false,
            screen: None,
        }
    }

    /// True if owners have a separate cell.
    pub(super) fn owners_apart(&self) -> bool {
        self.layout == Layout::V6_15 && self.owners()
    }

    /// True if owners are shown.
    pub fn owners(&self) -> bool {
        // 6.15 looks up threads, but shows them only if `-p` requests the column.
        let threads = self.threads && !self.lacks_a_column();
        self.processes || threads || self.context != Context::None
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
        let more = self.owners() || self.timers || self.details || self.memory || self.info;
        !(more || self.tos || self.cgroup || self.sockopt || self.filters || self.tipc)
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
