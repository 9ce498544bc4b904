//! Compares `netwren conntrack` with the installed conntrack on the same live table: listing, filters, one entry,
//! counters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod conntrack_side_by_side;

use conntrack_side_by_side::{BOTH, OLD, furnished, ours, run, same, same_in_each, text, theirs};
use std::io::{BufRead, Read};
use std::process::Stdio;
use testkit::netns::Lab;
use testkit::{HostKnob, conntrack, require_root, require_tool, tool};

/// True if the installed tool is the version that the face reproduces, or one with the same output.
fn has_a_known_tool() -> bool {
    let known =
        tool::version("conntrack").is_some_and(|v| (tool::Version(1, 4, 7)..=tool::Version(1, 4, 8)).contains(&v));
    if !known {
        eprintln!("skipped: another version of conntrack");
    }
    known
}

/// A table large enough to be walked (`root_the_walk_in_place_of_a_dump` among the tests of `conntrack`).
#[test]
fn root_a_large_table() {
    require_root!();
    require_tool!("conntrack");
    if !has_a_known_tool() {
        return;
    }
    let lab = Lab::new("ctlarge");
    lab.set_conntrack("nf_conntrack_acct", "1");
    lab.set_conntrack("nf_conntrack_timestamp", "1");
    lab.track(conntrack::mixed_entries(6_000));
    for line in [
        "-L",
        "-L -o extended",
        "-L -o extended,id",
        "-L -o ktimestamp,labels",
        "-L -f ipv6",
        "-L -s 10.0.0.5",
        "-L -p tcp --state TIME_WAIT",
        "-L -p udp --dport 53",
        "-L --src-nat -o extended",
        "-L --any-nat",
        "-L -w 2",
        "-L -u ASSURED",
    ] {
        same(&lab, &[], line);
    }
}

/// Command lines that both handle correctly: lists, filters, tables.
const LISTS: &[&str] = &[
    "-L",
    "-L conntrack",
    "-L con",
    "-L dying",
    "-L unconfirmed",
    "-L expect",
    "-L expect -o xml",
    "-Lexpect",
    "--dump",
    "-L -o extended",
    "-L -o id",
    "-L -o ktimestamp",
    "-L -o timestamp",
    "-L -o userspace",
    "-L -o labels",
    "-L -o ext,id,kt",
    "-L -o s",
    "-L -f ipv4",
    "-L -f ipv6",
    "-f ipv6 -L -o extended",
    "-L extra",
    "extra -L",
    "-L -s 192.0.2.1",
    "-L --src 192.0.2.1 --dst 192.0.2.200",
    "-L --orig-s 192.0.2.1",
    "-L -s 192.0.2.0/30",
    "-L -s 192.0.2.1/32",
    "-L -s 0/0",
    "-L -s 3221225985",
    "-L -s 2001:db8::/112",
    "-L -s 2001:db8::1",
    "-L -d 192.0.2.200",
    "-L -d 192.0.2.128/25 -p tcp",
    "-L -s 192.0.2.0 --mask-src 255.255.255.0",
    "-L -d 192.0.2.200 --mask-dst 255.255.255.0",
    "-L -r 198.51.100.2",
    "-L -q 203.0.113.1",
    "-L -r 192.0.2.200 -q 203.0.113.1",
    "-L -p tcp",
    "-L -p TCP",
    "-L -p 6",
    "-L -p 0x11",
    "-L -p esp",
    "-L -p 253",
    "-L -p ipv6-icmp",
    "-L -p tcp --state ESTABLISHED",
    "-L -p tcp --state TIME_WAIT -s 192.0.2.1",
    "-L -p tcp --state LISTEN",
    "-L -p tcp --sport 1000",
    "-L -p tcp --orig-port-src 1000 --orig-port-dst 80",
    "-L -p tcp --dport 80 --reply-port-src 8080",
    "-L -p tcp --reply-port-dst 4000",
    "-L -p udp --dport 53",
    "-L -p udp --dp 54",
    "-L -p sctp --state ESTABLISHED",
    "-L -p sctp --state CLOSED",
    "-L -p icmp --icmp-type 8",
    "-L -p icmp --icmp-type 8 --icmp-code 0 --icmp-id 77",
    "-L -p icmp --icmp-id 9",
    "-L -p icmpv6 --icmpv6-type 128",
    "-L -p dccp",
    "-L -p udplite --sport 7001",
    "-L -p gre",
    "-L -u ASSURED",
    "-L -u SEEN_REPLY,ASSURED",
    "-L -u ass,seen",
    "-L -u UNREPLIED",
    "-L -u !ASSURED",
    "-L -u !SEEN_REPLY,!ASSURED",
    "-L -u UNSET",
    "-L -u SRC_NAT",
    "-L -m 3",
    "-L -m 0",
    "-L -m 0x31/0xf0",
    "-L -m 0x30/0xf0",
    "-L --mark 0x31/0xff -p tcp",
    "-L -c 5",
    "-L -w 5",
    "-L -w 0",
    "-L --zone 6",
    "-L --orig-zone 0",
    "-L --reply-zone 3",
    "-L -n 203.0.113.1",
    "-L -n 203.0.113.9",
    "-L --src-nat 203.0.113.1:4000",
    "-L -n 203.0.113.1:4001",
    "-L -g 198.51.100.2",
    "-L -g 198.51.100.2:8080",
    "-L -g 198.51.100.2 -n 203.0.113.1",
    "-L -p tcp -n",
    "-L -p tcp -g",
    "-L -p tcp -j",
    "-L -p tcp -n -g",
    "-L -z",
    "-C",
    "-C conntrack",
    "-C expect",
    "--counter",
    "-S",
    "-S expect",
    "--stats",
];

