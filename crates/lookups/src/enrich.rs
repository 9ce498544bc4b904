//! The lookups of a run, read before the rows and only if a displayed or filtered field needs them.

use crate::lazy_ifaces::NumberedIfaces;
use crate::packet_delays::MeasuredDelays;
use crate::session::Session;
use host::{
    Cgroups, CheckedOwners, Containers, HostError, Ifaces, LocalPorts, Namespaces, NetnsNames, Owners, PortRanges,
    ProcessParts, Processes, Users,
};
use owners::RoundOwners;
use record::{Accounting, Key, Lookup, LookupId, Lookups, Value};
use sys::Host;

/// The lookups of one round.
#[derive(Default)]
pub struct Enrichment<'s> {
    owners: Option<RoundOwners<Owners>>,
    /// Owners from an earlier round in place of `owners`, verified for each lookup.
    checked: Option<CheckedOwners<'s>>,
    users: Option<Users>,
    ifaces: Option<Ifaces>,
    /// In the place of `ifaces` where few rows need them.
    lazy_ifaces: Option<NumberedIfaces<'s>>,
    netns: Option<NetnsNames>,
    cgroups: Option<Cgroups>,
    processes: Option<Processes>,
    containers: Option<Containers>,
    ports: Option<PortRanges>,
    delays: Option<MeasuredDelays>,
}

/// The owners of the previous round.
pub struct Former {
    /// Processes by socket.
    pub owners: Owners,
    /// True if few rows are made, so that verifying these owners is cheaper than a new reading.
    pub looks: bool,
    /// True if rows show closed sockets, whose owners are these.
    pub are_for_gone: bool,
}

/// The lookups that a round leaves for the next one.
pub struct Left {
    /// The newest reading of the owners.
    pub owners: Option<Owners>,
    /// Names of namespaces.
    pub netns_names: Option<NetnsNames>,
    /// True if verifying single owners was not worthwhile.
    pub asks_for_many: bool,
}

impl<'s> Enrichment<'s> {
    /// Reads the `wanted` lookups. If one cannot be read, its cells are empty and the reason is in `stats`.
    pub fn read(session: &'s Session, wanted: &[LookupId], stats: &mut Accounting) -> Enrichment<'s> {
        Enrichment::read_after(session, wanted, None, stats)
    }

    /// Reads the `wanted` lookups of a round that follows another.
    pub fn read_after(
        session: &'s Session,
        wanted: &[LookupId],
        former: Option<Former>,
        stats: &mut Accounting,
    ) -> Enrichment<'s> {
        let (host, netns_id) = (session.host(), session.netns_id());
        let mut all = Enrichment::default();
        let mut gone = None;
        match former {
            // Lookups on processes require all owners.
            Some(Former { owners, looks: true, are_for_gone })
                if parts_of(wanted) == ProcessParts::default() && CheckedOwners::are_possible(host, &owners) =>
            {
                all.checked = Some(CheckedOwners::new(session.owners(), host, owners, are_for_gone));
            }
            former => gone = former.filter(|former| former.are_for_gone).map(|former| former.owners),
        }
        for id in wanted {
            match id {
                LookupId::Owners if all.checked.is_some() => {}
                LookupId::Owners => all.owners = kept(session.owners().read(host), stats).map(RoundOwners::new),
                LookupId::Users => all.users = kept(Users::read(host), stats),
                LookupId::Ifaces => all.ifaces = ifaces(session, stats),
                LookupId::Netns => {
                    let names = match session.namespaces() {
                        Some(namespaces) => names_of(&namespaces, host),
                        None => NetnsNames::read(host, &[netns_id]),
                    };
                    all.netns = kept(names, stats);
                }
                LookupId::LocalPorts => all.ports = Some(port_ranges(session, stats)),
                LookupId::PacketDelays => all.delays = Some(MeasuredDelays::read(session, stats)),
                LookupId::Cgroups => all.cgroups = kept(Cgroups::read(host), stats),
                // Host names arrive later, see `names.rs`.
                LookupId::Hosts => {}
                // Read below, for all owners at once.
                LookupId::Cmdlines
                | LookupId::Containers
                | LookupId::Pods
                | LookupId::Units
                | LookupId::ContainerPids
                | LookupId::Contexts => {}
            }
        }
        all.read_processes(session, wanted, stats);
        all.keep_former(gone);
        all.owners.iter().for_each(|owners| report_owners(&owners.now, stats));
        let shown = all.cgroups.iter().filter(|_| wanted.contains(&LookupId::Cgroups));
        for line in shown.flat_map(|c| c.report().lines()) {
            stats.add_reason(1, line);
        }
        all
    }

