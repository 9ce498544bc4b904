//! Sockets that the standard library cannot create: marks, bound devices, request sockets, MPTCP.
use std::path::PathBuf;

use testkit::netns::Lab;

/// Opens one of each and waits to be killed. Skips what this kernel lacks; writes the names of those that exist into
/// the file given as argument.
const SCRIPT: &str = r#"
import socket, struct, sys, signal
made, keep = [], []
def tcp(family=socket.AF_INET, proto=0):
    s = socket.socket(family, socket.SOCK_STREAM, proto); keep.append(s); return s
def make(name, how):
    try:
        how(); made.append(name)
    except OSError as e:
        print(name, e, file=sys.stderr)
def mark():
    s = tcp(); s.setsockopt(socket.SOL_SOCKET, 36, 7); s.bind(("127.0.0.1", 7101)); s.listen(3)
def device():
    s = tcp(); s.setsockopt(socket.SOL_SOCKET, 25, b"lo\0"); s.bind(("0.0.0.0", 7102)); s.listen(4)
def v6only():
    s = tcp(socket.AF_INET6); s.setsockopt(41, 26, 1); s.bind(("::", 7103)); s.listen(5)
def request():
    # A connection without data stays a request where the listener waits for data.
    l = tcp(); l.setsockopt(6, 9, 60); l.bind(("127.0.0.1", 7104)); l.listen(6)
    c = tcp(); c.connect(("127.0.0.1", 7104))
def tos():
    l = tcp(); l.bind(("127.0.0.1", 7105)); l.listen(1)
    c = tcp(); c.setsockopt(0, 1, 0x10); c.connect(("127.0.0.1", 7105)); keep.append(l.accept()[0])
def md5sig():
    s = tcp(); addr = struct.pack("<H2x4s120x", 2, socket.inet_aton("10.9.9.9"))
    s.setsockopt(6, 14, addr + struct.pack("<BBHI80s", 0, 0, 3, 0, b"key"))
    s.bind(("127.0.0.1", 7106)); s.listen(1)
def mptcp():
    l = tcp(proto=262); l.bind(("127.0.0.1", 7107)); l.listen(1)
    c = tcp(proto=262); c.connect(("127.0.0.1", 7107)); keep.append(l.accept()[0])
def queue():
    l = tcp(); l.bind(("127.0.0.1", 7108)); l.listen(1)
    c = tcp(); c.connect(("127.0.0.1", 7108)); c.send(b"x" * 1000); keep.append(l.accept()[0])
def keepalive():
    l = tcp(); l.bind(("127.0.0.1", 7109)); l.listen(1)
    c = tcp(); c.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1); c.connect(("127.0.0.1", 7109))
    keep.append(l.accept()[0])
def seqpacket():
    l = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); keep.append(l); l.bind("\0odd-seq"); l.listen(9)
    for _ in range(2):
        c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); keep.append(c); c.connect("\0odd-seq")
for f in (mark, device, v6only, request, tos, md5sig, mptcp, queue, keepalive, seqpacket):
    make(f.__name__, f)
with open(sys.argv[1] + ".part", "w") as f: f.write(" ".join(made))
import os; os.rename(sys.argv[1] + ".part", sys.argv[1])
signal.pause()
"#;

/// Creates them in the namespace; returns the names of those that could be created.
pub(crate) fn open(lab: &Lab) -> Vec<String> {
    let ready: PathBuf = lab.dir().join("odd-ready");
    lab.spawn("python3", &["-c", SCRIPT, ready.to_str().unwrap()]);
    lab.wait_until("the odd sockets", || ready.exists());
    let made = std::fs::read_to_string(&ready).unwrap();
    let made: Vec<String> = made.split_whitespace().map(str::to_owned).collect();
    assert!(made.iter().any(|name| name == "request"), "{made:?}");
    made
}
