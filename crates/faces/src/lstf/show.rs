//! Reads flows and prints lstf's table, once or every few seconds.

use super::super::read::{ReadError, read_rows};
use super::groups::Groups;
use super::switches::{Peers, Switches};
use super::waiting_flow::WaitingFlow;
use super::{FAILED, OK};
use crate::lstf::output::{LstfJson, LstfStyle, LstfTable};
use engine::{Disposition, Names, Rounds};
use flows::{Conjunct, Ephemeral, FlowSource, Rule};
use host::{HostError, LocalPorts, Owners, OwnersReader};
use lookups::enrich::Enrichment;
use lookups::names::DnsNames;
use lookups::session::{Session, SessionTarget};
use record::rows::{Flow, Flows, Socket, Sockets};
use record::{
    Accounting, Addr, Demand, Expr, LookupId, Lookups, Op, Operand, Prefix, Proto, SinkError, State, Test, field_index,
};
use runtime::messages::{footer, print_message};
use runtime::stdout::Stdout;
use sinks::Out;
use sockets::SocketSource;
use std::fmt;
use std::time::Duration;
use sys::Host;

/// Addresses that lstf considers private: RFC 1918, loopback, and link-local and unique local addresses of IPv6.
const PRIVATE: &[&str] =
    &["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "::1/128", "fe80::/10", "fc00::/7"];

/// Maximum wait for the names of a table's hosts. lstf waits as long as the resolver takes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs lstf with these switches; returns the exit code.
pub(super) fn run(switches: &Switches, bug_compatible: bool) -> u8 {
    let session = match Session::open(SessionTarget { resolve: !switches.numeric, ..SessionTarget::default() }) {
        Ok(session) => session,
        Err(error) => {
            print_message(&error.to_string());
            return FAILED;
        }
    };
    let processes = proc_root();
    let mut run = LstfRun {
        session: &session,
        processes: processes.as_ref(),
        switches,
        bug_compatible,
        out: Out::new(Stdout::new()),
    };
    match run.rounds() {
        // The table is incomplete: use the exit code that a shell reports after SIGINT.
        Ok(_) if switches.watch.is_none() && session.interrupted() => 130,
        Ok(Completeness::Whole) | Err(Failure::Sink(SinkError::Closed)) => OK,
        Ok(Completeness::Partial) => FAILED,
        Err(failure) => {
            print_message(&failure.to_string());
            FAILED
        }
    }
}

/// The host whose processes are searched, if not the session's. lstf reads the path of /proc from `PROC_ROOT` for
/// processes only; a container sets it if the host's /proc is mounted in it.
fn proc_root() -> Option<Host> {
    let root = std::env::var_os("PROC_ROOT").filter(|root| !root.is_empty())?;
    Some(Host::with_roots(root.into(), "/sys".into(), "/etc".into()))
}

/// An error that leaves no table.
enum Failure {
    Read(ReadError),
    Owners(HostError),
    Sink(SinkError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Read(error) => error.fmt(f),
            Failure::Owners(error) => error.fmt(f),
            Failure::Sink(error) => error.fmt(f),
        }
    }
}

/// The end of the rounds, if no error ended them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Whole,
    /// Flows are missing, or the wait for the next round failed; stderr has the reason.
    Partial,
}

struct LstfRun<'s> {
    session: &'s Session,
    /// See [`proc_root`].
    processes: Option<&'s Host>,
    switches: &'s Switches,
    bug_compatible: bool,
    out: Out<Stdout>,
}

