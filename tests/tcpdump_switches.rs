//! Compares rarely used switches of `netwren tcpdump` with this machine's tcpdump: stdout, stderr, exit code.

use crate::capture::rings;
use crate::going::Going;
use crate::run::clean;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

fn inside(lab: &Lab, dir: &Path, program: &str, args: &[&str]) -> Command {
    let mut command = match program {
        "netwren" => Command::new(testkit::program::netwren()),
        other => Command::new(other),
    };
    clean(&mut command).current_dir(dir).args(if program == "netwren" { &["tcpdump"][..] } else { &[] }).args(args);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    command
}

fn both(lab: &Lab, dir: &Path, args: &[&str]) -> [Output; 2] {
    ["tcpdump", "netwren"].map(|program| inside(lab, dir, program, args).output().unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The difference between the two programs for this command line, if there is one.
fn difference(lab: &Lab, dir: &Path, args: &str) -> Option<String> {
    let both = both(lab, dir, &args.split_whitespace().collect::<Vec<_>>());
    let [theirs, ours] = both.map(|ran| (text(&ran.stdout), text(&ran.stderr), ran.status.code()));
    (theirs != ours).then(|| format!("{args}\n  theirs: {theirs:?}\n  ours:   {ours:?}"))
}

/// Writes a pcap file with one datagram of `len` bytes.
fn pcap(file: &Path, link_type: u32, len: u8) {
    let datagram = [0x0f, 0xa0, 0x0f, 0xa1, 0, 8 + len, 0, 0];
    let head = [0x45, 0, 0, 28 + len, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let ip = [&head[..], &datagram, &vec![0; len.into()]].concat();
    let link: &[u8] = match link_type {
        1 => &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0],
        276 => &[8, 0, 0, 0, 9, 9, 9, 9, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0],
        _ => &[],
    };
    let frame = [link, &ip].concat();
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, link_type] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    for word in [1_700_000_000 + u32::from(len), 1000, frame.len() as u32, frame.len() as u32] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    fs::write(file, [bytes, frame].concat()).unwrap();
}

fn files(dir: &Path) {
    for (name, link_type, len) in [("a", 1, 1), ("b", 1, 2), ("raw", 101, 3), ("cooked", 276, 4)] {
        pcap(&dir.join(name), link_type, len);
    }
    let whole = fs::read(dir.join("a")).unwrap();
    fs::write(dir.join("cut"), &whole[..whole.len() - 3]).unwrap();
    for (name, text) in [
        ("list", "a\nb\nraw\n"),
        ("unended", "b\na"),
        ("empty", ""),
        ("gone", "a\nnowhere\nb\n"),
        ("blank", "a\n\nb\n"),
        ("mixed", "cooked\na\ncooked\n"),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
}

/// One command line per line.
const LIKE_TCPDUMP: &str = "\
-d ip
-dd arp
-ddd tcp
-dddd tcp
-d
-dd -s 77
-d -s 0x40 ip
-d -s 010 ip
-d -y LINUX_SLL ip
-d -y linux_sll2 ip
-d -y RAW ip
-d -i lo ip
-d -i any ip6
-d -i any -y LINUX_SLL arp
-d -i lo -y EN10MB ip
-d -r a ip
-d -r raw ip
-d -V list arp
-d ip broadcast
-d -F nowhere
-d foo bar
-d -i nope0 ip
-a -b -H -u -d ip
-m foo -d ip
-y FOO -r a
-n -y RAW -r a
-i lo -y RAW
-i any -y EN10MB
-i lo -I
-L -i any
-L -i lo
-L -i any -y LINUX_SLL
-T foo -r a
-n -T domain -r a
-n -T VXLAN -r a
-n -q -T domain -r a
-f -r a
-f -V list
-V list -r a
-V nowhere
-r nowhere
-tttttt -r a
-n -V list
-n -V list -e -# -ttt
-n -V list -c 1
-n -V list --count
-n -V unended
-V empty
-n -V gone
-n -V blank
-n -V mixed
-n -V mixed -e udp
-n -r cooked
-c 1x -n -r b
-c x -r a
-B 0 -r a
-s -1 -r a
-s 262145 -r a
-Q sideways -r a
--time-stamp-precision x -r a
-n -V list ether broadcast";

#[test]
fn root_programs_and_lists_are_those_of_tcpdump() {
    testkit::require_root!();
    testkit::require_version!("tcpdump", testkit::tool::TCPDUMP);
    let lab = Lab::new("tdrare");
    lab.ip(&["addr", "add", "192.0.2.1/28", "dev", "lo"]);
    let dir = tempfile::tempdir().unwrap();
    files(dir.path());
    let differences: Vec<_> = LIKE_TCPDUMP.lines().filter_map(|args| difference(&lab, dir.path(), args)).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    // The messages about a broken file differ; the other output and the exit code do not.
    fs::write(dir.path().join("torn"), "cut\na\n").unwrap();
    let [theirs, ours] = both(&lab, dir.path(), &["-n", "-V", "torn"]);
    assert_eq!((text(&ours.stdout), ours.status.code()), (text(&theirs.stdout), theirs.status.code()));
    assert!(text(&ours.stderr).contains("tcpdump: pcap_loop: "), "{}", text(&ours.stderr));
}

/// For files captured on all interfaces, tcpdump prints interface names of the reading host.
#[test]
fn root_names_of_interfaces_in_files_are_not_those_of_this_host() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("tdsllnames");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lo");
    pcap(&file, 276, 4);
    let mut bytes = fs::read(&file).unwrap();
    bytes[44..48].copy_from_slice(&[0, 0, 0, 1]);
    fs::write(&file, bytes).unwrap();
    let print = |tool: &str, words: &[&str]| {
        let words = [words, &["-n", "-t", "-r", "lo"]].concat();
        text(&inside(&lab, dir.path(), tool, &words).output().unwrap().stdout)
    };
    let line = "In  IP 10.0.0.1.4000 > 10.0.0.2.4001: UDP, length 4\n";
    assert_eq!(print("netwren", &[]), format!("?     {line}"));
    assert_eq!(print("netwren", &["--bug-compatible"]), format!("lo    {line}"));
    assert_eq!(print("tcpdump", &[]), format!("lo    {line}"));
}

/// For arguments that tcpdump accepts and netwren refuses there is a reason; for arguments that both refuse, netwren
/// prints the usage.
#[test]
fn root_what_is_refused_has_a_reason() {
    testkit::require_root!();
    let lab = Lab::new("tdrefused");
    let dir = tempfile::tempdir().unwrap();
    files(dir.path());
    for (args, reason) in [
        ("-E 3des-cbc:x -r a", "tcpdump: -E: decrypting ESP is not supported; "),
        ("-M x -r a", "tcpdump: -M: verifying MD5 signatures of TCP is not supported; "),
        ("-T rtp -r a", "tcpdump: packet type `rtp' is not supported; domain and vxlan are\n"),
    ] {
        let ran = inside(&lab, dir.path(), "netwren", &args.split(' ').collect::<Vec<_>>()).output().unwrap();
        assert!(text(&ran.stderr).starts_with(reason), "{}", text(&ran.stderr));
        assert_eq!((ran.status.code(), &ran.stdout[..]), (Some(1), &b""[..]));
    }
    for args in ["-?", "-r", "--foo", "--list-interfaces=x", "--time"] {
        let [theirs, ours] = both(&lab, dir.path(), &[args]);
        assert_eq!(ours.status.code(), theirs.status.code(), "{args}");
        let said = |output: &Output| text(&output.stderr).lines().next().map(str::to_owned);
        assert_eq!(said(&ours), said(&theirs), "{args}");
        assert!(text(&ours.stderr).contains("\nUsage: tcpdump [-AbdDefhHIJKlLnNOpqStuUvxX#] "), "{args}");
    }
}

/// `-y LINUX_SLL` on `any` selects the older "cooked" header.
#[test]
fn root_any_has_two_headers() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("tdsll");
    let dir = tempfile::tempdir().unwrap();
    for link in ["LINUX_SLL", "LINUX_SLL2"] {
        let before = rings(&lab);
        let words = ["-n", "-t", "-l", "-xx", "-e", "-i", "any", "-y", link, "-c", "2", "udp port 7999"];
        let mut both = ["tcpdump", "netwren"]
            .map(|program| Going::<String>::spawn(inside(&lab, dir.path(), program, &words), |line| line));
        testkit::wait_until("both rings are there", || rings(&lab) == before + 2);
        lab.run_inside(|| {
            let socket = UdpSocket::bind("127.0.0.1:4321").unwrap();
            (0..2).for_each(|_| _ = socket.send_to(b"abc", "127.0.0.1:7999"));
        });
        let [theirs, ours] = &mut both;
        for going in [&mut *theirs, &mut *ours] {
            assert!(going.child.wait().unwrap().success());
            going.read.extend(going.lines.iter());
        }
        // Each packet appears twice: when it is sent and when it is received.
        assert_eq!(ours.read, theirs.read, "{link}");
        assert!(ours.read[0].contains("127.0.0.1.4321 > 127.0.0.1.7999: UDP, length 3"), "{:?}", ours.read);
    }
}

/// `ip broadcast` uses the interface's netmask. tcpdump uses it only with `-f` and with its bytes in the wrong order;
/// netwren does so only with `--bug-compatible`.
#[test]
fn root_broadcasts_are_those_of_the_interface() {
    testkit::require_root!();
    testkit::require_tool!("tcpdump");
    let lab = Lab::new("tdbroadcast");
    lab.ip(&["link", "add", "b0", "type", "veth", "peer", "name", "b1"]);
    lab.ip(&["addr", "add", "192.0.2.1/28", "dev", "b0"]);
    lab.ip(&["link", "set", "b0", "up"]);
    let dir = tempfile::tempdir().unwrap();
    let program = |tool: &str, words: &[&str]| {
        let words = [words, &["-d", "-i", "b0", "ip broadcast"]].concat();
        let ran = inside(&lab, dir.path(), tool, &words).output().unwrap();
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        text(&ran.stdout)
    };
    for words in [&[][..], &["-f"]] {
        let ours = program("netwren", words);
        assert!(ours.contains("jset     #0xf  ") && ours.contains("and      #0xf\n"), "{ours}");
        let old = [&["--bug-compatible"], words].concat();
        assert_eq!(program("netwren", &old), program("tcpdump", words), "{words:?}");
    }
}
