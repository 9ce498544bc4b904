//! netwren without privileges, without parts of the kernel, and with processes that end while they are read. Each case
//! is real, in a child process.

use crate::lab::furnished;
use crate::run::{Ran, command, command_for_anyone, netwren_in};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// AF_NETLINK, NETLINK_SOCK_DIAG (include/uapi/linux/netlink.h).
const SOCK_DIAG: (i32, i32) = (16, 4);

fn limited(lab: &Lab, args: &[&str], limits: &[Limit]) -> Ran {
    let mut child = command_for_anyone(args);
    let mut all = vec![Limit::Network(lab.path())];
    all.extend_from_slice(limits);
    confine(&mut child, &all).expect("the limits can be set");
    Ran::of(child.output().expect("netwren starts"))
}

/// If sock_diag is missing, netwren reads /proc, and the footer says so.
#[test]
fn root_without_netlink_proc_is_read() {
    testkit::require_root!();
    let lab = furnished("nonetlink");
    for errno in [libc_errno::EPERM, libc_errno::EPROTONOSUPPORT] {
        let limit = Limit::NoSocket { family: SOCK_DIAG.0, protocol: Some(SOCK_DIAG.1), errno };
        let args = ["sockets", "--no-owner", "--columns", "proto,state,local_addr,local_port", "proto in (tcp, udp)"];
        let fallen = limited(&lab, &args, std::slice::from_ref(&limit));
        assert!(fallen.stderr.contains("/proc"), "{}", fallen.stderr);
        // /proc does not name the interface of a link-local address.
        let whole = netwren_in(&lab, &args).ok().replace("%nwl0", "");
        assert_eq!(testkit::mask::sorted_lines(&fallen.stdout), testkit::mask::sorted_lines(&whole));
        limited(&lab, &["sockets", "--via", "netlink", "--no-owner"], std::slice::from_ref(&limit))
            .says(4, &["cannot"]);
    }
}

mod libc_errno {
    pub(super) const EPERM: sys::Errno = sys::Errno(1);
    pub(super) const EPROTONOSUPPORT: sys::Errno = sys::Errno(93);
}

/// If bpf(2) is forbidden or its capabilities are missing, other backends give the same rows and owners, and `support`
/// gives the reason.
#[test]
fn root_without_bpf_the_rows_are_the_same() {
    testkit::require_root!();
    let lab = furnished("nobpf");
    let caps = vec![sys::caps::Cap::Bpf, sys::caps::Cap::Perfmon, sys::caps::Cap::SysAdmin];
    let limits = [Limit::NoBpf(libc_errno::EPERM), Limit::NoBpf(sys::Errno::NOSYS), Limit::WithoutCaps(caps)];
    let args = ["sockets", "--columns", "proto,state,local_addr,local_port,pid,fd", "proto in (tcp, udp)"];
    let whole = netwren_in(&lab, &args).ok_but_owners();
    for limit in limits {
        let fallen = limited(&lab, &args, std::slice::from_ref(&limit)).ok_but_owners();
        assert_eq!(testkit::mask::sorted_lines(&fallen), testkit::mask::sorted_lines(&whole), "{limit:?}");
        let support = limited(&lab, &["support"], std::slice::from_ref(&limit)).ok();
        let line = support.lines().find(|line| line.starts_with("bpf: programs\t")).expect("a line on BPF");
        assert!(line.starts_with("bpf: programs\tno\t"), "{limit:?}: {line}");
    }
}

/// Without access to other users' processes the cells are empty, the footer gives their number and the reason, and the
/// exit code is 3.
#[test]
fn root_an_unprivileged_reader_sees_all_sockets_but_not_all_owners() {
    testkit::require_root!();
    let lab = furnished("unprivileged");
    let args = ["sockets", "--columns", "proto,state,local_addr,local_port,process", "proto = tcp"];
    let ran = limited(&lab, &args, &[Limit::User { uid: 65_534, gid: 65_534 }]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("owners of") && ran.stderr.contains("permission denied"), "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), netwren_in(&lab, &args).ok_but_owners().lines().count());
}

#[test]
fn root_hidden_processes_are_reported() {
    testkit::require_root!();
    let lab = furnished("hidepid");
    let limits = [Limit::HidePid(2), Limit::User { uid: 65_534, gid: 65_534 }];
    let ran = limited(&lab, &["sockets", "proto = tcp"], &limits);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("hid"), "{}", ran.stderr);
    assert!(ran.stdout.lines().count() > 5);
}

#[test]
fn root_a_process_name_may_be_anything() {
    testkit::require_root!();
    let lab = Lab::new("comm");
    let script = "import ctypes,socket,sys\nctypes.CDLL(None).prctl(15, b'\\x1b[1m\\n\"x')\n\
                  s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\nimport time; time.sleep(3600)";
    if !testkit::tool::require("python3") {
        return;
    }
    let _pid = lab.spawn("python3", &["-c", script]);
    let args = ["sockets", "-H", "--columns", "process", "state = listen and process != null"];
    lab.wait_until("the process listens", || !netwren_in(&lab, &args).stdout.is_empty());
    assert_eq!(netwren_in(&lab, &args).stdout, "\\x1b[1m\\n\"x\n");
    let face = netwren_in(&lab, &["ss", "-Hltnp"]).stdout;
    assert!(face.contains("?[1m?\\\"x") && !face.contains('\u{1b}'), "{face}");
}

/// Processes that start and end while their descriptors are read cause no error and no abort.
#[test]
fn root_processes_may_vanish() {
    testkit::require_root!();
    let lab = Lab::new("vanish");
    lab.connect_v4(2);
    let _churn = lab.spawn("sh", &["-c", "while :; do true & (true) & wait; done"]);
    for _ in 0..20 {
        assert_eq!(netwren_in(&lab, &["sockets", "-H", "proto = tcp"]).ok_but_owners().lines().count(), 5);
    }
}

#[test]
fn no_such_way_to_read_is_an_error_in_words() {
    let ran = Ran::of(command(&["sockets", "--via", "carrier-pigeon"]).output().unwrap());
    ran.says(2, &["carrier-pigeon", "netlink", "proc"]);
}
