//! `netwren drops -w`, drops read from the kernel's trace, and the face of dropwatch.

use crate::capture_entries::custom_options;
use crate::drops::{LOOPBACK, command, counts_drops, parse, program_of, send_once, sum};
use crate::going::Going;
use crate::packet_tools::said_by;
use crate::run::{clean, command_for_anyone, netwren_in};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use sys::Errno;
use testkit::netns::Lab;
use testkit::routed::Routed;
use testkit::sandbox::{Limit, confine};

/// Returns from the test if BPF cannot count drops.
macro_rules! require_drops {
    () => {
        testkit::require_root!();
        if !counts_drops() {
            return;
        }
    };
}

/// Starts `netwren drops -w FILE` in a lab; returns once it writes.
fn writing(lab: &Lab, file: &Path, args: &[&str]) -> Going<Value> {
    let args = [&["-w", file.to_str().unwrap()], args].concat();
    let going = Going::spawn(command(lab, &args), parse);
    testkit::wait_until("the program is attached", || program_of(going.child.id()).is_some());
    going
}

/// Fields of each packet, as read by tshark.
fn fields(file: &Path, names: &[&str]) -> Option<Vec<String>> {
    let names: Vec<&str> = names.iter().flat_map(|name| ["-e", name]).collect();
    let args = [&["-n", "-T", "fields"], &names[..], &["-r"]].concat();
    said_by("tshark", &args, file).map(|said| said.lines().map(str::to_owned).collect())
}

#[test]
fn root_a_file_of_dropped_packets() {
    require_drops!();
    let lab = Lab::new("dropfile");
    let file = lab.dir().join("drops.pcapng");
    let going = writing(&lab, &file, &["dport in (9, 10)"]);
    for port in [9, 10, 11] {
        send_once(&lab, "127.0.0.1:0", (LOOPBACK, port), 10);
    }
    // Events are read every 10 ms; pending events are still read at the end.
    let (_, ran) = going.end();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said = ran.stderr.lines().find(|line| line.contains("dropped packets written to")).unwrap();
    let written: usize = said.split_whitespace().nth(1).unwrap().parse().unwrap();
    // Sending a datagram may return the ICMP error of the previous one.
    assert!((10..=20).contains(&written) && said.ends_with(" 0 not written"), "{}", ran.stderr);
    assert_eq!(custom_options(&file, "reason=NO_SOCKET"), written);
    let names = ["udp.dstport", "frame.comment", "frame.interface_name", "udp.payload", "frame.len"];
    let Some(lines) = fields(&file, &names) else { return };
    assert_eq!(lines.len(), written);
    for line in &lines {
        let parts: Vec<&str> = line.split('\t').collect();
        assert!(matches!(parts[0], "9" | "10"), "{line}");
        assert!(parts[1].starts_with("reason=NO_SOCKET place=__udp4_lib_rcv"), "{line}");
        assert_eq!((parts[2], parts[3], parts[4]), ("lo", "30313233343536373839", "52"), "{line}");
    }
}

/// A packet that is dropped before it has an Ethernet header, and a truncated packet.
#[test]
fn root_files_have_packets_from_ip_on_and_cut_ones() {
    require_drops!();
    testkit::require_tool!("nft");
    let lan = Routed::new("dropraw");
    let file = lan.client.dir().join("out.pcapng");
    lan.client.nft("table ip t {\n chain o {\n type filter hook output priority 0;\n udp dport 7 drop\n }\n}\n");
    let going = writing(&lan.client, &file, &["--snaplen", "30", "-c", "hook,reason", "hook = output"]);
    send_once(&lan.client, "192.0.2.10:0", ([192, 0, 2, 1].into(), 7), 5);
    let (_, ran) = going.end();
    assert!(ran.stderr.contains("5 dropped packets written to "), "{}", ran.stderr);
    let Some(lines) = fields(&file, &["frame.len", "frame.cap_len", "frame.comment", "ip.dst"]) else { return };
    assert_eq!(lines, ["38\t30\thook=output reason=NETFILTER_DROP\t192.0.2.1"; 5]);
}

