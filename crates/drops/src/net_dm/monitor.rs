//! The running drop monitor. The whole host has only one, with one user at a time.
use std::ops::ControlFlow;

use netlink::generic::{self, GenericFamily, PROTOCOL};
use netlink::{AnswerMessage, DumpError, Messages, Query, Request};
use sys::{Errno, Host, NetNs, NetlinkSocket, SysError, netns};

use super::message::{
    DEFAULT, DropAlert, FAMILY, GROUP, MonitorConfig, NET_DM_ATTR_ALERT_MODE, NET_DM_ATTR_HW_DROPS,
    NET_DM_ATTR_QUEUE_LEN, NET_DM_ATTR_SW_DROPS, NET_DM_ATTR_TRUNC_LEN, NET_DM_CMD_CONFIG, NET_DM_CMD_CONFIG_GET,
    NET_DM_CMD_START, NET_DM_CMD_STATS_GET, NET_DM_CMD_STOP, config, dropped,
};
use crate::error::DropsError;

/// Version of the family, which the kernel ignores.
const VERSION: u8 = 2;
/// Receive buffer: the kernel counts about 1.3 KiB per message, plus twice the requested bytes of the packet.
///
/// Bound: bytes of receive buffer for the drop monitor. Beyond: further drops are lost and counted (exit code 3). This
/// also affects other users. By: anyone whose packets are dropped faster than they are read.
const ROOM_BYTES: i32 = 8 << 20;
/// Maximum number of messages received in one call, so that a flood cannot keep the reader in it.
///
/// Bound: messages of the drop monitor in one turn. Beyond: the next turn reads the rest. By: anyone whose packets are
/// dropped fast.
const MESSAGES_MAX: usize = 65_536;
/// Maximum size of a message: a packet of 65,532 bytes, and its attributes.
const MESSAGE_BYTES: usize = 68 << 10;
/// The name of the family in messages to the user.
const WHAT: &str = "the drop monitor";

const NOT_HERE: &str = "the drop monitor (NET_DM) is not available here: only the first network namespace can use it";

/// The family's network namespace and number.
#[derive(Debug)]
struct Family {
    /// The initial network namespace; `None` if it is the thread's own.
    netns: Option<NetNs>,
    id: u16,
    /// Number of its multicast group, at most 32.
    group: u32,
}

impl Family {
    /// Queries the kernel, which loads the module if there is one. Only the initial network namespace has the family.
    fn find(host: &Host) -> Result<Family, DropsError> {
        let first = host.proc_path("1/ns/net");
        let is_first = netns::current_inode().ok() == netns::inode_of(&first).ok();
        let found = match found_in(None)? {
            None if !is_first => {
                let netns = NetNs::open_path(&first)
                    .map_err(|error| no(format!("{NOT_HERE}, which cannot be entered: {error}")))?;
                found_in(Some(&netns))?.map(|numbers| (Some(netns), numbers))
            }
            found => found.map(|numbers| (None, numbers)),
        };
        let Some((netns, (id, group))) = found else {
            return Err(no("this kernel has no drop monitor (NET_DM, module drop_monitor)"));
        };
        if !(1..=32).contains(&group) {
            return Err(no("the drop monitor has no multicast group"));
        }
        Ok(Family { netns, id, group })
    }

    fn ask(&self, request: &Request, each: &mut dyn FnMut(&[u8])) -> Result<(), DumpError> {
        exchange(request, self.netns.as_ref(), each)
    }

    fn request(&self, command: u8) -> Request {
        let mut request = Request::for_one(self.id);
        request.append(&[command, VERSION, 0, 0]);
        request
    }

    fn config(&self) -> Result<MonitorConfig, DropsError> {
        let mut found = None;
        self.ask(&self.request(NET_DM_CMD_CONFIG_GET), &mut |message| found = found.or(config(message)))
            .map_err(|error| no(error.to_string()))?;
        found.ok_or_else(|| no("the drop monitor does not report its settings (Linux 5.4 and later do)"))
    }

