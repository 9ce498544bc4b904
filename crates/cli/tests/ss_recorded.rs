//! The output of ss (iproute2 6.1.0) on stock kernels, compared byte by byte with the face's output for the messages
//! that those kernels sent.
//!
//! The families are those that many kernels lack: SCTP, DCCP, vsock, TIPC, AF_XDP, and raw sockets via raw_diag.
//! Recordings and how they were made: `fixtures/sock_diag/6.12`, `6.1`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use faces::ss::output::{Layout, Options, Writer, show};
use netlink::Messages;
use record::rows::{FamilyExtras, Socket};
use record::{Key, Lookup, LookupId, Lookups, Proto, State, Value};
use sockets::{InetDecoder, SctpDecoder, TipcDecoder, XdpDecoder, decode_vsock};
use std::path::PathBuf;
use testkit::program::workspace;

struct Interfaces;

impl Lookup for Interfaces {
    fn value(&self, key: Key) -> Value<'_> {
        if matches!(key, Key::Pair(_, 1)) { Value::Bytes(b"lo") } else { Value::Null }
    }
}

fn fixture(kernel: &str, name: &str) -> PathBuf {
    workspace().join("fixtures/sock_diag").join(kernel).join(name)
}

/// Hands each row of a recording to `each`.
fn each_row(kernel: &str, name: &str, proto: Proto, each: &mut dyn FnMut(&Socket<'_>)) {
    let bytes = std::fs::read(fixture(kernel, &format!("{name}.nl"))).unwrap();
    for message in Messages::new(&bytes).map(|message| message.unwrap()).filter(|message| !message.is_end()) {
        let mut rare = FamilyExtras::default();
        let payload = message.payload;
        match proto {
            Proto::Sctp => each(&SctpDecoder::new(1).decode(payload, &mut rare).unwrap()),
            Proto::Vsock => each(&decode_vsock(payload, 1, &mut rare).unwrap()),
            Proto::Tipc => each(&TipcDecoder::new(1).decode(payload, &mut rare).unwrap()),
            Proto::Xdp => each(&XdpDecoder::new(1).decode(payload, &mut rare).unwrap()),
            Proto::Tcp => each(&InetDecoder::new(proto, 1).decode(payload).unwrap()),
            proto => each(&InetDecoder::new(proto, 1).decode_rare(payload, &mut rare).unwrap()),
        }
    }
}

fn printed(kernel: &str, names: &[&str], proto: Proto, options: Options) -> String {
    let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &Interfaces);
    let services = |_, _| None;
    let mut writer = Writer::new(options, &services, Vec::new());
    for name in names {
        each_row(kernel, name, proto, &mut |row| {
            // The recorder requested every state, and ss the twelve it knows, which excludes PARTOPEN of DCCP.
            if row.state.0 <= State::CLOSING.0 {
                writer.row(row, &lookups).unwrap();
            }
        });
    }
    writer.finish().unwrap();
    String::from_utf8(writer.into_inner()).unwrap()
}

fn recorded(kernel: &str, name: &str) -> String {
    std::fs::read_to_string(fixture(kernel, name)).unwrap()
}

fn old() -> Options {
    Options { bug_compatible: true, ..Options::plain(Layout::V6_1).without(show::NETID) }
}

/// Options for `-e`, which implies `-o`.
fn extended() -> Options {
    old().with(show::TIMERS | show::DETAILS)
}

const KERNELS: [&str; 2] = ["6.12", "6.1"];

#[test]
fn sctp() {
    for kernel in KERNELS {
        let names = ["sctp4", "sctp6"];
        // The IPv6 socket was recorded without -m and -i, so its second line is missing.
        let plain = printed(kernel, &names, Proto::Sctp, extended());
        assert_eq!(plain, recorded(kernel, "sctp4-plain.ss"), "{kernel}");
        let all = extended().with(show::MEMORY | show::INFO);
        let got = printed(kernel, &names[..1], Proto::Sctp, all);
        let expected = recorded(kernel, "sctp4.ss");
        let without_padding = |text: &str| text.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
        let (got, expected) = (without_padding(&got), without_padding(&expected));
        assert_eq!(got, expected[..expected.len() - 2], "{kernel}");
    }
}

#[test]
fn dccp() {
    for kernel in KERNELS {
        let got = printed(kernel, &["dccp4"], Proto::Dccp, extended());
        assert_eq!(got, recorded(kernel, "dccp4.ss"), "{kernel}");
    }
}

#[test]
fn vsock() {
    for kernel in KERNELS {
        let options = extended().with(show::NETID);
        let got = printed(kernel, &["vsock"], Proto::Vsock, options);
        assert_eq!(got, recorded(kernel, "vsock.ss"), "{kernel}");
    }
}

