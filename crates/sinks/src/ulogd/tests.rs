#![allow(clippy::unwrap_used)]
use super::*;
use crate::LocalTime;
use proptest::collection::vec;
use proptest::prelude::*;
use record::rows::{Fragment, IcmpHeader, LogRecord, PacketHeaders, TcpHeader, Transport};
use record::{Addr, Key, Lookup, LookupId, Lookups, Value};

struct Names;

impl Lookup for Names {
    fn value(&self, key: Key) -> Value<'_> {
        match key {
            Key::Pair(7, 2) => Value::Bytes(b"eth0"),
            Key::Pair(7, 3) => Value::Bytes(b"a\nb"),
            Key::Pair(7, 4) => Value::Bytes(b"a,b=c"),
            _ => Value::Null,
        }
    }
}

/// Sunday, 13:03:04, two and a half hours east of UTC.
fn zone(_: i64) -> Option<LocalTime> {
    Some(LocalTime { year: 2026, month: 2, day: 1, hour: 13, minute: 3, second: 4, weekday: 0, utc_offset_s: 9000 })
}

const OPTIONS: UlogdStyle = UlogdStyle { zone, bug_compatible: false };
const OLD: UlogdStyle = UlogdStyle { bug_compatible: true, ..OPTIONS };
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10, 8, 0];
/// 192.0.2.10 → 192.0.2.1, without a checksum.
const IPV4: [u8; 20] = [0x45, 0xb8, 0, 60, 0x12, 0x34, 0x40, 0, 63, 6, 0, 0, 192, 0, 2, 10, 192, 0, 2, 1];
/// 40000 → 443, SYN and ACK.
const TCP: [u8; 20] = [0x9c, 0x40, 1, 187, 0, 0, 0, 5, 0, 0, 0, 9, 0x50, 0x12, 0xfa, 0xf0, 0xab, 0xcd, 0, 7];

fn row<'b>(payload: &'b [u8], packet: PacketHeaders<'b>) -> LogRecord<'b> {
    LogRecord {
        time_ns: 1_795_265_034_000_042_999,
        netns_id: 7,
        family: 2,
        hook: 1,
        prefix: b"in: ",
        in_ifindex: Some(2),
        ether_type: 0x800,
        hw_header: &ETHERNET,
        hw_addr: &ETHERNET[6..12],
        hw_type: Some(1),
        payload,
        packet: Some(packet),
        ..LogRecord::default()
    }
}

fn v4<'b>(proto: u8, payload: &'b [u8]) -> PacketHeaders<'b> {
    PacketHeaders {
        src: Addr::V4([192, 0, 2, 10]),
        dst: Addr::V4([192, 0, 2, 1]),
        proto,
        length: 60,
        ttl: 63,
        tos: 0xb8,
        id: 0x1234,
        dont_fragment: true,
        header: &IPV4,
        payload,
        ..PacketHeaders::default()
    }
}

fn tcp() -> PacketHeaders<'static> {
    let tcp = TcpHeader { sport: 40_000, dport: 443, seq: 5, ack: 9, flags: 0x12, window: 64_240 };
    PacketHeaders { transport: Transport::Tcp(tcp), ..v4(6, &TCP) }
}

