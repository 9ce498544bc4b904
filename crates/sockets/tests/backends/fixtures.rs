//! Recorded kernel bytes and the rows that they contain.
//!
//! `fixtures/sock_diag/KERNEL/CASE.nl` holds receive buffers, `fixtures/proc_net/KERNEL/FILE.txt` a file; next to each
//! are `.expect` and `.HOW`. To record them again: `NETWREN_RECORD_FIXTURES=1 cargo test -p sockets root_record`; only
//! those of the rarer families: `NETWREN_RECORD_FAMILIES=1`. Those of other kernels come from
//! `fixtures/sock_diag/recorder.c`; next to some is the output of ss (iproute2 6.1.0) on that kernel, `.ss`. To write
//! only `.expect` again: `NETWREN_EXPECT_ANEW=1`.
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use netlink::Messages;
use record::rows::{FamilyExtras, need};
use record::{Next, Proto, Source};
use sockets::{
    DecodeError, InetDecoder, NetlinkDecoder, Options, PacketDecoder, SctpDecoder, SocketSource, TipcDecoder, Via,
    XdpDecoder, decode_inet, decode_unix, decode_vsock, parse_proc_line, parse_proc_netlink_line,
    parse_proc_packet_line, parse_proc_unix_line,
};
use sys::Host;
use testkit::netns::Lab;
use testkit::program::workspace;

use crate::odd_sockets;
use crate::rows::{cells, demand, here, is};

const NETNS: u64 = 4_026_531_840;

fn fixtures(kind: &str, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for kernel in std::fs::read_dir(workspace().join("fixtures").join(kind)).unwrap().flatten() {
        // The program that recorded some of them is next to the folders.
        let Ok(files) = std::fs::read_dir(kernel.path()) else { continue };
        let files = files.flatten().map(|file| file.path());
        found.extend(files.filter(|path| path.extension().is_some_and(|e| e == extension)));
    }
    found.sort();
    assert!(!found.is_empty(), "no fixtures of {kind}");
    found
}

fn proto_of(path: &Path) -> Proto {
    let name = path.file_name().unwrap().to_str().unwrap();
    Proto::ALL.into_iter().find(|proto| name.starts_with(proto.name())).unwrap()
}

// The rows of a .nl file as text, sorted, because the order of a hash table is arbitrary.
fn decode_messages(proto: Proto, bytes: &[u8]) -> String {
    let payloads = Messages::new(bytes).map(|message| message.unwrap()).filter(|message| !message.is_end());
    let mut rows: Vec<String> = payloads.map(|message| decode_one(proto, message.payload).unwrap()).collect();
    rows.sort();
    rows.iter().fold(String::new(), |text, row| text + row + "\n")
}

fn decode_one(proto: Proto, payload: &[u8]) -> Result<String, DecodeError> {
    let mut rare = FamilyExtras::default();
    match proto {
        Proto::Unix => decode_unix(payload, NETNS).map(|row| cells(&row)),
        Proto::Packet => PacketDecoder::new(NETNS).decode(payload, &mut rare).map(|row| cells(&row)),
        Proto::Netlink => NetlinkDecoder::new(NETNS).decode(payload, &mut rare).map(|row| cells(&row)),
        Proto::Sctp => SctpDecoder::new(NETNS).decode(payload, &mut rare).map(|row| cells(&row)),
        Proto::Vsock => decode_vsock(payload, NETNS, &mut rare).map(|row| cells(&row)),
        Proto::Tipc => TipcDecoder::new(NETNS).decode(payload, &mut rare).map(|row| cells(&row)),
        Proto::Xdp => XdpDecoder::new(NETNS).decode(payload, &mut rare).map(|row| cells(&row)),
        proto => InetDecoder::new(proto, NETNS).decode_rare(payload, &mut rare).map(|row| cells(&row)),
    }
}

fn decode_lines(proto: Proto, text: &[u8]) -> String {
    let mut rows: Vec<String> = text
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter(|line| !line.is_empty())
        .map(|line| match proto {
            Proto::Unix => cells(&parse_proc_unix_line(line, NETNS).unwrap()),
            Proto::Packet => cells(&parse_proc_packet_line(line, NETNS, &mut FamilyExtras::default()).unwrap()),
            Proto::Netlink => {
                cells(&parse_proc_netlink_line(line, NETNS, &mut FamilyExtras::default(), &mut Vec::new()).unwrap())
            }
            proto => cells(&parse_proc_line(line, proto, NETNS).unwrap()),
        })
        .collect();
    rows.sort();
    rows.iter().fold(String::new(), |text, row| text + row + "\n")
}