#[test]
fn tipc() {
    for kernel in KERNELS {
        assert_eq!(printed(kernel, &["tipc"], Proto::Tipc, old()), recorded(kernel, "tipc-plain.ss"), "{kernel}");
        let got = printed(kernel, &["tipc"], Proto::Tipc, extended().with(show::INFO));
        assert_eq!(got, recorded(kernel, "tipc.ss"), "{kernel}");
    }
}

#[test]
fn tipc_in_words() {
    let options = old().with(show::TIPC | show::ONE_LINE).without(show::HEADER);
    let text = printed("6.12", &["tipc"], Proto::Tipc, options);
    let cells: Vec<&str> = text.lines().map(|line| line.split(" type:").nth(1).unwrap().trim_end()).collect();
    assert_eq!(
        cells,
        [
            "SEQPACKET cong:none  drop:0  publ",
            "RDM cong:none  drop:0  publ",
            "DGRAM cong:none  drop:0",
            "SEQPACKET cong:none  drop:0  via {18888,17}",
            "SEQPACKET cong:none  drop:0  via {18888,17}",
            "SEQPACKET cong:none  drop:0  publ",
        ]
    );
}

#[test]
fn xdp() {
    let got = printed("6.12", &["xdp"], Proto::Xdp, extended().with(show::MEMORY | show::INFO));
    assert_eq!(got, recorded("6.12", "xdp.ss"));
}

/// Sorted, because the order of a hash table is unspecified, and the order of raw sockets changed between the two
/// dumps.
#[test]
fn raw_by_raw_diag() {
    for kernel in KERNELS {
        let got = printed(kernel, &["raw4"], Proto::Raw, extended().with(show::MEMORY | show::INFO));
        let lines = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
            lines.retain(|line| line.contains("0.0.0.0") || line.contains("127.0.0.1"));
            let mut lines: Vec<String> =
                lines.iter().map(|line| line.split(" sk:").next().unwrap_or_default().to_owned()).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&got), lines(&recorded(kernel, "raw4.ss")), "{kernel}");
        assert_eq!(lines(&got).len(), 3);
    }
}

/// Raw sockets in `ss -A inet`: shown by protocol, mostly as a number.
#[test]
fn raw_sockets_among_others() {
    let first = |bug_compatible| {
        let options = Options { bug_compatible, ..Options::plain(Layout::V6_1).without(show::HEADER) };
        let text = printed("6.12", &["raw4", "raw6"], Proto::Raw, options);
        text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(first(true), "??? ??? ??? icmp6");
    assert_eq!(first(false), "raw raw raw raw");
}

/// The values of a TCP socket that are constant over time.
fn lasting(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(cookie) = line.split(" sk:").nth(1) else { continue };
        let info = lines.next().unwrap_or_default().trim_end();
        let ulp = info.find(" tcp-ulp").map_or("", |at| &info[at..]);
        let words = info.split(' ').filter(|w| w.starts_with("dctcp") || ["vegas", "ecn", "cubic"].contains(w));
        let words: Vec<&str> = words.collect();
        found.push(format!("{} {}{ulp}", cookie.split(' ').next().unwrap(), words.join(" ")));
    }
    found.sort();
    found
}

#[test]
fn tls_dctcp_and_vegas() {
    for kernel in KERNELS {
        let options = extended().with(show::MEMORY | show::INFO);
        let got = lasting(&printed(kernel, &["tcp4-dctcp-vegas"], Proto::Tcp, options));
        assert_eq!(got, lasting(&recorded(kernel, "tcp4-dctcp-vegas.ss")), "{kernel}");
        assert_eq!(got.iter().filter(|line| line.contains("tcp-ulp-tls")).count(), 4, "{kernel}");
        assert_eq!(got.iter().filter(|line| line.contains("dctcp:(")).count(), 2, "{kernel}");
    }
}

/// A table that this kernel lacks is mentioned only if the user named it.
#[test]
fn missing_tables_are_reported_if_requested() {
    let run = |filter: &str| {
        let mut command = std::process::Command::new(testkit::program::netwren());
        let output = command.args(["sockets", "--no-owner", filter]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (word, what) in [("sctp", "SCTP sockets"), ("dccp", "DCCP"), ("tipc", "TIPC"), ("xdp", "AF_XDP")] {
        let (code, says) = run(&format!("proto = {word}"));
        assert!(code == Some(0) || (code == Some(4) && says.contains(what)), "{word}: {code:?} {says}");
        let (_, says) = run("proto != tcp");
        assert!(!says.contains(what), "{says}");
    }
}
