//! Runs the questions: reads the source, applies the rest of the filter, writes the lines.

use super::super::read::read_rows;
use super::diag_file::FileSource;
use super::events;
use super::kill::Killer;
use super::live::Live;
use super::request::{Question, Request, by_kernel};
use super::tasks;
use crate::ss::output::{Options, Writer, show};
use engine::Disposition;
use host::{Cgroups, HostNames, Owners, Services};
use lookups::lazy_ifaces::LazyIfaces;
use lookups::session::Session;
use record::rows::{Socket, Sockets, need};
use record::{Accounting, Demand, LookupId, Lookups, Next, Proto, SinkError};
use runtime::messages::{footer, print_message};
use runtime::stdout::Stdout;
use sockets::SocketSource;
use std::time::{Duration, Instant};

/// Exit code when nothing could be read or written.
const FAILED: u8 = 1;
/// Total time to wait for host names; addresses that have no name by then stay numeric.
///
/// Bound: for all host names of `ss -r`. Beyond: further addresses stay numbers. By: the name servers.
const NAMES_WAIT: Duration = Duration::from_secs(5);

/// Lookups for everything around the rows.
#[derive(Default)]
struct Around {
    owners: Option<Owners>,
    cgroups: Option<Cgroups>,
    hosts: Option<HostNames>,
    services: Option<Services>,
}

/// Reads and prints the tables; returns the exit code.
pub(super) fn table(session: &Session, request: &Request, live: &Live<'_>, ifaces: &LazyIfaces<'_>) -> u8 {
    let mut stats = Accounting::default();
    let mut around = read_around(session, request, &mut stats);
    if request.options.has(show::RESOLVE) {
        around.hosts = names(session, request, live);
    }
    let outcome = write(session, request, live, ifaces, &around, &mut stats);
    session.finish(&mut stats);
    if request.without_bound && outcome.is_ok() {
        stats.add_reason(0, "bound, unused sockets were not searched for: there are too many sockets (-B shows them)");
    }
    footer(&stats);
    match outcome {
        Ok(()) | Err(SinkError::Closed) if stats.via.is_empty() && stats.incomplete => FAILED,
        // Some rows were read but not written: the output differs from the kernel's table.
        Ok(()) if request.events.is_none() && !stats.balances() => FAILED,
        Ok(()) | Err(SinkError::Closed) => 0,
        Err(error) => {
            print_message(&error.to_string());
            FAILED
        }
    }
}

/// Reads owners, cgroups and services, as far as they will be shown.
fn read_around(session: &Session, request: &Request, stats: &mut Accounting) -> Around {
    let options = &request.options;
    let raw = request.questions.iter().any(|question| question.proto == Proto::Raw);
    let host = session.host();
    let mut around = Around::default();
    let mut noted = |error: host::HostError| stats.add_reason(1, error.to_string());
    if options.owners() {
        around.owners = session.owners().read(host).map_err(&mut noted).ok();
    }
    if options.has(show::DETAILS | show::CGROUP) {
        // ss finds no cgroup inside `ip netns exec`.
        let read = if options.bug_compatible { Cgroups::read_own } else { Cgroups::read };
        around.cgroups = read(host).map_err(&mut noted).ok();
    }
    if !options.has(show::NUMERIC) {
        // If the file is missing, every port is shown as a number.
        around.services = Services::read(host).ok();
        if let (Some(services), true) = (&mut around.services, raw) {
            // If the file is missing, every protocol is shown as a number.
            let _ = services.add_protocols(host);
        }
    }
    let owners = around.owners.iter().flat_map(|o| o.report().lines());
    let cgroups = around.cgroups.iter().filter(|_| !options.bug_compatible).flat_map(|c| c.report().lines());
    owners.chain(cgroups).for_each(|line| stats.add_reason(1, line));
    around
}

