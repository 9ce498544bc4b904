//! `netwren counters`: the same numbers as nstat, ip and tc, exact differences, counter resets, recordings.

use crate::namespaces::{but_for_others, only};
use crate::run::{Ran, clean, command_for_anyone, netwren, netwren_in};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::{Child, Stdio};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};
use testkit::wait_until;

/// Sends datagrams to a closed UDP port on the lab's loopback interface.
fn send_to_a_closed_port(lab: &Lab, count: usize) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..count).for_each(|_| assert_eq!(socket.send_to(b"netwren", "127.0.0.1:9").unwrap(), 7));
    });
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

/// The kernel lists an ICMP type only once it has occurred.
#[test]
fn root_a_counter_that_appears_counts_from_zero() {
    testkit::require_root!();
    let lab = Lab::new("counterappears");
    let rounds = Rounds::start(&lab, "name ~ \"^Icmp(Msg|InMsgs)\"");
    send_to_a_closed_port(&lab, 1);
    let is_it = |row: &Value| row["name"] == "IcmpMsgInType3" && row["delta"] == 1 && row["note"] == "new";
    wait_until("the type that appears", || rounds.rows().iter().any(is_it));
    drop(rounds);
    // nstat does the same for counters that are missing from its history.
    let history = lab.dir().join("history");
    let nstat = || {
        let mut command = lab.command(testkit::program::netwren());
        clean(&mut command).args(["nstat", "IcmpMsg*"]).env("NSTAT_HISTORY", &history);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    nstat();
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(b"netwren", "127.0.0.1:9").unwrap();
    });
    assert!(nstat().contains("IcmpMsgInType3                  1 "), "the difference alone");
}

/// The values of one reading by name.
fn values(rows: &[Value], source: &[&str]) -> BTreeMap<String, i128> {
    let of_source = rows.iter().filter(|row| source.iter().any(|source| row["source"] == *source));
    of_source.map(|row| (row["name"].as_str().unwrap().to_owned(), number(&row["value"]))).collect()
}

fn number(value: &Value) -> i128 {
    let large = || value.as_u64().unwrap_or_else(|| panic!("{value} is no number"));
    value.as_i64().map_or_else(|| large().into(), i128::from)
}

/// A run with `--watch`, and the file that it writes to.
struct Rounds {
    child: Child,
    file: std::path::PathBuf,
}

impl Rounds {
    fn start(lab: &Lab, filter: &str) -> Rounds {
        let file = lab.dir().join("rows");
        let mut command = lab.command(testkit::program::netwren());
        clean(&mut command).args(["counters", "--watch=0.1", "-o", "json", filter]);
        let out = std::fs::File::create(&file).unwrap();
        let rounds = Rounds { child: command.stdout(out).stderr(Stdio::null()).spawn().unwrap(), file };
        wait_until("a round is out", || !rounds.rows().is_empty());
        rounds
    }

    fn rows(&self) -> Vec<Value> {
        let mut rows = lines(&std::fs::read_to_string(&self.file).unwrap());
        rows.retain(|row| row.get("name").is_some());
        rows
    }

