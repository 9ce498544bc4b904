//! Compares `netwren conntrack -E` with the installed conntrack: two listeners, the same events.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod conntrack_side_by_side;

use conntrack_side_by_side::{OLD, difference, ours, run, text, theirs};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use testkit::conntrack::Entry;
use testkit::netns::Lab;
use testkit::{mask, require_root, require_tool, wait_until};

/// A listener and its output.
struct Listener {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Listener {
    fn start(lab: &Lab, name: &str, mut command: Command) -> Listener {
        let (out, err) = (lab.dir().join(format!("{name}.out")), lab.dir().join(format!("{name}.err")));
        let file = |path: &PathBuf| Stdio::from(std::fs::File::create(path).unwrap());
        let child = command.stdout(file(&out)).stderr(file(&err)).spawn().expect("ip(8) starts");
        Listener { child, out, err }
    }

    fn written(&self) -> String {
        text(&std::fs::read(&self.out).unwrap_or_default())
    }

    /// True if it is waiting for the next event. conntrack counts a line after writing it, and a signal in between
    /// makes it write the line again.
    fn waits(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
    }

    /// Ends it with a signal; returns both streams and the exit code.
    fn end(mut self, signal: &str) -> (String, String, Option<i32>) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let code = self.child.wait().unwrap().code();
        (self.written(), text(&std::fs::read(&self.err).unwrap_or_default()), code)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Number of sockets in the lab that listen to netfilter events.
fn listeners(lab: &Lab) -> usize {
    let table = lab.run_inside(|| std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap());
    let hears = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1) == Some(&"12") && words.get(3).is_some_and(|groups| *groups != "00000000")
    };
    table.lines().filter(hears).count()
}

/// Content of the last line.
const LAST: [&str; 2] = ["[DESTROY]", "src=192.0.2.99"];

/// Causes events while both listen: packets, commands, deletions.
fn happen(lab: &Lab) {
    lab.run_inside(|| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:5999").unwrap();
        let other = std::net::UdpSocket::bind("127.0.0.1:5998").unwrap();
        socket.send_to(b"netwren", "127.0.0.1:5998").unwrap();
        other.send_to(b"netwren", "127.0.0.1:5999").unwrap();
        let six = std::net::UdpSocket::bind("[::1]:5997").unwrap();
        let _ = six.send_to(b"netwren", "[::1]:5996");
    });
    lab.connect_v4(1);
    lab.track([
        Entry::tcp(([192, 0, 2, 1].into(), 1000), ([192, 0, 2, 2].into(), 80), 3).mark(7).zone(5),
        Entry::ping([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 7).snat([203, 0, 113, 1].into(), 0),
        Entry::udp(([192, 0, 2, 1].into(), 1001), ([192, 0, 2, 2].into(), 53)),
    ]);
    for line in ["-U -p udp -s 192.0.2.1 -m 9", "-D -p udp -s 192.0.2.1", "-D -p icmp", "-D -p tcp -s 192.0.2.1", "-F"]
    {
        run(theirs(lab, line));
    }
    // The last event: once it is seen, all have been seen.
    lab.track([Entry::udp(([192, 0, 2, 99].into(), 9), ([192, 0, 2, 98].into(), 9))]);
    run(theirs(lab, "-D -s 192.0.2.99"));
}

/// Normalizes the output. The order between connections may differ, because their messages depend on timing.
fn comparable(streams: &(String, String, Option<i32>)) -> String {
    let out = mask::sorted_lines(&mask::conntrack(&streams.0));
    // Each listener has its own time of receipt, and a process that has ended has no name.
    let stays = |line: &str| {
        let timed = line.split_once("]\t").map_or(line.to_owned(), |(_, rest)| format!("[*]\t{rest}"));
        timed.split(" progname=").next().unwrap_or_default().to_owned() + "\n"
    };
    let out: String = out.lines().map(stays).collect();
    format!("{}--\n{}-- {:?}", mask::sorted_lines(&out), mask::conntrack(&streams.1), streams.2)
}

#[track_caller]
fn same(before: &[&str], line: &str, signal: &str, last: [&str; 2]) {
    let lab = Lab::new("ctevents");
    lab.shares_conntrack();
    lab.set_conntrack("nf_conntrack_acct", "1");
    lab.set_conntrack("nf_conntrack_timestamp", "1");
    // The kernel only tracks connections if a hook exists.
    let file = lab.dir().join("hook.nft");
    std::fs::write(
        &file,
        "table inet t {\n chain o {\n type filter hook output priority 0\n ct state new accept\n }\n}\n",
    )
    .unwrap();
    lab.output("nft", &["-f", file.to_str().unwrap()]);
    let pair =
        (Listener::start(&lab, "theirs", theirs(&lab, line)), Listener::start(&lab, "ours", ours(&lab, before, line)));
    wait_until("both listen", || listeners(&lab) == 2);
    happen(&lab);
    wait_until("the last event", || {
        [&pair.0, &pair.1]
            .iter()
            .all(|one| one.written().lines().any(|line| last.iter().all(|part| line.contains(part))) && one.waits())
    });
    let (a, b) = (comparable(&pair.0.end(signal)), comparable(&pair.1.end(signal)));
    assert!(a == b, "conntrack {line} {before:?}: {}", difference(&a, &b));
    assert!(a.lines().count() > 3, "{a}");
}

