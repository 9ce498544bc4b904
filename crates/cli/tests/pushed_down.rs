//! Every condition that is passed to the kernel, in every table and state: the rows must equal those that the same
//! filter selects from all rows in this program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use engine::{Predicate, filter};
use record::rows::{Socket, Sockets};
use record::{Demand, Expr, FilterPushdown, Key, Lookup, LookupId, Lookups, Next, Proto, Schema, Source, State, Value};
use sockets::{BackendCache, Options, SocketSource, Via};
use sys::Host;
use testkit::netns::Lab;

/// Sockets on fixed ports, in the states that the testkit does not make. The rules below drop frames to keep
/// connections in FIN_WAIT1, CLOSING and LAST_ACK.
const SCRIPT: &str = r#"
import os, signal, socket, sys
keep = []
def tcp(family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_STREAM); keep.append(s); return s
def pair(port):
    l = tcp(); l.bind(("127.0.0.1", port)); l.listen(1)
    c = tcp(); c.connect(("127.0.0.1", port)); s = l.accept()[0]; keep.append(s)
    return c, s
def mark(s, n): s.setsockopt(socket.SOL_SOCKET, 36, n)
for port in (7777, 7778):
    s = tcp(); s.bind(("127.0.0.1", port)); keep.append(s)
s = tcp(socket.AF_INET6); mark(s, 7); s.bind(("::1", 7779))
s = tcp(); s.setsockopt(socket.SOL_SOCKET, 25, b"lo\0"); s.bind(("0.0.0.0", 7780))
s = tcp(); mark(s, 7); s.bind(("127.0.0.1", 7101)); s.listen(3)
c = tcp(); mark(c, 6); c.connect(("127.0.0.1", 7101))
s = tcp(); s.setsockopt(socket.SOL_SOCKET, 25, b"lo\0"); s.bind(("0.0.0.0", 7102)); s.listen(4)
l = tcp(); l.setsockopt(6, 9, 60); mark(l, 5); l.bind(("127.0.0.1", 7104)); l.listen(6)
c = tcp(); c.connect(("127.0.0.1", 7104))
c, s = pair(7201); c.shutdown(socket.SHUT_WR)
c, s = pair(7202); c.shutdown(socket.SHUT_WR); s.shutdown(socket.SHUT_WR)
c, s = pair(7203); c.shutdown(socket.SHUT_WR); s.recv(1); s.shutdown(socket.SHUT_WR)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); mark(u, 7); u.bind(("127.0.0.1", 7777)); keep.append(u)
u = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); u.bind(("::", 7101)); keep.append(u)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("127.0.0.1", 7777)); keep.append(u)
open(sys.argv[1] + ".part", "w").close(); os.rename(sys.argv[1] + ".part", sys.argv[1])
signal.pause()
"#;

const RULES: &str = "table inet t {
 chain c {
  type filter hook output priority 0;
  tcp dport { 7201, 7202 } tcp flags & fin == fin drop
  tcp sport 7203 tcp flags & fin == fin drop
 }
}
";

/// Every kind of condition that `sockets::pushdown` translates, alone and combined with others, including conditions
/// that it does not translate.
const CONDITIONS: &[&str] = &[
    "local_port = 7777",
    "peer_port = 7777",
    "local_port = 7101",
    "peer_port = 7101",
    "local_port = 7201 and peer_port != 7201",
    "local_port = 7777 and local_port = 7778",
    "local_port != 7777",
    "peer_port != 7101",
    "local_port in (7100-7110, 7777)",
    "peer_port in (7101, 7201-7203)",
    "not local_port in (7100-7110, 7777)",
    "local_port < 7104",
    "local_port <= 7104",
    "peer_port > 7104",
    "peer_port >= 7104",
    "local_port = null",
    "peer_port = null",
    "local_port != null",
    "peer_port != null",
    "local_addr = 127.0.0.1",
    "local_addr != 127.0.0.1",
    "local_addr in 127.0.0.0/8",
    "peer_addr in 127.0.0.0/8",
    "local_addr in 0.0.0.0/0",
    "local_addr in ::/0",
    "peer_addr = ::1",
    "peer_addr in fe80::/10",
    "not local_addr in 127.0.0.0/8",
    "local_addr = null",
    "peer_addr = null",
    "peer_addr != null",
    "iface = lo",
    "iface != lo",
    "iface = null",
    "mark = 7",
    "mark != 7",
    "mark = 0x4/0x4",
    "mark = null",
    "mark != null",
    "cgroup_id = null",
    "cgroup_id != null",
    "cgroup_id = CGROUP",
    "cgroup_id != CGROUP",
    "family = inet",
    "family = inet6",
    "family != inet",
    "local_port = 7777 or peer_port = 7777",
    "local_port = 7777 or inode = 1",
    "local_port = 7777 and inode != 1",
    "not (local_port = 7777 or mark = 7)",
    "inode != 1",
];