    fn deltas(&self) -> i128 {
        self.rows().iter().map(|row| number(&row["delta"])).sum()
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

#[test]
fn root_counters_are_those_of_nstat_ip_and_tc() {
    testkit::require_root!();
    let lab = Lab::new("counters");
    lab.output(
        "tc",
        &[
            "qdisc", "add", "dev", "lo", "root", "handle", "7:", "tbf", "rate", "8kbit", "burst", "1600", "limit",
            "2000",
        ],
    );
    send_to_a_closed_port(&lab, 50);
    // The first datagrams leave the queue one after the other.
    lab.output("tc", &["qdisc", "replace", "dev", "lo", "root", "handle", "8:", "pfifo", "limit", "100"]);
    send_to_a_closed_port(&lab, 50);
    let rows = lines(&netwren_in(&lab, &["counters", "--for", "0.01", "-o", "json"]).ok());
    assert!(rows.iter().all(|row| !row["meaning"].is_null()), "a counter of this kernel has no sentence");
    // The rows contain every counter of nstat, and no further counter of nstat's files.
    let nstat: Value = serde_json::from_str(&lab.output("nstat", &["-asz", "-j"])).unwrap();
    let of_nstat: BTreeMap<String, i128> =
        nstat["kernel"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), number(value))).collect();
    let mut ours = values(&rows, &["snmp", "netstat", "snmp6"]);
    // nstat omits constants and prints values that it computes itself.
    ours.retain(|name, _| of_nstat.contains_key(name) || !name.starts_with("TcpRto"));
    for (name, value) in &ours {
        if let Some(theirs) = of_nstat.get(name) {
            assert_eq!(value, theirs, "{name}");
        }
    }
    let unread: Vec<&String> = of_nstat.keys().filter(|name| !ours.contains_key(*name)).collect();
    assert!(unread.is_empty(), "nstat has {unread:?}");
    assert!(ours["UdpNoPorts"] >= 50);
    let ip: Value = serde_json::from_str(&lab.output("ip", &["-s", "-s", "-j", "link", "show", "lo"])).unwrap();
    let lo = values(&rows, &["iface"]);
    for (direction, name, theirs) in [
        ("rx", "rx_packets", "packets"),
        ("rx", "rx_bytes", "bytes"),
        ("rx", "rx_dropped", "dropped"),
        ("rx", "rx_errors", "errors"),
        ("tx", "tx_packets", "packets"),
        ("tx", "tx_bytes", "bytes"),
        ("tx", "tx_dropped", "dropped"),
    ] {
        assert_eq!(lo[name], number(&ip[0]["stats64"][direction][theirs]), "{name}");
    }
    assert_eq!(lo["mtu"], 65536);
    let tc: Value = serde_json::from_str(&lab.output("tc", &["-s", "-j", "qdisc", "show", "dev", "lo"])).unwrap();
    let queue = values(&rows, &["qdisc"]);
    for name in ["bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen"] {
        assert_eq!(queue[name], number(&tc[0][name]), "{name}");
    }
    assert_eq!(queue["packets"], 100, "50 datagrams and 50 answers");
    let object = rows.iter().find(|row| row["source"] == "qdisc").unwrap()["object"].clone();
    assert_eq!(object, "lo pfifo 8: root");
}

#[test]
fn root_five_hundred_datagrams_to_a_closed_port_are_five_hundred() {
    testkit::require_root!();
    let lab = Lab::new("fivehundred");
    let rounds = Rounds::start(&lab, "name = UdpNoPorts");
    send_to_a_closed_port(&lab, 500);
    wait_until("all are counted", || rounds.deltas() >= 500);
    assert_eq!(rounds.deltas(), 500);
    let last = rounds.rows().pop().unwrap();
    assert_eq!((&last["kind"], number(&last["value"])), (&Value::from("counter"), 500));
    assert!(last["meaning"].as_str().unwrap().contains("without a socket"));
    let busy = rounds.rows().into_iter().find(|row| number(&row["delta"]) > 0).unwrap();
    let (delta, window_us) = (number(&busy["delta"]) as f64, number(&busy["window_us"]) as f64);
    let per_s = busy["per_s"].as_f64().unwrap();
    assert!((per_s - delta * 1e6 / window_us).abs() <= per_s / 1000.0, "{busy}");
}

#[test]
fn root_a_recreated_queue_has_no_difference() {
    testkit::require_root!();
    let lab = Lab::new("resets");
    let qdisc = |verb: &str| lab.output("tc", &["qdisc", verb, "dev", "lo", "root", "handle", "7:", "pfifo"]);
    qdisc("add");
    send_to_a_closed_port(&lab, 20);
    let rounds = Rounds::start(&lab, "source = qdisc and name = packets");
    qdisc("del");
    qdisc("add");
    wait_until("it is noticed", || rounds.rows().iter().any(|row| row["note"] == "reset" || row["note"] == "new"));
    let row = rounds.rows().into_iter().find(|row| !row["note"].is_null()).unwrap();
    assert!(row["delta"].is_null() && row["per_s"].is_null(), "{row}");
    lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vp"]);
    drop(rounds);
    let rounds = Rounds::start(&lab, "name = mtu and iface in (lo, vb)");
    lab.ip(&["link", "set", "va", "name", "vb"]);
    wait_until("another name is another interface", || rounds.rows().iter().any(|row| row["note"] == "new"));
}