    /// Reads the wanted lookups on processes.
    fn read_processes(&mut self, session: &Session, wanted: &[LookupId], stats: &mut Accounting) {
        let parts = parts_of(wanted);
        if parts == ProcessParts::default() {
            return;
        }
        let owners = self.owners.as_ref().map(|owners| &owners.now);
        let (pids, seen_ns) = owners.map(|now| (now.pids(), now.seen_ns())).unwrap_or_default();
        self.processes = kept(Processes::read(session.host(), &pids, parts, seen_ns), stats);
        let lines = self.processes.iter().flat_map(|processes| processes.report().lines());
        lines.for_each(|line| {
            stats.incomplete(1, line);
        });
        if !parts.cgroups {
            return;
        }
        if self.cgroups.is_none() {
            // For sockets without an owner; if it fails, such cells are empty.
            self.cgroups = Cgroups::read(session.host()).ok();
        }
        let files = self.processes.iter().flat_map(Processes::cgroups);
        let containers = Containers::read(session.host(), files, self.cgroups.as_ref());
        if let Some(line) = containers.missing().filter(|_| !session.is_silent_on_places()) {
            stats.incomplete(1, line);
        }
        self.containers = Some(containers);
    }

    /// Keeps the owners of the previous round for sockets closed since then.
    fn keep_former(&mut self, before: Option<Owners>) {
        if let Some(owners) = &mut self.owners {
            let seen_ns = before.as_ref().map_or(u64::MAX, Owners::seen_ns);
            owners.others =
                self.processes.as_ref().map(|processes| processes.started_after(seen_ns)).unwrap_or_default();
            owners.before = before;
        }
    }

    /// True if this lookup can be compared with the previous round: only the names of namespaces can.
    pub fn can_be_compared(id: LookupId) -> bool {
        id == LookupId::Netns
    }

    /// True if namespaces still have the names of the previous round.
    pub fn answers_as_before(&self, names: Option<&NetnsNames>) -> bool {
        self.netns.as_ref() == names
    }

    /// The lookups to pass on to the next round. Adds to `stats` which owners were read during this one.
    pub fn leave(self, stats: &mut Accounting) -> Left {
        let Some(end) = self.checked.map(CheckedOwners::end) else {
            let owners = self.owners.map(|owners| owners.now);
            return Left { owners, netns_names: self.netns, asks_for_many: false };
        };
        stats.add_backend("owners@checked");
        if let Some(error) = end.failed {
            stats.incomplete(1, error.to_string());
        } else if end.is_new {
            report_owners(&end.owners, stats);
        }
        Left { owners: Some(end.owners), netns_names: self.netns, asks_for_many: end.too_many }
    }

    /// Adds the lookups that only some rows need: names of interfaces, which are read when the first of these rows
    /// comes. A recording gets them in any case.
    pub fn add_for_some_rows(&mut self, session: &'s Session, may_need: impl Fn(LookupId) -> bool) {
        if self.ifaces.is_none() && may_need(LookupId::Ifaces) {
            self.lazy_ifaces = Some(NumberedIfaces::new(session));
        }
    }

    /// True if names of interfaces were read because rows needed them.
    pub fn has_read_ifaces(&self) -> bool {
        self.lazy_ifaces.as_ref().is_some_and(NumberedIfaces::are_read)
    }

    /// The lookups, borrowed for a pass.
    pub fn lookups(&self) -> Lookups<'_> {
        let (processes, containers) = (self.processes.as_ref(), self.containers.as_ref());
        let lookups = [
            (LookupId::Owners, part(self.owners.as_ref())),
            (LookupId::Owners, part(self.checked.as_ref())),
            (LookupId::Users, part(self.users.as_ref())),
            (LookupId::Ifaces, part(self.ifaces.as_ref())),
            (LookupId::Ifaces, part(self.lazy_ifaces.as_ref())),
            (LookupId::Netns, part(self.netns.as_ref())),
            (LookupId::Cgroups, part(self.cgroups.as_ref())),
            (LookupId::LocalPorts, part(self.ports.as_ref())),
            (LookupId::PacketDelays, part(self.delays.as_ref())),
            (LookupId::Cmdlines, part(processes.map(Processes::cmdlines))),
            (LookupId::ContainerPids, part(processes.map(Processes::container_pids))),
            (LookupId::Contexts, part(processes.map(Processes::contexts))),
            (LookupId::Containers, part(containers.map(Containers::names))),
            (LookupId::Pods, part(containers.map(Containers::pods))),
            (LookupId::Units, part(containers.map(Containers::units))),
        ];
        let read = lookups.into_iter().filter_map(|(id, lookup)| Some((id, lookup?)));
        read.fold(Lookups::empty(), |lookups, (id, lookup)| lookups.with_lookup(id, lookup))
    }
}

