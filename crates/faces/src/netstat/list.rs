//! Lists sockets: selects the kernel's tables and lookups, and repeats.

use super::super::read::{ReadError, read_rows};
use super::complain;
use super::programs::Programs;
use super::rounds::{RoundEnd, repeat};
use super::switches::List;
use crate::netstat::output::{Names, Show, Writer};
use crate::text::warn;
use engine::Disposition;
use host::{Groups, HostNames, Owners, OwnersReport, Resolver, Services, Users};
use lookups::session::Session;
use record::rows::{Socket, Sockets, need};
use record::{Accounting, Demand, Expr, LookupId, Lookups, Op, Operand, Proto, Test, field_index};
use runtime::messages;
use runtime::stdout::Stdout;
use sinks::Out;
use sockets::{Families, Options, SocketSource};
use std::time::{Duration, Instant};

/// Total time to wait for host names. netstat waits for each one in turn.
pub(super) const NAMES_WITHIN: Duration = Duration::from_secs(3);

/// Lookups for the sockets of one round.
#[derive(Default)]
struct ListLookups {
    owners: Option<Owners>,
    users: Option<Users>,
    hosts: Option<HostNames>,
}

/// Prints the list, repeatedly if requested; returns the exit code.
pub(super) fn run(session: &Session, list: &List) -> u8 {
    let services = if list.options.numeric_ports { None } else { services(session, list) };
    let service = |proto, port| services.as_ref().and_then(|s| s.name(proto, port));
    let programs = Programs::new(session.host());
    let argv0 = |pid, out: &mut Vec<u8>| programs.put_argv0(pid, out);
    let names = Names { service: &service, argv0: &argv0 };
    let mut writer = Writer::new(Out::new(Stdout::new()), list.options, names);
    repeat(session, list.continuous, || {
        let known = ListLookups::read(session, list);
        programs.forget(known.owners.as_ref().map_or(u64::MAX, Owners::seen_ns));
        round(session, list, &known, &mut writer)
    })
}

fn round(session: &Session, list: &List, known: &ListLookups, writer: &mut Writer<'_, Stdout>) -> Result<(), RoundEnd> {
    let lookups = known.lookups();
    let mut stats = Accounting::default();
    writer.begin().map_err(RoundEnd::Output)?;
    for proto in tables(list) {
        let mut failed = None;
        let read = read(session, list, proto, |row| match writer.row(row, &lookups) {
            Ok(()) => Disposition::Emitted,
            Err(error) => {
                failed = Some(error);
                Disposition::Closed
            }
        });
        if let Some(error) = failed {
            return Err(RoundEnd::Output(error));
        }
        stats.add(&read.map_err(RoundEnd::Read)?);
        if session.interrupted() {
            return Err(RoundEnd::Interrupted);
        }
    }
    let grouped = if list.options.groups { put_groups(session, list, writer, &lookups) } else { Ok(()) };
    writer.end().map_err(RoundEnd::Output)?;
    messages::footer(&stats);
    grouped?;
    // netstat exits with 1 if a table is cut short. With `-c`, the next round may be complete.
    if stats.is_partial() && !list.continuous { Err(RoundEnd::Reported(1)) } else { Ok(()) }
}

fn put_groups(
    session: &Session,
    list: &List,
    writer: &mut Writer<'_, Stdout>,
    lookups: &Lookups<'_>,
) -> Result<(), RoundEnd> {
    let groups = groups(session, list).map_err(|()| {
        // netstat's message.
        let words = "no support for `AF INET (igmp)' on this system.";
        RoundEnd::Reported(complain(words, 1))
    });
    groups?.iter().for_each(|row| writer.membership(&row, lookups));
    Ok(())
}

/// Reads the memberships of the selected families. Fails if those for IPv4 are missing; IPv6 is optional.
fn groups(session: &Session, list: &List) -> Result<Groups, ()> {
    let (host, netns) = (session.host(), session.netns_id());
    let mut groups = Groups::default();
    if list.families != Families::Only6 {
        groups.read4(host, netns, None).map_err(|_| ())?;
    }
    if list.families != Families::Only4 {
        let _ = groups.read6(host, netns, None);
    }
    Ok(groups)
}

/// Reads the names of ports, and of IP protocols if raw sockets are listed.
fn services(session: &Session, list: &List) -> Option<Services> {
    let mut services = Services::read(session.host()).ok()?;
    if list.raw {
        // If the file is missing, every protocol is shown as a number.
        let _ = services.add_protocols(session.host());
    }
    Some(services)
}

fn tables(list: &List) -> impl Iterator<Item = Proto> {
    let all = [
        (list.tcp, Proto::Tcp),
        (list.udp, Proto::Udp),
        (list.udplite, Proto::UdpLite),
        (list.raw, Proto::Raw),
        (list.unix, Proto::Unix),
    ];
    all.into_iter().filter_map(|(request, proto)| request.then_some(proto))
}