#[test]
fn root_text() {
    require_root!();
    require_tool!("conntrack");
    same(&[], "-E", "-INT", LAST);
    same(OLD, "-E -o extended,id,ktimestamp,timestamp", "-TERM", LAST);
}

#[test]
fn root_xml_and_commands() {
    require_root!();
    require_tool!("conntrack");
    same(OLD, "-E -o xml,id", "-INT", ["<flow type=\"destroy\">", "<src>192.0.2.99"]);
    same(OLD, "-E -o save", "-INT", ["-D", "-s 192.0.2.99"]);
}

#[test]
fn root_chosen() {
    require_root!();
    require_tool!("conntrack");
    same(&[], "-E -e NEW,DESTROY -p udp", "-INT", LAST);
    same(&[], "-E -e UPDATES -m 9 -b 100000", "-INT", ["[UPDATE]", "mark=9"]);
    same(&[], "--event -s 192.0.2.0/24 -p icmp -n", "-INT", ["[DESTROY]", "203.0.113.1"]);
}

/// Creates an entry with a raw message (IPCTNL_MSG_CT_NEW) and keeps running.
const HOLDER: &str = r#"
import signal, socket, struct
def attr(kind, body): return struct.pack("HH", 4 + len(body), kind) + body + b"\0" * (-len(body) % 4)
def of(kind, src, dst):
    ends = attr(1, socket.inet_aton(src)) + attr(2, socket.inet_aton(dst))
    return attr(kind | 0x8000, attr(0x8001, ends) + attr(0x8002, attr(1, b"\x32")))
body = struct.pack("BBH", 2, 0, 0) + of(1, "192.0.2.1", "192.0.2.2") + of(2, "192.0.2.2", "192.0.2.1")
body += attr(3, struct.pack(">I", 8)) + attr(7, struct.pack(">I", 100))
s = socket.socket(16, socket.SOCK_RAW, 12)
s.send(struct.pack("IHHII", 16 + len(body), 0x100, 0x605, 1, 0) + body)
signal.pause()
"#;

#[test]
fn root_whose_doing_it_was() {
    require_root!();
    require_tool!("conntrack");
    let lab = Lab::new("ctwhose");
    lab.shares_conntrack();
    let pair =
        (Listener::start(&lab, "theirs", theirs(&lab, "-E")), Listener::start(&lab, "ours", ours(&lab, &[], "-E")));
    wait_until("both listen", || listeners(&lab) == 2);
    lab.spawn("python3", &["-c", HOLDER]);
    wait_until("the event", || [&pair.0, &pair.1].iter().all(|one| one.written().contains('\n')));
    let (a, b) = (pair.0.end("-INT"), pair.1.end("-INT"));
    assert_eq!(mask::conntrack(&a.0), mask::conntrack(&b.0));
    assert!(b.0.contains(" [USERSPACE] portid=") && b.0.contains(" progname=python3"), "{}", b.0);
}

/// If no event occurs, nothing is written, not even an XML root.
#[test]
fn root_none() {
    require_root!();
    require_tool!("conntrack");
    let lab = Lab::new("ctnoevents");
    lab.shares_conntrack();
    for line in ["-E -o xml", "-E expect", "-E -e DESTROY"] {
        let pair =
            (Listener::start(&lab, "theirs", theirs(&lab, line)), Listener::start(&lab, "ours", ours(&lab, &[], line)));
        wait_until("both listen", || listeners(&lab) == 2);
        let (a, b) = (comparable(&pair.0.end("-INT")), comparable(&pair.1.end("-INT")));
        assert_eq!(a, b, "{line}");
        wait_until("nobody listens", || listeners(&lab) == 0);
    }
}

/// Without `--bug-compatible`, the process is inside its element, and the root element is closed.
#[test]
fn root_xml_is_whole() {
    require_root!();
    let lab = Lab::new("ctxml");
    lab.shares_conntrack();
    let listener = Listener::start(&lab, "ours", ours(&lab, &[], "-E -o xml,timestamp"));
    wait_until("it listens", || listeners(&lab) == 1);
    lab.track([Entry::ping([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 7)]);
    wait_until("the event", || listener.written().contains("</flow>\n"));
    let (out, err, code) = listener.end("-INT");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines.len(), lines[3], code), (4, "</conntrack>", Some(0)));
    assert!(lines[2].contains("<type>8</type>") && lines[2].contains("<when><hour>"), "{out}");
    assert!(lines[2].contains("<userspace portid=\"") && lines[2].ends_with("/></flow>"), "{out}");
    assert_eq!(err, "conntrack v1.4.7 (conntrack-tools): 1 flow events have been shown.\n");
}