fn compare(path: &Path, got: &str) {
    assert!(path.with_extension("HOW").exists(), "{} has no .HOW", path.display());
    // A new field adds text for the same bytes: review the difference before committing it.
    if std::env::var_os("NETWREN_EXPECT_ANEW").is_some() {
        std::fs::write(path.with_extension("expect"), got).unwrap();
    }
    let expected = std::fs::read_to_string(path.with_extension("expect")).unwrap();
    assert_eq!(got, expected, "{}", path.display());
}

#[test]
fn messages_decode_as_recorded() {
    for path in fixtures("sock_diag", "nl") {
        compare(&path, &decode_messages(proto_of(&path), &std::fs::read(&path).unwrap()));
    }
}

#[test]
fn lines_decode_as_recorded() {
    for path in fixtures("proc_net", "txt") {
        compare(&path, &decode_lines(proto_of(&path), &std::fs::read(&path).unwrap()));
    }
}

#[test]
fn cut_anywhere_nothing_panics() {
    for path in fixtures("sock_diag", "nl") {
        let bytes = std::fs::read(&path).unwrap();
        for end in 0..bytes.len() {
            sockets::fuzz_sock_diag(&bytes[..end.min(1500)]);
        }
        let payloads = Messages::new(&bytes).map(|message| message.unwrap()).filter(|message| !message.is_end());
        for message in payloads {
            for end in 0..message.payload.len() {
                let cut = &message.payload[..end];
                let proto = proto_of(&path);
                let fixed = match proto {
                    Proto::Unix | Proto::Packet | Proto::Xdp => 16,
                    Proto::Vsock => 32,
                    // The payload contains only attributes.
                    Proto::Tipc => 4,
                    Proto::Netlink => 28,
                    _ => 72,
                };
                let (short, error) = (end < fixed, decode_one(proto, cut).err());
                assert!(!short || error.is_some(), "{} bytes of {}", end, path.display());
                assert!(error.is_none_or(|error| error.to_string().contains("claims")));
            }
        }
    }
    for path in fixtures("proc_net", "txt") {
        let bytes = std::fs::read(&path).unwrap();
        for end in 0..bytes.len() {
            let start = end.saturating_sub(400);
            sockets::fuzz_proc_line(&bytes[start..end]);
        }
    }
}

