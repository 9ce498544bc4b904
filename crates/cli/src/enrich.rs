//! The lookups of a run: read before the pass, only those that a shown or filtered field needs.

use crate::packet_delays::MeasuredDelays;
use crate::session::Session;
use host::{
    Cgroups, CheckedOwners, Containers, HostError, Ifaces, LocalPorts, Namespaces, NetnsNames, Owners, PortRanges,
    ProcessParts, Processes, Users,
};
use owners::RoundOwners;
use record::{Accounting, Key, Lookup, LookupId, Lookups, Value};
use sys::Host;

/// What surrounds the rows of one round.
#[derive(Default)]
pub(crate) struct Enrichment<'s> {
    owners: Option<RoundOwners<Owners>>,
    /// Owners of an earlier round in the place of `owners`, each looked at where it is asked for.
    checked: Option<CheckedOwners<'s>>,
    users: Option<Users>,
    ifaces: Option<Ifaces>,
    netns: Option<NetnsNames>,
    cgroups: Option<Cgroups>,
    processes: Option<Processes>,
    containers: Option<Containers>,
    ports: Option<PortRanges>,
    delays: Option<MeasuredDelays>,
}

/// The owners of the round before.
pub(crate) struct Former {
    /// Processes by socket.
    pub(crate) owners: Owners,
    /// True if few rows are made: then the owners are these, where they are found to be true.
    pub(crate) looks: bool,
    /// True if rows show what is gone since: its owners are these.
    pub(crate) are_for_gone: bool,
}

/// The lookups that a round leaves for the next one.
pub(crate) struct Left {
    /// The newest reading of the owners.
    pub(crate) owners: Option<Owners>,
    /// Names of namespaces.
    pub(crate) netns_names: Option<NetnsNames>,
    /// True if looking at single owners did not pay.
    pub(crate) asks_for_many: bool,
}

impl<'s> Enrichment<'s> {
    /// Reads the `wanted` lookups. One that cannot be read leaves its cells empty and its reason in `stats`.
    pub(crate) fn read(session: &'s Session, wanted: &[LookupId], stats: &mut Accounting) -> Enrichment<'s> {
        Enrichment::read_after(session, wanted, None, stats)
    }

    /// Reads the `wanted` lookups of a round that follows another.
    pub(crate) fn read_after(
        session: &'s Session,
        wanted: &[LookupId],
        former: Option<Former>,
        stats: &mut Accounting,
    ) -> Enrichment<'s> {
        let (host, netns_id) = (session.host(), session.netns_id());
        let mut all = Enrichment::default();
        let mut gone = None;
        match former {
            // What surrounds processes needs all of them.
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
                // Names of hosts arrive later, see `names.rs`.
                LookupId::Hosts => {}
                // From all owners at once, below.
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

    /// What surrounds the owners themselves, as far as it is wanted.
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
            stats.incomplete = true;
            stats.add_reason(1, line);
        });
        if !parts.cgroups {
            return;
        }
        if self.cgroups.is_none() {
            // For sockets that nobody holds; without them such cells are empty.
            self.cgroups = Cgroups::read(session.host()).ok();
        }
        let files = self.processes.iter().flat_map(Processes::cgroups);
        let containers = Containers::read(session.host(), files, self.cgroups.as_ref());
        if let Some(line) = containers.missing().filter(|_| !session.is_silent_on_places()) {
            stats.incomplete = true;
            stats.add_reason(1, line);
        }
        self.containers = Some(containers);
    }

    /// Keeps the owners of the round before for what is gone since.
    fn keep_former(&mut self, before: Option<Owners>) {
        if let Some(owners) = &mut self.owners {
            let seen_ns = before.as_ref().map_or(u64::MAX, Owners::seen_ns);
            owners.others =
                self.processes.as_ref().map(|processes| processes.started_after(seen_ns)).unwrap_or_default();
            owners.before = before;
        }
    }

    /// True if it is known whether this lookup answers as it did in the round before: of names of namespaces it is, of
    /// all others not.
    pub(crate) fn can_be_compared(id: LookupId) -> bool {
        id == LookupId::Netns
    }

    /// True if they do, when namespaces had these names then.
    pub(crate) fn answers_as_before(&self, names: Option<&NetnsNames>) -> bool {
        self.netns.as_ref() == names
    }

    /// The lookups that the next round wants to know of this one. Adds to `stats` what owners were read meanwhile.
    pub(crate) fn leave(self, stats: &mut Accounting) -> Left {
        let Some(end) = self.checked.map(CheckedOwners::end) else {
            let owners = self.owners.map(|owners| owners.now);
            return Left { owners, netns_names: self.netns, asks_for_many: false };
        };
        stats.used("owners@checked");
        if let Some(error) = end.failed {
            stats.incomplete = true;
            stats.add_reason(1, error.to_string());
        } else if end.is_new {
            report_owners(&end.owners, stats);
        }
        Left { owners: Some(end.owners), netns_names: self.netns, asks_for_many: end.too_many }
    }

    /// The lookups, borrowed for a pass.
    pub(crate) fn lookups(&self) -> Lookups<'_> {
        let mut lookups = Lookups::none();
        if let Some(owners) = &self.owners {
            lookups = lookups.with(LookupId::Owners, owners);
        }
        if let Some(owners) = &self.checked {
            lookups = lookups.with(LookupId::Owners, owners);
        }
        if let Some(users) = &self.users {
            lookups = lookups.with(LookupId::Users, users);
        }
        if let Some(ifaces) = &self.ifaces {
            lookups = lookups.with(LookupId::Ifaces, ifaces);
        }
        if let Some(netns) = &self.netns {
            lookups = lookups.with(LookupId::Netns, netns);
        }
        if let Some(cgroups) = &self.cgroups {
            lookups = lookups.with(LookupId::Cgroups, cgroups);
        }
        if let Some(ports) = &self.ports {
            lookups = lookups.with(LookupId::LocalPorts, ports);
        }
        if let Some(delays) = &self.delays {
            lookups = lookups.with(LookupId::PacketDelays, delays);
        }
        if let Some(processes) = &self.processes {
            lookups = lookups
                .with(LookupId::Cmdlines, processes.cmdlines())
                .with(LookupId::ContainerPids, processes.container_pids())
                .with(LookupId::Contexts, processes.contexts());
        }
        if let Some(containers) = &self.containers {
            lookups = lookups
                .with(LookupId::Containers, containers.names())
                .with(LookupId::Pods, containers.pods())
                .with(LookupId::Units, containers.units());
        }
        lookups
    }
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

