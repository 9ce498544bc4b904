//! The face of nstat: its output and its history file are identical to the tool's, byte for byte, for the same
//! counters.

use crate::run::{Ran, clean};
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use testkit::netns::Lab;

/// Runs the tool, or our face of it, with its own history file.
fn run(lab: &Lab, program: &Path, words: &[&str], history: &Path) -> Ran {
    let mut command: Command = lab.command(program);
    clean(&mut command).args(words).env("NSTAT_HISTORY", history);
    Ran::of(command.output().unwrap())
}

/// Compares the tool and the face, each with its own history; outputs and histories must be equal.
struct Both<'l> {
    lab: &'l Lab,
    histories: [std::path::PathBuf; 2],
}

impl Both<'_> {
    fn new(lab: &Lab) -> Both<'_> {
        Both { lab, histories: ["theirs", "ours"].map(|name| lab.dir().join(name)) }
    }

    #[track_caller]
    fn equal(&self, words: &[&str]) -> String {
        let theirs = run(self.lab, Path::new("nstat"), words, &self.histories[0]);
        let face = [&["nstat", "--bug-compatible"], words].concat();
        let ours = run(self.lab, testkit::program::netwren(), &face, &self.histories[1]);
        assert_eq!((ours.code, &ours.stdout, &ours.stderr), (theirs.code, &theirs.stdout, &theirs.stderr), "{words:?}");
        let kept = |path: &Path| std::fs::read_to_string(path).ok();
        assert_eq!(kept(&self.histories[1]), kept(&self.histories[0]), "{words:?}");
        ours.stdout
    }

    /// Overwrites both histories.
    fn write(&self, text: &str) {
        self.histories.iter().for_each(|path| std::fs::write(path, text).unwrap());
    }
}

fn send_to_a_closed_port(lab: &Lab, count: usize) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (0..count).for_each(|_| assert_eq!(socket.send_to(b"netwren", "127.0.0.1:9").unwrap(), 7));
    });
}

#[test]
fn root_counters_and_their_history_are_those_of_nstat() {
    testkit::require_root!();
    testkit::require_version!("nstat", testkit::tool::NSTAT);
    let lab = Lab::new("nstat");
    // Only this test's packets are counted, because no address is added or removed.
    send_to_a_closed_port(&lab, 5);
    let both = Both::new(&lab);
    let first = both.equal(&[]);
    assert!(first.contains("UdpNoPorts                      5                  0.0\n"), "{first}");
    assert_eq!(both.equal(&[]), "#kernel\n", "nothing since");
    send_to_a_closed_port(&lab, 3);
    assert!(both.equal(&["-s", "Udp*"]).contains("UdpNoPorts                      3 "));
    assert!(both.equal(&["-n", "Udp*"]).is_empty());
    assert!(!both.equal(&["-s"]).contains("UdpNoPorts"), "those are kept, others are not");
    for words in [
        &["-a", "-s"][..],
        &["-as", "-j"],
        &["-asz"],
        &["-asz", "--json", "udp*", "TCP*"],
        &["-sjp"],
        &["-asjp", "nothing"],
        &["-j", "nothing", "-s"],
        &["--ignore", "--noupdate", "--zeros", "?cp*"],
        &["-s", "[IU]*Out*"],
        &["-z", "Udp*"],
        &["-t", "5", "-s"],
        &["-t", "0"],
        &["-t", "x"],
        &["-x"],
        &["--nonsense"],
        &["-d"],
        &["-h"],
        &["-V"],
        &["-r", "-n", "Tcp*"],
        &["-r"],
    ] {
        both.equal(words);
    }
}

#[test]
fn root_histories_that_cannot_be_used_are_refused_as_nstat_does() {
    testkit::require_root!();
    testkit::require_version!("nstat", testkit::tool::NSTAT);
    let lab = Lab::new("nstathist");
    send_to_a_closed_port(&lab, 5);
    let both = Both::new(&lab);
    for text in [
        "#kernel\nUdpNoPorts 4294967296 0.0\n",
        "#kernel\nIpInReceives 2 1.5\nUdpNoPorts 1 0.0\nTcpMaxConn 3 0.0\n",
        "#3.sampling_interval=1 time_const=60\nUdpNoPorts 1 0.0\n",
        "UdpNoPorts 2\n",
        "#kernel\n",
        "UdpNoPorts\n",
        "nonsense\n",
    ] {
        both.write(text);
        both.equal(&["-z", "Udp*", "Ip*"]);
    }
    both.write("#kernel\nUdpNoPorts 1 0.0\n");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000);
    for path in &both.histories {
        std::fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
    }
    both.equal(&["Udp*"]);
    for path in &both.histories {
        std::fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink("/nowhere", path).unwrap();
    }
    both.equal(&[]);
    for path in &both.histories {
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, "").unwrap();
        std::fs::hard_link(path, path.with_extension("link")).unwrap();
    }
    both.equal(&[]);
    // A new history file is readable only by its owner.
    std::fs::remove_file(&both.histories[1]).unwrap();
    run(&lab, testkit::program::netwren(), &["nstat"], &both.histories[1]).ok();
    assert_eq!(std::fs::metadata(&both.histories[1]).unwrap().mode() & 0o777, 0o600);
    // Unsupported switches are reported.
    run(&lab, testkit::program::netwren(), &["nstat", "-d", "5"], &both.histories[1]).says(2, &["not supported"]);
    let version = run(&lab, testkit::program::netwren(), &["nstat", "-V"], &both.histories[1]).ok();
    assert!(version.contains("by netwren"), "{version}");
}
