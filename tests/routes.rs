//! `netwren routes`: filters, formats, groups, recordings, namespaces. The crate `host` compares the content of each
//! cell with `ip route`.

use crate::namespaces::{but_for_others, only};
use crate::run::{netwren, netwren_in};
use testkit::netns::Lab;

/// A lab with a multipath route, a blackhole route and an additional table.
fn lab() -> Lab {
    let lab = Lab::new("routes");
    lab.ip(&["link", "add", "va", "type", "veth", "peer", "name", "vb"]);
    lab.ip(&["addr", "add", "192.0.2.1/24", "dev", "va"]);
    lab.ip(&["addr", "add", "2001:db8::1/64", "dev", "va", "nodad"]);
    lab.ip(&["link", "set", "va", "up"]);
    lab.ip(&["link", "set", "vb", "up"]);
    for route in [
        "default via 192.0.2.9 metric 100",
        "10.1.0.0/16 nexthop via 192.0.2.8 weight 3 nexthop via 192.0.2.7 weight 5",
        "blackhole 198.51.100.0/24 table 99 proto bgp",
        "2001:db8:1::/48 via 2001:db8::9 metric 5",
    ] {
        let words: Vec<&str> = route.split(' ').collect();
        lab.ip(&[&["route", "add"][..], &words].concat());
    }
    lab
}

#[test]
fn root_routes_are_filtered_and_written_like_any_table() {
    testkit::require_root!();
    let lab = lab();
    let text = netwren_in(&lab, &["routes", "destination = default", "and", "family = inet"]).ok();
    let header = "destination\tgateway\tiface\tmetric\ttable\tscope\tprotocol\ttype\n";
    assert_eq!(text, format!("{header}default\t192.0.2.9\tva\t100\tmain\tglobal\tboot\tunicast\n"));
    let hops = netwren_in(&lab, &["routes", "-c", "gateway,weight", "dst_addr in 10.0.0.0/8"]).ok();
    assert_eq!(hops, "gateway\tweight\n192.0.2.8\t3\n192.0.2.7\t5\n");
    let json =
        netwren_in(&lab, &["routes", "-o", "json", "-c", "destination,gateway,table,table_id,protocol", "table=99"]);
    let expected = r#"{"destination":"198.51.100.0/24","gateway":null,"table":"99","table_id":99,"protocol":"bgp"}"#;
    assert_eq!(json.ok().trim_end(), expected);
    let csv = netwren_in(&lab, &["routes", "-o", "csv", "-c", "destination,metric", "gateway = 2001:db8::9"]).ok();
    assert_eq!(csv.lines().map(str::trim_end).collect::<Vec<_>>(), ["destination,metric", "2001:db8:1::/48,5"]);
    let groups = netwren_in(&lab, &["routes", "--by", "type", "type = blackhole"]).ok();
    assert_eq!(groups, "type\tcount\nblackhole\t1\n");
    let none = netwren_in(&lab, &["routes", "--exit-code", "table = 12345"]);
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.as_str()), (1, header, ""));
    netwren_in(&lab, &["routes", "gatewya = 1"]).says(2, &["gateway"]);
}

#[test]
fn root_routes_of_every_namespace_and_of_a_recording() {
    testkit::require_root!();
    let (lab, tmp) = (lab(), tempfile::tempdir().unwrap());
    let filter = format!("{} and destination in (default, 198.51.100.0/24)", only(&[&lab]));
    let args = ["routes", "--all-netns", "-c", "netns,iface,destination", "--sort", "destination", &filter];
    let name = lab.name();
    let text = but_for_others(netwren(&args));
    assert_eq!(text, format!("netns\tiface\tdestination\n{name}\t-\t198.51.100.0/24\n{name}\tva\tdefault\n"));
    let tape = tmp.path().join("tape");
    let tape = tape.to_str().unwrap();
    let live = netwren_in(&lab, &["routes", "--record", tape, "--columns", "all"]).ok();
    assert_eq!(netwren(&["routes", "--replay", tape, "--columns", "all"]).ok(), live);
    netwren(&["sockets", "--replay", tape]).says(4, &["the recording holds no TCP sockets"]);
    let other = tmp.path().join("other");
    let other = other.to_str().unwrap();
    netwren_in(&lab, &["sockets", "proto = tcp", "--record", other]).ok_but_owners();
    netwren(&["routes", "--replay", other]).says(4, &["the recording holds no routes", "netwren record FILE"]);
}

#[test]
fn root_rounds_show_a_route_that_comes() {
    testkit::require_root!();
    let lab = lab();
    let mut command = lab.command(testkit::program::netwren());
    let args = ["routes", "--watch=0.2", "-o", "json", "-c", "destination", "destination = 203.0.113.0/24"];
    let mut child = command.args(args).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    lab.ip(&["route", "add", "unreachable", "203.0.113.0/24"]);
    assert!(lines.any(|line| line.unwrap().contains("203.0.113.0/24")));
    child.kill().unwrap();
    child.wait().unwrap();
}
