//! The direction of flows, compared with real connections whose direction the test knows.

use crate::namespaces::{but_for_others, ends_of_this_run, join, only};
use crate::run::netwren_in;
use std::net::{SocketAddr, TcpListener, TcpStream};
use testkit::netns::Lab;

/// Number of port ranges to try.
const RANGES: u32 = 30;

/// Numbers that differ from run to run; the message of a failure contains the seed.
struct SeededNumbers(u64);

impl SeededNumbers {
    fn new() -> SeededNumbers {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        SeededNumbers(now.as_nanos() as u64 | 1)
    }

    /// A number within `low..=high`.
    fn within(&mut self, low: u16, high: u16) -> u16 {
        // Knuth's MMIX generator; its high bits are random enough for port numbers.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + ((self.0 >> 33) % (u64::from(high - low) + 1)) as u16
    }

    /// A port range for clients with at least 100 ports.
    fn range(&mut self) -> (u16, u16) {
        let first = self.within(1_024, 65_000);
        (first, self.within(first + 100, 65_535))
    }
}

fn set_range(lab: &Lab, (first, last): (u16, u16)) {
    // The file belongs to the thread's namespace.
    let write = || std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", format!("{first} {last}"));
    lab.run_inside(write).unwrap();
}

/// A listener on a random port of this address.
fn listen(lab: &Lab, addr: &str, numbers: &mut SeededNumbers) -> (TcpListener, u16) {
    listen_within(lab, addr, numbers, 65_535)
}

/// A listener on a random port of at most `last`.
fn listen_within(lab: &Lab, addr: &str, numbers: &mut SeededNumbers, last: u16) -> (TcpListener, u16) {
    lab.run_inside(|| {
        // A connection of the previous round may still use the port.
        let tries = (0..100).find_map(|_| TcpListener::bind((addr, numbers.within(1_024, last))).ok());
        let listener = tries.expect("one of many ports is free");
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    })
}

/// Opens `n` connections from `lab`; returns both ends.
fn connect(lab: &Lab, to: (&str, u16), listener: &TcpListener, n: usize) -> Vec<(TcpStream, TcpStream)> {
    let to: SocketAddr = format!("{}:{}", to.0, to.1).parse().unwrap();
    let one = || (TcpStream::connect(to).unwrap(), listener.accept().unwrap().0);
    lab.run_inside(|| (0..n).map(|_| one()).collect())
}

/// Closes the listener and waits until it is gone: a process that another test is starting holds a copy until its
/// exec.
fn close(lab: &Lab, listener: TcpListener) {
    let port = format!(":{}", listener.local_addr().unwrap().port());
    drop(listener);
    lab.wait_until("the listener is gone", || lab.output("ss", &["-Hltn", "sport", "=", &port]).is_empty());
}

/// lstf's direction of the flows with these ports: `passive A 3` and `active B 2`.
fn lstf_words(lab: &Lab, accepted: u16, connected: u16) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(&lab.output("lstf", &["-n", "--json"])).unwrap();
    let mut words: Vec<String> = Vec::new();
    for flow in json.as_array().unwrap() {
        let port = |end: &str| flow[end]["port"].as_str().unwrap().to_owned();
        let (ours, theirs) = (port("local"), port("peer"));
        let port = if ours == "many" { &theirs } else { &ours };
        if [accepted.to_string(), connected.to_string()].contains(port) {
            words.push(format!("{} {port} {}", flow["direction"].as_str().unwrap(), flow["connections"]));
        }
    }
    words.sort();
    words
}