#[test]
fn root_only_what_changed_and_every_namespace() {
    testkit::require_root!();
    let lab = Lab::new("changed");
    let filter = "source in (snmp, netstat, snmp6, iface)";
    let quiet = netwren_in(&lab, &["counters", "--changed", "--for", "0.05", filter, "-c", "name,delta"]);
    assert_eq!(quiet.ok(), "name\tdelta\n", "nothing happens here");
    let filter = format!("{} and name in (UdpNoPorts, mtu)", only(&[&lab]));
    send_to_a_closed_port(&lab, 7);
    let args = ["counters", "--all-netns", "--for", "0.01", "-c", "netns,name,object,value,delta", &filter];
    let name = lab.name();
    let text = but_for_others(netwren(&args));
    let expected =
        format!("netns\tname\tobject\tvalue\tdelta\n{name}\tUdpNoPorts\t-\t7\t0\n{name}\tmtu\tlo\t65536\t0\n");
    assert_eq!(text, expected);
    let explained = netwren_in(&lab, &["counters", "--explain"]).ok();
    assert!(explained.contains("RTM_GETQDISC"), "{explained}");
}

#[test]
fn root_counters_of_a_recording() {
    testkit::require_root!();
    let (lab, tmp) = (Lab::new("ctrtape"), tempfile::tempdir().unwrap());
    let file = |name: &str| tmp.path().join(name).to_str().unwrap().to_owned();
    let tape = file("tape");
    let live = netwren_in(&lab, &["counters", "--for", "0.05", "--record", &tape, "--columns", "all"]).ok();
    assert_eq!(netwren(&["counters", "--replay", &tape, "--columns", "all"]).ok(), live);
    // With rounds: differences between the first and the last one, or between consecutive ones.
    let watched = file("watched");
    let mut command = lab.command(testkit::program::netwren());
    let args = ["counters", "--watch=0.05", "--record", &watched, "-o", "json", "name = UdpNoPorts"];
    let out = std::fs::File::create(file("out")).unwrap();
    let mut child = clean(&mut command).args(args).stdout(out).spawn().unwrap();
    let rows = || {
        let mut rows = lines(&std::fs::read_to_string(file("out")).unwrap());
        rows.retain(|row| row.get("name").is_some());
        rows
    };
    for sent in [3, 4] {
        let before = rows().len();
        wait_until("a round is out", || rows().len() > before);
        send_to_a_closed_port(&lab, sent);
        let before = rows().len();
        wait_until("two more are", || rows().len() > before + 1);
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    child.wait().unwrap();
    let question = ["counters", "--replay", &watched, "-o", "json", "name = UdpNoPorts"];
    let once = lines(&netwren(&question).ok());
    assert_eq!((once.len(), number(&once[0]["delta"])), (1, 7));
    let again = lines(&netwren(&[&question[..], &["--watch"]].concat()).ok());
    let deltas: i128 = again.iter().filter(|row| row.get("name").is_some()).map(|row| number(&row["delta"])).sum();
    assert_eq!(deltas, 7);
    // A single reading shows values without differences.
    let whole = file("whole");
    netwren_in(&lab, &["record", "--once", &whole]);
    let one = netwren(&["counters", "--replay", &whole, "-o", "json", &only(&[&lab]), "and", "name = UdpNoPorts"]);
    assert_eq!(one.code, 3, "{}", one.stderr);
    assert!(one.stderr.contains("one reading of the counters"), "{}", one.stderr);
    let row = &lines(&one.stdout)[0];
    assert_eq!((number(&row["value"]), &row["delta"]), (7, &Value::Null));
    let other = file("other");
    netwren_in(&lab, &["routes", "--record", &other]).ok();
    netwren(&["counters", "--replay", &other]).says(4, &["cannot read counters", "netwren record FILE"]);
}

#[test]
fn root_counters_without_rights() {
    testkit::require_root!();
    let lab = Lab::new("ctrnobody");
    let mut child = command_for_anyone(&["counters", "--for", "0.01", "-o", "json"]);
    confine(&mut child, &[Limit::Network(lab.path()), Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
    let ran = Ran::of(child.output().unwrap());
    let rows = lines(&ran.stdout);
    for source in ["snmp", "netstat", "snmp6", "sockstat", "softnet", "iface"] {
        assert!(rows.iter().any(|row| row["source"] == source), "{source}: {}", ran.stderr);
    }
}