fn part<'l, L: Lookup + 'l>(lookup: Option<&'l L>) -> Option<&'l (dyn Lookup + 'l)> {
    lookup.map(|lookup| lookup as _)
}

/// The parts of each process that the `wanted` lookups need.
fn parts_of(wanted: &[LookupId]) -> ProcessParts {
    let wants = |ids: &[LookupId]| ids.iter().any(|id| wanted.contains(id));
    ProcessParts {
        cmdlines: wants(&[LookupId::Cmdlines]),
        cgroups: wants(&[LookupId::Containers, LookupId::Pods, LookupId::Units]),
        container_pids: wants(&[LookupId::ContainerPids]),
        contexts: wants(&[LookupId::Contexts]),
    }
}

/// Names of all namespaces. A namespace without a user-defined name gets the name of the container in it.
fn names_of(namespaces: &Namespaces, host: &Host) -> Result<NetnsNames, HostError> {
    let (mut file, mut link) = (Vec::new(), Vec::new());
    let mut cgroup_of = |(pid, inode): (u32, u64)| {
        host.read_file(&format!("/proc/{pid}/cgroup"), &mut file).ok()?;
        // The pid may have been reused, most likely by a process in another namespace.
        let inside = host.read_link(&format!("/proc/{pid}/ns/net"), &mut link);
        let is_here = inside.is_ok() && link == format!("net:[{inode}]").as_bytes();
        // Recordings of 1.x do not contain the link.
        (is_here || host.is_replay()).then(|| (pid, file.clone()))
    };
    // A process that has ended, or denies access, provides no name.
    let files: Vec<(u32, Vec<u8>)> = namespaces.to_be_named().filter_map(&mut cgroup_of).collect();
    let containers = Containers::read(host, files.iter().map(|(pid, file)| (*pid, file.as_slice())), None);
    let name_of = |pid: u32| match containers.names().value(Key::Id(pid.into())) {
        Value::Bytes(name) => Some(name.into()),
        _ => None,
    };
    NetnsNames::of(namespaces, &name_of)
}

/// Reads the interfaces of every namespace of the session.
fn ifaces(session: &Session, stats: &mut Accounting) -> Option<Ifaces> {
    if session.namespaces().is_none() {
        return kept(Ifaces::read(session.host(), session.netns_id()), stats);
    }
    let mut ifaces = Ifaces::new();
    session.in_each_namespace(&mut |netns_id| match ifaces.add(session.host(), netns_id, None) {
        // This namespace was not entered while recording, so it has no rows either.
        Err(error) if !error.is_not_recorded() => {
            stats.add_reason(1, format!("names of interfaces are missing: {error}"));
        }
        _ => {}
    });
    Some(ifaces)
}

/// Reads the local port range of every namespace of the session.
fn port_ranges(session: &Session, stats: &mut Accounting) -> PortRanges {
    let mut ranges = PortRanges::default();
    session.in_each_namespace(&mut |netns_id| match LocalPorts::read(session.host(), netns_id, None) {
        Ok(ports) => ranges.add(netns_id, ports),
        // This namespace was not entered while recording, so it has no rows either.
        Err(error) if session.namespaces().is_some() && error.is_not_recorded() => {}
        Err(error) => {
            stats.incomplete(1, error.to_string());
        }
    });
    ranges
}

/// Reads the owners. If that fails, returns None and adds the reason to `stats`.
pub fn read_owners(session: &Session, stats: &mut Accounting) -> Option<Owners> {
    let owners = kept(session.owners().read(session.host()), stats);
    owners.iter().for_each(|owners| report_owners(owners, stats));
    owners
}

/// Reports which interface the owners were read from, and which owners are missing.
fn report_owners(owners: &Owners, stats: &mut Accounting) {
    let report = owners.report();
    stats.add_backend(report.via());
    if report.is_partial() {
        report.lines().into_iter().for_each(|line| stats.incomplete(1, line));
    }
}

/// The value; on an error None, with the reason added to `stats`.
fn kept<V>(read: Result<V, host::HostError>, stats: &mut Accounting) -> Option<V> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            stats.incomplete(1, error.to_string());
            None
        }
    }
}
