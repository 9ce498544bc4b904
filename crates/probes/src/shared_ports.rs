//! UDP ports that sockets of different programs have bound.

use doctor::seen::{Holder, Sample, SharedPort};
use host::Groups;
use host::processes::Identity;
use record::rows::Socket;
use record::{Accounting, Addr};
use std::collections::{BTreeMap, BTreeSet};
use sys::{Errno, Host};

use crate::counter_window::Samples;
use crate::probe::{InNetns, ProbeReader, Round, keep_first};
use crate::sockets::find_holder;

/// Bound: shared UDP ports of a namespace whose processes `doctor` compares. Beyond: further ports are not checked,
/// counted (exit code 3). By: users who share as many ports.
const PORTS_MAX: usize = 64;

/// Ports that several programs share on purpose, because each receives a copy of the groups and broadcasts sent to
/// them: BOOTP and DHCP, NetBIOS, PTP, DHCPv6, SSDP, WS-Discovery, mDNS, LLMNR.
const GROUP_PORTS: &[u16] = &[67, 68, 137, 138, 319, 320, 546, 547, 1900, 3702, 5353, 5355];

/// Groups of these ports, and the group of all hosts: mDNS, LLMNR, SSDP and WS-Discovery.
const KNOWN_GROUPS: &[[u8; 4]] = &[[224, 0, 0, 1], [224, 0, 0, 251], [224, 0, 0, 252], [239, 255, 255, 250]];

/// Compares the processes that share a port.
#[derive(Default)]
pub(crate) struct SharedPortReader {
    /// True for a namespace in which several sockets have joined one group.
    grouped: BTreeMap<u64, bool>,
}

impl ProbeReader for SharedPortReader {
    fn second(&mut self, netns: &InNetns<'_>, sample: &mut Sample, _: &mut Accounting) {
        if !shared(sample).is_empty() {
            let mut groups = Groups::default();
            // Without them, no group is known, and the port counts as one of a server.
            let _ = groups.read4(netns.host(), netns.netns_id, None);
            let is_known = |group: Addr| matches!(group, Addr::V4(group) if KNOWN_GROUPS.contains(&group));
            let is_joined = groups.iter().any(|one| one.users >= 2 && !is_known(one.group));
            self.grouped.insert(netns.netns_id, is_joined);
        }
    }

    fn follow(&mut self, round: &Round<'_>, samples: &mut Samples, stats: &mut Accounting) {
        for sample in samples.values_mut() {
            let Some(netns_id) = sample.netns_id else { continue };
            let may_be_group = self.grouped.get(&netns_id).copied().unwrap_or(false);
            let mut found = Vec::new();
            let mut shared = shared(sample);
            keep_first(&mut shared, PORTS_MAX, "shared UDP ports", stats);
            for PortWithSockets { port, addr, inodes, is_part } in shared {
                let programs = programs(round, netns_id, &inodes, stats);
                if programs.len() >= 2 {
                    let name = match addr.unmapped() {
                        addr @ Addr::V4(_) => format!("{addr}:{port}"),
                        addr @ Addr::V6(_) => format!("[{addr}]:{port}"),
                    };
                    found.push(SharedPort { name, port, programs, is_part, may_be_group });
                }
            }
            sample.around.shared_ports = found;
        }
    }
}

/// A port that several sockets share.
struct PortWithSockets {
    port: u16,
    addr: Addr,
    /// The sockets; those with the address come first.
    inodes: Vec<u32>,
    /// True if some are bound to the address, and others to all addresses.
    is_part: bool,
}

/// The ports that several sockets of one address and interface share, or sockets of one address and of all addresses;
/// except ports that are meant to be shared.
fn shared(sample: &Sample) -> Vec<PortWithSockets> {
    let bound = &sample.after.udp_bound;
    let is_server =
        |port: &u16, addr: &Addr| !GROUP_PORTS.contains(port) && !addr.is_multicast() && !is_broadcast(addr);
    let of_all = |(port, addr, ifindex): (u16, Addr, u32)| {
        let any = if matches!(addr, Addr::V4(_)) { Addr::ANY4 } else { Addr::ANY6 };
        bound.get(&(port, any, ifindex)).filter(|_| !addr.is_unspecified() && !addr.is_loopback())
    };
    let mut found = Vec::new();
    for (key, sharers) in bound.iter().filter(|((port, addr, _), _)| is_server(port, addr)) {
        let (port, addr, _) = *key;
        let own = || std::iter::once(sharers.first).chain(sharers.others.iter().copied());
        if !sharers.others.is_empty() {
            found.push(PortWithSockets { port, addr, inodes: own().collect(), is_part: false });
        } else if let Some(all) = of_all(*key) {
            found.push(PortWithSockets { port, addr, inodes: own().chain([all.first]).collect(), is_part: true });
        }
    }
    found
}

fn is_broadcast(addr: &Addr) -> bool {
    matches!(addr.unmapped(), Addr::V4([.., 255]))
}

