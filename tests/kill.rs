//! `netwren sockets kill` on live sockets of a lab: what is shown is what goes, and nothing else.

use crate::run::{Ran, command_for_anyone, netwren, netwren_in};
use std::net::{Ipv4Addr, SocketAddr};
use sys::caps::Cap;
use sys::sandbox::{Limit, confine};
use testkit::netns::Lab;

/// Ports of the sockets inside that pass the filter, one line a socket.
fn sockets(lab: &Lab, columns: &str, filter: &str) -> Vec<String> {
    let ran = netwren_in(lab, &["sockets", "-H", "--no-owner", "--columns", columns, filter]);
    let mut lines: Vec<String> = ran.ok().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn kill(lab: &Lab, args: &[&str]) -> Ran {
    netwren_in(lab, &[&["sockets", "kill", "-H", "--no-owner"], args].concat())
}

#[test]
fn root_kill_shows_first_and_closes_one_of_equal_looking_connections() {
    testkit::require_root!();
    let lab = Lab::new("killone");
    let pairs = lab.connect_v4(3);
    let before = sockets(&lab, "cookie", "proto = tcp");
    let chosen = format!("local_port = {} and peer_port = {}", pairs[1].client.port(), pairs[1].server.port());
    let line = format!("{}\t{}", pairs[1].client.port(), pairs[1].server.port());
    let columns = ["--columns", "local_port,peer_port"];

    let shown = kill(&lab, &[&columns[..], &[&chosen]].concat());
    assert!(shown.stderr.contains("sockets that would be closed: 1; nothing was done, --yes closes them"));
    assert_eq!(shown.ok(), format!("{line}\n"));
    assert_eq!(sockets(&lab, "cookie", "proto = tcp"), before, "a preview closes nothing");

    let done = kill(&lab, &[&columns[..], &[&chosen, "--yes"]].concat());
    assert_eq!(done.stderr, "netwren: sockets closed: 1 of 1\n");
    assert_eq!(done.ok(), format!("{line}\tclosed\n"));
    // The peer's end goes with it, by the reset; everything else stays.
    let left = sockets(&lab, "local_port,peer_port", "state = established");
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(!left.iter().any(|l| l.contains(&pairs[1].client.port().to_string())), "{left:?}");
    assert_eq!(sockets(&lab, "cookie", "state = listen").len(), 1);
    kill(&lab, &[&chosen, "--yes"]).says(0, &["no socket matches: nothing to close"]);
    kill(&lab, &[&chosen, "--yes", "--exit-code"]).says(1, &["no socket matches: nothing to close"]);
}

#[test]
fn root_kill_listeners_that_share_a_port_and_time_wait() {
    testkit::require_root!();
    let lab = Lab::new("killlisten");
    lab.listen((Ipv4Addr::LOCALHOST, 80).into());
    lab.listen("[::]:81".parse().unwrap());
    lab.time_wait(2);
    let ready = lab.dir().join("ready");
    let script = "import socket,sys,signal\nkept=[]\nfor i in range(8):\n s=socket.socket(); \
                  s.setsockopt(socket.SOL_SOCKET,15,1); s.bind(('0.0.0.0',82)); s.listen(1); kept.append(s)\n\
                  open(sys.argv[1],'w').close(); signal.pause()";
    lab.spawn("python3", &["-c", script, ready.to_str().unwrap()]);
    lab.wait_until("eight listeners on one port", || ready.exists());
    // One of the eight, by its cookie: the kernel's own choice among them would be another.
    let shared = sockets(&lab, "cookie", "local_port = 82");
    for cookie in [&shared[5], &shared[2]] {
        let done = kill(&lab, &["--columns", "cookie", &format!("cookie = {cookie}"), "--yes"]).ok();
        assert_eq!(done, format!("{cookie}\tclosed\n"));
        assert!(!sockets(&lab, "cookie", "local_port = 82").contains(cookie));
    }
    assert_eq!(sockets(&lab, "cookie", "local_port = 82").len(), 6);
    let done = kill(&lab, &["--columns", "local_port", "--sort", "local_port", "local_port < 82", "--yes"]);
    assert_eq!(done.ok(), "80\tclosed\n81\tclosed\n");
    assert_eq!(kill(&lab, &["local_port = 82", "--limit", "4", "--yes"]).ok().matches("closed").count(), 4);
    assert_eq!(kill(&lab, &["state = time_wait", "--yes", "--columns", "state"]).ok(), "time_wait\tclosed\n".repeat(2));
    assert_eq!(sockets(&lab, "state,local_port", "proto = tcp and local_port = 82").len(), 2);
    assert_eq!(sockets(&lab, "state", "proto = tcp and state != listen"), [""; 0]);
}

#[test]
fn root_kill_udp_is_a_disconnect_and_unix_is_left_alone() {
    testkit::require_root!();
    let lab = Lab::new("killudp");
    let pair = lab.udp_pair();
    lab.unix_abstract("stays", 1);
    let done = kill(&lab, &["-o", "json", "--columns", "proto,local_port", "--sort", "local_port", "--all", "--yes"]);
    assert!(done.stderr.contains("unix sockets are left alone, only TCP and UDP ones can be closed: 3 match"));
    let mut ports = [pair.client.port(), pair.server.port()];
    ports.sort_unstable();
    let line = |port: u16| format!("{{\"proto\":\"udp\",\"local_port\":{port},\"result\":\"closed\"}}\n");
    assert_eq!(done.ok(), line(ports[0]) + &line(ports[1]));
    assert_eq!(sockets(&lab, "proto", "proto = udp and state = established"), [""; 0]);
    assert_eq!(sockets(&lab, "proto", "proto = unix").len(), 3);
}

#[test]
fn root_kill_without_the_right_says_so() {
    testkit::require_root!();
    let lab = Lab::new("killright");
    let at: SocketAddr = (Ipv4Addr::LOCALHOST, 80).into();
    lab.listen(at);
    let mut child =
        command_for_anyone(&["sockets", "kill", "--no-owner", "-H", "--columns", "local_port", "--all", "--yes"]);
    confine(&mut child, &[Limit::Network(lab.path()), Limit::WithoutCaps(vec![Cap::NetAdmin])]).unwrap();
    let ran = Ran::of(child.output().unwrap());
    assert_eq!(ran.stdout, "80\tdenied\n");
    ran.says(3, &["sockets closed: 0 of 1", "operation not permitted (needs CAP_NET_ADMIN)"]);
    assert_eq!(sockets(&lab, "local_port", "state = listen"), ["80"]);
}

/// A full disk takes the table, not the word about what was done.
#[test]
fn root_kill_says_what_it_did_where_the_table_went_nowhere() {
    testkit::require_root!();
    let lab = Lab::new("killfull");
    lab.listen((Ipv4Addr::LOCALHOST, 80).into());
    let mut child = command_for_anyone(&["sockets", "kill", "--no-owner", "--all", "--yes"]);
    child.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
    confine(&mut child, &[Limit::Network(lab.path())]).unwrap();
    Ran::of(child.output().unwrap()).says(4, &["sockets closed: 1 of 1", "no space left on device"]);
    assert_eq!(sockets(&lab, "local_port", "state = listen"), [""; 0]);
}

/// A table of nothing, in another namespace than the caller's: the flag is honoured.
#[test]
fn root_kill_acts_in_the_namespace_named() {
    testkit::require_root!();
    let (lab, other) = (Lab::new("killhere"), Lab::new("killthere"));
    lab.listen((Ipv4Addr::LOCALHOST, 80).into());
    other.listen((Ipv4Addr::LOCALHOST, 80).into());
    let args =
        ["sockets", "kill", "--netns", other.name(), "--no-owner", "-H", "--columns", "local_port", "--all", "--yes"];
    assert_eq!(netwren_in(&lab, &args).ok(), "80\tclosed\n");
    assert_eq!(sockets(&lab, "local_port", "proto = tcp"), ["80"]);
    assert_eq!(sockets(&other, "local_port", "proto = tcp"), [""; 0]);
}

#[test]
fn kill_refuses_what_it_cannot_mean() {
    for (args, says) in [
        (&["--yes"][..], "needs --all"),
        (&["--all", "state = listen"], "exclude each other"),
        (&["--all", "--replay", "x"], "a recording has no sockets to close"),
        (&["--all", "--by", "state"], "--by does not go with"),
        (&["stat = listen"], "did you mean `state`?"),
    ] {
        netwren(&[&["sockets", "kill"], args].concat()).says(2, &[says]);
    }
}

#[test]
fn golden_kill_help() {
    let ran = netwren(&["sockets", "kill", "--help"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    snapbox::assert_data_eq!(ran.stdout, crate::goldens::golden("kill-help.txt"));
}