fn text(write: impl FnOnce(&Lookups<'_>, &mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&Lookups::empty().with_lookup(LookupId::Ifaces, &Names), &mut out);
    String::from_utf8(out).unwrap()
}

fn emu(row: &LogRecord<'_>, options: UlogdStyle) -> String {
    text(|lookups, out| Logemu::new(b"vm.example.org", options).write(row, lookups, out))
}

/// Returns the text from the protocol to the mark.
fn layer4(packet: PacketHeaders<'_>, options: UlogdStyle) -> String {
    let line = emu(&row(&[], packet), options);
    let from = line.find("PROTO=").unwrap();
    line[from..].trim_end_matches(" MARK=0x0 \n").trim_end_matches("MARK=0x0 \n").to_owned()
}

#[test]
fn a_line_of_logemu() {
    let line = emu(&row(&[], tcp()), OPTIONS);
    let wanted = "Feb  1 13:03:04 vm in:  IN=eth0 OUT= MAC=02:00:00:00:00:01:02:00:00:00:00:10:08:00 SRC=192.0.2.10 \
                  DST=192.0.2.1 LEN=60 TOS=18 PREC=0xA0 TTL=63 ID=4660 DF PROTO=TCP SPT=40000 DPT=443 SEQ=5 ACK=9 \
                  WINDOW=64240 ACK SYN URGP=7 MARK=0x0 \n";
    assert_eq!(line, wanted);
    let sent = LogRecord { uid: Some(0), gid: Some(9), mark: Some(0xabc), hw_header: &[], ..row(&[], tcp()) };
    let line = emu(&LogRecord { in_ifindex: None, out_ifindex: Some(9), ..sent }, OPTIONS);
    assert!(line.contains("in:  IN= OUT= MAC= SRC="), "{line}");
    assert!(line.ends_with("URGP=7 UID=0 GID=9 MARK=0xabc \n"), "{line}");
    let message = text(|lookups, out| Logemu::new(b"vm", OPTIONS).write_message(&row(&[], tcp()), lookups, out));
    assert!(message.starts_with("in:  IN=eth0 ") && message.ends_with(" MARK=0x0 "), "{message}");
}

#[test]
fn what_follows_ip_in_logemu() {
    let icmp = |bytes: &'static [u8; 8]| v4(1, bytes);
    let later = PacketHeaders { fragment: Some(Fragment { offset: 32, more: false }), ..v4(17, b"ffffffff") };
    for (packet, new, old) in [
        (icmp(&[8, 0, 0, 0, 1, 2, 3, 4]), "PROTO=ICMP TYPE=8 CODE=0 ID=258 SEQ=772", None),
        (icmp(&[3, 4, 0, 0, 0, 0, 5, 0]), "PROTO=ICMP TYPE=3 CODE=4 MTU=1280", Some("PROTO=ICMP TYPE=3 CODE=4")),
        (icmp(&[3, 5, 0, 0, 0, 0, 0, 0]), "PROTO=ICMP TYPE=3 CODE=5", Some("PROTO=ICMP TYPE=3 CODE=5 GATEWAY=0.0.0.0")),
        (
            icmp(&[5, 1, 0, 0, 192, 0, 2, 9]),
            "PROTO=ICMP TYPE=5 CODE=1 GATEWAY=192.0.2.9",
            Some("PROTO=ICMP TYPE=5 CODE=1"),
        ),
        (
            icmp(&[12, 0, 0, 0, 7, 0, 0, 0]),
            "PROTO=ICMP TYPE=12 CODE=0 PARAMETER=7",
            Some("PROTO=ICMP TYPE=12 CODE=0 ID=0 SEQ=0"),
        ),
        (later, "PROTO=UDP", Some("PROTO=UDP SPT=26214 DPT=26214 LEN=26214")),
        (v4(6, &TCP[..19]), "PROTO=TCP INCOMPLETE", Some("PROTO=TCP INCOMPLETE")),
        (v4(50, &[0, 0, 0x10, 1, 0, 0, 0, 2]), "PROTO=ESP SPI=0x1001", Some("PROTO=ESP INCOMPLETE")),
        (v4(253, &[]), "PROTO=253", None),
        (v4(132, &[3, 0xe8, 7, 0xd0, 0, 0, 0, 0, 0, 0, 0, 8]), "PROTO=SCTP SPT=1000 DPT=2000", None),
    ] {
        assert_eq!(layer4(packet, OPTIONS), new);
        // Unlike the tool, netwren fully reads a packet that ends after its header.
        if !packet.payload.is_empty() {
            assert_eq!(layer4(packet, OLD), old.unwrap_or(new));
        }
    }
}

#[test]
fn arp_in_logemu() {
    let request = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0x40, 192, 0, 2, 40, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1];
    let mut reply = request;
    reply[7] = 2;
    for (payload, words) in [(request, "ARP REQUEST"), (reply, "ARP REPLY REPLY_MAC=02:00:00:00:00:40")] {
        let row = LogRecord { family: 7, ether_type: 0x806, payload: &payload, packet: None, ..row(&[], tcp()) };
        let line = emu(&row, OPTIONS);
        assert!(line.ends_with(&format!(" SRC=192.0.2.40 DST=192.0.2.1 PROTO={words} MARK=0x0 \n")), "{line}");
    }
}