impl LstfRun<'_> {
    fn rounds(&mut self) -> Result<Completeness, Failure> {
        let Some(seconds) = self.switches.watch else { return self.round() };
        let mut clock = Rounds::new(now(), Duration::from_secs(seconds.into()));
        loop {
            self.out.buf().extend_from_slice(&round_head(sys::clock::wall().seconds));
            self.round()?;
            self.out.buf().push(b'\n');
            self.out.flush().map_err(Failure::Sink)?;
            let wait = clock.next(now()).wait;
            let due = sys::clock::monotonic_ns().saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
            if !self.session.sleep_until(due) {
                let failed = self.session.waits().failure();
                failed.iter().for_each(|why| print_message(why));
                return Ok(if failed.is_some() { Completeness::Partial } else { Completeness::Whole });
            }
        }
    }

    /// Reads and shows the current flows, and reports on stderr what is missing. Returns `Partial` if reading the
    /// kernel's table was cut short. Unreadable owners do not count, because their empty cells show them.
    fn round(&mut self) -> Result<Completeness, Failure> {
        let mut stats = Accounting::default();
        let of_session = self.switches.processes && self.processes.is_none();
        let wanted: &[LookupId] = if of_session { &[LookupId::Owners] } else { &[] };
        let enrichment = Enrichment::read(self.session, wanted, &mut stats);
        let elsewhere = self.owners_elsewhere(&mut stats)?;
        let mut lookups = enrichment.lookups();
        if let Some(owners) = &elsewhere {
            lookups = lookups.with_lookup(LookupId::Owners, owners);
        }
        let options = flows::FlowOptions {
            ephemeral: self.ephemeral().into(),
            conjuncts: conjuncts(self.switches.peers),
            rule: if self.bug_compatible { Rule::Lstf } else { Rule::Right },
            joins_links: true,
            netns_addresses: None,
        };
        let all = sockets::Options::new(self.session.netns_id());
        let sockets = SocketSource::new(self.session.host(), all).with_cache(&self.session.backends().sockets);
        let source = FlowSource::new(&sockets, lookups, options);
        let shown = self.show(&source)?;
        stats.add(&shown);
        self.out.flush().map_err(Failure::Sink)?;
        footer(&stats);
        Ok(if shown.is_partial() { Completeness::Partial } else { Completeness::Whole })
    }

    /// Reads owners below `PROC_ROOT` by searching each process, because the kernel's own list of open files does not
    /// cover that path.
    fn owners_elsewhere(&self, stats: &mut Accounting) -> Result<Option<Owners>, Failure> {
        let Some(host) = self.processes.filter(|_| self.switches.processes) else { return Ok(None) };
        let owners = OwnersReader::new(Some(host::OwnersBackend::Proc)).read(host).map_err(Failure::Owners)?;
        owners.report().lines().into_iter().for_each(|line| stats.add_reason(1, line));
        Ok(Some(owners))
    }

    fn ephemeral(&self) -> Ephemeral {
        // If they cannot be read, the kernel's defaults apply.
        let ports = LocalPorts::read(self.session.host(), self.session.netns_id(), None).unwrap_or_default();
        let (first, last) = ports.range();
        Ephemeral { first, last }
    }

    fn show(&mut self, source: &FlowSource<'_>) -> Result<Accounting, Failure> {
        let groups = Groups::new(self.processes.unwrap_or(self.session.host()));
        let group_of = |pid| groups.of(pid);
        let style = LstfStyle {
            names: None,
            groups: if self.switches.processes { Some(&group_of) } else { None },
            bug_compatible: self.bug_compatible,
        };
        let json = self.switches.json;
        if self.switches.numeric {
            let (mut writer, mut written) = (Writer::new(style, json), Ok(()));
            let out = &mut self.out;
            let read = read_flows(self.session, self.switches, source, |flow| {
                written = writer.row(flow, out);
                if written.is_ok() { Disposition::Emitted } else { Disposition::Closed }
            });
            written.map_err(Failure::Sink)?;
            let stats = read?;
            return writer.end(out).map_err(Failure::Sink).map(|()| stats);
        }
        let mut rows = Vec::new();
        let mut names = DnsNames::new(self.session, PATIENCE, false);
        let stats = read_flows(self.session, self.switches, source, |flow| {
            names.request(flow.local_addr);
            names.request(flow.peer_addr);
            rows.push(WaitingFlow::new(flow));
            Disposition::Emitted
        })?;
        names.wait_for_answers();
        let name_of = |addr: Addr| names.name(addr);
        let mut writer = Writer::new(LstfStyle { names: Some(&name_of), ..style }, json);
        let written = rows.iter().try_for_each(|row| writer.row(&row.flow(), &mut self.out));
        written.and_then(|()| writer.end(&mut self.out)).map_err(Failure::Sink)?;
        Ok(stats)
    }
}

