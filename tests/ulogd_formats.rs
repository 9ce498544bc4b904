//! Compares `log --to logemu:FILE` and the other formats of ulogd2 with ulogd2's output for the same packets.

use crate::run::clean;
use crate::ulogd_packets::send_all;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// A time zone that needs no files: two and a half hours east of UTC.
const ZONE: &str = "XYZ-2:30";

/// A receiver whose bridge is connected to the sender.
fn cable() -> (Lab, Lab) {
    let (receiver, sender) = (Lab::new("ulogdrecv"), Lab::new("ulogdsend"));
    receiver.ip(&["link", "add", "br0", "type", "bridge"]);
    receiver.ip(&["link", "set", "br0", "address", "02:00:00:00:00:01", "up"]);
    let veth = ["link", "add", "port0", "type", "veth", "peer", "name", "ve0", "netns", sender.name()];
    receiver.ip(&veth);
    receiver.ip(&["link", "set", "port0", "master", "br0", "up"]);
    receiver.ip(&["addr", "add", "192.0.2.1/24", "dev", "br0"]);
    receiver.ip(&["addr", "add", "2001:db8::1/64", "dev", "br0", "nodad"]);
    sender.ip(&["link", "set", "ve0", "address", "02:00:00:00:00:10", "up"]);
    sender.ip(&["addr", "add", "192.0.2.10/24", "dev", "ve0"]);
    sender.ip(&["addr", "add", "2001:db8::10/64", "dev", "ve0", "nodad"]);
    for address in ["192.0.2.1", "2001:db8::1"] {
        sender.ip(&["neigh", "add", address, "lladdr", "02:00:00:00:00:01", "dev", "ve0"]);
    }
    (receiver, sender)
}

/// Logs incoming and outgoing packets to four groups from now on. The prefixes contain a backslash, a percent sign and
/// UTF-8 letters.
fn log_all(lab: &Lab) {
    let log = |prefix: &str| {
        // An empty prefix is the same as none for the kernel; newer versions of nft reject an empty one.
        let prefix = if prefix.is_empty() { String::new() } else { format!("prefix \"{prefix}\" ") };
        let to = |group: u16| format!("log {prefix}group {group}");
        [5, 6, 7, 8].map(to).join(" ")
    };
    let chain = |family: &str, hook: &str, device: &str, prefix: &str, verdict: &str| {
        let log = log(prefix);
        format!(
            "table {family} t_{hook} {{ chain c {{ type filter hook {hook} {device} priority -300
             {log} {verdict}\n}}\n}}\n"
        )
    };
    lab.nft(
        &[
            chain("netdev", "ingress", "device port0", "nd: ", ""),
            chain("bridge", "input", "", "br\\x%s: ", ""),
            chain("bridge", "output", "", "br-größe", ""),
            chain("arp", "input", "", "arp: ", ""),
            chain("ip", "prerouting", "", "ip4: ", ""),
            chain("ip6", "prerouting", "", "ip6: ", ""),
            chain("ip", "output", "", "", "meta mark set 0xabc"),
        ]
        .concat(),
    );
}

/// The ends of LOGEMU lines for the same packets, from the tool and from netwren without `NETWREN_BUG_COMPATIBLE`;
/// docs/ulogd.md explains each difference.
const DIFFERENCES: [(&str, &str); 18] = [
    ("PROTO=UDP SPT=26214 DPT=26214 LEN=26214", "PROTO=UDP"),
    ("PROTO=TCP SPT=26214 DPT=26214 SEQ=1717986918 ACK=1717986918 WINDOW=26214 URG RST SYN URGP=26214", "PROTO=TCP"),
    ("PROTO=ESP INCOMPLETE", "PROTO=ESP SPI=0x1001"),
    ("PROTO=AH INCOMPLETE", "PROTO=AH SPI=0x1002"),
    ("PROTO=ICMP TYPE=3 CODE=0 ID=0 SEQ=0", "PROTO=ICMP TYPE=3 CODE=0"),
    ("PROTO=ICMP TYPE=3 CODE=4", "PROTO=ICMP TYPE=3 CODE=4 MTU=772"),
    ("PROTO=ICMP TYPE=3 CODE=5 GATEWAY=0.0.0.0", "PROTO=ICMP TYPE=3 CODE=5"),
    ("PROTO=ICMP TYPE=3 CODE=12 PARAMETER=0", "PROTO=ICMP TYPE=3 CODE=12"),
    ("PROTO=ICMP TYPE=5 CODE=0 ID=0 SEQ=0", "PROTO=ICMP TYPE=5 CODE=0 GATEWAY=1.2.3.4"),
    ("PROTO=ICMP TYPE=5 CODE=1", "PROTO=ICMP TYPE=5 CODE=1 GATEWAY=1.2.3.4"),
    ("PROTO=ICMP TYPE=11 CODE=0 ID=0 SEQ=0", "PROTO=ICMP TYPE=11 CODE=0"),
    ("PROTO=ICMP TYPE=12 CODE=0 ID=0 SEQ=0", "PROTO=ICMP TYPE=12 CODE=0 PARAMETER=1"),
    ("PROTO=ICMP TYPE=13 CODE=0 ID=0 SEQ=0", "PROTO=ICMP TYPE=13 CODE=0 ID=258 SEQ=772"),
    ("PROTO=0", "PROTO=TCP INCOMPLETE"),
    ("PROTO=SCTP INCOMPLETE", "PROTO=SCTP SPT=1000 DPT=2000"),
    ("PROTO=AH INCOMPLETE", "PROTO=ESP SPI=0x1001"),
    ("PROTO=UDP INCOMPLETE", "PROTO=UDP"),
    ("PROTO=TCP INCOMPLETE", "PROTO=TCP"),
];