/// Resolves the addresses seen in a first pass. ss waits for each name in turn; here all are requested at once.
fn names(session: &Session, request: &Request, live: &Live<'_>) -> Option<HostNames> {
    let ranges = live.port_ranges();
    let lookups = Lookups::empty().with_lookup(LookupId::LocalPorts, &ranges);
    let resolver = session.resolver()?;
    for question in &request.questions {
        // The second pass will report errors of the source.
        let _ = ask(session, question, request, &lookups, &mut |row: &Socket<'_>| {
            let ends = [row.local.addr, row.peer.addr];
            ends.iter().filter(|a| row.is_inet() && !a.is_unspecified()).for_each(|a| resolver.want(a.unmapped()));
            Next::More
        });
    }
    resolver.wait_until(Instant::now() + NAMES_WAIT);
    resolver.names(session.host()).ok()
}

fn write(
    session: &Session,
    request: &Request,
    live: &Live<'_>,
    ifaces: &LazyIfaces<'_>,
    around: &Around,
    stats: &mut Accounting,
) -> Result<(), SinkError> {
    let ranges = request.asks_for_ranges().then(|| live.port_ranges());
    let mut lookups = Lookups::empty().with_lookup(LookupId::Ifaces, ifaces);
    if let Some(ranges) = &ranges {
        lookups = lookups.with_lookup(LookupId::LocalPorts, ranges);
    }
    if let Some(owners) = &around.owners {
        lookups = lookups.with_lookup(LookupId::Owners, owners);
    }
    if let Some(cgroups) = &around.cgroups {
        lookups = lookups.with_lookup(LookupId::Cgroups, cgroups);
    }
    if let Some(hosts) = &around.hosts {
        lookups = lookups.with_lookup(LookupId::Hosts, hosts);
    }
    // For events, ss ignores the protocol: any service with that port gives the name.
    let any = request.events.is_some() && request.options.bug_compatible;
    let services = |proto, port| {
        let of = |proto| service(around.services.as_ref(), live, proto, port);
        of(proto).or_else(|| if any { of(Proto::Tcp).or_else(|| of(Proto::Udp)) } else { None })
    };
    let tasks = tasks::Live::new(session.host(), around.owners.as_ref().map_or(u64::MAX, Owners::seen_ns));
    let processes = |pid, name: &mut Vec<u8>| process(session, pid, name);
    let mut writer = Writer::new(request.options, &services, Stdout::new()).naming(&processes).tasks(&tasks);
    if let Some(ending) = &request.events {
        return events::follow(session, request, ending, &lookups, &mut writer, stats);
    }
    let mut killer = request.kill.then(|| Killer::new(session, &request.options));
    let mut outcome = Ok(());
    for question in &request.questions {
        let mut show = |row: &Socket<'_>| {
            outcome = writer.row(row, &lookups);
            if outcome.is_ok() { Next::More } else { Next::Stop }
        };
        let mut each = |rows: &mut dyn FnMut(&Socket<'_>) -> Next| ask(session, question, request, &lookups, rows);
        let read = match killer.as_mut() {
            None => each(&mut show),
            Some(killer) => killer.close_all(question.proto, &mut each, &mut show),
        };
        match read {
            Ok(part) => stats.add(&part),
            Err(says) => {
                stats.incomplete(1, says);
            }
        }
        if outcome.is_err() || session.interrupted() {
            break;
        }
    }
    if let Some(killer) = killer {
        killer.tell(stats);
    }
    outcome?;
    writer.finish()
}

/// Reads the name of a process.
fn process(session: &Session, pid: u32, name: &mut Vec<u8>) -> bool {
    let read = session.host().read_file(&format!("/proc/{pid}/comm"), name);
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    read.is_ok() && !name.is_empty()
}

/// The service of a port. A port that the kernel may have chosen belongs to no service, even if its number has a name.
fn service<'s>(services: Option<&'s Services>, live: &Live<'_>, proto: Proto, port: u16) -> Option<&'s [u8]> {
    if proto == Proto::Raw {
        return services?.name(proto, port);
    }
    let (low, high) = live.ports().range();
    if (low..=high).contains(&port) { None } else { services?.name(proto, port) }
}

