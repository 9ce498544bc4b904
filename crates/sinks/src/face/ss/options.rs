//! What the switches of ss ask for, and what a writer asks beside its rows.

use record::{Comm, Proto};

/// Whose layout.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Layout {
    /// iproute2 6.1 (Debian 12): owners and extras share the cell `Process`.
    V6_1,
    /// iproute2 6.15 (Debian 13): a cell for owners with `-p`, one without heading for extras.
    V6_15,
}

/// Which security contexts are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// None.
    None,
    /// Those of processes (`-Z`).
    Process,
    /// Those of processes and of sockets (`-z`).
    Socket,
}

/// What is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Whose layout.
    pub layout: Layout,
    /// The old tool's known defects, and outside text as it is.
    pub bug_compatible: bool,
    /// A heading (not `-H`).
    pub header: bool,
    /// The column Netid: more than one socket table was asked for.
    pub netid: bool,
    /// The column State: more than one state was asked for.
    pub state: bool,
    /// Recv-Q and Send-Q (not `-Q`).
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
    /// Columns of the terminal that is written to: the table's columns stretch over them. None for anything else.
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

    /// True if owners have a cell of their own.
    pub(super) fn owners_apart(&self) -> bool {
        self.layout == Layout::V6_15 && self.owners()
    }

    /// True if those who hold a socket are shown.
    pub fn owners(&self) -> bool {
        // 6.15 looks for threads, and shows them only if `-p` asks for the column.
        let threads = self.threads && !self.lacks_a_column();
        self.processes || threads || self.context != Context::None
    }

    /// True if what 6.15 shows beside processes is to be left out with them, as it does.
    fn lacks_a_column(&self) -> bool {
        self.bug_compatible && self.layout == Layout::V6_15
    }

    /// True if what netlink sockets have beyond their addresses is shown: 6.15 writes it into the column of processes.
    pub(super) fn shows_netlink(&self) -> bool {
        self.owners() || !self.lacks_a_column()
    }

    /// True if nothing but the fixed columns is written.
    pub(super) fn is_plain(&self) -> bool {
        let more = self.owners() || self.timers || self.details || self.memory || self.info;
        !(more || self.tos || self.cgroup || self.sockopt || self.filters || self.tipc)
    }
}

/// Name of a service by protocol and port, if the port shall have one; of a raw socket the IP protocol's.
pub type Services<'s> = &'s dyn Fn(Proto, u16) -> Option<&'s [u8]>;

/// Appends the name of the process with that pid; false if there is none.
pub type Processes<'s> = &'s dyn Fn(u32, &mut Vec<u8>) -> bool;

/// Answers about owners of sockets that are in no lookup.
pub trait Tasks {
    /// Hands number, name and descriptor of each thread of a process but its first that holds the socket `inode` to
    /// `each`: threads in the order of their making, descriptors ascending. A thread may have a table of descriptors of
    /// its own (CLONE_FILES undone).
    fn threads(&self, pid: u32, inode: u32, each: &mut dyn FnMut(u32, Comm, u32));
    /// Appends the security context of a thread; false if nobody tells.
    fn put_context(&self, tid: u32, out: &mut Vec<u8>) -> bool;
    /// The same of the socket behind a descriptor.
    fn put_socket_context(&self, tid: u32, fd: u32, out: &mut Vec<u8>) -> bool;
}
