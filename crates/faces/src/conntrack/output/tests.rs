//! Rows that no kernel here makes, compared with the output of libnetfilter_conntrack 1.0.9 for the same messages
//! (TZ=UTC). Rows that a kernel makes are compared live: `crates/cli/tests/conntrack_live.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use record::Addr;
use record::rows::{Conntrack, CtCounters, CtState, CtStatus, CtTuple, Expectation, ip_proto};
use sinks::Out;
use sinks::{Clock, LocalTime};

/// A stopped clock, in UTC.
struct Still;

impl Clock for Still {
    fn now_s(&self) -> i64 {
        1_795_264_980
    }

    fn local(&self, seconds: i64) -> Option<LocalTime> {
        let second = seconds.rem_euclid(60) as u8;
        let minute = (seconds / 60).rem_euclid(60) as u8;
        let hour = (seconds / 3600).rem_euclid(24) as u8;
        Some(LocalTime { year: 2026, month: 11, day: 21, hour, minute, second, weekday: 6, utc_offset_s: 0 })
    }
}

fn written(options: EntryOptions, write: impl FnOnce(&mut EntryWriter<'_, Vec<u8>>)) -> String {
    let names = |bit: u16| match bit {
        0 => Some(&b"audit"[..]),
        9 => Some(&b"web"[..]),
        _ => None,
    };
    let mut writer = EntryWriter::new(options, &Still, Some(&names), Out::new(Vec::new()));
    write(&mut writer);
    writer.finish().unwrap();
    String::from_utf8(writer.into_inner()).unwrap()
}

fn v4(proto: u8, src_part: u16, dst_part: u16) -> Conntrack<'static> {
    let (src, dst) = (Addr::V4([192, 0, 2, 10]), Addr::V4([198, 51, 100, 20]));
    Conntrack {
        family: 2,
        orig: CtTuple { src, dst, proto, src_part, dst_part, zone: None },
        reply: CtTuple { src: dst, dst: src, proto, src_part: dst_part, dst_part: src_part, zone: None },
        ..Conntrack::EMPTY
    }
}

fn v6() -> Conntrack<'static> {
    let (src, dst) = ("2001:db8:1::10".parse().unwrap(), "2001:db8:2::20".parse().unwrap());
    let tuple = CtTuple { src, dst, proto: 58, src_part: 13_599, dst_part: 0x8000, zone: Some(3) };
    Conntrack {
        family: 10,
        orig: tuple,
        reply: CtTuple { src: dst, dst: src, dst_part: 0x8100, zone: Some(4), ..tuple },
        status: Some(CtStatus(0x0a)),
        timeout_s: Some(29),
        counters_orig: Some(CtCounters { packets: 1, bytes: 104 }),
        counters_reply: Some(CtCounters { packets: u64::MAX, bytes: 104 }),
        mark: Some(u32::MAX),
        zone: Some(5),
        uses: Some(2),
        id: Some(u32::MAX),
        helper: Some(b"ftp"),
        secctx: Some(b"system_u:object_r:x:s0"),
        start_ns: Some(1_795_264_970_019_551_000),
        stop_ns: Some(1_795_264_972_919_551_000),
        ..Conntrack::EMPTY
    }
}

const EVERYTHING: EntryOptions = EntryOptions { layer3: true, id: true, ktimestamp: true, ..EntryOptions::PLAIN };
const XML: EntryOptions = EntryOptions { form: Form::Xml, bare: true, ..EVERYTHING };
const OLD_XML: EntryOptions = EntryOptions { bug_compatible: true, ..XML };
const SAVE: EntryOptions = EntryOptions { form: Form::Save, ..EntryOptions::PLAIN };

fn sctp() -> Conntrack<'static> {
    Conntrack {
        status: Some(CtStatus(0x0e)),
        state: Some(CtState::Sctp(4)),
        vtags: Some([0x0102_0304, 5]),
        timeout_s: Some(210),
        mark: Some(0),
        uses: Some(1),
        id: Some(7),
        ..v4(132, 38_412, 3868)
    }
}

