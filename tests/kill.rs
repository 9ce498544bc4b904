//! `netwren sockets kill` on live sockets of a lab closes exactly the sockets that it showed.

use crate::run::{Ran, command_for_anyone, netwren, netwren_in};
use std::net::{Ipv4Addr, SocketAddr};
use sys::caps::Cap;
use sys::socket;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// The columns of the lab's sockets that match the filter, one line per socket.
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
    assert!(shown.stderr.contains("sockets that would be closed: 1; nothing was changed, --yes closes them"));
    assert_eq!(shown.ok(), format!("{line}\n"));
    assert_eq!(sockets(&lab, "cookie", "proto = tcp"), before, "a preview closes nothing");

    let done = kill(&lab, &[&columns[..], &[&chosen, "--yes"]].concat());
    assert_eq!(done.stderr, "netwren: sockets closed: 1 of 1\n");
    assert_eq!(done.ok(), format!("{line}\taborted\n"));
    // The reset also closes the peer's end; all other sockets stay.
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
    // Closes one of the eight by its cookie; the kernel's own choice would be a different socket.
    let shared = sockets(&lab, "cookie", "local_port = 82");
    for cookie in [&shared[5], &shared[2]] {
        let done = kill(&lab, &["--columns", "cookie", &format!("cookie = {cookie}"), "--yes"]).ok();
        assert_eq!(done, format!("{cookie}\taborted\n"));
        assert!(!sockets(&lab, "cookie", "local_port = 82").contains(cookie));
    }
    assert_eq!(sockets(&lab, "cookie", "local_port = 82").len(), 6);
    let done = kill(&lab, &["--columns", "local_port", "--sort", "local_port", "local_port < 82", "--yes"]);
    assert_eq!(done.ok(), "80\taborted\n81\taborted\n");
    assert_eq!(kill(&lab, &["local_port = 82", "--limit", "4", "--yes"]).ok().matches("aborted").count(), 4);
    assert_eq!(kill(&lab, &["state = time_wait", "--yes", "--columns", "state"]).ok(), "time_wait\tclosed\n".repeat(2));
    assert_eq!(sockets(&lab, "state,local_port", "proto = tcp and local_port = 82").len(), 2);
    assert_eq!(sockets(&lab, "state", "proto = tcp and state != listen"), [""; 0]);
}

/// The kernel wakes the program of a UDP socket with an error and disconnects the socket. A port that the program bound
/// stays and receives the next datagram; a port that the kernel chose becomes free.
#[test]
fn root_kill_says_which_udp_sockets_are_still_open() {
    testkit::require_root!();
    let lab = Lab::new("killudp");
    lab.unix_abstract("stays", 1);
    let (bound, client) = lab.run_inside(|| {
        let bound = std::net::UdpSocket::bind("127.0.0.1:700").unwrap();
        let client = socket::open(socket::AF_INET, socket::SOCK_DGRAM, 0).unwrap();
        let client = std::net::UdpSocket::from(std::os::fd::OwnedFd::from(client));
        client.connect("127.0.0.1:700").unwrap();
        (bound, client)
    });
    let done = kill(&lab, &["--columns", "proto,peer_port", "--sort", "peer_port", "--all", "--yes"]);
    let mut lines: Vec<&str> = done.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["udp\t-\tstill open", "udp\t700\taborted"]);
    done.says(
        3,
        &[
            "unix sockets are not closed, only TCP and UDP sockets can be closed",
            "sockets closed: 1 of 2",
            "still open: the program got an error and keeps the port",
        ],
    );
    assert_eq!(bound.recv_from(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
    assert_eq!(client.recv(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
    lab.run_inside(|| std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", "127.0.0.1:700").unwrap());
    assert_eq!(bound.recv_from(&mut [0]).unwrap().0, 1, "it gets the next datagram");
    assert!(!sockets(&lab, "proto", "proto = unix").is_empty());
    // ss lists the socket and exits with 0; the message is ours.
    let ran = netwren_in(&lab, &["ss", "-K", "-Hua"]);
    assert!(ran.stdout.contains("127.0.0.1:700"));
    ran.says(0, &["still open: the program got an error and keeps the port"]);
}

/// The kernel can abort only a subflow of an MPTCP connection.
#[test]
fn root_kill_says_that_an_mptcp_connection_goes_on() {
    testkit::require_root!();
    let lab = Lab::new("killmptcp");
    if !lab.mptcp_connection() {
        return;
    }
    let connections = || sockets(&lab, "mptcp_token", "proto = mptcp and state = established");
    let before = connections();
    let token = format!("mptcp_token = {}", before[0]);
    let done = kill(&lab, &["--columns", "proto", &format!("proto = tcp and {token}"), "--yes"]);
    assert_eq!(done.stdout, "tcp\tstill open\n");
    done.says(3, &["sockets closed: 0 of 1", "one subflow was aborted, the MPTCP connection continues"]);
    assert!(connections().contains(&before[0]));
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

/// On a full disk the table is lost, but the message about the closed sockets is printed.
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

/// The table is read in a different namespace from the caller's, as `--netns` requests.
#[test]
fn root_kill_acts_in_the_namespace_named() {
    testkit::require_root!();
    let (lab, other) = (Lab::new("killhere"), Lab::new("killthere"));
    lab.listen((Ipv4Addr::LOCALHOST, 80).into());
    other.listen((Ipv4Addr::LOCALHOST, 80).into());
    let args =
        ["sockets", "kill", "--netns", other.name(), "--no-owner", "-H", "--columns", "local_port", "--all", "--yes"];
    assert_eq!(netwren_in(&lab, &args).ok(), "80\taborted\n");
    assert_eq!(sockets(&lab, "local_port", "proto = tcp"), ["80"]);
    assert_eq!(sockets(&other, "local_port", "proto = tcp"), [""; 0]);
}

#[test]
fn kill_refuses_what_it_cannot_mean() {
    for (args, says) in [
        (&["--yes"][..], "needs --all"),
        (&["--all", "state = listen"], "cannot be used with"),
        (&["--all", "--replay", "x"], "a recording has no sockets to close"),
        (&["--all", "--by", "state"], "--by cannot be used with"),
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