    fn configure(&self, to: MonitorConfig) -> Result<(), DumpError> {
        let mut request = self.request(NET_DM_CMD_CONFIG);
        request.attr(NET_DM_ATTR_ALERT_MODE, &[to.mode]);
        request.attr_u32(NET_DM_ATTR_TRUNC_LEN, to.snaplen).attr_u32(NET_DM_ATTR_QUEUE_LEN, to.queue);
        self.ask(&request, &mut |_| {})
    }

    /// Starts or stops monitoring.
    fn switch(&self, command: u8, origins: DropOrigins) -> Result<(), DumpError> {
        let mut request = self.request(command);
        if origins != DropOrigins::Hardware {
            request.attr(NET_DM_ATTR_SW_DROPS, &[]);
        }
        if origins != DropOrigins::Software {
            request.attr(NET_DM_ATTR_HW_DROPS, &[]);
        }
        self.ask(&request, &mut |_| {})
    }

    /// Numbers of packets that the kernel could not report so far: software, hardware.
    fn dropped(&self) -> Result<[u64; 2], DropsError> {
        let mut found = None;
        self.ask(&self.request(NET_DM_CMD_STATS_GET), &mut |message| found = found.or(dropped(message)))
            .map_err(|error| no(error.to_string()))?;
        Ok(found.unwrap_or_default())
    }

    /// Port ids of the sockets that receive the monitor's messages, except for our own. Linux 2.6.25 and later.
    fn listeners(&self, host: &Host, own: u32) -> Result<Vec<u32>, SysError> {
        let mut text = Vec::new();
        let path = host.real_path("/proc/thread-self/net/netlink");
        netns::run_within(self.netns.as_ref(), || sys::fs::read_file(&path, &mut text))??;
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().filter_map(|line| listener(line, self.group)).filter(|port| *port != own).collect())
    }
}

/// The port id of a line of /proc/net/netlink, if that socket is in the group: `sk Eth Pid Groups …`.
fn listener(line: &str, group: u32) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let (protocol, port, groups) = (words.next()?, words.next()?, words.next()?);
    let groups = u32::from_str_radix(groups, 16).ok()?;
    let is_it = protocol.parse() == Ok(PROTOCOL) && groups & 1_u32.checked_shl(group - 1)? != 0;
    port.parse().ok().filter(|_| is_it)
}

/// Numbers of the family and the group in a namespace; `None` if it lacks the family.
fn found_in(netns: Option<&NetNs>) -> Result<Option<(u16, u32)>, DropsError> {
    let family =
        generic::family(&Host::live(), FAMILY, "drop monitor", netns).map_err(|error| no(error.to_string()))?;
    Ok(family.as_ref().and_then(numbers))
}

fn numbers(family: &GenericFamily) -> Option<(u16, u32)> {
    let group = family.groups.iter().find(|(name, _)| **name == *GROUP)?;
    Some((family.id, group.1)).filter(|_| *family.name == *FAMILY.as_bytes())
}

/// Not recorded: a recording holds the drops themselves.
fn exchange(request: &Request, netns: Option<&NetNs>, each: &mut dyn FnMut(&[u8])) -> Result<(), DumpError> {
    let ask = Query { what: WHAT, protocol: PROTOCOL, request, key: "drop monitor", note: "", netns };
    let go_on = |part: &AnswerMessage<'_>| {
        each(part.payload);
        ControlFlow::Continue(())
    };
    netlink::exchange(&Host::live(), &ask, go_on).map(drop)
}

fn no(why: impl Into<Box<str>>) -> DropsError {
    DropsError::NoMonitor(why.into())
}

/// Origins of the monitored drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropOrigins {
    /// Packets that the kernel drops.
    Software,
    /// Packets that hardware drops with devlink traps and hands over.
    Hardware,
    /// Both of them.
    Both,
}

/// The kernel's drop monitor, from the time it is opened until it is dropped: one user on the whole host at a time. The
/// earlier settings are restored at the end.
#[derive(Debug)]
pub struct DropMonitor {
    family: Family,
    socket: NetlinkSocket,
    origins: DropOrigins,
    /// The earlier settings, which are restored at the end.
    before: MonitorConfig,
    /// Numbers of lost packets at the start.
    dropped_before: [u64; 2],
    buffer: Vec<u8>,
    /// Number of malformed messages.
    undecoded: u64,
}