/// Two namespaces that are server and client of each other, at random ports, with a random port range for clients. For
/// all numbers the connecting side is `out`, the accepting side is `in`, nothing is guessed, and lstf agrees.
#[test]
fn root_issue_10_direction_under_30_random_port_ranges() {
    testkit::require_root!();
    let (near, far) = (Lab::new("dnear"), Lab::new("dfar"));
    let [one, two] = ends_of_this_run(14);
    join((&near, &one), (&far, &two));
    let lstf = testkit::tool::is_installed("lstf");
    if !lstf {
        testkit::print_loud(
            "lstf is not installed: directions are compared with those of the test's own connections only",
        );
    }
    let mut numbers = SeededNumbers::new();
    // Keep the connections until the end, so that no port is reused and none is in TIME_WAIT.
    let mut held = Vec::new();
    for round in 0..RANGES {
        let seed = numbers.0;
        for lab in [&near, &far] {
            set_range(lab, numbers.range());
        }
        // lstf recognizes only listeners on all addresses.
        let anywhere = round % 2 == 0;
        let at = |addr: &str| if anywhere { "0.0.0.0".to_owned() } else { addr.to_owned() };
        let (ours, accepted) = listen(&near, &at(&one), &mut numbers);
        let (theirs, connected) = listen(&far, &at(&two), &mut numbers);
        let in_side = connect(&far, (&one, accepted), &ours, 3);
        let out_side = connect(&near, (&two, connected), &theirs, 2);
        let columns = "direction,guessed,local_port,peer_port,connections";
        let filter =
            format!("state = established and (local_port = {accepted} or peer_port = {connected}) and proto = tcp");
        let found = netwren_in(&near, &["flows", "-H", "--columns", columns, "--sort", "direction", &filter]).ok();
        let expected = format!("in\tfalse\t{accepted}\tmany\t3\nout\tfalse\tmany\t{connected}\t2\n");
        assert_eq!(found, expected, "round {round}, seed {seed}");
        if lstf && anywhere {
            let expected = [format!("active {connected} 2"), format!("passive {accepted} 3")];
            assert_eq!(lstf_words(&near, accepted, connected), expected, "round {round}, seed {seed}");
        }
        held.push((ours, theirs, in_side, out_side));
    }
}

/// On loopback both ends are visible. After the listener is closed the direction is guessed from the ports; the row
/// marks the guess, while filters and JSON contain the plain word.
#[test]
fn root_issue_10_a_closed_listener_on_loopback_is_a_visible_guess() {
    testkit::require_root!();
    let lab = Lab::new("dclosed");
    let mut numbers = SeededNumbers::new();
    // The clients' ports are above the service's port.
    set_range(&lab, (60_000, 65_000));
    let (listener, port) = listen_within(&lab, "127.0.0.1", &mut numbers, 59_999);
    let held = connect(&lab, ("127.0.0.1", port), &listener, 2);
    let args = ["flows", "-H", "--no-owner", "--columns", "direction,local_port,peer_port", "--sort", "direction"];
    let (sure, guessed) =
        (format!("in\t{port}\tmany\nout\tmany\t{port}\n"), format!("in?\t{port}\tmany\nout?\tmany\t{port}\n"));
    assert_eq!(netwren_in(&lab, &args).ok(), sure);
    close(&lab, listener);
    assert_eq!(netwren_in(&lab, &args).ok(), guessed);
    let json = netwren_in(&lab, &["flows", "-o", "json", "--no-owner", "direction = in"]).ok();
    let row: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&row["direction"], &row["guessed"]), (&"in".into(), &true.into()), "{json}");
    drop(held);
}

/// If both ends are visible in two namespaces and the listener is closed, both ends would look outgoing, which is
/// impossible.
#[test]
fn root_issue_10_both_sides_in_view_decide() {
    testkit::require_root!();
    let (near, far) = (Lab::new("dboth"), Lab::new("dboth"));
    let [one, two] = ends_of_this_run(15);
    join((&near, &one), (&far, &two));
    let (listener, port) = far.run_inside(|| {
        let listener = TcpListener::bind((two.as_str(), 2_000)).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    });
    let held = connect(&near, (&two, port), &listener, 2);
    let columns = "netns,direction,guessed,peer_port,connections,peer_netns";
    let filter = only(&[&near, &far]);
    let flows = || {
        let args = ["flows", "--all-netns", "-H", "--columns", columns, &filter];
        but_for_others(crate::run::netwren(&args))
    };
    let expected =
        |word: &str, guessed: bool| format!("{}\t{word}\t{guessed}\t{port}\t2\t{}\n", near.name(), far.name());
    assert_eq!(flows(), expected("out", false));
    close(&far, listener);
    assert_eq!(flows(), expected("out?", true));
    // Seen from one side alone it is outgoing.
    let alone = netwren_in(&far, &["flows", "-H", "--no-owner", "--columns", "direction,local_addr"]).ok();
    assert_eq!(alone, format!("out\t{two}\n").repeat(2), "one for each port of the other side");
    drop(held);
}