#[test]
fn root_lists() {
    require_root!();
    require_tool!("conntrack");
    if !has_a_known_tool() {
        return;
    }
    let lab = furnished("ctlists");
    for line in LISTS {
        same_in_each(&lab, BOTH, line);
    }
}

/// Defects of the tool: its bytes are compared here, and netwren's correct output is checked below.
#[test]
fn root_lists_with_known_defects() {
    require_root!();
    require_tool!("conntrack");
    if !has_a_known_tool() {
        return;
    }
    let lab = furnished("ctdefects");
    for line in [
        "-L -o xml",
        "-L -o xml,id,ktimestamp,labels",
        "-L -o save",
        "-L -f ipv6 -o save",
        "-L -n",
        "-L -g",
        "-L -j",
        "-L -n -g",
        "-L -g 2001:db8::98",
        "-L -p gre --srckey 5",
        "-L -u ASSURED,!SEEN_REPLY",
        "-G -p icmp -s 192.0.2.1 -d 192.0.2.9 --icmp-type 8 --icmp-code 0 --icmp-id 77 -o xml",
        "-G -p udp -r 192.0.2.53 -q 192.0.2.2 --reply-port-src 53 --reply-port-dst 5001",
    ] {
        same(&lab, OLD, line);
    }
    // 1.4.8 fixed this.
    if tool::version("conntrack") == Some(tool::Version(1, 4, 7)) {
        same(&lab, OLD, "-L -m 3 -u ASSURED");
    }
}

