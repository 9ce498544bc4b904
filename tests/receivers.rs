//! `log --to` with receivers other than plain files.

use crate::going::Going;
use crate::run::clean;
use std::fs;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::authority::Authority;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// A namespace whose UDP packets to port 7009 are logged to group 5 and dropped.
fn logging(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           udp dport 7009 log prefix \"to five: \" group 5 drop
         }
         }",
    );
    lab
}

fn send(lab: &Lab, count: usize) {
    lab.run_inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..count {
            let _ = socket.send_to(b"0123456789", "127.0.0.1:7009");
        }
    });
}

/// Ships the records of group 5; returns when the group is bound.
fn shipping(lab: &Lab, args: &[&str]) -> Going<String> {
    started(lab, Command::new(testkit::program::netwren()), args)
}

/// Ships the records of group 5 from a process that `starter` replaces with netwren.
fn started(lab: &Lab, mut starter: Command, args: &[&str]) -> Going<String> {
    clean(&mut starter).args(["log", "--group", "5", "--latency", "10ms"]).args(args);
    confine(&mut starter, &[Limit::Network(lab.path()), Limit::HangupHeard]).unwrap();
    let going = Going::spawn(starter, |line| line);
    testkit::wait_until("the group is bound", || lab.log_groups().len() == 1);
    going
}

/// Splits `LENGTH MESSAGE LENGTH MESSAGE …` (RFC 5425, section 4.3).
fn frames(mut text: &str) -> Vec<&str> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = text.split_once(' ') {
        let (frame, behind) = rest.split_at(length.parse().unwrap());
        frames.push(frame);
        text = behind;
    }
    frames
}

/// False if the program was built without TLS, after checking that the error names the feature.
pub(crate) fn has_tls() -> bool {
    let says = crate::run::netwren(&["log", "--group", "5", "--to", "json+tls://127.0.0.1:1", "--tls-ca", "/nowhere"]);
    let has = !says.stderr.contains("this netwren was built without TLS (cargo feature `tls`)");
    if !has {
        testkit::print_loud("skipped: tests of receivers by TLS need a netwren with --features tls");
    }
    has
}

