//! The real tcpdump reads the output of the packet writers.
#![allow(clippy::unwrap_used)]

use packet_files::formats::{Pcap, PcapNg};
use record::rows::LogRecord;
use record::{Key, Lookup, LookupId, Lookups, Value};
use std::io::Write;
use std::process::{Command, Stdio};

/// Gives every interface this name.
struct Names;

impl Lookup for Names {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Pair(_, 2) => Value::Bytes(b"eth0"),
            Key::Pair(_, _) => Value::Bytes(b"wlan0"),
            _ => Value::Null,
        }
    }
}

/// UDP from port 1234 to 53 over IPv4: 8 bytes of header and 8 bytes of data.
const V4: &[u8] = &[
    0x45, 0, 0, 36, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0x04, 0xd2, 0x1f, 0x40, 0, 16, 0, 0, 1, 2, 3,
    4, 5, 6, 7, 8,
];
/// UDP over IPv6, whose data was not copied.
const V6: &[u8] = &[
    0x60, 0, 0, 0, 0, 16, 17, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x20, 1, 0xd, 0xb8, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 2, 0x04, 0xd2, 0x1f, 0x40, 0, 16, 0, 0,
];

/// An ARP request for 192.0.2.2.
const ARP: &[u8] = &[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2];

fn rows() -> [LogRecord<'static>; 3] {
    let v4 = LogRecord {
        time_ns: 1_795_265_034_699_260_123,
        family: 2,
        hook: 1,
        ether_type: 0x0800,
        in_ifindex: Some(2),
        prefix: b"web: ",
        payload: V4,
        ..LogRecord::default()
    };
    let v6 = LogRecord { hook: 3, ether_type: 0x86dd, in_ifindex: None, out_ifindex: Some(3), payload: V6, ..v4 };
    let arp = LogRecord { family: 3, ether_type: 0x0806, payload: ARP, ..v4 };
    [v4, v6, arp]
}

fn tcpdump(args: &[&str], file: &[u8]) -> Vec<String> {
    let mut child = Command::new("tcpdump")
        .args(["-r", "-", "-n"])
        .args(args)
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(file).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

const UDP4: &str = "IP 192.0.2.1.1234 > 192.0.2.2.8000: UDP, length 8";
const UDP6: &str = "IP6 2001:db8::1.1234 > 2001:db8::2.8000: UDP, length 8";

#[test]
fn tcpdump_reads_pcap() {
    testkit::require_tool!("tcpdump");
    let mut writer = Pcap::new();
    let mut file = writer.header();
    rows().iter().for_each(|row| writer.write(row, &Lookups::empty(), &mut file));
    let lines = tcpdump(&["-tt"], &file);
    assert_eq!(lines[..2], [format!("1795265034.699260 {UDP4}"), format!("1795265034.699260 {UDP6}")]);
    assert_eq!(lines.len(), 3, "ARP is a packet that it does not know: {lines:?}");
    let filtered = tcpdump(&["-t", "udp and dst port 8000 and ip6 and greater 56"], &file);
    assert_eq!(filtered, [UDP6], "the original length");
}

#[test]
fn tcpdump_reads_pcapng() {
    testkit::require_tool!("tcpdump");
    let lookups = Lookups::empty().with_lookup(LookupId::Ifaces, &Names);
    let mut writer = PcapNg::new();
    let mut sections = [Vec::new(), Vec::new(), Vec::new()];
    for section in &mut sections {
        writer.begin_section();
        rows().iter().for_each(|row| writer.write(row, &[], &lookups, section));
    }
    // One section was lost on its way to the file.
    let file = [&sections[0][..], &sections[2]].concat();
    let lines = tcpdump(&["-tt", "--nano"], &file);
    let arp = "ARP, Request who-has 192.0.2.2 tell 192.0.2.1, length 28";
    let packets = [UDP4, UDP6, arp];
    assert_eq!(
        lines,
        [packets, packets].concat().iter().map(|packet| format!("1795265034.699260123 {packet}")).collect::<Vec<_>>()
    );
    assert_eq!(tcpdump(&["-t", "outbound"], &file), [UDP6, UDP6]);
}