fn lines(lab: &Lab, line: &str) -> Vec<String> {
    let output = run(ours(lab, &[], line));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn root_right_where_the_tool_is_wrong() {
    require_root!();
    let lab = furnished("ctright");
    let protocols = |line: &str| {
        let mut all: Vec<String> =
            lines(&lab, line).iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect();
        all.sort_unstable();
        all.join(" ")
    };
    // The tool adds ICMP to entries with another destination, because it stores source and type in the same place.
    assert_eq!(protocols("-L -g"), "tcp tcp tcp");
    assert_eq!(protocols("-L -n"), "icmp tcp tcp");
    assert_eq!(protocols("-L -j"), "icmp tcp tcp tcp tcp");
    assert_eq!(protocols("-L -n -g"), "tcp");
    assert_eq!(protocols("-L -j 198.51.100.2"), "tcp");
    assert_eq!((protocols("-L -g 2001:db8::98"), protocols("-L -g 2001:db8::99")), (String::new(), "tcp".to_owned()));
    assert_eq!(protocols("-L -g [2001:db8::99]:8080"), "tcp");
    assert_eq!(
        (protocols("-L -p gre --srckey 5"), protocols("-L -p gre --srckey 0x1f")),
        (String::new(), "gre".to_owned())
    );
    // An entry in SYN_RECV is seen but not assured.
    assert_eq!(protocols("-L -u SEEN_REPLY,!ASSURED"), "icmpv6 udp");
    assert_eq!(protocols("-L -m 3 -u ASSURED"), "udp");
    assert!(lines(&lab, "-L -o save -m 0x31").join("").contains(" -m 49 "));
    let xml = lines(&lab, "-L -o xml").join("");
    assert!(xml.contains("<layer4 protonum=\"1\" protoname=\"icmp\"><type>8</type><code>0</code><id>77</id></layer4>"));
    assert!(xml.contains("protoname=\"sctp\"") && !xml.contains("<state>FIN_WAIT</state>"));
    let one = "-G -p udp -r 192.0.2.53 -q 192.0.2.2 --reply-port-src 53 --reply-port-dst 5001";
    assert_eq!(protocols(one), "udp");
    let output = run(ours(&lab, &[], "-G -p esp -s 192.0.2.1 -d 192.0.2.9 -o xml"));
    let document = text(&output.stdout);
    assert!(
        document.lines().count() == 4 && document.ends_with("</conntrack>\n"),
        "{document}{}",
        text(&output.stderr)
    );
}

/// The kernel's own filter would leave out exactly the requested entries.
#[test]
fn root_addresses_of_ipv6_in_native_filters() {
    require_root!();
    let lab = furnished("ctsix");
    for filter in ["orig_src = 2001:db8::1", "orig_src = 2001:db8::1 and proto = tcp", "orig_dst = 2001:db8::35"] {
        let out =
            lab.output(testkit::program::netwren(), &["nat", filter, "-H", "--columns", "orig_src,orig_dst,proto"]);
        let expected = if filter.contains("::35") || filter.contains("tcp") { 1 } else { 3 };
        assert_eq!(out.lines().count(), expected, "{filter}: {out}");
    }
}

#[test]
fn root_one_entry() {
    require_root!();
    require_tool!("conntrack");
    let lab = furnished("ctget");
    for line in [
        "-G -p tcp -s 192.0.2.1 -d 192.0.2.200 --sport 1000 --dport 80",
        "-G -p tcp -s 192.0.2.1 -d 192.0.2.200 --sport 1000 --dport 80 -o extended,id",
        "--get -p tcp -s 192.0.2.1 -d 192.0.2.200 --sport 1000 --dport 80 --state ESTABLISHED",
        "-G -p tcp -s 192.0.2.1 -d 192.0.2.200 --sport 1000 --dport 80 --state CLOSE",
        "-G -p udp -s 192.0.2.1 -d 192.0.2.200 --sport 1000 --dport 80",
        "-G -p icmp -s 192.0.2.1 -d 192.0.2.9 --icmp-type 8 --icmp-code 0 --icmp-id 77",
        "-G -p icmpv6 -s 2001:db8::1 -d 2001:db8::9 --icmpv6-type 128 --icmpv6-code 0 --icmpv6-id 79",
        "-G -p gre -s 192.0.2.1 -d 192.0.2.9 --srckey 0x1f --dstkey 0x2f",
        "-G -p sctp -s 192.0.2.1 -d 192.0.2.9 --sport 7000 --dport 3868 -o save",
        "-G -p 253 -s 192.0.2.1 -d 192.0.2.9",
        "-G -p 254 -s 192.0.2.1 -d 192.0.2.9",
        "-G -p udp -s 2001:db8::1 -d 2001:db8::53 --sport 5000 --dport 53",
    ] {
        same_in_each(&lab, BOTH, line);
    }
}

/// Counters, times and NAT from real packets; then the counters are reset.
#[test]
fn root_traffic_with_nat_counters_and_times() {
    require_root!();
    require_tool!("conntrack");
    let lab = Lab::new("cttraffic");
    lab.shares_conntrack();
    lab.set_conntrack("nf_conntrack_acct", "1");
    lab.set_conntrack("nf_conntrack_timestamp", "1");
    let rules = "table ip t {\n chain o {\n type nat hook output priority -100\n udp dport 5300 dnat to \
                 127.0.0.1:5301\n }\n chain p {\n type nat hook postrouting priority 100\n udp dport 5400 snat to \
                 127.0.0.9\n }\n}\n";
    let file = lab.dir().join("nat.nft");
    std::fs::write(&file, rules).unwrap();
    lab.output("nft", &["-f", file.to_str().unwrap()]);
    lab.run_inside(|| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:5999").unwrap();
        for port in [5300, 5400, 5500] {
            // The port is closed, so an ICMP error comes back.
            let _ = socket.send_to(b"netwren", ("127.0.0.1", port));
        }
        let six = std::net::UdpSocket::bind("[::1]:5998").unwrap();
        let _ = six.send_to(b"netwren", ("::1", 5500));
    });
    lab.connect_v4(2);
    lab.connect_v6(1);
    lab.time_wait(1);
    for line in ["-L", "-L -o extended,id,ktimestamp", "-L -p udp -n", "-L -p udp -g", "-L -p tcp", "-S", "-C"] {
        same_in_each(&lab, BOTH, line);
    }
    for line in ["-L -o xml", "-L -o xml,ktimestamp", "-L -o save"] {
        same(&lab, OLD, line);
    }
    assert!(lines(&lab, "-L -p udp -z").is_empty(), "filters and -z do not go together");
    assert!(lines(&lab, "-L -z").iter().any(|line| line.contains("dport=5500 packets=1 bytes=35 ")));
    assert!(lines(&lab, "-L").iter().any(|line| line.contains("dport=5500 packets=0 bytes=0 ")));
}