#[test]
fn a_line_with_everything() {
    assert_eq!(
        written(EVERYTHING, |w| w.event(&v6(), Change::Destroy, (0, 0), None).unwrap()),
        "[DESTROY] ipv6     10 icmpv6   58 29 src=2001:db8:1::10 dst=2001:db8:2::20 type=128 code=0 id=13599 \
            zone-orig=3 \
         packets=1 bytes=104 src=2001:db8:2::20 dst=2001:db8:1::10 type=129 code=0 id=13599 zone-reply=4 \
         packets=18446744073709551615 bytes=104 mark=4294967295 secctx=system_u:object_r:x:s0 zone=5 delta-time=2 \
         [start=Sat Nov 21 12:42:50 2026] [stop=Sat Nov 21 12:42:52 2026] helper=ftp use=2 id=4294967295\n"
    );
}

#[test]
fn an_element_with_everything() {
    let old = written(OLD_XML, |w| w.event(&v6(), Change::Destroy, (0, 0), None).unwrap());
    assert_eq!(
        old,
        "<flow type=\"destroy\"><meta direction=\"original\"><layer3 protonum=\"10\" protoname=\"ipv6\">\
         <src>2001:db8:1::10</src><dst>2001:db8:2::20</dst></layer3><layer4 protonum=\"58\" protoname=\"icmpv6\">\
         </layer4><zone>3</zone><counters><packets>1</packets><bytes>104</bytes></counters></meta>\
         <meta direction=\"reply\"><layer3 protonum=\"10\" protoname=\"ipv6\"><src>2001:db8:2::20</src>\
         <dst>2001:db8:1::10</dst></layer3><layer4 protonum=\"58\" protoname=\"icmpv6\"></layer4><zone>4</zone>\
         <counters><packets>18446744073709551615</packets><bytes>104</bytes></counters></meta>\
         <meta direction=\"independent\"><timeout>29</timeout><mark>4294967295</mark>\
         <secctx>system_u:object_r:x:s0</secctx><zone>5</zone><use>2</use><id>4294967295</id><timestamp>\
         <start>1795264970019551000</start><stop>1795264972919551000</stop></timestamp><deltatime>2</deltatime></meta>\
         <helper>ftp</helper></flow>\n"
    );
    let new = written(XML, |w| w.event(&v6(), Change::Destroy, (0, 0), None).unwrap());
    let of_icmp = "\"icmpv6\"><type>128</type><code>0</code><id>13599</id></layer4>";
    assert_eq!(new.matches("<code>0</code>").count(), 2);
    assert!(new.contains(of_icmp), "{new}");
}

#[test]
fn states_of_other_protocols() {
    let line = written(EntryOptions { id: true, layer3: true, ..EntryOptions::PLAIN }, |w| w.row(&sctp()).unwrap());
    assert_eq!(
        line,
        "ipv4     2 sctp     132 210 ESTABLISHED src=192.0.2.10 dst=198.51.100.20 sport=38412 dport=3868 \
         src=198.51.100.20 dst=192.0.2.10 sport=3868 dport=38412 [ASSURED] mark=0 use=1 id=7\n"
    );
    let dccp = Conntrack {
        status: Some(CtStatus(8)),
        state: Some(CtState::Dccp(4)),
        timeout_s: Some(100),
        ..v4(33, 5000, 5001)
    };
    assert_eq!(
        written(EntryOptions::PLAIN, |w| w.event(&dccp, Change::New, (0, 0), None).unwrap()),
        "    [NEW] dccp     33 100 OPEN src=192.0.2.10 dst=198.51.100.20 sport=5000 dport=5001 [UNREPLIED] \
         src=198.51.100.20 dst=192.0.2.10 sport=5001 dport=5000\n"
    );
    // The tool's XML has TCP's names for all protocols.
    for (row, right) in [(sctp(), "<state>ESTABLISHED</state>"), (dccp, "<state>OPEN</state>")] {
        assert!(written(OLD_XML, |w| w.row(&row).unwrap()).contains("<state>FIN_WAIT</state>"));
        assert!(written(XML, |w| w.row(&row).unwrap()).contains(right));
    }
    let odd = Conntrack { state: Some(CtState::Tcp(77)), ..v4(6, 1, 2) };
    assert!(written(EntryOptions::PLAIN, |w| w.row(&odd).unwrap()).starts_with("tcp      6 NONE src="));
}

