//! The accept hooks, which block other attachments, and `--no-hooks`, which does not.

use super::{Following, acceptor, bpf_works, check, client, count, listen};
use crate::run::{Ran, netwren};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::Limit;

/// Attaches a program that allows everything to `cgroup/getpeername4` of the directory without any flag, as bpftool
/// does by default, and detaches it again. Prints the error, or `attached`.
const ATTACH: &str = r#"
import ctypes, os, platform, struct, sys
NUMBERS = {"x86_64": 321, "aarch64": 280}
libc = ctypes.CDLL(None, use_errno=True)
def bpf(command, attr):
    attr = ctypes.create_string_buffer(attr, 128)
    got = libc.syscall(NUMBERS[platform.machine()], command, attr, 128)
    return got if got >= 0 else -ctypes.get_errno()
code = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xb7, 0, 0, 1, 0x95, 0, 0, 0))
text = ctypes.create_string_buffer(b"GPL\0")
load = struct.pack("=IIQQIIQII16sII", 18, 2, ctypes.addressof(code), ctypes.addressof(text), 0, 0, 0, 0, 0, b"", 0, 29)
program = bpf(5, load)
if program < 0:
    sys.exit("cannot load: " + os.strerror(-program))
at = os.open(sys.argv[1], os.O_RDONLY)
attach = struct.pack("=IIII", at, program, 29, 0)
got = bpf(8, attach)
if got == 0:
    bpf(9, attach)
print("attached" if got == 0 else os.strerror(-got))
"#;

/// A group of cgroup 2 that replaces the root group for one follower, because the real root group is shared with all
/// other tests.
struct Group {
    at: PathBuf,
    root: PathBuf,
}

impl Group {
    fn make(name: &str) -> Option<Group> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists())?.to_path_buf();
        let at = root.join(format!("nw-{name}-{}", std::process::id()));
        std::fs::create_dir(&at).ok()?;
        Some(Group { at, root })
    }

    fn as_root(&self) -> Limit {
        Limit::Cover { with: self.at.clone(), place: self.root.clone() }
    }

    fn attach(&self) -> String {
        let out = Command::new("python3").args(["-c", ATTACH]).arg(&self.at).output().unwrap();
        let ran = Ran::of(out);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout.trim().to_owned()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.at);
    }
}

/// A plain attachment is refused while a follower uses hooks, as `netwren support` says; with `--no-hooks` it
/// succeeds, and the follower still reports who connected and who accepted.
#[test]
fn root_issue_10_without_hooks_other_programs_can_attach() {
    require_bpf!();
    if !testkit::tool::require("python3") {
        return;
    }
    let Some(group) = Group::make("hooks") else {
        eprintln!("skipped: no cgroup 2 that a group can be made in");
        return;
    };
    assert_eq!(group.attach(), "attached", "before anybody follows");
    let support = netwren(&["support"]).stdout;
    let line = support.lines().find(|line| line.starts_with("following connections")).unwrap();
    let lab = Lab::new("followhooks");
    if line.contains("accept hooks") {
        assert!(line.contains("BPF_F_ALLOW_MULTI") && line.contains("--no-hooks"), "{line}");
        let following = Following::start(&lab, &[], &[group.as_root()]);
        assert_eq!(group.attach(), "Operation not permitted", "the limit that support tells of");
        following.end();
    }
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let _workers = [acceptor(&lab, &listener), acceptor(&lab, &listener)];
    drop(listener);
    let mut following = Following::start(&lab, &["--no-hooks"], &[group.as_root()]);
    assert_eq!(group.attach(), "attached");
    let talked = client(&lab, &addr.to_string(), 50);
    following.read_until("all closings", |events| count(events, "close") >= 100);
    let (events, ran) = following.end();
    if !line.contains("known at close") {
        check(&events, addr.port(), &talked);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

/// `ip netns exec` mounts a /sys without cgroups, so no hook reports who accepted. An accepted idle connection is then
/// not shown, and the footer gives the reason; it does not claim that the connection was not accepted.
#[test]
fn root_issue_10_connections_accepted_without_hooks_are_counted() {
    require_bpf!();
    let lab = Lab::new("followsys");
    let empty = lab.dir().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let covered = [Limit::Cover { with: empty, place: "/sys/fs/cgroup".into() }];
    let (listener, addr) = listen(&lab, "127.0.0.1:0");
    let (busy, busy_addr) = listen(&lab, "127.0.0.1:0");
    let _worker = acceptor(&lab, &busy);
    drop(busy);
    for (args, limits, why) in
        [(&["--no-hooks"][..], &[][..], "--no-hooks"), (&[], &covered, "`ip netns exec` hides it")]
    {
        let mut following = Following::start(&lab, args, limits);
        let _idle = (lab.run_inside(|| TcpStream::connect(addr)).unwrap(), listener.accept().unwrap());
        client(&lab, &busy_addr.to_string(), 1);
        following.read_until("a later connection", |events| count(events, "close") >= 2);
        let (_, ran) = following.end();
        for says in ["established, but no process accepted them: not shown", "at the connection's first use", why] {
            assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
        }
    }
}
