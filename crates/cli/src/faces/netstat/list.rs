//! Lists of sockets: which are asked of the kernel, with what around them, how often.

use super::complain;
use super::programs::Programs;
use super::switches::List;
use crate::messages;
use crate::session::{Place, Session};
use crate::stdout::Stdout;
use host::{HostNames, Owners, OwnersReport, Resolver, Services, Users};
use record::rows::{Socket, Sockets, need};
use record::{
    Accounting, Demand, Expr, LookupId, Lookups, Next, Op, Operand, Proto, SinkError, Source, SourceError, Test,
    field_index,
};
use sinks::Out;
use sinks::face::netstat::{Names, Show, Writer};
use sockets::{Options, SocketSource};
use std::time::{Duration, Instant};

/// How long names of hosts are waited for, in all. netstat waits for each.
const NAMES_WITHIN: Duration = Duration::from_secs(3);
const ROUND_NS: u64 = 1_000_000_000;

/// What stands around the sockets of one round.
#[derive(Default)]
struct Known {
    owners: Option<Owners>,
    users: Option<Users>,
    hosts: Option<HostNames>,
}

/// Why a round ended early.
enum Broken {
    Interrupted,
    Output(SinkError),
    Source(SourceError),
}

/// Prints the list, again and again if asked; the exit code.
pub(super) fn run(list: &List) -> u8 {
    let session = match Session::open(Place::default()) {
        Ok(session) => session,
        Err(error) => return complain(&error.to_string(), 1),
    };
    let services = if list.options.numeric_ports { None } else { Services::read(session.host()).ok() };
    let service = |proto, port| services.as_ref().and_then(|s| s.name(proto, port));
    let programs = Programs::new(session.host());
    let argv0 = |pid, out: &mut Vec<u8>| programs.put_argv0(pid, out);
    let names = Names { service: &service, argv0: &argv0 };
    let mut writer = Writer::new(Out::new(Stdout::new()), list.options, names);
    loop {
        let started_ns = sys::clock::monotonic_ns();
        programs.forget();
        if let Err(broken) = round(&session, list, &mut writer) {
            return ended(broken);
        }
        if !list.continuous {
            return 0;
        }
        if !session.sleep_until(started_ns.saturating_add(ROUND_NS)) {
            return ended(Broken::Interrupted);
        }
    }
}

/// The exit code, after a message where one is due.
fn ended(broken: Broken) -> u8 {
    match broken {
        // As a shell tells of a program that SIGINT ended.
        Broken::Interrupted => 130,
        Broken::Output(SinkError::Closed) => 0,
        Broken::Output(error) => complain(&error.to_string(), 1),
        Broken::Source(error) => complain(&error.to_string(), 1),
    }
}

fn round(session: &Session, list: &List, writer: &mut Writer<'_, Stdout>) -> Result<(), Broken> {
    let known = Known::read(session, list);
    let lookups = known.lookups();
    let mut books = Accounting::default();
    writer.begin().map_err(Broken::Output)?;
    for proto in tables(list) {
        let mut failed = None;
        let read = read(session, list, proto, &mut |row| match writer.row(row, &lookups) {
            Ok(()) if session.interrupted() => Next::Stop,
            Ok(()) => Next::More,
            Err(error) => {
                failed = Some(error);
                Next::Stop
            }
        });
        if let Some(error) = failed {
            return Err(Broken::Output(error));
        }
        books.add(&read.map_err(Broken::Source)?);
        if session.interrupted() {
            return Err(Broken::Interrupted);
        }
    }
    writer.end().map_err(Broken::Output)?;
    messages::footer(&books);
    Ok(())
}

fn tables(list: &List) -> impl Iterator<Item = Proto> {
    [(list.tcp, Proto::Tcp), (list.udp, Proto::Udp), (list.unix, Proto::Unix)]
        .into_iter()
        .filter_map(|(wanted, proto)| wanted.then_some(proto))
}

/// Hands the sockets of one table that netstat would list to `each`.
fn read(
    session: &Session,
    list: &List,
    proto: Proto,
    each: &mut dyn FnMut(&Socket<'_>) -> Next,
) -> Result<Accounting, SourceError> {
    let options = Options { order: vec![proto], families: list.families, ..Options::new(session.netns_id()) };
    let mut source = SocketSource::new(session.host(), options).keeping(session.doors());
    let show = list.options.show;
    let mut demand: Demand<Sockets> = Demand::new(&[], states(proto, show).into_iter().collect());
    demand.repeated = list.continuous;
    demand.need |= match proto {
        // Retransmissions and probes both: the messages have but one of them outside tcp_info.
        Proto::Tcp if list.options.timers => need::TCP_INFO,
        Proto::Unix => need::UNIX_NAME | need::UNIX_REFS,
        _ => 0,
    };
    source.run(&demand, &mut |row| if show.wants(row) { each(row) } else { Next::More })
}

/// The states that can be listed, for the kernel to filter by.
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

impl Known {
    fn read(session: &Session, list: &List) -> Known {
        let (host, options) = (session.host(), list.options);
        let mut known = Known::default();
        if options.programs {
            match Owners::read(host) {
                Ok(owners) => {
                    warn_of_hidden(owners.report());
                    known.owners = Some(owners);
                }
                Err(error) => messages::say(&error.to_string()),
            }
        }
        if options.extended && !options.numeric_users {
            known.users = Users::read(host).ok();
        }
        if !options.numeric_hosts && options.internet {
            known.hosts = names_of_hosts(session, list);
        }
        known
    }

    fn lookups(&self) -> Lookups<'_> {
        let mut lookups = Lookups::none();
        if let Some(owners) = &self.owners {
            lookups = lookups.with(LookupId::Owners, owners);
        }
        if let Some(users) = &self.users {
            lookups = lookups.with(LookupId::Users, users);
        }
        if let Some(hosts) = &self.hosts {
            lookups = lookups.with(LookupId::Hosts, hosts);
        }
        lookups
    }
}

/// Says which holders could not be seen: in netstat's words to those who are not root, for whom they are meant.
fn warn_of_hidden(report: &OwnersReport) {
    let euid = sys::caps::euid();
    let denied = report.unreadable > 0 && report.refusal.is_none_or(|why| why.is_denied());
    if euid == 0 || !denied {
        return report.lines().iter().for_each(|line| messages::say(line));
    }
    let words = if report.sockets == 0 {
        format!("(No info could be read for \"-p\": geteuid()={euid} but you should be root.)\n")
    } else {
        "(Not all processes could be identified, non-owned process info\n \
         will not be shown, you would have to be root to see it all.)\n"
            .to_owned()
    };
    let _ = sys::out::Out::stderr().write_all(words.as_bytes());
}

/// Reads the tables once for their addresses and asks for all names at a time: a socket that opens between this and
/// the list shows its number. None if nobody can be asked.
fn names_of_hosts(session: &Session, list: &List) -> Option<HostNames> {
    let resolver = Resolver::start(session.host(), &host::hosts::Options::default()).ok()?;
    for proto in tables(list).filter(|&proto| proto != Proto::Unix) {
        let asked = read(session, list, proto, &mut |row| {
            for addr in [row.local.addr, row.peer.addr] {
                if !addr.is_unspecified() {
                    resolver.want(addr.unmapped());
                }
            }
            if session.interrupted() { Next::Stop } else { Next::More }
        });
        // What is wrong will be said when the list itself is read.
        asked.ok()?;
    }
    resolver.wait_until(Instant::now() + NAMES_WITHIN);
    resolver.names(session.host()).ok()
}