#[test]
fn what_is_handled_elsewhere_and_what_has_no_name() {
    let offloaded = |bits| Conntrack { status: Some(CtStatus(bits)), mark: Some(0), uses: Some(2), ..v4(6, 1, 2) };
    for (bits, word) in [(0x400e, "[OFFLOAD]"), (0xc00e, "[HW_OFFLOAD]"), (0x0e, "[ASSURED]")] {
        assert_eq!(
            written(EntryOptions::PLAIN, |w| w.row(&offloaded(bits)).unwrap()),
            format!(
                "tcp      6 src=192.0.2.10 dst=198.51.100.20 sport=1 dport=2 src=198.51.100.20 dst=192.0.2.10 sport=2 \
                 dport=1 {word} mark=0 use=2\n"
            )
        );
    }
    let gre = Conntrack { status: Some(CtStatus(8)), timeout_s: Some(30), ..v4(ip_proto::GRE, 0x1f, 0) };
    assert_eq!(
        written(EntryOptions::PLAIN, |w| w.event(&gre, Change::Update, (0, 0), None).unwrap()),
        " [UPDATE] gre      47 30 src=192.0.2.10 dst=198.51.100.20 srckey=0x1f dstkey=0x0 [UNREPLIED] \
         src=198.51.100.20 dst=192.0.2.10 srckey=0x0 dstkey=0x1f\n"
    );
    assert!(written(XML, |w| w.row(&gre).unwrap()).contains("<srckey>0x1f</srckey><dstkey>0x0</dstkey>"));
    assert_eq!(
        written(EntryOptions::PLAIN, |w| w.row(&v4(253, 0, 0)).unwrap()),
        "unknown  253 src=192.0.2.10 dst=198.51.100.20 src=198.51.100.20 dst=192.0.2.10\n"
    );
}

#[test]
fn commands() {
    let nat = |bits, mark| Conntrack {
        status: Some(CtStatus(bits)),
        timeout_s: Some(99),
        mark: Some(mark),
        reply: CtTuple { dst: Addr::V4([203, 0, 113, 1]), ..v4(17, 5, 6).reply },
        ..v4(17, 5, 6)
    };
    let parts = "--sport 5 --dport 6 --reply-port-src 6 --reply-port-dst 5";
    let tuple = |switch| format!("-s 192.0.2.10 -d 198.51.100.20 -r 198.51.100.20 {switch} 203.0.113.1 -p udp {parts}");
    let save = |row: &Conntrack<'_>| written(SAVE, |w| w.row(row).unwrap());
    assert_eq!(save(&nat(0x18e, 0)), format!("-A -t 99 -u SEEN_REPLY,ASSURED {}\n", tuple("-n")));
    assert_eq!(save(&nat(8, 0)), format!("-A -t 99 -u UNSET {}\n", tuple("-q")));
    assert_eq!(save(&nat(8, 7)), format!("-A -t 99 -u UNSET -m 7 {}\n", tuple("-q")));
    let old = EntryOptions { bug_compatible: true, ..SAVE };
    assert_eq!(written(old, |w| w.row(&nat(8, 7)).unwrap()), format!("-A -t 99 -u UNSET {}\n", tuple("-q")));
    assert!(save(&sctp()).ends_with("--state ESTABLISHED --orig-vtag 67305985 --reply-vtag 83886080\n"));
    let young = Conntrack { state: Some(CtState::Sctp(8)), ..sctp() };
    assert!(save(&young).contains("--state HEARTBEAT_SENT --orig-vtag"));
    assert!(written(old, |w| w.row(&young).unwrap()).contains("--state (null) --orig-vtag"));
    assert!(save(&v4(50, 0, 0)).ends_with("-q 192.0.2.10 -p 50\n"));
    assert!(save(&v4(1, 77, 0x0800)).ends_with("-p icmp --icmp-type 8 --icmp-code 0 --icmp-id 77\n"));
    let destroyed = written(SAVE, |w| w.event(&v6(), Change::Destroy, (0, 0), None).unwrap());
    assert!(destroyed.starts_with("-D -t 29 -u SEEN_REPLY -m 4294967295 -w 5 --orig-zone 3 --reply-zone 4 -s 2001:"));
}