/// Hands the flows to `each`.
fn read_flows(
    session: &Session,
    switches: &Switches,
    source: &FlowSource<'_>,
    each: impl FnMut(&Flow<'_>) -> Disposition,
) -> Result<Accounting, Failure> {
    read_rows(session, source, demand(switches.processes), &Lookups::empty(), each).map_err(Failure::Read)
}

/// The writer of either output format.
enum Writer<'a> {
    Table(LstfTable<'a>),
    Json(LstfJson<'a>),
}

impl<'a> Writer<'a> {
    fn new(style: LstfStyle<'a>, json: bool) -> Writer<'a> {
        if json { Writer::Json(LstfJson::new(style)) } else { Writer::Table(LstfTable::new(style)) }
    }

    fn row(&mut self, flow: &Flow<'_>, out: &mut Out<Stdout>) -> Result<(), SinkError> {
        match self {
            Writer::Table(table) => table.row(flow),
            Writer::Json(json) => json.row(flow, out)?,
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out<Stdout>) -> Result<(), SinkError> {
        match self {
            Writer::Table(table) => table.write(out),
            Writer::Json(json) => json.end(out),
        }
    }
}

fn demand(processes: bool) -> Demand<Flows> {
    let shown = ["local_addr", "local_port", "peer_addr", "peer_port", "direction", "connections"];
    let owners = if processes { Some("owners") } else { None };
    let fields: Vec<usize> = shown.into_iter().chain(owners).filter_map(field_index::<Flows>).collect();
    Demand::new(&fields, Vec::new())
}

/// Conditions for lstf's rows: excludes other protocols, handshakes, and peers that `-f` filters out.
fn conjuncts(peers: Peers) -> Vec<Conjunct<'static>> {
    let is_handshake = |row: &Socket<'_>| matches!(row.state, State::SYN_SENT | State::SYN_RECV | State::NEW_SYN_RECV);
    let mut all = vec![
        Conjunct { expr: words("proto", Op::Eq, &["tcp"]), test: Box::new(|row| row.proto == Proto::Tcp) },
        Conjunct {
            expr: words("state", Op::Ne, &["syn_sent", "syn_recv"]),
            test: Box::new(move |row| !is_handshake(row)),
        },
    ];
    if peers == Peers::All {
        return all;
    }
    let private: Vec<Prefix> = PRIVATE.iter().filter_map(|text| text.parse().ok()).collect();
    let wants_private = peers == Peers::Private;
    let expr = match field_index::<Sockets>("peer_addr") {
        Some(field) => {
            let within = Expr::Test(Test { field, op: Op::Eq, operand: Operand::Prefixes(private.clone()) });
            // `not in` would drop sockets without a peer, which lstf considers public.
            if wants_private { within } else { Expr::Not(Box::new(within)) }
        }
        None => Expr::And(Vec::new()),
    };
    let is_private = move |addr: Addr| private.iter().any(|prefix| prefix.contains(addr));
    all.push(Conjunct { expr, test: Box::new(move |row| is_private(row.peer.addr) == wants_private) });
    all
}

fn words(name: &str, op: Op, words: &[&str]) -> Expr {
    let operand = Operand::Words(words.iter().map(|word| word.as_bytes().into()).collect());
    match field_index::<Sockets>(name) {
        Some(field) => Expr::Test(Test { field, op, operand }),
        None => Expr::And(Vec::new()),
    }
}

/// Formats `-- 15:04:05 -- ` in local time.
fn round_head(seconds: i64) -> Vec<u8> {
    let mut head = b"-- ".to_vec();
    let time = sys::clock::local_time(seconds);
    let parts = time.map_or([0; 3], |t| [t.hour, t.minute, t.second]);
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 {
            head.push(b':');
        }
        head.extend([b'0' + part / 10 % 10, b'0' + part % 10]);
    }
    head.extend_from_slice(b" -- \n");
    head
}

fn now() -> Duration {
    Duration::from_nanos(sys::clock::monotonic_ns())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::rows::Endpoint;

    fn passes(peers: Peers, peer: &str) -> bool {
        let row = Socket {
            state: State::ESTABLISHED,
            peer: Endpoint { addr: peer.parse().unwrap(), port: 443 },
            ..Socket::EMPTY
        };
        conjuncts(peers).iter_mut().all(|part| (part.test)(&row))
    }

    #[test]
    fn public_and_private_as_lstf_has_them() {
        for (peer, private) in [
            ("10.1.2.3", true),
            ("172.31.0.1", true),
            ("172.32.0.1", false),
            ("192.168.1.1", true),
            ("127.9.9.9", true),
            ("::ffff:10.0.0.1", true),
            ("::1", true),
            ("fe80::1", true),
            ("fd00::1", true),
            // lstf considers carrier-grade NAT and IPv4 link-local addresses public.
            ("100.64.0.1", false),
            ("169.254.0.1", false),
            ("2001:db8::1", false),
        ] {
            assert!(passes(Peers::All, peer));
            assert_eq!(passes(Peers::Private, peer), private, "{peer}");
            assert_eq!(passes(Peers::Public, peer), !private, "{peer}");
        }
    }

    /// A part without its field would be no condition for the source, which would then count its rows as exact.
    #[test]
    fn every_part_has_its_field() {
        let all = conjuncts(Peers::Public);
        assert!(all.iter().all(|part| part.expr != Expr::And(Vec::new())));
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn handshakes_do_not_count() {
        let mut all = conjuncts(Peers::All);
        for (state, counts) in
            [(State::SYN_SENT, false), (State::SYN_RECV, false), (State::TIME_WAIT, true), (State::CLOSE, true)]
        {
            let row = Socket { state, ..Socket::EMPTY };
            assert_eq!(all.iter_mut().all(|part| (part.test)(&row)), counts, "{state:?}");
        }
    }

    #[test]
    fn a_round_begins_with_the_time() {
        let head = String::from_utf8(round_head(1_795_270_000)).unwrap();
        assert_eq!(head.len(), "-- 15:04:05 -- \n".len());
        assert!(head.starts_with("-- ") && head.ends_with(" -- \n"));
    }
}
