//! A field that the forced backend lacks is refused, whichever table, field and backend; what is not refused has
//! values.

use crate::run::{Ran, netwren, netwren_in};
use serde_json::Value;
use std::net::{TcpListener, TcpStream, UdpSocket};
use testkit::conntrack::{Entry, status};
use testkit::netns::Lab;

const BACKENDS: [&str; 3] = ["netlink", "proc", "bpf"];

/// Names of the fields of a table.
fn fields(lab: &Lab, table: &str) -> Vec<String> {
    let help = netwren_in(lab, &[table, "-c", "help"]).ok();
    help.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The fields that `--via` takes, of `fields`; each of the others is refused by a sentence with its name and another
/// backend's.
fn accepted(lab: &Lab, table: &str, via: &str, fields: &[String]) -> Vec<String> {
    let is_accepted = |field: &&String| {
        let ran = netwren_in(lab, &[table, "--via", via, "-c", field, "--sort", field, "--limit", "0"]);
        // A rate is not read at all, but told from two rounds.
        if ran.code == 2 {
            ran.says(2, &["--watch"]);
            return false;
        }
        if !ran.stderr.contains("cannot be read by") {
            assert_ne!(ran.code, 4, "{table} --via {via} -c {field}: {}", ran.stderr);
            return true;
        }
        ran.says(4, &[&format!("`{field}` cannot be read by {via}; --via ")]);
        false
    };
    fields.iter().filter(is_accepted).cloned().collect()
}

/// Names of those columns that have a value in some row.
fn told(lab: &Lab, table: &str, via: &str, columns: &[String]) -> Vec<String> {
    let ran = netwren_in(lab, &[table, "--via", via, "-o", "json", "-c", &columns.join(",")]);
    let rows: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty(), "{table} --via {via}: {}", ran.stderr);
    let has = |name: &&String| rows.iter().any(|row| row.get(name).is_some_and(|value| !value.is_null()));
    columns.iter().filter(has).cloned().collect()
}

/// The backends that read a table here.
fn backends(lab: &Lab, table: &str) -> Vec<&'static str> {
    let reads = |via: &&str| {
        // Of sockets netlink has listeners beside the walk: without it the answer is partial.
        let reads = netwren_in(lab, &[table, "--via", via, "--no-owner", "-c", "proto", "proto = tcp"]).code == 0;
        if !reads {
            eprintln!("skipped: {table} --via {via} cannot be had here");
        }
        reads
    };
    BACKENDS.into_iter().filter(reads).collect()
}

/// What netlink tells of these rows another backend refuses or tells, too.
fn check(lab: &Lab, table: &str) {
    let all = fields(lab, table);
    let by_netlink = told(lab, table, "netlink", &accepted(lab, table, "netlink", &all));
    for via in backends(lab, table) {
        let accepted = accepted(lab, table, via, &all);
        let silent = || -> Vec<&String> {
            let told = told(lab, table, via, &accepted);
            by_netlink.iter().filter(|field| accepted.contains(field) && !told.contains(field)).collect()
        };
        // A child of another test may be found to hold the sockets, and be gone before its command line is read.
        let silent = testkit::until_equal(silent, Vec::is_empty);
        assert!(silent.is_empty(), "{table} --via {via} is silent about {silent:?}");
    }
}

#[test]
fn root_issue_10_no_backend_is_silent_about_a_field_of_nat() {
    testkit::require_root!();
    let lab = Lab::new("lacknat");
    let addr = |last: u8| std::net::IpAddr::from([10, 0, 0, last]);
    lab.track([
        Entry::tcp((addr(1), 4001), (addr(2), 80), 3).status(status::SEEN_REPLY).mark(5),
        Entry::udp((addr(1), 4002), (addr(2), 53)).dnat(addr(9), 53),
    ]);
    check(&lab, "nat");
    for filter in ["status = assured", "id = 7", "helper = ftp"] {
        netwren_in(&lab, &["nat", "--via", "proc", filter]).says(4, &["cannot be read by proc"]);
    }
}

/// The kernel neither counts bytes nor keeps times unless it is told to: a column or a filter of them says so, by
/// every backend and in a replay; the usual columns of JSON do not.
#[test]
fn root_issue_10_what_the_kernel_does_not_count_is_said() {
    testkit::require_root!();
    let lab = Lab::new("uncounted");
    let addr = |last: u8| std::net::IpAddr::from([10, 0, 0, last]);
    lab.track([Entry::tcp((addr(1), 4001), (addr(2), 80), 3)]);
    let tape = lab.dir().join("tape");
    let tape = tape.to_str().unwrap();
    let asked: [(&[&str], &str); 4] = [
        (&["nat", "bytes_in > 0"], "nf_conntrack_acct"),
        (&["nat", "top", "source", "--sum", "packets_out"], "nf_conntrack_acct"),
        (&["nat", "--sort", "age_s"], "nf_conntrack_timestamp"),
        (&["nat", "-c", "+bytes_out", "--record", tape], "nf_conntrack_acct"),
    ];
    let backends = backends(&lab, "nat");
    for (words, setting) in asked {
        for via in &backends {
            lab.set_conntrack(setting, "0");
            let words = [words, &["--no-owner", "--via", via]].concat();
            let says = |ran: Ran| ran.stderr.contains(&format!("net.netfilter.{setting} is 0"));
            assert!(says(netwren_in(&lab, &words)), "{words:?}");
            lab.set_conntrack(setting, "1");
            if !words.contains(&tape) {
                assert!(!says(netwren_in(&lab, &words)), "{words:?}");
            }
            std::fs::rename(tape, format!("{tape}.{via}")).unwrap_or_default();
        }
    }
    for via in backends {
        let replay = netwren(&["nat", "-c", "+bytes_out", "--replay", &format!("{tape}.{via}")]);
        assert!(replay.stderr.contains("nf_conntrack_acct is 0"), "{via}: {}", replay.stderr);
    }
    lab.set_conntrack("nf_conntrack_acct", "0");
    let usual = netwren_in(&lab, &["nat", "--no-owner", "-o", "json"]);
    assert!(!usual.stderr.contains("nf_conntrack_acct"), "{}", usual.stderr);
}

#[test]
fn root_issue_10_no_backend_is_silent_about_a_field_of_sockets() {
    testkit::require_root!();
    let lab = Lab::new("lacksock");
    let _held = lab.inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap();
        // Of links (rtnetlink, RTMGRP_LINK): a run of another test that reads every namespace has such a socket, too,
        // but not for long.
        let links = sys::NetlinkSocket::open(0).unwrap();
        links.join(1).unwrap();
        (near, far, listener, UdpSocket::bind("127.0.0.1:0").unwrap(), links)
    });
    check(&lab, "sockets");
    netwren_in(&lab, &["sockets", "--via", "proc", "rtt_us > 1000"]).says(4, &["`rtt_us` cannot be read by proc"]);
    netwren_in(&lab, &["sockets", "--via", "bpf", "cookie > 0"]).says(4, &["`cookie` cannot be read by bpf"]);
    // Known of some rows only: the answer may lack the others.
    netwren_in(&lab, &["sockets", "--via", "proc", "recv_q > 0"]).says(3, &["which proc does not tell of every row"]);
    // Usual columns are shown by any backend, as empty ones.
    netwren_in(&lab, &["sockets", "--via", "proc", "--no-owner"]).ok();
}