#[test]
fn root_log_ships_syslog_by_tls() {
    testkit::require_root!();
    if !has_tls() {
        return;
    }
    testkit::require_tool!("nft");
    testkit::require_tool!("openssl");
    let (lab, authority) = (logging("logtls"), Authority::new());
    authority.sign("receiver", "IP:127.0.0.1", (-3600, 3600));
    authority.sign("sender", "DNS:sender", (-3600, 3600));
    let file = |name: &str| authority.file(name).display().to_string();
    let mut server = lab.command("openssl");
    server.args(["s_server", "-quiet", "-naccept", "1", "-verify_return_error", "-Verify", "1", "-accept", "6514"]);
    server.args(["-cert", &file("receiver.pem"), "-key", &file("receiver.key"), "-CAfile", &file("ca.pem")]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (ca, cert, key) = (file("ca.pem"), file("sender.pem"), file("sender.key"));
    let (target, files) = ("syslog+tls://127.0.0.1:6514", ["--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &key]);
    let going = shipping(&lab, &[&["--to", target, "--stats", "-c", "prefix,dport,seq"], &files[..]].concat());
    send(&lab, 50);
    testkit::wait_until("the receiver is connected", || {
        lab.output("ss", &["-tnH", "state", "established"]).contains(":6514")
    });
    let mut text = String::new();
    let mut stdout = server.stdout.take().unwrap();
    going.signal("-INT");
    stdout.read_to_string(&mut text).unwrap();
    server.wait().unwrap();
    let (lines, ran) = going.end();
    assert!(lines.join("").contains("\"seen\":50,\"delivered\":50,"), "{lines:?}");
    ran.ok();
    let frames = frames(&text);
    assert_eq!(frames.len(), 50, "{text}");
    for (number, frame) in frames.iter().enumerate() {
        assert!(frame.starts_with('<') && frame.contains("prefix=\"to five: \""), "{frame}");
        assert!(frame.contains(&format!("seq=\"{number}\"")), "{frame}");
    }
}

#[test]
fn unusable_certificates_are_reported_before_anything_is_opened() {
    if !has_tls() {
        return;
    }
    let says = |args: &[&str]| {
        let ran = crate::run::netwren(&[&["log", "--group", "5"], args].concat());
        ran.stderr
    };
    let tls = ["--to", "json+tls://127.0.0.1:6514"];
    let said = says(&[&tls[..], &["--tls-ca", "/nowhere/ca.pem"]].concat());
    assert!(said.contains("--to: cannot read /nowhere/ca.pem: No such file"), "{said}");
    let said = says(&["--to", "json:/dev/null", "--tls-key", "x"]);
    assert!(said.contains("--tls-key needs a TLS receiver"), "{said}");
}

/// As log rotation does, rename the file and send SIGHUP.
#[test]
fn root_hangup_reopens_files_and_ends_nothing() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("loghup");
    let (path, moved) = (lab.dir().join("fw.json"), lab.dir().join("fw.json.1"));
    let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let going = shipping(&lab, &["--to", &format!("json:{}", path.display()), "-c", "seq"]);
    send(&lab, 10);
    testkit::wait_until("ten are written", || lines(&path) == 10);
    // If the file still exists, as with a rotation that copies it, netwren appends to it.
    going.signal("-HUP");
    send(&lab, 10);
    testkit::wait_until("twenty are written", || lines(&path) == 20);
    fs::rename(&path, &moved).unwrap();
    going.signal("-HUP");
    testkit::wait_until("it is opened anew", || path.exists());
    send(&lab, 10);
    testkit::wait_until("ten more are written", || lines(&path) == 10);
    let (_, ran) = going.end();
    ran.ok();
    assert_eq!((lines(&moved), lines(&path)), (20, 10));
}

/// Rotated automatically: each full file is compressed, and all files together contain every packet.
#[test]
fn root_files_that_were_moved_away_are_packed() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("logzstd");
    let path = lab.dir().join("fw.pcap");
    let at = |end: &str| std::path::PathBuf::from(format!("{}{end}", path.display()));
    let file = format!("pcap:{}", path.display());
    let going = shipping(&lab, &["--to", &file, "--rotate-size", "1MiB", "--rotate-zstd"]);
    // Each record has 54 bytes, so they fill a file of 1 MiB and a part of the next.
    send(&lab, 30_000);
    testkit::wait_until("the first is packed", || at(".1.zst").exists() && !at(".1").exists());
    let (_, ran) = going.end();
    ran.ok();
    let packets = |file: &Path| {
        let ran = crate::run::netwren(&["capture", "-r", &file.display().to_string(), "--by", "dport", "-H"]);
        ran.ok().trim().strip_prefix("7009\t").unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(packets(&at(".1.zst")) + packets(&path), 30_000);
    let files = fs::read_dir(lab.dir()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = files.filter(|name| name.starts_with("fw")).collect();
    files.sort();
    assert_eq!(files, ["fw.pcap", "fw.pcap.1.zst"]);
}

/// The process that packs a file has no capability, and opens neither files nor sockets, before it reads the first
/// byte.
#[test]
fn root_the_process_that_packs_has_no_rights() {
    testkit::require_root!();
    let dir = tempfile::tempdir().unwrap();
    let mut packer = Command::new(testkit::program::netwren());
    clean(&mut packer).arg0("netwren-zstd").arg("fw.pcap").stdin(Stdio::piped());
    let mut packer = packer.stdout(fs::File::create(dir.path().join("packed")).unwrap()).spawn().unwrap();
    let names = ["CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp"];
    let none = "0".repeat(16);
    testkit::wait_until("it has no rights", || {
        crate::capture_rights::of_threads(packer.id(), &names) == [[&none, &none, &none, "1", "2"]]
    });
    packer.stdin.take().unwrap().write_all(&[7; 100_000]).unwrap();
    assert!(packer.wait().unwrap().success());
    let packed = fs::metadata(dir.path().join("packed")).unwrap().len();
    assert!((1..1000).contains(&packed), "{packed} bytes");
}

/// If the compressed file cannot be created, the original file stays, a message says so, and no packet is missing.
#[test]
fn root_a_file_that_cannot_be_packed_stays_and_is_reported() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("lognozstd");
    let path = lab.dir().join("fw.pcap");
    // The temporary file cannot be created.
    fs::create_dir(lab.dir().join("fw.pcap.zst.part")).unwrap();
    let file = format!("pcap:{}", path.display());
    let control = lab.dir().join("control").display().to_string();
    let args = ["--to", &file, "--rotate-size", "1MiB", "--rotate-zstd", "--stats", "--control", &control];
    let going = shipping(&lab, &args);
    send(&lab, 30_000);
    testkit::wait_until("it is said", || {
        let asked = crate::run::netwren(&["log", "status", "--control", &control]);
        asked.stdout.contains("fw.pcap.zst.part") && asked.stdout.contains("s a directory")
    });
    assert!(lab.dir().join("fw.pcap.1").exists());
    let (lines, ran) = going.end();
    assert!(lines.join("").contains("\"seen\":30000,\"delivered\":30000,"), "{lines:?}");
    ran.ok();
}

/// Files of a run started by nohup(1) are also rotated, and SIGHUP does not end the run.
#[test]
fn root_hangup_reopens_files_below_nohup() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = logging("lognohup");
    let (path, moved) = (lab.dir().join("fw.json"), lab.dir().join("fw.json.1"));
    let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let mut nohup = Command::new("nohup");
    nohup.arg(testkit::program::netwren());
    let going = started(&lab, nohup, &["--to", &format!("json:{}", path.display()), "-c", "seq"]);
    send(&lab, 10);
    testkit::wait_until("ten are written", || lines(&path) == 10);
    fs::rename(&path, &moved).unwrap();
    going.signal("-HUP");
    testkit::wait_until("it is opened anew", || path.exists());
    send(&lab, 5);
    testkit::wait_until("five more are written", || lines(&path) == 5);
    let (_, ran) = going.end();
    ran.ok();
}

/// The terminal is closed, so no user could end the run, although the file still exists.
#[test]
fn root_a_lost_terminal_ends_shipping() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("python3");
    let lab = logging("logtty");
    let file = format!("json:{}", lab.dir().join("fw.json").display());
    // The child's terminal disappears when the parent closes its end of the pty.
    let script = "import os, pty, sys\n\
                  try: child, end = pty.fork()\n\
                  except OSError: sys.exit(77)\n\
                  if child == 0: os.execv(sys.argv[1], sys.argv[1:])\n\
                  while not any(line.split()[0] == '5' for line in open('/proc/net/netfilter/nfnetlink_log')): pass\n\
                  os.close(end)\n\
                  sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))";
    let mut python = Command::new("python3");
    clean(&mut python).arg("-c").arg(script).arg(testkit::program::netwren());
    python.args(["log", "--group", "5", "--to", &file]);
    confine(&mut python, &[Limit::Network(lab.path()), Limit::HangupHeard]).unwrap();
    let code = python.status().unwrap().code();
    if code == Some(77) {
        return testkit::print_loud("skipped: there are no terminals here (/dev/pts)");
    }
    assert_eq!(code, Some(0));
}
