//! A run's statements about itself are true: its exit code, its privileges, and its success in writing.

use crate::lab::furnished;
use crate::run::{Ran, clean, command, netwren, netwren_in};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Runs `netwren ARGS` in the lab with the faults in system calls that `injected` describes (strace's `-e inject=`).
/// It must end by itself; exit code 124 or 137 means that timeout ended it.
fn with_fault(lab: &Lab, injected: &str, args: &[&str]) -> Ran {
    let mut command = lab.command("timeout");
    let fault = format!("inject={injected}");
    command.args(["--signal=KILL", "60", "strace", "-f", "-o", "/dev/null", "-e", &fault]);
    clean(command.arg(testkit::program::netwren()).args(args));
    Ran::of(command.output().expect("strace starts"))
}

/// A lab with more rows than fit into one receive buffer.
fn large(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.connect_v4(400);
    lab
}

#[test]
fn root_issue_10_a_table_that_breaks_off_is_the_tools_failure() {
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = large("breaksoff");
    for errno in ["ENOBUFS", "ENOMEM"] {
        // lstf reads the listeners first, which takes two buffers.
        for (args, buffer, code) in [
            (&["netstat", "-tan"][..], 2, 1),
            (&["lstf", "-n"], 4, 11),
            (&["lstf", "-n", "--json"], 4, 11),
            (&["sockets", "--no-owner", "proto = tcp", "--via", "netlink"], 2, 3),
        ] {
            let fault = format!("recvmsg:error={errno}:when={buffer}");
            let whole = netwren_in(&lab, args).ok();
            let broken = with_fault(&lab, &fault, args);
            assert_ne!(broken.stdout, whole, "{args:?} was not cut");
            assert!(
                ["TCP sockets are incomplete", "cannot receive from"].iter().any(|words| broken.stderr.contains(words))
            );
            broken.says(code, &[]);
        }
    }
}

/// An answer without an end, which no kernel gives, causes an error instead of an endless loop.
#[test]
fn root_issue_10_an_endless_answer_ends_with_an_error() {
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = large("endless");
    for fault in ["recvmsg:retval=0", "recvmsg:error=ENOBUFS"] {
        for args in [
            &["sockets", "--no-owner", "--via", "netlink", "proto = tcp"][..],
            &["sockets", "--no-owner", "--follow", "--via", "netlink"],
            &["netstat", "-tan"],
            &["lstf", "-n"],
            &["ss", "-tan"],
        ] {
            let ran = with_fault(&lab, fault, args);
            assert!(!matches!(ran.code, 0 | 124 | 137 | -1), "{fault} {args:?}: {} {}", ran.code, ran.stderr);
            assert!(!ran.stderr.is_empty(), "{fault} {args:?}: in words");
        }
    }
}

/// If every call is interrupted, netwren continues only until the user interrupts it.
#[test]
fn root_issue_10_the_first_interrupt_ends_what_waits_for_the_kernel() {
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = Lab::new("interrupted");
    for args in
        [&["sockets", "--no-owner", "--via", "netlink", "proto = tcp"][..], &["netstat", "-tan"], &["lstf", "-n"]]
    {
        let mut command = lab.command("timeout");
        command.args(["--preserve-status", "--signal=INT", "--kill-after=60", "3", "strace", "-f", "-o", "/dev/null"]);
        command.args(["-e", "inject=recvmsg:error=EINTR"]).arg(testkit::program::netwren()).args(args);
        let ran = Ran::of(clean(&mut command).output().unwrap());
        assert!(ran.code > 0 && ran.code != 137, "{args:?}: {} {}", ran.code, ran.stderr);
        assert!(ran.stderr.contains("interrupted"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn root_issue_10_a_failed_wait_is_reported() {
    testkit::require_root!();
    if !testkit::tool::require("strace") {
        return;
    }
    let lab = furnished("nowait");
    for (args, code) in [
        (&["sockets", "--no-owner", "--watch", "proto = tcp"][..], 3),
        (&["netstat", "-tlnc"], 1),
        (&["lstf", "-n", "-w=1"], 11),
    ] {
        with_fault(&lab, "ppoll:error=EBADF", args).says(code, &["ended early: cannot wait for the next round"]);
    }
}

/// Rust replaces a closed standard output by /dev/null, so that output would be lost with a successful exit.
#[test]
fn replay_issue_10_output_that_goes_nowhere_is_an_error() {
    let sh = |redirection: &str, args: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec \"$0\" \"$@\" {redirection}")]).arg(testkit::program::netwren()).args(args);
        Ran::of(clean(&mut command).output().unwrap())
    };
    for args in [
        &["--help"][..],
        &["--version"],
        &["sockets", "--help"],
        &["nat", "--help"],
        &["sockets", "--columns", "help"],
        &["support"],
        &["netstat", "--help"],
        &["netstat", "-s"],
        &["lstf", "--help"],
        &["ss", "--help"],
        &["ss", "-tan"],
        &["sockets", "--no-owner", "--explain"],
    ] {
        for (redirection, why) in [(">&-", "bad file descriptor"), (">/dev/full", "no space left")] {
            let ran = sh(redirection, args);
            assert!(ran.code > 0, "{args:?} {redirection}: exit code {}", ran.code);
            assert!(ran.stderr.to_lowercase().contains(why), "{args:?} {redirection}: {}", ran.stderr);
        }
        assert_eq!(sh(">/dev/null", args).code, 0, "{args:?}");
    }
}

/// The parent's memory is not counted, although getrusage includes it from exec on.
#[test]
fn replay_issue_10_the_cost_is_our_own_memory() {
    let parents = vec![1u8; 300 << 20];
    let ran = netwren(&["sockets", "--no-owner", "--cost", "--via", "proc", "proto = udp"]);
    let peak = ran.stderr.split("peak memory ").nth(1).and_then(|rest| rest.split(" KiB").next()).unwrap();
    assert!(peak.parse::<usize>().unwrap() < parents.len() >> 11, "{}", ran.stderr);
}

/// A folder that every user may enter; it is removed on drop.
fn open_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn run_as_another_user(program: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(program);
    clean(&mut command).args(args);
    confine(&mut command, &[Limit::User { uid: 65_534, gid: 65_534 }]).unwrap();
    Ran::of(command.output().unwrap())
}

/// A setuid copy, or one with file capabilities, would open, write and load files that any caller names.
#[test]
fn root_issue_10_lent_rights_are_refused() {
    testkit::require_root!();
    let dir = open_folder();
    let mounted_without = Command::new("findmnt").args(["-no", "OPTIONS", "-T"]).arg(dir.path()).output();
    if mounted_without.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains("nosuid")) {
        eprintln!("skipped: {} is mounted nosuid", dir.path().display());
        return;
    }
    let copy = |name: &str, mode: u32| -> PathBuf {
        let to = dir.path().join(name);
        testkit::program::install(testkit::program::netwren(), &to, mode);
        to
    };
    let mut lent = vec![copy("setuid", 0o4755), copy("setgid", 0o2755)];
    if testkit::tool::is_installed("setcap") {
        let with_caps = copy("caps", 0o755);
        let set = Command::new("setcap").arg("cap_net_admin+ep").arg(&with_caps).status().unwrap();
        if set.success() {
            lent.push(with_caps);
        }
    }
    let tape = dir.path().join("tape").display().to_string();
    for program in &lent {
        for args in [&["sockets", "--record", &tape][..], &["ss", "-tln"], &["--help"], &[]] {
            let ran = run_as_another_user(program, args);
            assert_eq!(ran.stdout, "", "{program:?} {args:?}");
            ran.says(4, &["started with more privileges than its caller has"]);
        }
    }
    assert!(!Path::new(&tape).exists());
    run_as_another_user(&copy("plain", 0o755), &["sockets", "--columns", "help"]).ok();
    assert_eq!(
        Command::new(&lent[0]).args(["sockets", "--columns", "help"]).stdout(Stdio::null()).status().unwrap().code(),
        Some(0)
    );
}

