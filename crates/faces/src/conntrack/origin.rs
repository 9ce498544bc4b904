//! Finds the program that changed an entry: the owner of the netlink socket with that port id.

use lookups::session::Session;
use sys::Host;

/// Finds programs by port id and keeps the most recent result.
pub(super) struct Origins<'s> {
    host: &'s Host,
    newest: Option<(u32, u64, Option<Vec<u8>>)>,
}

impl<'s> Origins<'s> {
    pub(super) fn new(session: &'s Session) -> Origins<'s> {
        Origins { host: session.host(), newest: None }
    }

    /// The program's name; None if its socket has been closed or its owner is not visible.
    pub(super) fn program(&mut self, portid: u32) -> Option<&[u8]> {
        let inode = inode_of(self.host, portid)?;
        let known = self.newest.as_ref().is_some_and(|(port, socket, _)| (*port, *socket) == (portid, inode));
        if !known {
            self.newest = Some((portid, inode, owner(self.host, portid, inode)));
        }
        self.newest.as_ref()?.2.as_deref()
    }
}

/// The inode of the netfilter socket with this port id, from /proc/net/netlink.
fn inode_of(host: &Host, portid: u32) -> Option<u64> {
    const NETFILTER: &str = "12";
    let mut text = Vec::new();
    host.read_file("/proc/thread-self/net/netlink", &mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    // sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (protocol, port) = (words.next()?, words.next()?);
        (protocol == NETFILTER && port.parse() == Ok(portid)).then(|| words.nth(6)?.parse().ok()).flatten()
    })
}

/// The process that owns the socket. Most sockets have their owner's pid as port id; for others every process is
/// searched.
fn owner(host: &Host, portid: u32, inode: u64) -> Option<Vec<u8>> {
    let wanted = format!("socket:[{inode}]");
    // The process must have the socket open both before and after its name is read, or its pid may have been reused.
    let name = |pid| name(host, pid).filter(|_| holds(host, pid, &wanted));
    if holds(host, portid, &wanted) {
        return name(portid);
    }
    let mut names = Vec::new();
    host.read_names("/proc", &mut names).ok()?;
    let pids = names.split(|&b| b == 0).filter_map(|name| std::str::from_utf8(name).ok()?.parse::<u32>().ok());
    let pid = pids.filter(|pid| *pid > 1 && *pid != portid).find(|pid| holds(host, *pid, &wanted))?;
    name(pid)
}

fn holds(host: &Host, pid: u32, wanted: &str) -> bool {
    let (mut fds, mut link) = (Vec::new(), Vec::new());
    if host.read_names(&format!("/proc/{pid}/fd"), &mut fds).is_err() {
        return false;
    }
    let fds: Vec<u32> = fds.split(|&b| b == 0).filter_map(|fd| std::str::from_utf8(fd).ok()?.parse().ok()).collect();
    fds.iter().any(|fd| host.read_link(&format!("/proc/{pid}/fd/{fd}"), &mut link).is_ok() && link == wanted.as_bytes())
}

/// The name in /proc/PID/stat, cut at the first closing parenthesis as in the tool.
fn name(host: &Host, pid: u32) -> Option<Vec<u8>> {
    let mut comm = Vec::new();
    host.read_file(&format!("/proc/{pid}/comm"), &mut comm).ok()?;
    let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
    Some(comm.split(|&b| b == b')').next().unwrap_or_default().to_vec()).filter(|name| !name.is_empty())
}