impl DropMonitor {
    /// Monitors drops from now on, with `snaplen` bytes of each packet; 0 for all of it. Needs CAP_NET_ADMIN, and since
    /// Linux 6.7 also CAP_SYS_ADMIN. Loads the module. Fails if another program uses the monitor.
    ///
    /// `queue` is the number of packets that can wait per CPU. With a number other than [`super::OUR_QUEUE`], later
    /// runs do not recognise a monitor that was left on by `kill -9`, so it stays on.
    pub fn open(host: &Host, origins: DropOrigins, snaplen: u32, queue: u32) -> Result<DropMonitor, DropsError> {
        let family = Family::find(host)?;
        let socket = netns::run_within(family.netns.as_ref(), || NetlinkSocket::open(PROTOCOL))??;
        socket.make_room(ROOM_BYTES);
        // Losses are counted instead, by the socket and by the kernel.
        socket.report_no_losses()?;
        socket.join(1 << (family.group - 1))?;
        let own = socket.port_id()?;
        let dropped_before = family.dropped()?;
        let before = family.begin(host, own, origins, MonitorConfig::ours(snaplen, queue))?;
        Ok(DropMonitor {
            family,
            socket,
            origins,
            before,
            dropped_before,
            buffer: vec![0; MESSAGE_BYTES],
            undecoded: 0,
        })
    }

    /// Receives the waiting messages and calls back with each drop.
    pub fn take(&mut self, each: &mut dyn FnMut(&DropAlert<'_>)) -> Result<(), SysError> {
        for _ in 0..MESSAGES_MAX {
            let Some(got) = self.socket.try_recv(&mut self.buffer)? else { break };
            for message in Messages::new(self.buffer.get(..got.bytes).unwrap_or_default()) {
                let Ok(message) = message else {
                    self.undecoded += 1;
                    break;
                };
                match DropAlert::decode(message.payload).filter(|_| message.kind == self.family.id) {
                    Some(alert) => each(&alert),
                    None => self.undecoded += 1,
                }
            }
        }
        Ok(())
    }

    /// Waits for messages, at most `timeout_ms`; false if none arrived.
    pub(crate) fn wait(&self, timeout_ms: i32) -> Result<bool, SysError> {
        self.socket.wait(timeout_ms)
    }

    /// Number of drops so far without a message: the queue or the socket was full, or the message was malformed.
    pub fn lost(&self) -> Result<u64, DropsError> {
        let since = self.family.dropped()?.into_iter().zip(self.dropped_before);
        let by_kernel = since.map(|(now, before)| now.wrapping_sub(before)).fold(0, u64::saturating_add);
        Ok(by_kernel.saturating_add(self.socket.drops()?.into()).saturating_add(self.undecoded))
    }
}

/// Numbers of packets that the kernel's drop monitor could not report since the host booted: software, hardware. Loads
/// the module. Needs CAP_NET_ADMIN; works whether or not the monitor is in use.
pub fn monitor_losses(host: &Host) -> Result<[u64; 2], DropsError> {
    Family::find(host)?.dropped()
}

impl Drop for DropMonitor {
    fn drop(&mut self) {
        // A failure cannot be reported here; the next run repairs it.
        let _ = self.family.switch(NET_DM_CMD_STOP, self.origins);
        let _ = self.family.configure(self.before);
    }
}

impl Family {
    /// Configures and starts the monitor; returns its earlier settings. A monitor that a killed run has left on, with
    /// our settings and without a listener, is stopped first.
    fn begin(
        &self,
        host: &Host,
        own: u32,
        origins: DropOrigins,
        to: MonitorConfig,
    ) -> Result<MonitorConfig, DropsError> {
        let before = Some(self.config()?).filter(|config| !config.is_ours()).unwrap_or(DEFAULT);
        let started = |tried: Result<(), DumpError>| match tried {
            Err(DumpError::Refused { errno: Errno::AGAIN | Errno::BUSY, .. }) => Ok(false),
            Err(error) => Err(no(error.to_string())),
            Ok(()) => Ok(true),
        };
        let begin = || -> Result<bool, DropsError> {
            if !started(self.configure(to))? {
                return Ok(false);
            }
            let is_started = started(self.switch(NET_DM_CMD_START, origins));
            if !matches!(is_started, Ok(true)) {
                let _ = self.configure(before);
            }
            is_started
        };
        if begin()? {
            return Ok(before);
        }
        let listeners = self.listeners(host, own)?;
        if listeners.is_empty() && self.config()?.is_ours() {
            // Monitoring of hardware drops may be on or off.
            let _ = self.switch(NET_DM_CMD_STOP, DropOrigins::Both);
            if begin()? {
                return Ok(before);
            }
        }
        Err(no(busy(host, &listeners)))
    }
}

/// The error text if another program uses the monitor.
fn busy(host: &Host, listeners: &[u32]) -> String {
    const ONE: &str = "the drop monitor is already on, and can have only one user at a time";
    let name = |port: &u32| {
        let mut comm = Vec::new();
        let read = sys::fs::read_file(&host.proc_path(&format!("{port}/comm")), &mut comm);
        // Port ids are usually process ids.
        let comm = sys::escape_bytes(comm.trim_ascii_end());
        if read.is_ok() { format!("{port} ({comm})") } else { port.to_string() }
    };
    match listeners {
        [] => {
            format!("{ONE}: no program is listening, so a killed program may have left it on (dropwatch: start, stop)")
        }
        ports => format!("{ONE}: netlink port {} is listening", ports.iter().map(name).collect::<Vec<_>>().join(", ")),
    }
}

/// Whether the monitor is available, for `netwren support`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The kernel has the family.
    There,
    /// The family is missing; loading the module would add it.
    NotLoaded,
    /// The family is missing, and so is the module.
    Absent,
}

