//! The lookups of a run: read before the pass, only those that a shown or filtered field needs.

use crate::session::Session;
use host::{Cgroups, Ifaces, NetnsNames, Owners, Users};
use record::{Accounting, LookupId, Lookups};

/// What surrounds the rows of one round.
#[derive(Default)]
pub(crate) struct Enrichment {
    owners: Option<Owners>,
    users: Option<Users>,
    ifaces: Option<Ifaces>,
    netns: Option<NetnsNames>,
    cgroups: Option<Cgroups>,
}

impl Enrichment {
    /// Reads the `wanted` lookups. One that cannot be read leaves its cells empty and its reason in `books`.
    pub(crate) fn read(session: &Session, wanted: &[LookupId], books: &mut Accounting) -> Enrichment {
        let (host, netns_id) = (session.host(), session.netns_id());
        let mut all = Enrichment::default();
        for id in wanted {
            match id {
                LookupId::Owners => all.owners = kept(Owners::read(host), books),
                LookupId::Users => all.users = kept(Users::read(host), books),
                LookupId::Ifaces => all.ifaces = ifaces(session, books),
                LookupId::Netns => {
                    let names = match session.namespaces() {
                        Some(namespaces) => NetnsNames::of(&namespaces, &|_| None),
                        None => NetnsNames::read(host, &[netns_id]),
                    };
                    all.netns = kept(names, books);
                }
                LookupId::Cgroups => all.cgroups = kept(Cgroups::read(host), books),
                // Names of hosts arrive later, see `names.rs`.
                LookupId::Hosts => {}
                // From all owners at once, below.
                LookupId::Cmdlines
                | LookupId::Containers
                | LookupId::Pods
                | LookupId::Units
                | LookupId::ContainerPids => {}
            }
        }
        if let Some(report) = all.owners.as_ref().map(Owners::report) {
            if report.is_partial() {
                books.incomplete = true;
                report.lines().into_iter().for_each(|line| books.because(1, line));
            }
        }
        for line in all.cgroups.iter().flat_map(|c| c.report().lines()) {
            books.because(1, line);
        }
        all
    }

    /// The lookups, borrowed for a pass.
    pub(crate) fn lookups(&self) -> Lookups<'_> {
        let mut lookups = Lookups::none();
        if let Some(owners) = &self.owners {
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
        lookups
    }
}

/// The interfaces of every namespace that is read.
fn ifaces(session: &Session, books: &mut Accounting) -> Option<Ifaces> {
    if session.namespaces().is_none() {
        return kept(Ifaces::read(session.host(), session.netns_id()), books);
    }
    let mut ifaces = Ifaces::new();
    session.in_each_namespace(&mut |netns_id| match ifaces.add(session.host(), netns_id, None) {
        // Not entered when this was recorded: no row is there, either.
        Err(error) if !error.is_not_recorded() => {
            books.because(1, format!("names of interfaces are missing: {error}"));
        }
        _ => {}
    });
    Some(ifaces)
}

/// The value, or none and a line in the books.
fn kept<V>(read: Result<V, host::HostError>, books: &mut Accounting) -> Option<V> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            books.incomplete = true;
            books.because(1, error.to_string());
            None
        }
    }
}