/// One process of each program that holds one of the sockets.
fn programs(round: &Round<'_>, netns_id: u64, inodes: &[u32], stats: &mut Accounting) -> Vec<Holder> {
    let mut known = BTreeSet::new();
    let mut found: Vec<(ProgramFile, Holder)> = Vec::new();
    for inode in inodes {
        let socket = Socket { proto: record::Proto::Udp, inode: *inode, netns_id, ..Socket::EMPTY };
        let holder = find_holder(&socket, round.lookups);
        let Some(pid) = holder.pid.filter(|pid| known.insert(*pid)) else { continue };
        match ProgramFile::read(round.session.host(), pid, round.owners_ns) {
            Ok(Some(program)) if found.iter().all(|(other, _)| *other != program) => found.push((program, holder)),
            Ok(_) => {}
            Err(Errno::NOT_RECORDED) => {
                stats.unanswered = true;
                stats.add_reason(0, "the recording does not hold the programs that share a UDP port");
            }
            Err(errno) if errno.is_denied() => {
                stats
                    .incomplete(1, "a program that shares a UDP port is unknown: no permission (needs CAP_SYS_PTRACE)");
            }
            // It has ended.
            Err(_) => {}
        }
    }
    found.into_iter().map(|(_, holder)| holder).collect()
}

/// The program that a process runs: workers of one program are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProgramFile {
    /// The executable file.
    file: Vec<u8>,
    /// The script, if the file is an interpreter; otherwise empty.
    script: Vec<u8>,
}

/// Beginnings of the names of programs that run scripts.
const INTERPRETERS: &[&[u8]] = &[
    b"python", b"perl", b"ruby", b"node", b"java", b"php", b"bash", b"dash", b"sh", b"lua", b"busybox", b"deno", b"bun",
];

impl ProgramFile {
    /// Reads it; `None` if the pid now belongs to another process.
    fn read(host: &Host, pid: u32, seen_ns: u64) -> Result<Option<ProgramFile>, Errno> {
        let identity = |host| Identity::read(host, pid).map_err(|error| error.errno);
        let (before, mut file, mut words) = (identity(host)?, Vec::new(), Vec::new());
        host.read_link(&format!("/proc/{pid}/exe"), &mut file).map_err(|error| error.errno)?;
        host.read_file(&format!("/proc/{pid}/cmdline"), &mut words).map_err(|error| error.errno)?;
        let is_same = identity(host)? == before && !before.started_after(seen_ns);
        Ok(is_same.then(|| ProgramFile::of(file, &words)))
    }

    fn of(file: Vec<u8>, cmdline: &[u8]) -> ProgramFile {
        let name = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let is_interpreter = INTERPRETERS.iter().any(|one| name.starts_with(one));
        let script = if is_interpreter { script_of(cmdline) } else { Vec::new() };
        ProgramFile { file, script }
    }
}

/// The first argument that is no option, or the text or module after one of `-c`, `-m`, `-e` and `-jar`.
fn script_of(cmdline: &[u8]) -> Vec<u8> {
    let mut words = cmdline.split(|byte| *byte == 0).skip(1);
    while let Some(word) = words.next() {
        let script = match word {
            b"-c" | b"-m" | b"-e" | b"-jar" => words.next().unwrap_or_default(),
            _ if word.starts_with(b"-") => continue,
            _ => word,
        };
        // Workers of Python's multiprocessing, each with the number of its own pipe.
        let is_worker = script.starts_with(b"from multiprocessing.");
        return if is_worker { Vec::new() } else { script.to_vec() };
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_one_program_and_scripts_are_several() {
        let of = |file: &str, cmdline: &str| ProgramFile::of(file.into(), cmdline.as_bytes());
        let nginx = "/usr/sbin/nginx";
        assert_eq!(of(nginx, "nginx: master process\0"), of(nginx, "nginx: worker process\0"));
        assert_eq!(of(nginx, "nginx\0-c\0a\0"), of(nginx, "nginx\0-c\0b\0"));
        let python = "/usr/bin/python3.11";
        assert_eq!(of(python, "python3\0/srv/a.py\0--id\0a\0"), of(python, "python3\0-u\0/srv/a.py\0--id\0b\0"));
        assert_ne!(of(python, "python3\0/srv/a.py\0"), of(python, "python3\0/srv/b.py\0"));
        assert_ne!(of(python, "python3\0-c\0import a\0"), of(python, "python3\0-c\0import b\0"));
        assert_ne!(of(nginx, ""), of("/usr/sbin/rsyslogd", ""));
    }

    #[test]
    fn ports_of_one_address_or_of_all() {
        let of = |bound: &[(u16, Addr, &[u32])]| {
            let mut sample = Sample::new(Some(7));
            for (port, addr, others) in bound {
                let sharers = doctor::seen::Sharers { first: 1, others: others.to_vec() };
                sample.after.udp_bound.insert((*port, *addr, 0), sharers);
            }
            shared(&sample).into_iter().map(|one| (one.port, one.inodes.len(), one.is_part)).collect::<Vec<_>>()
        };
        let (host, group) = (Addr::V4([192, 0, 2, 1]), Addr::V4([239, 1, 2, 3]));
        assert_eq!(of(&[(514, Addr::ANY4, &[2])]), [(514, 2, false)]);
        assert_eq!(of(&[(514, Addr::ANY4, &[]), (514, host, &[])]), [(514, 2, true)]);
        assert_eq!(of(&[(514, Addr::ANY6, &[]), (514, host, &[])]), []);
        assert_eq!(of(&[(53, Addr::ANY4, &[]), (53, Addr::V4([127, 0, 0, 53]), &[])]), []);
        assert_eq!(of(&[(5353, Addr::ANY4, &[2]), (5004, group, &[2]), (80, host, &[])]), []);
    }
}
