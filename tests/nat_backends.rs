//! Owners of entries whose backend is in another namespace of this host, as with containers.

use crate::run::{Ran, netwren_in};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use testkit::netns::Lab;

/// The rows. Other tests' namespaces change at the same time; if they could not be read, a message says so and the
/// exit code is 3.
#[track_caller]
fn shown(ran: Ran) -> String {
    assert!(matches!(ran.code, 0 | 3), "exit code {}; stderr: {}", ran.code, ran.stderr);
    ran.stdout
}

/// A router that publishes port 80 of a server in another namespace as 198.51.100.1:8080, with one connected client.
struct Published {
    router: Lab,
    _labs: [Lab; 2],
    _held: (TcpListener, TcpStream, TcpStream),
}

impl Published {
    /// `net` is the prefix of the server's addresses; it differs between tests, because all namespaces are read.
    fn new(purpose: &str, net: &str) -> Published {
        let [client, router, server] = ["c", "r", "s"].map(|part| Lab::new(&format!("{purpose}{part}")));
        for (lab, near, far, net) in [(&client, "c0", "c1", "198.51.100"), (&server, "s0", "s1", net)] {
            lab.ip(&["link", "add", near, "type", "veth", "peer", "name", far, "netns", router.name()]);
            for (lab, dev, addr) in [(lab, near, format!("{net}.2/24")), (&router, far, format!("{net}.1/24"))] {
                lab.ip(&["addr", "add", &addr, "dev", dev]);
                lab.ip(&["link", "set", dev, "up"]);
            }
            lab.ip(&["route", "add", "default", "via", &format!("{net}.1")]);
        }
        router.run_inside(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
        router.nft(&format!(
            "table ip published {{
 chain prerouting {{
 type nat hook prerouting priority -100;
 ip daddr 198.51.100.1 tcp dport 8080 dnat to {net}.2:80
 }}
 }}
"
        ));
        let listener = server.run_inside(|| TcpListener::bind("0.0.0.0:80")).unwrap();
        let mut near = client.run_inside(|| TcpStream::connect("198.51.100.1:8080")).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(b"x").unwrap();
        far.read_exact(&mut [0; 1]).unwrap();
        Published { router, _labs: [client, server], _held: (listener, near, far) }
    }

    /// Checks the pid in the lines of `netwren nat` with these arguments.
    #[track_caller]
    fn has_pid(&self, words: &[&str], expected: &str) {
        let all = [&["nat", "-H", "-c", "pid"], words].concat();
        let pids = || shown(netwren_in(&self.router, &all));
        assert_eq!(testkit::until_equal(pids, |pids| pids.trim_end() == expected).trim_end(), expected);
    }
}

#[test]
fn root_issue_10_the_process_of_a_published_port_is_named() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let published = Published::new("backs", "10.213.77");
    let (backend, netns) = ("backend = 10.213.77.2:80", format!("and netns = {}", published.router.name()));
    let own = std::process::id().to_string();
    // The sockets of this namespace alone do not show the owner.
    published.has_pid(&[backend], "-");
    let alone = netwren_in(&published.router, &["nat", backend, "-c", "+process,container"]);
    assert!(alone.stderr.contains("--all-netns shows processes of backends"), "{}", alone.stderr);
    published.has_pid(&[backend, &netns, "--all-netns"], &own);
    let all = netwren_in(&published.router, &["nat", backend, "--all-netns"]);
    assert!(!all.stderr.contains("--all-netns shows"), "{}", all.stderr);
    let top = || shown(netwren_in(&published.router, &["nat", "top", "pid,process", backend, "--all-netns", "-H"]));
    let start = format!("{}\t{own}\t", published.router.name());
    let is_named = |top: &String| top.lines().any(|line| line.starts_with(&start));
    let top = testkit::until_equal(top, is_named);
    assert!(is_named(&top), "{top}");
    let top = shown(netwren_in(&published.router, &["nat", "top", "container", backend, "--all-netns"]));
    assert!(top.starts_with("netns\tcontainer\tcount"), "{top}");
}

/// Any user may create a namespace with the backend's address and listen there.
#[test]
fn root_issue_10_a_namespace_of_a_user_is_no_backend_of_roots() {
    testkit::require_root!();
    for tool in ["nft", "setpriv", "unshare"] {
        testkit::require_tool!(tool);
    }
    let published = Published::new("backf", "10.213.78");
    let (backend, netns) = ("backend = 10.213.78.2:80", format!("and netns = {}", published.router.name()));
    // The kernel does not allow it in a chroot, and an administrator may forbid it.
    let user = ["--reuid=65534", "--clear-groups", "unshare", "-Urn"];
    let tried = published.router.command("setpriv").args(user).arg("true").output().unwrap();
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        testkit::print_loud(&format!("skipped: a user can make no network namespace here: {why}"));
        return;
    }
    let script = "ip address add 10.213.78.2/24 dev lo && ip link set lo up; exec sleep 600";
    let pid = published.router.spawn("setpriv", &[&user[..], &["sh", "-c", script]].concat());
    // Compare the whole line, because the router, where the process starts, has a broadcast address with the same
    // beginning.
    testkit::wait_until("the user's namespace has the address", || {
        let routes = std::fs::read_to_string(format!("/proc/{pid}/net/fib_trie"));
        routes.is_ok_and(|routes| routes.lines().any(|line| line.ends_with("-- 10.213.78.2")))
    });
    published.has_pid(&[backend, &netns, "--all-netns"], &std::process::id().to_string());
}

/// If two namespaces have the backend's address, neither is used.
#[test]
fn root_issue_10_an_address_of_two_namespaces_names_none() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let published = Published::new("backt", "10.213.79");
    let (backend, netns) = ("backend = 10.213.79.2:80", format!("and netns = {}", published.router.name()));
    let other = Lab::new("backtwin");
    other.ip(&["address", "add", "10.213.79.2/32", "dev", "lo"]);
    let _listens = other.run_inside(|| TcpListener::bind("10.213.79.2:80")).unwrap();
    let ran = netwren_in(&published.router, &["nat", "-H", "-c", "pid", backend, &netns, "--all-netns"]);
    assert!(ran.stderr.contains("several network namespaces have the address of a backend"), "{}", ran.stderr);
    assert_eq!(shown(ran), "-\n");
}