/// The names of all namespaces; one without a name that people gave goes by that of the container in it.
fn names_of(namespaces: &Namespaces, host: &Host) -> Result<NetnsNames, HostError> {
    let (mut file, mut link) = (Vec::new(), Vec::new());
    let mut cgroup_of = |(pid, inode): (u32, u64)| {
        host.read_file(&format!("/proc/{pid}/cgroup"), &mut file).ok()?;
        // The number may be another process's by now: then it is, most likely, in another namespace.
        let inside = host.read_link(&format!("/proc/{pid}/ns/net"), &mut link);
        let is_here = inside.is_ok() && link == format!("net:[{inode}]").as_bytes();
        // Recordings of 1.x have no link.
        (is_here || host.is_replay()).then(|| (pid, file.clone()))
    };
    // One that has ended, or refuses, gives no name.
    let files: Vec<(u32, Vec<u8>)> = namespaces.to_be_named().filter_map(&mut cgroup_of).collect();
    let containers = Containers::read(host, files.iter().map(|(pid, file)| (*pid, file.as_slice())), None);
    let name_of = |pid: u32| match containers.names().value(Key::Id(pid.into())) {
        Value::Bytes(name) => Some(name.into()),
        _ => None,
    };
    NetnsNames::of(namespaces, &name_of)
}

/// The interfaces of every namespace that is read.
fn ifaces(session: &Session, stats: &mut Accounting) -> Option<Ifaces> {
    if session.namespaces().is_none() {
        return kept(Ifaces::read(session.host(), session.netns_id()), stats);
    }
    let mut ifaces = Ifaces::new();
    session.in_each_namespace(&mut |netns_id| match ifaces.add(session.host(), netns_id, None) {
        // Not entered when this was recorded: no row is there, either.
        Err(error) if !error.is_not_recorded() => {
            stats.add_reason(1, format!("names of interfaces are missing: {error}"));
        }
        _ => {}
    });
    Some(ifaces)
}

/// The range of local ports of every namespace that is read.
fn port_ranges(session: &Session, stats: &mut Accounting) -> PortRanges {
    let mut ranges = PortRanges::default();
    session.in_each_namespace(&mut |netns_id| match LocalPorts::read(session.host(), netns_id, None) {
        Ok(ports) => ranges.add(netns_id, ports),
        // Not entered when this was recorded: no row is there, either.
        Err(error) if session.namespaces().is_some() && error.is_not_recorded() => {}
        Err(error) => {
            stats.incomplete = true;
            stats.add_reason(1, error.to_string());
        }
    });
    ranges
}

/// Reads the owners; none, and a line in the row counts, if they cannot be read.
pub(crate) fn read_owners(session: &Session, stats: &mut Accounting) -> Option<Owners> {
    let owners = kept(session.owners().read(session.host()), stats);
    owners.iter().for_each(|owners| report_owners(owners, stats));
    owners
}

/// Says by which interface the owners were read, and which are missing.
fn report_owners(owners: &Owners, stats: &mut Accounting) {
    let report = owners.report();
    stats.used(report.via());
    if report.is_partial() {
        stats.incomplete = true;
        report.lines().into_iter().for_each(|line| stats.add_reason(1, line));
    }
}

/// The value, or none and a line in the row counts.
fn kept<V>(read: Result<V, host::HostError>, stats: &mut Accounting) -> Option<V> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            stats.incomplete = true;
            stats.add_reason(1, error.to_string());
            None
        }
    }
}