#[test]
fn root_an_empty_table_and_a_large_one() {
    require_root!();
    require_tool!("conntrack");
    let lab = Lab::new("ctsizes");
    lab.shares_conntrack();
    for line in ["-L", "-L -o xml", "-L -o save", "-C", "-D", "-F"] {
        same_in_each(&lab, BOTH, line);
    }
    lab.track(conntrack::mixed_entries(3_000));
    for line in ["-L -o extended,id", "-L -p tcp --state ESTABLISHED", "-L -s 10.0.0.2", "-L -q 203.0.113.3"] {
        same_in_each(&lab, BOTH, line);
    }
    for line in ["-L -o xml", "-L -o save", "-L -g", "-L -j"] {
        same(&lab, OLD, line);
    }
}

/// A resize during a dump may lose or duplicate entries: this is reported, and the exit code shows it.
#[test]
fn root_issue_10_a_table_that_is_resized_under_a_dump_fails() {
    require_root!();
    const BUCKETS: &str = "/proc/sys/net/netfilter/nf_conntrack_buckets";
    let _knob = HostKnob::set(BUCKETS, "16384");
    let lab = Lab::new("ctresized");
    lab.track(conntrack::mixed_entries(6_000));
    for (before, line, buckets) in [(&[][..], "-L -o id", "65536"), (OLD, "-L", "32768")] {
        let mut child = ours(&lab, before, line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        // The rest does not fit into the pipe, so the reading waits.
        out.read_exact(&mut [0; 100]).unwrap();
        std::fs::write(BUCKETS, buckets).unwrap();
        let lines = std::io::BufReader::new(out).lines().count();
        let ended = child.wait_with_output().unwrap();
        let says = text(&ended.stderr);
        assert!(
            lines > 1_000 && says.contains("resized while it was read") && says.contains("have been shown"),
            "{says}"
        );
        assert_eq!(ended.status.code(), Some(1), "{line}: {says}");
    }
}

/// The file of label names is where the tool expects it, in a separate mount namespace.
#[test]
fn root_labels() {
    require_root!();
    require_tool!("conntrack");
    let lab = furnished("ctlabels");
    let etc = lab.dir().join("etc");
    std::fs::create_dir_all(etc.join("xtables")).unwrap();
    std::fs::write(etc.join("xtables/connlabel.conf"), "# bits\n0 audit\n1\tweb\n0x9 far away\n3 no,good\n").unwrap();
    let inside = |program: &std::path::Path, args: &[&str]| {
        let script = format!("mount --bind {} /etc && exec \"$0\" \"$@\"", etc.display());
        let mut command = lab.command("sh");
        command.args(["-c", &script]).arg(program).args(args);
        conntrack_side_by_side::comparable(&run(command), false)
    };
    for line in [
        "-L -o labels",
        "-L -o labels,id,extended",
        "-L -l audit",
        "-L -l web",
        "-L -l audit -l web",
        "-L -l audit,web",
        "-L -l none",
        "-U -s 192.0.2.3 --label-add audit,web -f ipv4",
        "-U -s 192.0.2.1 -p tcp --sport 1000 --label-add web",
        "-L -o labels,ext",
        "-U -s 192.0.2.1 -p tcp --sport 1000 --label-del audit",
        "-L -o labels,id",
        "-U -s 192.0.2.3 --label-del -f ipv4",
        "-U -s 192.0.2.3 --label-add audit --label-del web",
    ] {
        // Making a change twice has no effect the second time, so the programs take turns going first.
        let args: Vec<&str> = line.split(' ').collect();
        let ours = [&["conntrack"][..], &args].concat();
        if line.starts_with("-L") {
            assert_eq!(inside("conntrack".as_ref(), &args), inside(testkit::program::netwren(), &ours), "{line}");
            continue;
        }
        let said = inside(testkit::program::netwren(), &ours);
        assert!(!said.contains("panicked"), "{said}");
    }
    let args = ["-L", "-o", "labels"];
    let now = inside("conntrack".as_ref(), &args);
    assert!(
        now.lines().any(|line| line.contains("sport=1000 dport=80 ") && line.ends_with(" labels=web,far away")),
        "{now}"
    );
    assert!(!now.lines().any(|line| line.contains("src=192.0.2.3 ") && line.contains("labels=")), "{now}");
    let xml = inside(testkit::program::netwren(), &["conntrack", "-L", "-o", "xml,labels"]);
    assert!(xml.contains("<labels><label>web</label><label>far away</label></labels>"), "{xml}");
}

#[test]
fn root_expectations() {
    require_root!();
    require_tool!("conntrack");
    let lab = furnished("ctexpect");
    let made = "-I expect -p tcp -s 192.0.2.4 -d 192.0.2.210 --sport 2100 --dport 21 -t 300 --tuple-src 192.0.2.210 \
                --tuple-dst 192.0.2.4 --tuple-port-src 0 --tuple-port-dst 3000 --mask-src 255.255.255.255 \
                --mask-dst 255.255.255.255 --mask-port-src 0 --mask-port-dst 65535";
    let output = run(ours(&lab, &[], made));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let listed = lines(&lab, "-L expect");
    assert!(listed[0].contains(" proto=6 src=192.0.2.210 dst=192.0.2.4 sport=0 dport=3000 mask-src="), "{listed:?}");
    for line in ["-L expect", "-L expect -o xml", "-L expect -f ipv6", "-C expect", "-S expect"] {
        same_in_each(&lab, BOTH, line);
    }
    let one = "expect -p tcp -s 192.0.2.210 -d 192.0.2.4 --sport 0 --dport 3000 --reply-port-src 0 --reply-port-dst 0";
    same_in_each(&lab, BOTH, &format!("-G {one}"));
    let deleted = run(ours(&lab, &[], &format!("-D {one}")));
    assert_eq!(deleted.status.code(), Some(0), "{deleted:?}");
    assert!(text(&deleted.stderr).ends_with(": 1 expectations have been deleted.\n"));
    same_in_each(&lab, BOTH, &format!("-D {one}"));
    assert_eq!(run(ours(&lab, &[], made)).status.code(), Some(0));
    // Ours counts it, the tool does not.
    let old = run(ours(&lab, OLD, &format!("-D {one}")));
    assert!(text(&old.stderr).ends_with(": 0 expectations have been shown.\n") && old.status.code() == Some(1));
    assert_eq!(run(theirs(&lab, "-C expect")).stdout, b"0\n");
    same_in_each(&lab, BOTH, "-F expect");
}

#[test]
fn root_without_rights() {
    require_root!();
    require_tool!("conntrack");
    require_tool!("setpriv");
    let lab = furnished("ctrights");
    let nobody = |program: &std::path::Path, args: &[&str]| {
        let mut command = lab.command("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program).args(args);
        conntrack_side_by_side::comparable(&run(command), false)
    };
    // A path from which the other user can run it.
    let program = lab.dir().join("netwren");
    testkit::program::install(testkit::program::netwren(), &program, 0o755);
    for line in [
        "-L",
        "-L expect",
        "-D",
        "-F",
        "-C",
        "-S",
        "-E",
        "-E expect",
        "-h",
        "-V",
        "-U -m 1",
        "-G -p esp -s 1.1.1.1 -d 2.2.2.2",
    ] {
        // 1.4.8 corrected a word in the help.
        let old = line != "-h" || tool::version("conntrack") == Some(tool::Version(1, 4, 7));
        let args: Vec<&str> = line.split(' ').collect();
        let old = [&["conntrack"][..], if old { OLD } else { &[] }, &args].concat();
        assert_eq!(nobody("conntrack".as_ref(), &args), nobody(&program, &old), "{line}");
    }
}