#[test]
fn no_text_from_outside_ends_a_line() {
    let forged = LogRecord {
        prefix: b"a\nFeb  1 13:03:04 vm fw: \x1b[0m\\\xff<",
        in_ifindex: Some(3),
        packet: None,
        ..row(b"", tcp())
    };
    for options in [OPTIONS, OLD] {
        let line = emu(&forged, options);
        assert!(line.contains(" vm a\\x0aFeb  1 13:03:04 vm fw: \\x1b[0m\\\\xff< IN=a\\x0ab OUT= "), "{line}");
        assert_eq!(line.matches('\n').count(), 1);
    }
    let xml = text(|lookups, out| Xml::new(OPTIONS).write(&forged, lookups, out));
    assert!(xml.contains("<prefix>a\\x0aFeb  1 13:03:04 vm fw: \\x1b[0m\\\\xff&lt;</prefix>"), "{xml}");
}

/// Readers split GPRINT at commas and look for `NAME=` in LOGEMU: a prefix or a name cannot forge a field.
#[test]
fn no_text_from_outside_makes_a_field() {
    let forged = LogRecord {
        prefix: b"x,ip.saddr=203.0.113.9,y IN=lo SRC=203.0.113.9 ",
        in_ifindex: Some(4),
        ..row(&TCP, tcp())
    };
    let gprint = |style| text(|lookups, out| Gprint::new(true, Stages::ALL, style).write(&forged, lookups, out));
    let (ours, old) = (gprint(OPTIONS), gprint(OLD));
    assert_eq!(
        ours.split(',').filter(|field| field.starts_with("ip.saddr=")).collect::<Vec<_>>(),
        ["ip.saddr=192.0.2.10"]
    );
    assert!(ours.contains(",oob.prefix=x\\x2cip.saddr=203.0.113.9\\x2cy IN=lo SRC=203.0.113.9 ,"), "{ours}");
    assert!(ours.contains(",oob.in=a\\x2cb=c,"), "{ours}");
    assert!(old.contains(",oob.prefix=x,ip.saddr=203.0.113.9,y IN=lo ") && old.contains(",oob.in=a,b=c,"), "{old}");
    let (ours, old) = (emu(&forged, OPTIONS), emu(&forged, OLD));
    assert_eq!(ours.split(' ').filter(|word| word.contains("SRC=")).collect::<Vec<_>>(), ["SRC=192.0.2.10"], "{ours}");
    assert!(ours.contains(" x,ip.saddr\\x3d203.0.113.9,y IN\\x3dlo SRC\\x3d203.0.113.9  IN=a,b\\x3dc OUT="), "{ours}");
    assert!(old.contains(" x,ip.saddr=203.0.113.9,y IN=lo SRC=203.0.113.9  IN=a,b=c OUT="), "{old}");
}

#[test]
fn keys_and_values() {
    let json = JsonOptions { device: b"fw", v1: true, boolean_label: true, ..JsonOptions::default() };
    let row = row(&TCP, tcp());
    let object = text(|lookups, out| Json::new(json, Stages::ALL, OPTIONS).write(&row, lookups, out));
    let wanted = "{\"@version\": 1, \"@timestamp\": \"2026-02-01T13:03:04.000042+0230\", \"dvc\": \"fw\", \
                  \"raw.pktlen\": 20, \"raw.pktcount\": 1, \"oob.prefix\": \"in: \", \"oob.time.sec\": 1795265034, \
                  \"oob.time.usec\": 42, \"oob.mark\": 0, \"oob.ifindex_in\": 2, \"oob.hook\": 1, \
                  \"raw.mac_len\": 14, \"oob.family\": 2, \"oob.protocol\": 2048, \"action\": \"blocked\", ";
    assert!(object.starts_with(wanted), "{object}");
    let read: serde_json::Value = serde_json::from_str(&object).unwrap();
    assert_eq!((&read["src_ip"], &read["dest_port"], &read["tcp.syn"]), (&"192.0.2.10".into(), &443.into(), &1.into()));
    assert_eq!(read["mac.daddr.str"], "02:00:00:00:00:01");
    let gprint = text(|lookups, out| Gprint::new(true, Stages::ALL, OPTIONS).write(&row, lookups, out));
    assert!(gprint.starts_with("timestamp=2026/02/01-13:03:04,raw.pktlen=20,"), "{gprint}");
    assert!(gprint.contains(",ip.saddr=192.0.2.10,ip.daddr=192.0.2.1,ip.protocol=6,ip.tos=184,"), "{gprint}");
    let stages = Stages { ip2str: false, hwhdr: false, ifindex: false, ..Stages::ALL };
    let oprint = text(|lookups, out| Oprint::new(stages, OLD).write(&row, lookups, out));
    assert!(oprint.starts_with("===>PACKET BOUNDARY\nraw.mac=default\nraw.pkt=default\nraw.pktlen=20\n"), "{oprint}");
    assert!(oprint.contains("\nip.saddr=10.2.0.192\n") && oprint.ends_with("\noob.protocol=2048\n"), "{oprint}");
    let xml = text(|lookups, out| Xml::new(OPTIONS).write(&row, lookups, out));
    let wanted = "<log><when><hour>13</hour><min>03</min><sec>04</sec><wday>1</wday><day>1</day><month>2</month>\
                  <year>2026</year></when><prefix>in: </prefix><hook>1</hook><hw><proto>0800</proto>\
                  <src>020000000010</src></hw><indev>2</indev><payload>9c4001bb";
    assert!(xml.starts_with(wanted), "{xml}");
}

