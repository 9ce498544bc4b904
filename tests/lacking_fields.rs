//! For every table, field and backend: `--via` rejects a field that the backend cannot read, and a field that is not
//! rejected has values.

use crate::run::{Ran, netwren, netwren_in};
use serde_json::Value;
use std::net::{TcpListener, TcpStream, UdpSocket};
use testkit::conntrack::{Entry, status};
use testkit::netns::Lab;

const BACKENDS: [&str; 3] = ["netlink", "proc", "bpf"];

/// The names of a table's fields.
fn fields(lab: &Lab, table: &str) -> Vec<String> {
    let help = netwren_in(lab, &[table, "-c", "help"]).ok();
    help.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// The fields that `--via` accepts. Every rejection must name the field and another backend.
fn accepted(lab: &Lab, table: &str, via: &str, fields: &[String]) -> Vec<String> {
    let is_accepted = |field: &&String| {
        let ran = netwren_in(lab, &[table, "--via", via, "-c", field, "--sort", field, "--limit", "0"]);
        // A rate is not read from the kernel; it needs two rounds.
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

/// The columns that have a value in at least one row.
fn reported_fields(lab: &Lab, table: &str, via: &str, columns: &[String]) -> Vec<String> {
    let ran = netwren_in(lab, &[table, "--via", via, "-o", "json", "-c", &columns.join(",")]);
    let rows: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!rows.is_empty(), "{table} --via {via}: {}", ran.stderr);
    let has = |name: &&String| rows.iter().any(|row| row.get(name).is_some_and(|value| !value.is_null()));
    columns.iter().filter(has).cloned().collect()
}

/// The backends that can read this table here.
fn backends(lab: &Lab, table: &str) -> Vec<&'static str> {
    let reads = |via: &&str| {
        // For sockets, netlink lists the listeners in addition to the walk; without that the result is partial.
        let reads = netwren_in(lab, &[table, "--via", via, "--no-owner", "-c", "proto", "proto = tcp"]).code == 0;
        if !reads {
            eprintln!("skipped: {table} --via {via} cannot be had here");
        }
        reads
    };
    BACKENDS.into_iter().filter(reads).collect()
}

/// Every field with a value from netlink must have a value with another backend, or be rejected by it.
fn check(lab: &Lab, table: &str) {
    let all = fields(lab, table);
    let by_netlink = reported_fields(lab, table, "netlink", &accepted(lab, table, "netlink", &all));
    for via in backends(lab, table) {
        let accepted = accepted(lab, table, via, &all);
        let silent = || -> Vec<&String> {
            let told = reported_fields(lab, table, via, &accepted);
            by_netlink.iter().filter(|field| accepted.contains(field) && !told.contains(field)).collect()
        };
        // The owner found may be a child of another test that ends before its command line is read.
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

/// By default the kernel neither counts bytes nor stores times. A column or a filter that needs them causes a message,
/// with every backend and in a replay; the default columns of JSON do not.
#[test]
fn root_issue_10_fields_that_the_kernel_does_not_count_are_reported() {
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
    let _held = lab.run_inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap();
        // A socket for link events (rtnetlink, RTMGRP_LINK). A run of another test that reads every namespace also has
        // such a socket, but only briefly.
        let links = sys::NetlinkSocket::open(0).unwrap();
        links.join(1).unwrap();
        (near, far, listener, UdpSocket::bind("127.0.0.1:0").unwrap(), links)
    });
    check(&lab, "sockets");
    netwren_in(&lab, &["sockets", "--via", "proc", "rtt_us > 1000"]).says(4, &["`rtt_us` cannot be read by proc"]);
    netwren_in(&lab, &["sockets", "--via", "bpf", "cookie > 0"]).says(4, &["`cookie` cannot be read by bpf"]);
    // The field is known for some rows only, so the answer may be incomplete.
    netwren_in(&lab, &["sockets", "--via", "proc", "recv_q > 0"])
        .says(3, &["which proc does not report for every row"]);
    // Default columns are accepted by any backend and may be empty.
    netwren_in(&lab, &["sockets", "--via", "proc", "--no-owner"]).ok();
}