/// Checks without loading the module: searches the families of the initial network namespace, and the list of modules.
pub(crate) fn presence(host: &Host) -> Presence {
    let first = NetNs::open_path(&host.proc_path("1/ns/net")).ok();
    let is_there = [None, first.as_ref()].into_iter().any(|netns| {
        let family = generic::find_in_list(&Host::live(), FAMILY, "drop monitor", netns);
        family.is_ok_and(|family| family.as_ref().and_then(numbers).is_some())
    });
    let listed = || {
        let mut text = Vec::new();
        let release = sys::Kernel::read_running().release;
        let path = host.real_path(&format!("/lib/modules/{release}/modules.dep"));
        let read = sys::fs::read_file(&path, &mut text);
        read.is_ok() && text.windows(MODULE.len()).any(|part| part == MODULE)
    };
    match is_there {
        true => Presence::There,
        false if listed() => Presence::NotLoaded,
        false => Presence::Absent,
    }
}

/// Name of the module's file.
const MODULE: &[u8] = b"/drop_monitor.ko";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_of_the_group() {
        let head = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode";
        assert_eq!(listener(head, 1), None);
        let line = |protocol: &str, groups: &str| {
            listener(
                &format!(
                    "0000000000000000 {protocol}  1234       {groups} 0        0        0     2        0        7"
                ),
                1,
            )
        };
        assert_eq!((line("16", "00000001"), line("16", "00000003")), (Some(1234), Some(1234)));
        assert_eq!((line("16", "00000002"), line("0", "00000001"), line("16", "x")), (None, None, None));
    }

    /// This kernel has no drop monitor, or another program uses it; either is reported.
    #[test]
    fn root_a_kernel_without_it_says_so() {
        testkit::require_root!();
        let host = Host::live();
        if presence(&host) == Presence::Absent {
            let said =
                DropMonitor::open(&host, DropOrigins::Both, 0, 1000).map(drop).map_err(|error| error.to_string());
            assert!(said.as_ref().is_err_and(|said| said.contains("drop monitor (NET_DM")), "{said:?}");
        }
    }
}
