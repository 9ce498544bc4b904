//! `log --to pcap:FILE` and `pcapng:FILE` write the same packets as ulogd2, in files that tcpdump reads.

use crate::going::Going;
use crate::run::clean;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// A namespace whose UDP packets to port 7009 and pings are logged to groups 5 and 6.
pub(crate) fn logging(purpose: &str) -> Lab {
    let lab = Lab::new(purpose);
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           udp dport 7009 log prefix \"out: \" group 5 log prefix \"out: \" group 6
           meta l4proto { icmp, ipv6-icmp } log group 5 log group 6
         }
         chain i { type filter hook input priority 0
           udp dport 7009 log prefix \"in: \" group 5 log prefix \"in: \" group 6
         }
         }",
    );
    lab
}

/// Runs `log` on group 6 with these arguments until it is dropped or ended.
pub(crate) fn shipping(lab: &Lab, words: &[&str], groups: usize) -> Going<String> {
    let mut command = Command::new(testkit::program::netwren());
    clean(&mut command).args(["log", "--group", "6", "--latency", "10ms"]);
    command.args(words);
    confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
    let going = Going::spawn(command, |line| line);
    testkit::wait_until("the groups are bound", || lab.log_groups().len() == groups);
    going
}

/// Sends small and large datagrams over IPv4 and IPv6.
pub(crate) fn send(lab: &Lab) {
    lab.run_inside(|| {
        for (from, to) in [("127.0.0.1:0", "127.0.0.1:7009"), ("[::1]:0", "[::1]:7009")] {
            let socket = UdpSocket::bind(from).unwrap();
            for size in [0, 1, 7, 1400, 20_000] {
                // Repeat if the call returns the ICMP error of the previous datagram.
                while socket.send_to(&vec![b'x'; size], to).is_err() {}
            }
        }
    });
}

/// The header and the sorted packets of a pcap file, without their times; two groups may receive packets in different
/// orders.
fn packets(file: &Path) -> (Vec<u8>, Vec<Vec<u8>>) {
    let bytes = fs::read(file).unwrap_or_default();
    let Some((header, mut rest)) = bytes.split_at_checked(24) else { return Default::default() };
    let mut packets = Vec::new();
    while let Some((head, behind)) = rest.split_at_checked(16) {
        let captured = u32::from_le_bytes(head[8..12].try_into().unwrap()) as usize;
        let Some((packet, behind)) = behind.split_at_checked(captured) else { break };
        packets.push([&head[8..], packet].concat());
        rest = behind;
    }
    packets.sort();
    (header.to_vec(), packets)
}

/// Starts ulogd2 on group 5 with `output` and its settings.
pub(crate) fn ulogd(lab: &Lab, output: &str, settings: &str) {
    let ulogd = testkit::tool::find("ulogd").unwrap();
    let plugins = fs::read_dir("/usr/lib").unwrap().map(|dir| dir.unwrap().path().join("ulogd"));
    let plugins = plugins.into_iter().find(|dir| dir.is_dir()).unwrap();
    let plugin = |name: &str| plugins.join(format!("ulogd_{name}.so"));
    let used = ["inppkt_NFLOG", "raw2packet_BASE", &format!("output_{output}")].map(plugin);
    assert!(used[2].is_file(), "ulogd2's output {output} is a package of its own");
    let loaded: String = used.map(|plugin| format!("plugin=\"{}\"\n", plugin.display())).concat();
    let (config, log) = (lab.dir().join("ulogd.conf"), lab.dir().join("ulogd.log"));
    let text = format!(
        "[global]\nlogfile=\"{}\"\n{loaded}stack=log:NFLOG,base:BASE,out:{output}\n[log]\ngroup=5\n[out]\n{settings}",
        log.display()
    );
    fs::write(&config, text).unwrap();
    lab.spawn(ulogd.to_str().unwrap(), &["-c", config.to_str().unwrap()]);
}