/// A newer kernel's longer struct is accepted, an unknown attribute is counted.
#[test]
fn newer_kernels_are_read_as_far_as_known() {
    let path = workspace().join("fixtures/sock_diag/6.18/tcp4-established.nl");
    let bytes = std::fs::read(path).unwrap();
    let first = Messages::new(&bytes).next().unwrap().unwrap();
    let mut payload = first.payload.to_vec();
    let plain = cells(&decode_inet(&payload, Proto::Tcp, NETNS).unwrap());
    payload.extend_from_slice(&[8, 0, 200, 0, 1, 2, 3, 4, 5, 0, 201, 0x80, 9]);
    let mut decoder = sockets::InetDecoder::new(Proto::Tcp, NETNS);
    assert_eq!(cells(&decoder.decode(&payload).unwrap()), plain);
    assert_eq!(decoder.unknown_attrs, 2);
    // INET_DIAG_SKMEMINFO with a tenth number, tcp_info with only the first 104 bytes, a sockopt that is too short.
    let head = &first.payload[..72];
    let attr = |kind: u16, payload: &[u8]| {
        let length = 4 + payload.len() as u16;
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let longer = [head, &attr(7, &[1; 40]), &attr(2, &[1; 104])].concat();
    let row = decode_inet(&longer, Proto::Tcp, NETNS).unwrap();
    assert_eq!(row.skmem.unwrap().get(8), Some(0x0101_0101));
    let info = row.tcp_info.unwrap();
    assert_eq!((info.total_retrans(), info.pacing_rate()), (Some(0x0101_0101), None));
    let short = [head, &attr(22, &[1])].concat();
    let error = decode_inet(&short, Proto::Tcp, NETNS).unwrap_err();
    assert_eq!(error.to_string(), "attribute 22 claims 2 bytes, 1 are present");
}

/// One case to record.
struct Case {
    name: &'static str,
    /// Description for the .HOW file.
    how: &'static str,
    proto: Proto,
    via: Via,
    need: u64,
    filter: Vec<record::Expr>,
}

const EVERYTHING: u64 = need::TCP_INFO | need::CONG | need::CONG_INFO | need::SKMEM | need::TOS;
const EVERYTHING_UNIX: u64 =
    need::UNIX_NAME | need::UNIX_PEER | need::QUEUES | need::UNIX_VFS | need::UID | need::SKMEM;

// Records what the source reads for this case and returns the blocks of its stream.
fn blocks(lab: &Lab, case: &Case) -> Vec<u8> {
    let tape = lab.dir().join("tape");
    lab.run_inside(|| {
        let host = Host::live().recording(&tape).unwrap();
        let options = Options { via: Some(case.via), order: vec![case.proto], if_named: &[], ..here() };
        let demand = demand(case.need, case.filter.clone());
        let stats = SocketSource::new(&host, options).run(&demand, &mut |_| Next::More).unwrap();
        assert!(stats.seen > 0 && !stats.is_partial(), "{}: {stats:?}", case.name);
        host.finish().unwrap();
    });
    let host = Host::open_replay(&tape).unwrap();
    let netns = lab.run_inside(|| sys::netns::current_inode().unwrap());
    let mut bytes = Vec::new();
    let tables =
        ["tcp", "tcp4", "tcp6", "udp4", "udp6", "unix", "raw4", "raw6", "mptcp4", "mptcp6", "packet", "netlink"];
    for table in tables {
        let key = format!("sockets/{table}/{}@{netns}", case.via.name());
        // A file contains one family: the other has a separate case.
        let wanted = case.via == Via::Netlink || case.name.ends_with('6') == table.ends_with('6');
        if host.contains(&key) && wanted {
            let mut stream = host.stream(&key, "", || unreachable!("a replay opens nothing")).unwrap();
            // A dump is not read beyond its last message, so its stream ends with an error.
            while let Ok(Some(block)) = stream.next() {
                bytes.extend_from_slice(block);
            }
        }
    }
    bytes
}

fn record_case(lab: &Lab, case: &Case) {
    let bytes = blocks(lab, case);
    let (folder, extension) = match case.via {
        Via::Netlink | Via::Bpf => ("sock_diag", "nl"),
        Via::Proc => ("proc_net", "txt"),
    };
    let kernel = sys::Kernel::read_running();
    let (major, minor) = kernel.version();
    let folder = workspace().join("fixtures").join(folder).join(format!("{major}.{minor}"));
    let path = folder.join(case.name).with_extension(extension);
    std::fs::write(&path, &bytes).unwrap();
    let expect = match case.via {
        Via::Netlink | Via::Bpf => decode_messages(case.proto, &bytes),
        Via::Proc => decode_lines(case.proto, &bytes),
    };
    std::fs::write(path.with_extension("expect"), expect).unwrap();
    let mut how = String::new();
    writeln!(how, "what    {}", case.how).unwrap();
    writeln!(how, "where   an own network namespace, as root").unwrap();
    writeln!(how, "kernel  {major}.{minor} {}", kernel.machine).unwrap();
    writeln!(how, "by      NETWREN_RECORD_FIXTURES=1 cargo test -p sockets root_record_fixtures").unwrap();
    std::fs::write(path.with_extension("HOW"), how).unwrap();
}

/// Records the fixtures again, only on request: they document one kernel.
#[test]
fn root_record_fixtures() {
    if std::env::var_os("NETWREN_RECORD_FIXTURES").is_none() {
        return;
    }
    testkit::require_root!();
    record_tcp();
    record_tcp_odd();
    record_udp();
    record_unix();
    record_proc_tcp();
    record_families();
}

/// Records the fixtures of the rarer families again.
#[test]
fn root_record_families() {
    if std::env::var_os("NETWREN_RECORD_FAMILIES").is_none() {
        return;
    }
    testkit::require_root!();
    record_families();
}

fn record_families() {
    let lab = Lab::new("fixrare");
    lab.ip(&["link", "set", "lo", "up"]);
    lab.packet_sockets();
    lab.netlink_sockets();
    lab.raw_sockets();
    lab.mptcp_connection();
    let need = need::QUEUES | need::SKMEM | need::PACKET | need::FILTER | need::NETLINK | need::ULP;
    let case = |name, how, proto, via| Case { name, how, proto, via, need, filter: Vec::new() };
    let packet = "for everything, for IPv4 on lo, a TPACKET_V3 ring with fanout, a TPACKET_V2 ring to send, a filter";
    record_case(&lab, &case("packet", packet, Proto::Packet, Via::Netlink));
    record_case(&lab, &case("packet", packet, Proto::Packet, Via::Proc));
    let netlink = "the kernel's own, one in groups 1, 5 and 33 of rtnetlink, one of nfnetlink, one connected";
    record_case(&lab, &case("netlink", netlink, Proto::Netlink, Via::Netlink));
    record_case(&lab, &case("netlink", netlink, Proto::Netlink, Via::Proc));
    let raw = "ICMP, ICMPv6, OSPF that is connected, one for any protocol";
    record_case(&lab, &case("raw4", raw, Proto::Raw, Via::Proc));
    record_case(&lab, &case("raw6", raw, Proto::Raw, Via::Proc));
    let mptcp = "a connection over 127.0.0.1 and its listener";
    record_case(&lab, &case("mptcp", mptcp, Proto::Mptcp, Via::Netlink));
    let subflows = "the same connection as TCP: two subflows and the listener's own, every extension";
    record_case(&lab, &Case { need: EVERYTHING, ..case("tcp4-subflows", subflows, Proto::Tcp, Via::Netlink) });
}

fn tcp(name: &'static str, how: &'static str, filter: Vec<record::Expr>) -> Case {
    Case { name, how, proto: Proto::Tcp, via: Via::Netlink, need: EVERYTHING, filter }
}

fn record_tcp() {
    let established = || vec![is("state", "established")];
    let lab = Lab::new("fix4");
    let _ = lab.connect_v4(2);
    record_case(&lab, &tcp("tcp4-established", "two connections over 127.0.0.1, every extension", established()));
    let plain = Case { need: 0, ..tcp("tcp4-plain", "the same and their listener, no extension", Vec::new()) };
    record_case(&lab, &plain);
    let lab = Lab::new("fix6");
    let _ = lab.connect_v6(1);
    record_case(&lab, &tcp("tcp6-established", "a connection over ::1, every extension", established()));
    let lab = Lab::new("fixmapped");
    let _ = lab.connect_mapped(1);
    record_case(&lab, &tcp("tcp-mapped", "an IPv4 connection to a dual-stack listener, and that", Vec::new()));
    let lab = Lab::new("fixtw");
    let _ = lab.time_wait(1);
    let time_wait = vec![is("state", "time_wait")];
    record_case(&lab, &tcp("tcp4-time-wait", "a connection that its client closed first", time_wait));
    let lab = Lab::new("fixhalf");
    let _ = lab.half_closed(1);
    record_case(&lab, &tcp("tcp4-half-closed", "a connection shut down by the client alone, its listener", Vec::new()));
    let lab = Lab::new("fixwaits");
    let _ = lab.make_unaccepted(2);
    record_case(&lab, &tcp("tcp4-unaccepted", "two connections that nobody accepted, their listener", Vec::new()));
}

fn record_tcp_odd() {
    let lab = Lab::new("fixodd");
    let made = odd_sockets::open(&lab);
    println!("made {made:?}");
    let listen = vec![is("state", "listen")];
    record_case(
        &lab,
        &tcp("tcp-listen-odd", "listeners: marked 7, bound to lo, v6only, deferred, with an MD5 key", listen),
    );
    let request = vec![is("state", "syn_recv")];
    record_case(&lab, &tcp("tcp4-request", "a request socket (TCP_DEFER_ACCEPT)", request));
    let established = vec![is("state", "established")];
    record_case(&lab, &tcp("tcp4-odd", "MPTCP subflows, a ToS of 16, 1000 unread bytes, keepalive", established));
}

fn record_udp() {
    let lab = Lab::new("fixudp");
    lab.udp((Ipv4Addr::UNSPECIFIED, 5353).into());
    lab.udp((Ipv6Addr::UNSPECIFIED, 5354).into());
    lab.udp_pair();
    let how = "bound to 0.0.0.0 and ::, and two connected to each other";
    let case = |name, via, need| Case { name, how, proto: Proto::Udp, via, need, filter: Vec::new() };
    record_case(&lab, &case("udp", Via::Netlink, EVERYTHING));
    record_case(&lab, &case("udp4", Via::Proc, 0));
    record_case(&lab, &case("udp6", Via::Proc, 0));
}

fn record_unix() {
    let lab = Lab::new("fixunix");
    lab.unix_stream("stream", 2);
    lab.unix_abstract("abstract", 1);
    lab.unix_datagram("datagram");
    lab.unix_pair();
    odd_sockets::open(&lab);
    let how = "stream with a path, abstract, datagram, a pair, seqpacket with two waiting";
    let case = |via, need| Case { name: "unix", how, proto: Proto::Unix, via, need, filter: Vec::new() };
    record_case(&lab, &case(Via::Netlink, EVERYTHING_UNIX));
    record_case(&lab, &case(Via::Proc, 0));
}

fn record_proc_tcp() {
    let lab = Lab::new("fixproc");
    let _ = (lab.connect_v4(2), lab.connect_v6(1), lab.connect_mapped(1), lab.time_wait(1), lab.half_closed(1));
    let _ = lab.make_unaccepted(1);
    odd_sockets::open(&lab);
    let how = "connections of both families, mapped, time-wait, half closed, unaccepted, listeners, a request socket";
    for name in ["tcp4", "tcp6"] {
        record_case(&lab, &Case { name, how, proto: Proto::Tcp, via: Via::Proc, need: 0, filter: Vec::new() });
    }
}