/// The tables to test; this kernel may lack other families.
const TABLES: [Proto; 8] =
    [Proto::Tcp, Proto::Mptcp, Proto::Udp, Proto::UdpLite, Proto::Raw, Proto::Packet, Proto::Unix, Proto::Netlink];

/// From include/uapi/linux/netlink.h.
const NETLINK_SOCK_DIAG: u8 = 4;

struct Ifaces(Vec<(u32, String)>);

impl Lookup for Ifaces {
    fn value(&self, key: Key) -> Value<'_> {
        let Key::Pair(_, wanted) = key else { return Value::Null };
        let found = self.0.iter().find(|(index, _)| *index == wanted);
        found.map_or(Value::Null, |(_, name)| Value::Bytes(name.as_bytes()))
    }
}

/// The values that identify a row and that stay constant.
type Seen = (Proto, State, u8, String, String, u32, Option<u32>);

fn seen(row: &Socket<'_>) -> Seen {
    let end = |end: record::rows::Endpoint| format!("{}:{}", end.addr, end.port);
    (row.proto, row.state, row.family, end(row.local), end(row.peer), row.inode, row.mark)
}

struct Reader<'l> {
    host: Host,
    cache: BackendCache,
    via: Via,
    tables: &'static [Proto],
    lookups: Lookups<'l>,
}

impl Reader<'_> {
    /// The rows that the source returns for `filter`, one list per test applied here.
    fn rows(&self, filter: &[Expr], tests: &[Predicate<Sockets>]) -> Vec<Vec<Seen>> {
        let mut rows = vec![Vec::new(); tests.len()];
        let run = self.source().run(&demand(filter), &mut |row| {
            // The requesting socket is itself a netlink socket, and differs each time.
            let asks =
                row.extras.and_then(|rare| rare.netlink).is_some_and(|part| part.protocol.0 == NETLINK_SOCK_DIAG);
            for (rows, test) in rows.iter_mut().zip(tests).filter(|_| !asks) {
                if test.matches(row, &self.lookups) {
                    rows.push(seen(row));
                }
            }
            Next::More
        });
        run.unwrap();
        rows.iter_mut().for_each(|rows| rows.sort());
        rows
    }

    fn source(&self) -> SocketSource<'_> {
        let options = Options {
            via: Some(self.via),
            order: self.tables.to_vec(),
            if_named: &[],
            quiet: true,
            ..Options::new(sys::netns::current_inode().unwrap())
        };
        SocketSource::new(&self.host, options).with_cache(&self.cache)
    }

    /// The rows of a filter, tested here only for conditions that the source did not promise to test.
    fn as_offered(&self, filter: &[Expr]) -> Vec<Seen> {
        let pushdown = self.source().prepare(&demand(filter)).offer().pushdown;
        let left = filter
            .iter()
            .zip(pushdown)
            .filter(|(_, push)| *push != FilterPushdown::Exact)
            .map(|(part, _)| part.clone());
        let test = Predicate::new(&left.collect::<Vec<_>>()).unwrap();
        self.rows(filter, &[test]).remove(0)
    }

    /// Compares each filter's rows with those that it selects from `everything`, while nothing changes; returns the
    /// number of rows of the first filter.
    #[track_caller]
    fn check(&self, everything: &str, texts: &[String]) -> usize {
        let parse = |text: &str| {
            filter::conjuncts(Schema::from_table::<Sockets>(), text).unwrap_or_else(|error| panic!("{text}: {error}"))
        };
        let filters: Vec<Vec<Expr>> = texts.iter().map(|text| parse(text)).collect();
        let tests: Vec<Predicate<Sockets>> = filters.iter().map(|filter| Predicate::new(filter).unwrap()).collect();
        let all = || self.rows(&parse(everything), &tests);
        for _ in 0..20 {
            let expected = all();
            let got: Vec<Vec<Seen>> = filters.iter().map(|filter| self.as_offered(filter)).collect();
            if all() != expected {
                continue;
            }
            for ((got, expected), text) in got.iter().zip(&expected).zip(texts) {
                assert_eq!(got, expected, "{text} via {:?}", self.via);
            }
            return expected.first().map_or(0, Vec::len);
        }
        panic!("the tables never rest");
    }
}

