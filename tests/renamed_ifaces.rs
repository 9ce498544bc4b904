//! Interfaces that are renamed or created during a run. Each row has the name that the interface had at that time.

use crate::drops::following as following_drops;
use crate::going::Going;
use crate::log::command;
use crate::run::clean;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use testkit::netns::Lab;

/// A group that no other test binds in every namespace.
const IN_ALL_NETNS: &str = "47131";

/// Connects two labs with a pair of interfaces: `name` in the first lab has 192.0.NET.1, its peer has 192.0.NET.2.
fn connect(near: &Lab, far: &Lab, name: &str, net: u8) {
    near.ip(&["link", "add", name, "type", "veth", "peer", "name", "peer9"]);
    near.ip(&["link", "set", "peer9", "netns", far.name()]);
    far.ip(&["link", "set", "peer9", "name", &format!("to{name}")]);
    for (lab, iface, last) in [(near, name, 1), (far, &format!("to{name}"), 2)] {
        lab.ip(&["addr", "add", &format!("192.0.{net}.{last}/24"), "dev", iface]);
        lab.ip(&["link", "set", iface, "up"]);
    }
}

/// Sends a datagram to a port of the first lab where no process listens.
fn send(far: &Lab, net: u8, port: u16) {
    let to = format!("192.0.{net}.1:{port}");
    far.run_inside(|| UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"0", to).unwrap());
}

// long: one scene with all outputs
#[test]
fn root_rows_have_the_names_that_interfaces_have_by_then() {
    // A program without its features lacks BPF, TLS and SQLite.
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    testkit::require_tool!("nft");
    let (near, far) = (Lab::new("ifnear"), Lab::new("iffar"));
    connect(&near, &far, "first0", 2);
    near.nft(&format!(
        "table inet t {{ chain i {{ type filter hook input priority 0
           udp dport 7009 log group 5 log group 6 log group {IN_ALL_NETNS}
           udp dport 7010 log group 7
         }}
         }}"
    ));
    let log = |group: &str, more: &[&str]| {
        let words = [&["--columns", "iif,dport", "--latency", "10ms", "--group", group], more].concat();
        Going::past_header(command(&near, &words), "iif,dport", |line| line)
    };
    let mut table: Going<String> = log("5", &[]);
    let mut filtered: Going<String> = log("6", &["iif = later0"]);
    let (json, pcapng) = (near.dir().join("rows.json"), near.dir().join("rows.pcapng"));
    let [to_json, to_pcapng] =
        [("json", &json), ("pcapng", &pcapng)].map(|(f, path)| format!("{f}:{}", path.display()));
    let words = ["--latency", "10ms", "--group", "7", "--to", &to_json, "--to", &to_pcapng];
    let shipped: Going<String> = Going::spawn(command(&near, &words), |line| line);
    let mut every = Command::new(testkit::program::netwren());
    let filter = format!("netns = {}", near.name());
    clean(&mut every).args([
        "log",
        "--all-netns",
        "--latency",
        "10ms",
        "--group",
        IN_ALL_NETNS,
        "-c",
        "netns,iif",
        &filter,
    ]);
    let mut every: Going<String> = Going::past_header(every, "netns,iif", |line| line);
    let mut drops = following_drops(&near, &["-c", "iface,dport", "dport = 7009"]);
    let mut groups = following_drops(&near, &["--by", "iface", "dport = 7009"]);
    testkit::wait_until("the groups are bound", || near.log_groups().len() == 3);

    let line = |name: &str| format!("{name}\t7009");
    let of_near = |name: &str| format!("{}\t{name}", near.name());
    let mut steps = 0;
    let mut is_shown = |name: &str, net: u8| {
        send(&far, net, 7009);
        steps += 1;
        table.read_until(name, |lines| lines.len() >= steps);
        every.read_until(name, |lines| lines.len() >= steps);
        drops.read_until(name, |rows| rows.len() >= steps);
        assert_eq!((&table.read[steps - 1], &every.read[steps - 1]), (&line(name), &of_near(name)));
        assert_eq!(drops.read[steps - 1]["iface"], name);
        // Once a second, the files refresh the data that their rows share.
        testkit::wait_until(name, || {
            send(&far, net, 7010);
            let has = |path: &Path, word: &str| {
                String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).contains(word)
            };
            has(&json, &format!("\"iif\":\"{name}\"")) && has(&pcapng, name)
        });
    };
    is_shown("first0", 2);
    near.ip(&["link", "set", "first0", "down"]);
    near.ip(&["link", "set", "first0", "name", "renamed0"]);
    near.ip(&["link", "set", "renamed0", "up"]);
    is_shown("renamed0", 2);
    connect(&near, &far, "later0", 3);
    is_shown("later0", 3);

    filtered.read_until("a row of the new interface", |lines| !lines.is_empty());
    assert_eq!(filtered.end().0, [line("later0")]);
    // Groups cover the whole stream in one pass, and interface names change during it.
    groups.signal("-INT");
    groups.child.wait().unwrap();
    groups.read.extend(groups.lines.iter().map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap()));
    let counted = |name: &str| groups.read.iter().any(|row| row["iface"] == name && row["count"] == 1);
    assert!(["first0", "renamed0", "later0"].into_iter().all(counted), "{:?}", groups.read);
    shipped.end();
}