/// Asks one question and hands every row that passes to `each`. The error is a complete sentence.
pub(super) fn ask(
    session: &Session,
    question: &Question,
    request: &Request,
    lookups: &Lookups<'_>,
    each: &mut dyn FnMut(&Socket<'_>) -> Next,
) -> Result<Accounting, String> {
    let mut demand = Demand::<Sockets>::new(&[], question.filter.clone());
    if let (Proto::Tcp, Some(file)) = (question.proto, &request.tcp_file) {
        let source = FileSource::open(file, session.netns_id())?;
        let read = read_rows(session, &source, demand, lookups, |row| each(row).into());
        return read.map_err(|error| error.to_string());
    }
    demand.need |= needs(question.proto, &request.options);
    let source = SocketSource::new(
        session.host(),
        sockets::Options {
            // For raw sockets ss falls back to /proc without a message.
            quiet: request.by_default || question.proto == Proto::Raw || is_rare(question.proto),
            states: Some(request.states).filter(|_| by_kernel(question.proto)),
            as_sent: request.options.bug_compatible,
            ..sockets::Options::for_table(question.proto, session.netns_id())
        },
    )
    .with_cache(&session.backends().sockets);
    let read = read_rows(session, &source, demand, lookups, |row| {
        // A row from netlink has a cookie, a row from /proc does not.
        if row.cookie != 0 && question.of_netlink.is_some_and(|family| family != row.family) {
            return Disposition::Filtered;
        }
        each(row).into()
    });
    read.map_err(|error| error.to_string())
}

/// True for tables that many kernels lack; ss does not report that.
fn is_rare(proto: Proto) -> bool {
    by_kernel(proto) || proto == Proto::Xdp
}

/// The fields that the source must read for this display.
fn needs(proto: Proto, options: &Options) -> u64 {
    let mut needs = match proto {
        Proto::Unix => need::UNIX_NAME | need::UNIX_PEER | need::QUEUES,
        Proto::Packet => need::IFACE_MARK | need::QUEUES,
        Proto::Netlink => need::NETLINK | need::QUEUES,
        Proto::Xdp => need::IFACE_MARK | need::QUEUES,
        Proto::Vsock | Proto::Tipc => 0,
        // A wildcard address prints differently when it is v6-only.
        _ => need::IFACE_MARK | need::ACCEPT_MAX | need::V6ONLY | need::QUEUES,
    };
    let details = match proto {
        Proto::Unix => need::UNIX_VFS | need::UNIX_ICONS | need::SHUTDOWN,
        Proto::Packet => need::PACKET | need::UID | need::COOKIE,
        Proto::Netlink | Proto::Vsock | Proto::Tipc => 0,
        Proto::Xdp => need::XDP | need::UID | need::COOKIE,
        _ => need::SHUTDOWN | need::COOKIE | need::CGROUP | need::INODE | need::UID | need::MARK,
    };
    // DCCP also fills in a tcp_info.
    let info = match proto {
        Proto::Tcp | Proto::Dccp => need::TCP_INFO | need::CONG | need::CONG_INFO,
        Proto::Mptcp => need::ULP,
        Proto::Sctp => need::SCTP,
        _ => 0,
    };
    let more = [
        (show::DETAILS, details),
        (show::TIMERS, need::TIMER),
        (show::MEMORY, need::SKMEM),
        (show::INFO, info),
        (show::FILTERS, if proto == Proto::Packet { need::FILTER } else { 0 }),
        (show::TOS, need::TOS),
        (show::SOCKOPT, need::SOCKOPT),
        (show::CGROUP, need::CGROUP),
    ];
    needs |= if options.owners() { need::INODE } else { 0 };
    more.iter().filter(|(shown, _)| options.has(*shown)).for_each(|(_, bits)| needs |= bits);
    needs
}