/// nft is started by its fixed path instead of the first one in PATH, and without the caller's environment.
#[test]
fn root_issue_10_nft_is_called_by_its_path_and_without_our_environment() {
    testkit::require_root!();
    let lab = Lab::new("nftpath");
    let (fake, said) = (lab.dir().join("nft"), lab.dir().join("said"));
    let script = format!("#!/bin/sh\necho \"$0\" >> {0}\n/usr/bin/env >> {0}\ncat > /dev/null\n", said.display());
    testkit::program::install_script(&fake, &script);
    let args = ["nat", "stateless", "plan", "-p", "192.0.2.1:80:10.0.0.2:80", "--apply", "--yes"];
    let run = |limits: &[Limit]| {
        let mut command = command(&args);
        command.env("PATH", lab.dir()).env("LD_LIBRARY_PATH", "/nonexistent").env("EVIL", "yes");
        let all = [&[Limit::Network(lab.path())][..], limits].concat();
        confine(&mut command, &all).unwrap();
        Ran::of(command.output().unwrap())
    };
    let ran = run(&[]);
    assert!(!said.exists(), "the nft of PATH ran: {}", ran.stderr);
    let Some(place) = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"].iter().find(|place| Path::new(place).exists())
    else {
        return ran.says(4, &["nft is not installed"]);
    };
    run(&[Limit::Cover { with: fake, place: place.into() }]);
    let said = std::fs::read_to_string(&said).expect("nft was called by its path");
    assert!(said.starts_with('/') && said.contains("LC_ALL=C"), "{said}");
    assert!(!said.contains("EVIL") && !said.contains("LD_LIBRARY_PATH"), "{said}");
}
