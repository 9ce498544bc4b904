//! Filter values in the forms of other tools, and values that no row can have.

use crate::run::{netwren, netwren_in};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use testkit::conntrack::Entry;
use testkit::netns::Lab;

#[test]
fn root_values_of_other_tools_find_what_they_find_there() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let lab = Lab::new("filtervalues");
    let _open = lab.run_inside(|| {
        let listener = TcpListener::bind("127.0.0.1:8080").unwrap();
        let client = TcpStream::connect("127.0.0.1:8080").unwrap();
        let accepted = listener.accept().unwrap();
        let name = <SocketAddr as SocketAddrExt>::from_abstract_name("netwren.test").unwrap();
        let unix = UnixListener::bind_addr(&name).unwrap();
        (listener, client, accepted, unix)
    });
    let count = |args: &[&str]| netwren_in(&lab, &[&["sockets", "-H"], args].concat()).ok().lines().count();
    let tcp = |filter: &str| count(&[&format!("proto = tcp and ({filter})")]);
    for (filter, rows) in [
        ("state = ESTAB", 2),
        ("state = connected", 2),
        ("state = synchronized", 2),
        ("state = big", 3),
        ("state in (listening, TIME-WAIT)", 1),
        ("user = 0", 3),
        ("user != 0", 0),
        ("user = 4000000000", 0),
        ("mark = 0", 3),
        ("mark != 0", 0),
    ] {
        assert_eq!(tcp(filter), rows, "{filter}");
    }
    assert_eq!(count(&["--user", "0", "proto = tcp"]), 3);
    for filter in
        ["path = @netwren.test", "path = \"@netwren.test\"", "path ~ ^@netwren", "path in (/x, @netwren.test)"]
    {
        assert_eq!(count(&[filter]), 1, "{filter}");
    }
}

#[test]
fn root_entries_without_a_zone_are_those_of_zone_0() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let lab = Lab::new("zonezero");
    let end = |port: u16| ("10.0.0.1".parse().unwrap(), port);
    let far = ("10.0.0.2".parse().unwrap(), 53);
    lab.track([Entry::udp(end(1), far), Entry::udp(end(2), far), Entry::udp(end(3), far).zone(7)]);
    for (filter, rows) in [("zone = 0", 2), ("zone != 0", 1), ("zone in (0, 7)", 3), ("zone = 7", 1), ("mark = 0", 3)] {
        for via in ["netlink", "proc", "bpf"] {
            let shown = netwren_in(&lab, &["nat", "-H", "--no-owner", "--via", via, filter]).ok();
            assert_eq!(shown.lines().count(), rows, "{filter} by {via}: {shown}");
        }
    }
}

#[test]
fn a_value_that_no_row_can_have_is_an_error() {
    for (args, says) in [
        (&["sockets", "process = we*"][..], "did you mean `process ~ \"^we\"`?"),
        (&["flows", "process = *we"], "did you mean `process ~ \"we$\"`?"),
        (&["sockets", "--process", "we*"], "takes whole names"),
        (&["sockets", "state = establishd"], "did you mean `established`?"),
        (&["routes", "type = blakhole"], "did you mean `blackhole`?"),
        (&["nat", "nat = dnatt"], "did you mean `dnat`?"),
        (&["drops", "hook = inputt"], "did you mean `input`?"),
        (&["counters", "source = ifac"], "did you mean `iface`?"),
        (&["doctor", "id = listen-overflov"], "did you mean `listen-overflow`?"),
        (&["doctor", "area = conntrak"], "did you mean `conntrack`?"),
        (&["doctor", "severity = critcal"], "did you mean `critical`?"),
        (&["support", "state = wrks"], "no value `wrks`"),
    ] {
        netwren(args).says(2, &[says]);
    }
}