/// The round-trip times of a flow are computed from its connections.
#[test]
fn root_issue_10_flows_have_round_trip_times() {
    testkit::require_root!();
    let lab = Lab::new("drtt");
    let (listener, port) = listen(&lab, "127.0.0.1", &mut SeededNumbers::new());
    let held = connect(&lab, ("127.0.0.1", port), &listener, 3);
    let of_sockets =
        netwren_in(&lab, &["sockets", "-H", "--columns", "rtt_us,min_rtt_us", &format!("peer_port = {port}")]);
    let cells: Vec<Vec<u64>> =
        of_sockets.ok().lines().map(|line| line.split('\t').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!(cells.len(), 3);
    let column = |i: usize| cells.iter().map(move |row| row[i]);
    let avg = (column(0).sum::<u64>() + 1) / 3;
    let expected = format!("{}\t{avg}\t{}\n", column(1).min().unwrap(), column(0).max().unwrap());
    let args = [
        "flows",
        "-H",
        "--columns",
        "min_rtt_us,avg_rtt_us,max_rtt_us",
        &format!("peer_port = {port} and max_rtt_us > 0"),
    ];
    assert_eq!(netwren_in(&lab, &args).ok(), expected);
    drop(held);
}

/// Service names of /etc/services in filters match the same rows as their numbers.
#[test]
fn root_issue_10_service_names_in_filters() {
    testkit::require_root!();
    let services = std::fs::read_to_string("/etc/services").unwrap_or_default();
    if !services.lines().any(|line| line.starts_with("https") && line.contains("443/tcp")) {
        return testkit::print_loud("skipped: /etc/services does not know https");
    }
    let lab = Lab::new("dnames");
    let listener = lab.run_inside(|| TcpListener::bind("127.0.0.1:443").unwrap());
    let held = connect(&lab, ("127.0.0.1", 443), &listener, 2);
    for table in ["sockets", "flows"] {
        let rows = |filter: &str| netwren_in(&lab, &[table, "-H", "--no-owner", filter]).ok();
        for (named, numbered) in [
            ("local_port = https", "local_port = 443"),
            ("peer = 127.0.0.1:https", "peer = 127.0.0.1:443"),
            ("not peer_port in (https, 22)", "not peer_port in (443, 22)"),
        ] {
            assert_eq!(rows(named), rows(numbered), "{table} {named}");
        }
        assert!(rows("local_port = https").contains("\t443\t"));
        netwren_in(&lab, &[table, "local_port = htpps"]).says(2, &["a name from /etc/services"]);
    }
    drop(held);
}

/// If a filter names a table that this kernel cannot list, the error names the missing kernel option and not a file of
/// /proc, and the exit code means that nothing could be read.
#[test]
fn root_issue_10_a_missing_part_of_the_kernel_is_named() {
    testkit::require_root!();
    let lab = Lab::new("dparts");
    for (proto, option) in [
        ("sctp", "CONFIG_INET_SCTP_DIAG"),
        ("dccp", "CONFIG_INET_DCCP_DIAG"),
        ("vsock", "CONFIG_VSOCKETS_DIAG"),
        ("tipc", "CONFIG_TIPC_DIAG"),
        ("xdp", "CONFIG_XDP_SOCKETS_DIAG"),
    ] {
        let ran = netwren_in(&lab, &["sockets", "--no-owner", &format!("proto = {proto}")]);
        let lacks = ran.code != 0;
        if lacks {
            assert!(ran.stdout.is_empty() && !ran.stderr.contains("/proc"), "{}", ran.stderr);
            ran.says(4, &[option]);
        }
        // Together with an available table the exit code is 3; if the filter does not name the missing table, netwren
        // prints no message.
        let ran = netwren_in(&lab, &["sockets", "-H", "--no-owner", &format!("proto in (tcp, {proto})")]);
        assert_eq!((ran.code, ran.stderr.contains(option)), (if lacks { 3 } else { 0 }, lacks), "{}", ran.stderr);
        assert_eq!(netwren_in(&lab, &["sockets", "-H", "--no-owner", "proto != tcp"]).stderr, "");
    }
}