/// A demand for all fields that any filter here uses, so that two readings can be compared.
fn demand(filter: &[Expr]) -> Demand<Sockets> {
    let mut demand = Demand::<Sockets>::new(&[], filter.to_vec());
    for name in ["inode", "iface", "mark", "cgroup_id", "netlink_protocol"] {
        demand.add(record::field_index::<Sockets>(name).unwrap());
    }
    demand
}

fn furnish(lab: &Lab) {
    lab.nft(RULES);
    let _ = (lab.connect_v4(2), lab.connect_v6(2), lab.connect_mapped(2), lab.time_wait(2), lab.half_closed(2));
    let _ = (lab.make_unaccepted(2), lab.syn_sent(), lab.connect_link_local(1), lab.listen_tcp(2), lab.udp_pair());
    let _ = (lab.mptcp_connection(), lab.udplite_sockets());
    lab.raw_sockets();
    lab.packet_sockets();
    lab.netlink_sockets();
    lab.unix_stream("stream", 2);
    lab.unix_pair();
    let ready = lab.dir().join("ready");
    lab.spawn("python3", &["-c", SCRIPT, ready.to_str().unwrap()]);
    lab.wait_until("sockets in every state", || ready.exists());
    let states = || lab.output("ss", &["-Htan"]);
    lab.wait_until("FINs without an answer", || {
        let states = states();
        ["FIN-WAIT-1", "CLOSING", "LAST-ACK", "SYN-RECV", "SYN-SENT"].iter().all(|state| states.contains(state))
    });
}

fn words(states: &[u8]) -> String {
    let mut words: Vec<&str> = states.iter().flat_map(|n| TABLES.map(|proto| State(*n).name(proto))).collect();
    words.sort_unstable();
    words.dedup();
    words.join(", ")
}

fn compare(lab: &Lab, via: Via, tables: &'static [Proto]) {
    let ifaces: Vec<(u32, String)> = lab
        .output("ip", &["-o", "link"])
        .lines()
        .map(|line| {
            let mut parts = line.split([':', '@']).map(str::trim);
            (parts.next().unwrap().parse().unwrap(), parts.next().unwrap().to_owned())
        })
        .collect();
    let ifaces = Ifaces(ifaces);
    lab.run_inside(|| {
        let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &ifaces);
        let reader = Reader { host: Host::live(), cache: BackendCache::new(), via, tables, lookups };
        let cgroup = cgroup_of(&reader.host).to_string();
        let conditions: Vec<String> = CONDITIONS.iter().map(|text| text.replace("CGROUP", &cgroup)).collect();
        // Sockets in TIME_WAIT, SYN_RECV and SYN_SENT exist for only a minute or two, so they come first.
        let all = [6, 3, 2, 1, 4, 5, 7, 8, 9, 10, 11, 13];
        let everything = format!("state in ({})", words(&all));
        for number in all {
            let state = format!("state in ({})", words(&[number]));
            let with_state = conditions.iter().map(|condition| format!("({condition}) and {state}"));
            let texts: Vec<String> = std::iter::once(state.clone()).chain(with_state).collect();
            let rows = reader.check(&everything, &texts);
            // A closed TCP socket is in no table.
            assert!(rows > 0 || tables == [Proto::Tcp] && State(number) == State::CLOSE, "no socket has {state}");
        }
        // Unless a state is named, bound-only sockets are not read.
        reader.check("", &conditions);
    });
}

/// The cgroup of sockets created here.
fn cgroup_of(host: &Host) -> u64 {
    let mut found = None;
    let mut demand = Demand::<Sockets>::new(&[], Vec::new());
    demand.add(record::field_index::<Sockets>("cgroup_id").unwrap());
    let options = Options { via: Some(Via::Netlink), ..Options::for_table(Proto::Tcp, 0) };
    SocketSource::new(host, options)
        .run(&demand, &mut |row| {
            found = found.or(row.cgroup_id);
            Next::More
        })
        .unwrap();
    found.unwrap()
}

#[test]
fn root_issue_10_what_the_kernel_is_asked_to_filter_is_filtered() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    testkit::require_tool!("nft");
    testkit::require_tool!("ss");
    // BPF reads no other table.
    let by_bpf: &[(Via, &'static [Proto])] = &[(Via::Bpf, &[Proto::Tcp])];
    let by_bpf = if cfg!(feature = "bpf") { by_bpf } else { &[] };
    for (via, tables) in [(Via::Netlink, &TABLES[..])].iter().chain(by_bpf) {
        let lab = Lab::new("pushed");
        furnish(&lab);
        compare(&lab, *via, tables);
    }
}
