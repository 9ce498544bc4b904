//! Commands that change sockets affect exactly the sockets they showed, and commands that only read change none.

use crate::run::netwren_in;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use sys::Fd;
use sys::bpf::{Map, MapShape, ProgramShape, attach_to, load_program};
use testkit::netns::Lab;

/// BPF_MAP_TYPE_SOCKMAP, BPF_PROG_TYPE_SK_LOOKUP, BPF_SK_LOOKUP (include/uapi/linux/bpf.h).
const SOCKMAP: u32 = 15;
const SK_LOOKUP: u32 = 30;
const AT_SK_LOOKUP: u32 = 36;

/// Offset of the cookie in `struct inet_diag_req_v2`.
const COOKIE_AT: usize = 48;

/// One instruction: `struct bpf_insn`.
fn instruction(code: u8, dst: u8, src: u8, offset: i16, number: i32) -> [u8; 8] {
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = number.to_ne_bytes();
    [code, src << 4 | dst, a, b, c, d, e, f]
}

/// A program that directs every lookup to the socket in the map.
fn steering(map: &Map) -> Vec<u8> {
    const CALL: u8 = 0x85;
    let [lookup_element, sk_assign, sk_release] = [1, 124, 86];
    [
        instruction(0xbf, 6, 1, 0, 0),                       // r6 = context
        instruction(0x62, 10, 0, -4, 0),                     // key = 0
        instruction(0xbf, 2, 10, 0, 0),                      // r2 = frame
        instruction(0x07, 2, 0, 0, -4),                      // r2 -= 4
        instruction(0x18, 1, 1, 0, map.as_fd().as_raw_fd()), // r1 = map (BPF_PSEUDO_MAP_FD)
        instruction(0x00, 0, 0, 0, 0),
        instruction(CALL, 0, 0, 0, lookup_element),
        instruction(0x15, 0, 0, 7, 0), // none: leave
        instruction(0xbf, 7, 0, 0, 0), // r7 = socket
        instruction(0xbf, 1, 6, 0, 0),
        instruction(0xbf, 2, 7, 0, 0),
        instruction(0xb7, 3, 0, 0, 1), // BPF_SK_LOOKUP_F_REPLACE
        instruction(CALL, 0, 0, 0, sk_assign),
        instruction(0xbf, 1, 7, 0, 0),
        instruction(CALL, 0, 0, 0, sk_release),
        instruction(0xb7, 0, 0, 0, 1), // SK_PASS
        instruction(0x95, 0, 0, 0, 0),
    ]
    .concat()
}

/// Directs every lookup in this lab with a matching protocol to `socket`, until the returned link is dropped.
fn steer(lab: &Lab, socket: &impl AsRawFd) -> Fd {
    let shape = MapShape { name: "steered".into(), kind: SOCKMAP, key_bytes: 4, value_bytes: 8, entries: 1, flags: 0 };
    let map = Map::create(shape, None).unwrap();
    map.put(&[0; 4], &(socket.as_raw_fd() as u64).to_ne_bytes()).unwrap();
    let instructions = steering(&map);
    let shape = ProgramShape {
        name: "steering",
        kind: SK_LOOKUP,
        attach: AT_SK_LOOKUP,
        flags: 0,
        target: 0,
        instructions: &instructions,
        licence: c"GPL",
    };
    let mut log = vec![0; 1 << 16];
    let program =
        load_program(&shape, &mut log).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&log)));
    let netns = sys::fs::open(&lab.path()).unwrap();
    attach_to(&program, &netns, AT_SK_LOOKUP).unwrap()
}

/// With sk_lookup programs every address leads to a socket: a request to close any socket at an address would close
/// it.
#[test]
fn root_issue_10_support_closes_no_socket_that_every_address_leads_to() {
    testkit::require_root!();
    let lab = Lab::new("steered");
    let here: SocketAddr = (Ipv4Addr::LOCALHOST, 7777).into();
    let (tcp, udp) = lab.run_inside(|| (TcpListener::bind(here).unwrap(), UdpSocket::bind(here).unwrap()));
    let _links = [steer(&lab, &tcp), steer(&lab, &udp)];
    let elsewhere = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let reached = |port: u16| {
        let _client = lab.run_inside(|| TcpStream::connect(elsewhere(port)))?;
        tcp.accept().map(drop)
    };
    // The port has no listener, but the program directs the connection to the socket.
    reached(1).unwrap();
    let support = netwren_in(&lab, &["support"]);
    assert!(support.stdout.contains("closing sockets\tyes\ttcp and udp sockets"), "{}", support.stdout);
    assert_eq!(tcp.take_error().unwrap().map(|error| error.to_string()), None);
    assert_eq!(udp.take_error().unwrap().map(|error| error.to_string()), None);
    reached(2).unwrap();
    let left = netwren_in(&lab, &["sockets", "-H", "--no-owner", "--columns", "proto", "local_port = 7777"]).ok();
    assert_eq!(testkit::mask::sorted_lines(&left), testkit::mask::sorted_lines("tcp\nudp\n"));
}