/// Hands the sockets of one table that netstat would list to `each`.
fn read(
    session: &Session,
    list: &List,
    proto: Proto,
    mut each: impl FnMut(&Socket<'_>) -> Disposition,
) -> Result<Accounting, ReadError> {
    // netstat reads the kernel's files and does not report missing ones.
    let options = Options { families: list.families, quiet: true, ..Options::for_table(proto, session.netns_id()) };
    let source = SocketSource::new(session.host(), options).with_cache(&session.backends().sockets);
    let show = list.options.show;
    let mut demand: Demand<Sockets> = Demand::new(&[], states(proto, show).into_iter().collect());
    demand.repeated = list.continuous;
    demand.need |= match proto {
        // Requests both, because the messages contain either retransmissions or probes, and the other only in
        // tcp_info.
        Proto::Tcp if list.options.timers => need::TCP_INFO | need::TIMER | need::QUEUES,
        Proto::Tcp => need::QUEUES,
        Proto::Unix => need::UNIX_NAME | need::UNIX_REFS,
        _ => 0,
    };
    if list.options.extended || list.options.programs {
        demand.need |= need::INODE | need::UID;
    }
    let each = |row: &Socket<'_>| if show.wants(row) { each(row) } else { Disposition::Filtered };
    read_rows(session, &source, demand, &Lookups::empty(), each)
}

/// The filter for the states to list, which the kernel can apply.
fn states(proto: Proto, show: Show) -> Option<Expr> {
    let (op, word): (_, &[u8]) = match (proto, show) {
        (Proto::Tcp, Show::Listening) => (Op::Eq, b"listen"),
        (Proto::Tcp, Show::Connected) => (Op::Ne, b"listen"),
        (Proto::Tcp, Show::All) => (Op::Ne, b"bound_inactive"),
        _ => return None,
    };
    let field = field_index::<Sockets>("state")?;
    Some(Expr::Test(Test { field, op, operand: Operand::Words(vec![word.into()]) }))
}

impl ListLookups {
    fn read(session: &Session, list: &List) -> ListLookups {
        let (host, options) = (session.host(), list.options);
        let mut known = ListLookups::default();
        if options.programs {
            match session.owners().read(host) {
                Ok(owners) => {
                    warn_of_hidden(owners.report());
                    known.owners = Some(owners);
                }
                Err(error) => messages::print_message(&error.to_string()),
            }
        }
        if options.extended && !options.numeric_users {
            known.users = Users::read(host).ok();
        }
        if !options.numeric_hosts && (options.internet || options.groups) {
            known.hosts = names_of_hosts(session, list);
        }
        known
    }

    fn lookups(&self) -> Lookups<'_> {
        let mut lookups = Lookups::empty();
        if let Some(owners) = &self.owners {
            lookups = lookups.with_lookup(LookupId::Owners, owners);
        }
        if let Some(users) = &self.users {
            lookups = lookups.with_lookup(LookupId::Users, users);
        }
        if let Some(hosts) = &self.hosts {
            lookups = lookups.with_lookup(LookupId::Hosts, hosts);
        }
        lookups
    }
}

/// Reports hidden owners: in netstat's words for users without root, to whom netstat addresses them.
fn warn_of_hidden(report: &OwnersReport) {
    let euid = sys::caps::euid();
    let denied = report.unreadable > 0 && report.refusal.is_none_or(|why| why.is_denied());
    if euid == 0 || !denied {
        return report.lines().iter().for_each(|line| messages::print_message(line));
    }
    let words = if report.sockets == 0 {
        format!("(No info could be read for \"-p\": geteuid()={euid} but you should be root.)\n")
    } else {
        "(Not all processes could be identified, non-owned process info\n \
         will not be shown, you would have to be root to see it all.)\n"
            .to_owned()
    };
    warn(&words);
}

/// Reads the tables once for their addresses and requests all names at once. A socket opened between this and the list
/// shows its number. Returns None if no resolver is available.
fn names_of_hosts(session: &Session, list: &List) -> Option<HostNames> {
    let resolver = Resolver::start(session.host(), &host::hosts::ResolverOptions::default()).ok()?;
    for proto in tables(list).filter(|&proto| proto != Proto::Unix) {
        let asked = read(session, list, proto, |row| {
            for addr in [row.local.addr, row.peer.addr] {
                if !addr.is_unspecified() {
                    resolver.want(addr.unmapped());
                }
            }
            Disposition::Emitted
        });
        // Reading the list itself will report the error.
        asked.ok()?;
    }
    if list.options.groups {
        let groups = groups(session, list).ok();
        groups.iter().flat_map(Groups::iter).for_each(|row| resolver.want(row.group));
    }
    resolver.wait_until(Instant::now() + NAMES_WITHIN);
    resolver.names(session.host()).ok()
}