/// The name of a format, its stack in ulogd2, and its options; the name is also the file name.
const FORMATS: [(&str, &str, &str); 6] = [
    ("logemu", "print1:PRINTPKT,out1:LOGEMU", ""),
    ("json-v0", "hw1:HWHDR,out2:JSON", ""),
    ("json-v1", "hw1:HWHDR,out3:JSON", "eventv1=1\n"),
    ("gprint", "hw1:HWHDR,out4:GPRINT", "timestamp=1\n"),
    ("oprint", "hw1:HWHDR,out5:OPRINT", ""),
    ("xml", "out6:XML", ""),
];

/// An ulogd.conf that writes records of `group` to files in `dir`, with one stack for each format.
fn config(dir: &Path, group: u16) -> PathBuf {
    fs::create_dir_all(dir).unwrap();
    let shown = dir.display();
    let mut config = format!("[global]\nlogfile=\"{shown}/ulogd.log\"\n");
    let mut sections = format!("[log1]\ngroup={group}\nnetlink_qthreshold=1\n");
    for (index, (format, stages, options)) in FORMATS.iter().enumerate() {
        let decoders = if *format == "xml" { "" } else { "base1:BASE,ifi1:IFINDEX,ip2str1:IP2STR," };
        config += &format!("stack=log1:NFLOG,{decoders}{stages}\n");
        let place = match *format {
            "xml" => format!("directory=\"{shown}/\""),
            _ => format!("file=\"{shown}/{format}\""),
        };
        sections += &format!("[out{}]\n{place}\nsync=1\n{options}", index + 1);
    }
    let file = dir.join("ulogd.conf");
    fs::write(&file, config + &sections).unwrap();
    file
}

/// Runs the real tool in the lab until the lab ends; returns its folder.
fn ulogd(lab: &Lab) -> PathBuf {
    let dir = lab.dir().join("theirs");
    let (zone, file) = (format!("TZ={ZONE}"), config(&dir, 5));
    let ulogd = testkit::tool::find("ulogd").unwrap();
    lab.spawn("env", &[&zone, ulogd.to_str().unwrap(), "-c", file.to_str().unwrap()]);
    dir
}

/// A netwren that reads a group.
struct Ours {
    child: Child,
    dir: PathBuf,
}

impl Ours {
    fn start(lab: &Lab, name: &str, group: &str, old_bytes: bool) -> Ours {
        let dir = lab.dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        let mut command = Command::new(testkit::program::netwren());
        clean(&mut command).args(["log", "--group", group, "--latency", "10ms", "--copy", "65535"]).env("TZ", ZONE);
        if old_bytes {
            command.env("NETWREN_BUG_COMPATIBLE", "1");
        }
        for (format, ..) in FORMATS {
            command.args(["--to", &format!("{format}:{}", dir.join(format).display())]);
        }
        confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
        Ours { child: command.spawn().unwrap(), dir }
    }

    /// The face, with the tool's configuration.
    fn face(lab: &Lab, group: u16) -> Ours {
        let dir = lab.dir().join("face");
        let mut command = Command::new(testkit::program::netwren());
        clean(&mut command).args(["ulogd", "--bug-compatible", "-v", "-c"]).arg(config(&dir, group)).env("TZ", ZONE);
        confine(&mut command, &[Limit::Network(lab.path())]).unwrap();
        Ours { child: command.spawn().unwrap(), dir }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The masked messages of a format.
fn messages(dir: &Path, format: &str) -> Vec<String> {
    let file = match format {
        "xml" => fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).find(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name == "xml" || name.ends_with(".xml")
        }),
        _ => Some(dir.join(format)),
    };
    let text = fs::read_to_string(file.unwrap()).unwrap();
    let begin = if format == "oprint" { "===>" } else { "" };
    let mut messages: Vec<String> = Vec::new();
    // XML has a header.
    for line in text.lines().filter(|line| format != "xml" || line.starts_with("<log>")) {
        match messages.last_mut() {
            Some(message) if !line.starts_with(begin) => *message += &format!("\n{}", mask(line)),
            _ => messages.push(mask(line)),
        }
    }
    messages
}