/// The requests of `support` cannot close a socket: the cookie in each close request belongs to no socket.
#[test]
fn root_issue_10_support_sends_no_cookie_that_a_socket_may_have() {
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = Lab::new("supportsends");
    let log = lab.dir().join("trace").display().to_string();
    let netwren = testkit::program::netwren().display().to_string();
    let strace = ["-f", "-e", "trace=sendto,sendmsg", "-xx", "-s", "256", "-o", &log, &netwren, "support"];
    lab.output("strace", &strace);
    let trace = std::fs::read_to_string(&log).unwrap();
    // strace reads the head of a message, and knows this type by its number or its name.
    let ends = |line: &&str| line.contains("nlmsg_type=0x15 ") || line.contains("nlmsg_type=SOCK_DESTROY");
    let sent: Vec<Vec<u8>> =
        trace.lines().filter(ends).map(|line| bytes_of(line.split('"').nth(1).expect("a body")).unwrap()).collect();
    let cookies: Vec<&[u8]> = sent.iter().map(|body| &body[COOKIE_AT..COOKIE_AT + 8]).collect();
    assert_eq!(cookies, [[0; 8]; 2], "one question for TCP, one for UDP");
}

/// Parses `\x48\x00` into bytes.
fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    hex.split("\\x").skip(1).map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

/// For bound sockets the kernel ignores the port in a request, so the answer contains further sockets, which must not
/// be closed.
#[test]
fn root_issue_10_one_port_is_one_port_of_bound_sockets_too() {
    testkit::require_root!();
    testkit::require_tool!("python3");
    let lab = Lab::new("oneport");
    let ready = lab.dir().join("ready");
    let script = "import socket,sys,signal\nkept=[]\nfor port in (7777,7778,7779):\n s=socket.socket(); \
                  s.bind(('127.0.0.1',port)); kept.append(s)\n\
                  open(sys.argv[1],'w').close(); signal.pause()";
    lab.spawn("python3", &["-c", script, ready.to_str().unwrap()]);
    lab.wait_until("bound sockets", || ready.exists());
    let ports = |args: &[&str]| netwren_in(&lab, args).ok();
    let bound = "local_port = 7778 and state = bound_inactive";
    assert_eq!(ports(&["sockets", "-H", "--no-owner", "--columns", "local_port", bound]), "7778\n");
    let preview = netwren_in(&lab, &["sockets", "kill", "-H", "--no-owner", "--columns", "local_port", bound]);
    assert!(preview.stderr.contains("sockets that would be closed: 1;"), "{}", preview.stderr);
    assert_eq!(preview.ok(), "7778\n");
    for states in [&["-a"][..], &[], &["state", "all"]] {
        let shown = ports(&[&["ss", "-H", "-t", "-n"], states, &["sport", "=", ":7778"]].concat());
        assert!(!shown.contains(":7777") && !shown.contains(":7779"), "{states:?}: {shown}");
    }
    // The BPF walk of all namespaces does not cover the kernel's table of bound sockets; they are read separately,
    // even with `--via bpf`.
    for via in ["bpf", "netlink"] {
        let all = ["sockets", "--all-netns", "--via", via, "-H", "--no-owner", "--columns", "netns,local_port", bound];
        // Namespaces of other tests start and end, so the exit code is not checked.
        let shown = netwren_in(&lab, &all).stdout;
        let here: Vec<&str> = shown.lines().filter(|line| line.starts_with(lab.name())).collect();
        assert_eq!(here, [format!("{}\t7778", lab.name())], "{via}");
    }
    // A port that no socket has.
    assert_eq!(ports(&["ss", "-Htan", "sport", "=", ":7700"]), "");
}