#[test]
fn root_files_are_asked_for_in_sense() {
    require_drops!();
    let lab = Lab::new("dropask");
    for (args, says) in [
        (&["-w", "x.pcap"][..], "name the file .pcapng"),
        (&["-w", "x.pcapng", "--by", "src"], "-w cannot be used with --by"),
        (&["-w", "x.pcapng", "--stack"], "-w cannot be used with --stack"),
        (&["-w", "x.pcapng", "--snaplen", "0"], "--snaplen takes 1 to 4096 bytes"),
        (&["--snaplen", "10"], "--snaplen needs -w FILE"),
    ] {
        netwren_in(&lab, &[&["drops"], args].concat()).says(2, &[says]);
    }
    netwren_in(&lab, &["drops", "-w", "/nonexistent/x.pcapng"]).says(4, &["cannot write /nonexistent/x.pcapng"]);
}

/// A tracefs that is mounted while this value lives; `None` if the kernel does not have it.
struct Tracefs(tempfile::TempDir);

impl Tracefs {
    fn mount() -> Option<Tracefs> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tracefs", "none"]).arg(dir.path()).status().unwrap();
        let tracefs = Tracefs(dir);
        let is_there = mounted.success() && tracefs.0.path().join("events/skb/kfree_skb").is_dir();
        if !is_there {
            testkit::print_loud("skipped: this kernel has no tracepoints in tracefs");
        }
        is_there.then_some(tracefs)
    }

    fn limits(&self, lab: &Lab) -> Vec<Limit> {
        let cover = Limit::Cover { with: self.0.path().into(), place: "/sys/kernel/tracing".into() };
        vec![cover, Limit::NoBpf(Errno::PERM), Limit::Network(lab.path())]
    }

    /// The trace instance of a process.
    fn instance(&self, pid: u32) -> Option<PathBuf> {
        let prefix = format!("netwren-{pid}-");
        let entries = std::fs::read_dir(self.0.path().join("instances")).unwrap();
        let mut found = entries.flatten().map(|entry| entry.path());
        found.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix))
    }

    fn is_tracing(&self, pid: u32) -> bool {
        let enabled = self.instance(pid).map(|path| std::fs::read(path.join("events/skb/kfree_skb/enable")));
        enabled.is_some_and(|text| text.is_ok_and(|text| text == b"1\n"))
    }
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Starts `netwren drops ARGS` without BPF; returns once it traces.
fn tracing(tracefs: &Tracefs, lab: &Lab, args: &[&str]) -> Going<Value> {
    let mut child = command_for_anyone(&[&["drops", "-o", "json"], args].concat());
    confine(&mut child, &tracefs.limits(lab)).unwrap();
    let going = Going::spawn(child, parse);
    testkit::wait_until("the kernel traces", || tracefs.is_tracing(going.child.id()));
    going
}

/// The trace contains drops of all namespaces, including drops of other tests.
#[test]
fn root_without_bpf_the_kernels_trace_is_read() {
    testkit::require_root!();
    let Some(tracefs) = Tracefs::mount() else { return };
    let lab = Lab::new("droptrace");
    let mut going = tracing(&tracefs, &lab, &["--watch=0.05"]);
    let pid = going.child.id();
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 9), 500);
    // Half of the datagrams are rejected with the ICMP error of the previous one.
    going.read_until("drops", |read| sum(read, "NO_SOCKET") >= 250);
    let (read, ran) = going.end();
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("read from the kernel's trace, not via BPF"), "{}", ran.stderr);
    let row = read.iter().find(|row| row["reason"] == "NO_SOCKET").unwrap();
    assert!(row["place"].as_str().unwrap().contains("udp") && row["netns_id"].is_null(), "{row}");
    assert!(row["meaning"].as_str().unwrap().starts_with("no socket listens") && row["src"].is_null(), "{row}");
    assert!(tracefs.instance(pid).is_none(), "it is removed at the end");
}