/// Masks the differences between two readers: the times of packets without a kernel timestamp, and addresses in ARP
/// packets, which ulogd2 reads from the wrong place.
fn mask(line: &str) -> String {
    let mut line = line.to_owned();
    if line.contains(" vm") || line.contains(" IN=") {
        line.replace_range(..15.min(line.len()), "TIME");
    }
    for (marker, len) in [("timestamp\": \"", 26), ("timestamp=", 19)] {
        if let Some(at) = line.find(marker).map(|at| at + marker.len()) {
            line.replace_range(at..at + len, "TIME");
        }
    }
    let numbers = ["oob.time.sec\": ", "oob.time.usec\": ", "oob.time.sec=", "oob.time.usec="];
    let addresses = ["arp.saddr=", "arp.daddr=", "arp.saddr.str=", "arp.daddr.str="];
    let quoted = ["arp.saddr.str\": \"", "arp.daddr.str\": \""];
    let mut markers: Vec<&str> = [&numbers[..], &addresses, &quoted].concat();
    if line.contains("PROTO=ARP") {
        markers.extend(["SRC=", "DST="]);
    }
    for marker in markers {
        if let Some(at) = line.find(marker).map(|at| at + marker.len()) {
            let end = line[at..].find(|c: char| !c.is_ascii_digit() && c != '.').map_or(line.len(), |end| at + end);
            line.replace_range(at..end, "#");
        }
    }
    if let (Some(from), Some(to)) = (line.find("<when>"), line.find("</when>")) {
        line.replace_range(from..to, "<when>");
    }
    line
}

#[test]
fn root_log_writes_what_ulogd2_writes() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    testkit::require_tool!("ulogd");
    let (receiver, sender) = cable();
    let theirs = ulogd(&receiver);
    let old = Ours::start(&receiver, "old", "6", true);
    let new = Ours::start(&receiver, "new", "7", false);
    let face = Ours::face(&receiver, 8);
    receiver.wait_until("all groups are bound", || receiver.log_groups().len() == 4);
    log_all(&receiver);
    send_all(&sender, &receiver);
    let dirs = [&theirs, &old.dir, &new.dir, &face.dir];
    for (format, ..) in FORMATS {
        let mut of_all: [Vec<String>; 4] = Default::default();
        receiver.wait_until(&format!("all have written {format}"), || {
            of_all = dirs.map(|dir| messages(dir, format));
            let count = of_all[0].len();
            count > 100 && of_all.iter().all(|messages| messages.len() == count && has_last(messages))
        });
        // Two CPUs may log two packets to different groups in different orders.
        of_all.iter_mut().for_each(|messages| messages.sort());
        let [theirs, old, new, face] = &of_all;
        let missing = |these: &Vec<String>, others: &Vec<String>| -> Vec<String> {
            these.iter().filter(|line| !others.contains(line)).cloned().collect()
        };
        assert_eq!(missing(old, theirs), missing(theirs, old), "{format}: ours, theirs");
        assert_eq!((old, face), (theirs, theirs), "{format}");
        if format == "logemu" {
            let mut wanted = DIFFERENCES.map(|(theirs, _)| theirs);
            wanted.sort_unstable();
            assert_eq!(only_in(theirs, new), wanted, "what the tool writes otherwise");
            let mut wanted = DIFFERENCES.map(|(_, new)| new);
            wanted.sort_unstable();
            assert_eq!(only_in(new, theirs), wanted, "what is right by default");
        }
    }
}

/// True if the last packet has been written: its protocol has no name, and XML contains its header.
fn has_last(messages: &[String]) -> bool {
    let words = ["PROTO=254 ", "ip.protocol\": 254,", "ip.protocol=254", "<payload>45000018123440003ffe"];
    messages.iter().any(|message| words.iter().any(|word| message.contains(word)))
}

/// The sorted ends of lines about packets in IP chains that occur only in `these`.
fn only_in(these: &[String], others: &[String]) -> Vec<String> {
    let with_blank = |line: &String| line.replace("INCOMPLETEMARK", "INCOMPLETE MARK");
    let mut others: Vec<String> = others.iter().map(with_blank).collect();
    let of_ip = these.iter().filter(|line| line.contains(" ip4: ") || line.contains(" ip6: ")).map(with_blank);
    let mut ends: Vec<String> = of_ip
        .filter(|line| match others.iter().position(|other| other == line) {
            Some(same) => {
                others.swap_remove(same);
                false
            }
            None => true,
        })
        .map(|line| tail(&line).to_owned())
        .collect();
    ends.sort();
    ends
}

/// The part of a line from the protocol to the mark.
fn tail(line: &str) -> &str {
    let from = line.find("PROTO=").unwrap_or(0);
    line[from..].trim_end_matches("MARK=0x0 ").trim_end()
}