#[test]
fn utc_has_its_offset_but_for_old_bytes() {
    let utc = |_| zone(0).map(|time| LocalTime { utc_offset_s: 0, ..time });
    let json = |options| {
        let mut json = Json::new(JsonOptions::default(), Stages::ALL, options);
        text(|lookups, out| json.write(&row(&TCP, tcp()), lookups, out))
    };
    assert!(
        json(UlogdStyle { zone: utc, ..OPTIONS }).starts_with("{\"timestamp\": \"2026-02-01T13:03:04.000042+0000\",")
    );
    assert!(json(UlogdStyle { zone: utc, ..OLD }).starts_with("{\"timestamp\": \"2026-02-01T13:03:04.000042\","));
}

fn addrs() -> impl Strategy<Value = (Addr, Addr)> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(src, dst)| (Addr::V4(src), Addr::V4(dst))),
        any::<([u8; 16], [u8; 16])>().prop_map(|(src, dst)| (Addr::V6(src), Addr::V6(dst))),
    ]
}

fn packets() -> impl Strategy<Value = (u8, u8, u16)> {
    let protos = prop::sample::select(vec![1u8, 6, 17, 50, 51, 58, 132, 9]);
    let families = prop::sample::select(vec![1u8, 2, 3, 5, 7, 10]);
    let ether_types = prop::sample::select(vec![0x800u16, 0x806, 0x86dd, 4]);
    (protos, families, ether_types)
}

proptest! {
    #[test]
    fn any_record_is_one_message(
        prefix in vec(any::<u8>(), 0..300),
        payload in vec(any::<u8>(), 0..90),
        hw_header in vec(any::<u8>(), 0..90),
        (src, dst) in addrs(),
        (proto, family, ether_type) in packets(),
        numbers: (u32, u32, u64, u8),
        fragment: Option<(u16, bool)>,
        old: bool,
    ) {
        let packet = PacketHeaders {
            src,
            dst,
            proto,
            length: numbers.0,
            id: numbers.1,
            header: &payload,
            payload: &payload,
            fragment: fragment.map(|(offset, more)| Fragment { offset, more }),
            transport: Transport::Icmp(IcmpHeader { kind: numbers.3, code: 5, id: None }),
            ..PacketHeaders::default()
        };
        let row = LogRecord {
            time_ns: numbers.2,
            prefix: &prefix,
            payload: &payload,
            hw_header: &hw_header,
            hw_addr: &hw_header,
            family,
            ether_type,
            hw_type: Some(1),
            mark: Some(numbers.0),
            uid: Some(numbers.1),
            in_ifindex: Some(numbers.0 % 4),
            netns_id: 7,
            packet: Some(packet),
            ..LogRecord::default()
        };
        let style = if old { OLD } else { OPTIONS };
        let line = emu(&row, style);
        prop_assert!(line.ends_with(" \n") && line.matches('\n').count() == 1, "{}", line);
        let mut json = Json::new(JsonOptions::default(), Stages::ALL, style);
        let object = text(|lookups, out| json.write(&row, lookups, out));
        prop_assert!(serde_json::from_str::<serde_json::Value>(&object).unwrap().is_object());
        prop_assert_eq!(object.matches('\n').count(), 1);
        fuzz_ulogd_formats(&row);
    }
}