#[test]
fn root_single_drops_of_the_trace_and_instances_of_the_dead() {
    if !crate::drops::counts_drops() {
        return;
    }
    testkit::require_root!();
    let Some(tracefs) = Tracefs::mount() else { return };
    let lab = Lab::new("dropstale");
    let killed = tracing(&tracefs, &lab, &["--for", "60"]);
    let pid = killed.child.id();
    killed.signal("-KILL");
    drop(killed);
    assert!(tracefs.instance(pid).is_some(), "nobody could remove it");
    let mut going = tracing(&tracefs, &lab, &["--events", "--via", "tracefs"]);
    assert!(tracefs.instance(pid).is_none(), "the next run did");
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 9), 10);
    let is_it = |row: &&Value| row["reason"] == "NO_SOCKET" && row["proto"].is_null();
    going.read_until("drops", |read| read.iter().filter(is_it).count() >= 5);
    let (read, ran) = going.end();
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let times: Vec<&str> = read.iter().filter_map(|row| row["time"].as_str()).collect();
    assert!(times.is_sorted() && read.iter().all(|row| row["dport"].is_null()), "{read:?}");
    if has_monitor(&lab) {
        return;
    }
    let mut child = command_for_anyone(&["drops", "-w", "/dev/null"]);
    confine(&mut child, &tracefs.limits(&lab)).unwrap();
    let said = crate::run::Ran::of(child.output().unwrap());
    said.says(4, &["operation not permitted", "it has no bytes of packets", "drop monitor (NET_DM"]);
}

/// Not every kernel has the drop monitor; `cargo xtask kernels` runs this where it exists.
#[test]
fn root_a_missing_drop_monitor_is_reported() {
    testkit::require_root!();
    let lab = Lab::new("nomonitor");
    let file = lab.dir().join("drops.pcapng");
    let file = file.to_str().unwrap();
    if !has_monitor(&lab) {
        for more in [&[][..], &["--events"], &["-w", file]] {
            let args = [&["drops", "--via", "net-dm", "--for", "0.1"], more].concat();
            netwren_in(&lab, &args).says(4, &["drop monitor (NET_DM"]);
        }
    }
}

/// True if this kernel has the drop monitor, built in or as a module.
fn has_monitor(lab: &Lab) -> bool {
    let support = netwren_in(lab, &["support"]).stdout;
    let there = support.lines().find(|line| line.starts_with("counting drops via net-dm")).unwrap();
    !there.contains("this kernel has no drop monitor")
}

#[test]
fn root_dropwatch_counts_by_place() {
    require_drops!();
    let lab = Lab::new("dropwatch");
    let mut child = Command::new(testkit::program::netwren());
    clean(&mut child).args(["dropwatch", "-l", "kas"]);
    confine(&mut child, &[Limit::Network(lab.path())]).unwrap();
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"set alertlimit 0\nstart\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let head: Vec<String> = lines.by_ref().take(7).collect();
    let expected = [
        "Initializing kallsyms db",
        "dropwatch> set alertlimit 0",
        "setting alert capture limit to 0",
        "dropwatch> start",
        "Enabling monitoring...",
        "Kernel monitoring activated.",
        "Issue Ctrl-C to stop monitoring",
    ];
    assert_eq!(head, expected);
    send_once(&lab, "127.0.0.1:0", (LOOPBACK, 9), 20);
    let line = lines.by_ref().find(|line| line.contains(" drops at __udp4_lib_rcv+")).unwrap();
    let (count, rest) = line.split_once(" drops at __udp4_lib_rcv+").unwrap();
    let (offset, address) = rest.strip_suffix(") [software]").unwrap().split_once(" (0x").unwrap();
    // Other tests cause drops as well.
    assert!(count.parse::<u64>().unwrap() >= 10, "{line}");
    let number = |hex: &str| u64::from_str_radix(hex, 16).unwrap();
    assert!(number(address) > number(offset) && number(offset) > 0, "{line}");
    // Ctrl-C ends only monitoring.
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let stopped = lines.by_ref().find(|line| !line.contains(" drops at "));
    assert_eq!(stopped.as_deref(), Some("Got a stop message"));
    stdin.write_all(b"set hw perhaps\n").unwrap();
    let tail: Vec<String> = lines.collect();
    assert_eq!(tail, ["dropwatch> set hw perhaps", "invalid boolean value", "Shutting down ..."]);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
}