#[test]
fn root_pcap_is_what_ulogd2_writes() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("ulogd");
    let lab = logging("pcapulogd");
    let theirs = lab.dir().join("ulogd.pcap");
    ulogd(&lab, "PCAP", &format!("file=\"{}\"\nsync=1\n", theirs.display()));
    let ours = lab.dir().join("ours.pcap");
    let going = shipping(&lab, &["--to", &format!("pcap:{}", ours.display())], 2);
    send(&lab);
    // Ten datagrams are sent; five of each family are received, and each is rejected with an ICMP error.
    let mut of_both = Default::default();
    testkit::wait_until("both have written as many", || {
        of_both = (packets(&theirs), packets(&ours));
        of_both.0.1.len() >= 30 && of_both.0.1.len() == of_both.1.1.len()
    });
    assert_eq!(of_both.0.0, of_both.1.0, "the file's header");
    for (theirs, ours) in of_both.0.1.iter().zip(&of_both.1.1) {
        let start = |record: &[u8]| format!("{:x?}", &record[..record.len().min(64)]);
        assert_eq!((start(theirs), theirs == ours), (start(ours), true), "lengths and packet");
    }
    going.end().1.ok();
}

#[test]
fn root_pcapng_is_read_by_tcpdump() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("tcpdump");
    let lab = logging("pcapng");
    let file = lab.dir().join("log.pcapng");
    let file = file.to_str().unwrap();
    // The second run continues the file of the first one.
    for _ in 0..2 {
        let going = shipping(&lab, &["--to", &format!("pcapng:{file}")], 1);
        send(&lab);
        going.end().1.ok();
    }
    let read = |filter: &str| {
        let out = Command::new("tcpdump").args(["-n", "-t", "-r", file, filter]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().lines().count()
    };
    assert_eq!(read("udp and dst port 7009 and outbound"), 20);
    assert_eq!(read("udp and dst port 7009 and inbound"), 20);
    assert_eq!(read("udp and dst port 7009 and ip6 and greater 20000"), 4);
}

/// A pcap file of IP packets cannot contain ARP: such records are counted and not written.
#[test]
fn root_records_that_are_not_ip_are_not_in_a_file_of_ip() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("arppcap");
    lab.ip(&["link", "add", "d0", "type", "veth", "peer", "name", "d1"]);
    lab.ip(&["addr", "add", "10.9.9.1/24", "dev", "d0"]);
    ["d0", "d1"].iter().for_each(|name| lab.ip(&["link", "set", name, "up"]));
    lab.nft("table arp t { chain o { type filter hook output priority 0\nlog group 6\n}\n}\n");
    lab.nft("table ip t { chain o { type filter hook output priority 0\nudp dport 7009 log group 6\n}\n}\n");
    let [pcap, pcapng] = ["log.pcap", "log.pcapng"].map(|name| lab.dir().join(name));
    let targets = [&pcap, &pcapng].map(|path| format!("{}:{}", path.extension().unwrap().display(), path.display()));
    let going = shipping(&lab, &["--to", &targets[0], "--to", &targets[1]], 1);
    let shown =
        |path: &Path| crate::run::netwren(&["capture", "-r", path.to_str().unwrap(), "-H", "-c", "proto"]).stdout;
    testkit::wait_until("a datagram and a question for its receiver are logged", || {
        lab.run_inside(|| _ = UdpSocket::bind("10.9.9.1:0").unwrap().send_to(b"x", "10.9.9.2:7009"));
        pcapng.exists() && shown(&pcapng).contains("arp") && shown(&pcapng).contains("udp")
    });
    let ran = going.end().1;
    ran.says(3, &["rows not written to pcap:", "they are not IP (but ARP, for example)"]);
    let (ip, all) = (shown(&pcap), shown(&pcapng));
    assert!(ip.lines().all(|proto| proto == "udp") && !ip.is_empty(), "{ip}");
    assert_eq!(ip.lines().count(), all.lines().filter(|proto| *proto == "udp").count());
}