#[test]
fn times_labels_and_origins() {
    let row = Conntrack {
        start_ns: Some(1_795_264_981_000_000_000),
        labels: Some(&[1, 6, 0, 0, 0, 0, 0, 0]),
        ..v4(253, 0, 0)
    };
    let line = |options| written(options, |w| w.row(&row).unwrap());
    assert!(line(EntryOptions::PLAIN).ends_with(" delta-time=0 labels=audit,web\n"));
    let old = EntryOptions { bug_compatible: true, ..EntryOptions::PLAIN };
    assert!(line(old).ends_with(" delta-time=18446744073709551615 labels=audit,web\n"));
    assert!(line(XML).contains("<labels><label>audit</label><label>web</label></labels>"));
    let origin = Origin { portid: 77, program: Some(b"a<\x1b[2J") };
    let event =
        |options| written(options, |w| w.event(&row, Change::New, (1_795_264_970, 19_551_000), Some(&origin)).unwrap());
    let timed = event(EntryOptions { time: true, ..EntryOptions::PLAIN });
    assert!(timed.starts_with("[1795264970.019551]\t    [NEW] unknown  253 src="), "{timed}");
    assert!(timed.ends_with(" [USERSPACE] portid=77 progname=a<?[2J\n"), "{timed}");
    let element = event(EntryOptions { time: true, ..XML });
    let when = "<when><hour>12</hour><min>43</min><sec>00</sec><wday>7</wday><day>21</day><month>11</month>\
                <year>2026</year></when>";
    assert!(element.contains(when), "{element}");
    assert!(element.ends_with("<userspace portid=\"77\" progname=\"a&lt;?[2J\"/></flow>\n"), "{element}");
    assert!(event(OLD_XML).ends_with("</flow> [USERSPACE] portid=77 progname=a<\x1b[2J\n"));
}

#[test]
fn a_document_only_if_there_is_something_in_it() {
    let document = EntryOptions { bare: false, ..XML };
    assert_eq!(written(document, |_| {}), "");
    let text = written(document, |w| w.row(&v4(253, 0, 0)).unwrap());
    assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<conntrack>\n<flow>"), "{text}");
    assert!(text.ends_with("</flow>\n</conntrack>\n"), "{text}");
}

#[test]
fn expectations() {
    let tuple = v4(6, 0, 41_739).orig;
    let row = Expectation {
        family: 2,
        tuple,
        mask: CtTuple { src: Addr::V4([255; 4]), dst: Addr::V4([255; 4]), dst_part: 65_535, ..tuple },
        master: v4(6, 36_390, 21).orig,
        timeout_s: Some(300),
        flags: Some(5),
        class: Some(0),
        helper: Some(b"ftp"),
        ..Expectation::EMPTY
    };
    assert_eq!(
        written(EntryOptions::PLAIN, |w| w.expectation(&row, None, (0, 0)).unwrap()),
        "300 proto=6 src=192.0.2.10 dst=198.51.100.20 sport=0 dport=41739 mask-src=255.255.255.255 \
         mask-dst=255.255.255.255 sport=0 dport=65535 master-src=192.0.2.10 master-dst=198.51.100.20 sport=36390 \
         dport=21 PERMANENT,USERSPACE class=0 helper=ftp\n"
    );
    let element = written(XML, |w| w.expectation(&row, Some(Change::New), (0, 0)).unwrap());
    assert!(
        element.starts_with("<flow type=\"new\"><layer3 protonum=\"2\" protoname=\"ipv4\"><expected><src>"),
        "{element}"
    );
    let end = "<meta><helper-name>ftp</helper-name><timeout>300</timeout><class>0</class><permanent/>\
               <userspace/></meta></flow>\n";
    assert!(element.ends_with(end), "{element}");
    let old = EntryOptions { time: true, bug_compatible: true, ..EntryOptions::PLAIN };
    let timed = written(old, |w| w.expectation(&row, Some(Change::Destroy), (5, 70_000)).unwrap());
    assert!(timed.starts_with("[5.70    ]\t[DESTROY] 300 proto=6 "), "{timed}");
}
