//! `log` under bad conditions: very many groups, hostile prefixes, truncated packets.

use crate::going::Going;
use crate::log::{OWN_COLUMNS, command, send, to_five};
use crate::run::{Ran, netwren};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use testkit::netns::Lab;
use testkit::sandbox::{Limit, confine};

/// Starts `log` with these arguments; returns once it has bound `groups` groups.
fn going(lab: &Lab, groups: usize, args: &[&str]) -> Going<String> {
    let going = Going::spawn(command(lab, args), |line| line);
    testkit::wait_until("the groups are bound", || lab.log_groups().len() == groups);
    going
}

fn list(groups: std::ops::Range<u16>) -> String {
    groups.map(|group| group.to_string()).collect::<Vec<_>>().join(",")
}

#[test]
fn root_issue_12_a_thousand_groups() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("badgroups");
    lab.nft(
        "table inet t { chain o { type filter hook output priority 0
           udp dport 7009 log group 0 drop
           udp dport 7010 log group 999 drop
         }
         }",
    );
    let all = list(0..1000);
    let words = ["--group", &all, "--latency", "10ms", "--columns", "group,dport", "-H"];
    let mut run = going(&lab, 1000, &words);
    send(&lab, to_five(), 1);
    send(&lab, (Ipv4Addr::LOCALHOST, 7010).into(), 1);
    run.read_until("both have come", |lines| lines.len() == 2);
    let (mut lines, ran) = run.end();
    lines.sort();
    assert_eq!(lines, ["0\t7009", "999\t7010"]);
    ran.ok();
    assert_eq!(lab.log_groups(), [0; 0], "no group stays bound");
    let mut few = command(&lab, &words);
    confine(&mut few, &[Limit::OpenFiles(200)]).unwrap();
    let ran = Ran::of(few.output().unwrap());
    ran.says(4, &["too many open files: only 1", " of 1000 groups could be bound", "`ulimit -n`", "LimitNOFILE="]);
    assert_eq!(lab.log_groups(), [0; 0], "nor after that");
}

#[test]
fn issue_12_groups_that_cannot_be_are_refused() {
    for (groups, says) in [
        ("65536", "--group takes numbers from 0 to 65535"),
        ("-1", "--group takes numbers from 0 to 65535"),
        ("5,", "--group takes numbers from 0 to 65535"),
        (&list(0..1001), "--group takes at most 1000 groups, not 1001"),
    ] {
        netwren(&["log", &format!("--group={groups}")]).says(2, &[says]);
    }
}

/// The longest prefix that the kernel accepts (127 bytes), from bytes that nft accepts in quotes. It contains invalid
/// UTF-8 and ends with the first byte of a longer character.
fn bytes_prefix() -> Vec<u8> {
    let mut prefix = b"\x1b]0;t\x07\x1b[2J ] [x y='1' \n<1>1 - \\ \r\t\xe2\x82,{}&lt;\xff\xc3( IN= x=".to_vec();
    prefix.resize(126, b'A');
    prefix.push(0xe2);
    prefix
}

/// 127 bytes of text including quotation marks, which nft accepts in JSON.
fn text_prefix() -> String {
    let hostile = "a\"b\\c]d[e\u{1b}[31m\nf\tg}{,= \u{202e}\u{7f}\"] [meta sequenceId=\"7\"]";
    format!("{hostile}{}", "z".repeat(127 - hostile.len()))
}

fn hostile_rules(lab: &Lab) {
    let file = lab.dir().join("rules").display().to_string();
    let rule = b"table inet t { chain o { type filter hook output priority 0\n udp dport 7009 log prefix \"";
    std::fs::write(&file, [&rule[..], &bytes_prefix(), b"\" group 5 drop\n}\n}\n"].concat()).unwrap();
    lab.output("nft", &["-f", &file]);
    let place = json!({"family": "inet", "table": "t", "chain": "o"});
    let port = json!({"payload": {"protocol": "udp", "field": "dport"}});
    let mut rule = place;
    rule["expr"] = json!([
        {"match": {"op": "==", "left": port, "right": 7010}},
        {"log": {"prefix": text_prefix(), "group": 5}},
        {"drop": null}
    ]);
    std::fs::write(&file, json!({"nftables": [{"add": {"rule": rule}}]}).to_string()).unwrap();
    lab.output("nft", &["-j", "-f", &file]);
}

/// Decodes `\xNN` only. A literal backslash followed by `x` would be decoded as well, but this prefix has none.
fn without_hex(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once("\\x") {
        out.extend_from_slice(before.as_bytes());
        let (digits, behind) = behind.split_at(2);
        out.push(u8::from_str_radix(digits, 16).unwrap());
        rest = behind;
    }
    [&out[..], rest.as_bytes()].concat()
}

/// Decodes the escapes of netwren's text: `\n`, `\t`, `\\`, `\xNN`, `\u{…}`.
fn unescaped(text: &str) -> Vec<u8> {
    let Some((before, behind)) = text.split_once('\\') else { return text.as_bytes().to_vec() };
    let (kind, rest) = behind.split_at(1);
    let (bytes, rest) = match kind {
        "n" => (vec![b'\n'], rest),
        "t" => (vec![b'\t'], rest),
        "\\" => (vec![b'\\'], rest),
        "x" => (vec![u8::from_str_radix(&rest[..2], 16).unwrap()], &rest[2..]),
        _ => {
            let (digits, rest) = rest.strip_prefix('{').unwrap().split_once('}').unwrap();
            let character = char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap();
            (character.to_string().into_bytes(), rest)
        }
    };
    [before.as_bytes(), &bytes, &unescaped(rest)].concat()
}

/// The value of an RFC 5424 parameter (section 6.3.3), after its opening quotation mark.
fn param_value(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars());
    loop {
        match chars.next().unwrap() {
            '"' => return out,
            ']' => panic!("a bracket that is not escaped: {text}"),
            '\\' => match chars.clone().next().unwrap() {
                escaped @ ('"' | '\\' | ']') => {
                    out.push(escaped);
                    chars.next();
                }
                _ => out.push('\\'),
            },
            other => out.push(other),
        }
    }
}

/// The comments of packets in a little-endian pcapng file.
fn comments(bytes: &[u8]) -> Vec<String> {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut comments) = (0, Vec::new());
    while at < bytes.len() {
        let (kind, length) = (number(at), number(at + 4));
        assert_eq!(number(at + length - 4), length, "both lengths of a block");
        let mut option = at + 28 + if kind == 6 { number(at + 20).next_multiple_of(4) } else { length };
        while option + 4 < at + length {
            let (code, size) = (number(option) & 0xffff, number(option) >> 16);
            if code == 1 {
                comments.push(String::from_utf8(bytes[option + 4..option + 4 + size].to_vec()).unwrap());
            }
            option += 4 + size.next_multiple_of(4);
        }
        at += length;
    }
    comments
}

#[test]
fn root_issue_12_a_prefix_of_127_hostile_bytes_is_one_text_in_every_format() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("badprefix");
    hostile_rules(&lab);
    let file = |name: &str| lab.dir().join(name);
    let read = |name: &str| String::from_utf8(std::fs::read(file(name)).unwrap()).unwrap();
    let receiver = lab.run_inside(|| UdpSocket::bind("127.0.0.1:0")).unwrap();
    let mut to = ["json", "logemu", "pcapng"].map(|name| format!("{name}:{}", file(name).display())).to_vec();
    to.push(format!("syslog+udp://{}", receiver.local_addr().unwrap()));
    let to: Vec<&str> = to.iter().flat_map(|to| ["--to", to]).collect();
    let words = ["--group", "5", "--latency", "10ms", "--columns", "prefix,dport"];
    let run = going(&lab, 1, &[&words[..], &to].concat());
    for port in [7009, 7010] {
        send(&lab, (Ipv4Addr::LOCALHOST, port).into(), 1);
    }
    run.end().1.ok();
    let (bytes, text) = (bytes_prefix(), text_prefix());
    assert_eq!((bytes.len(), text.len()), (127, 127));

    // JSON is UTF-8; invalid bytes become U+FFFD.
    let rows: Vec<Value> = read("json").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let prefixes: Vec<&str> = rows.iter().map(|row| row["prefix"].as_str().unwrap()).collect();
    assert_eq!(prefixes, [String::from_utf8_lossy(&bytes).as_ref(), &text]);
    assert_eq!([&rows[0]["dport"], &rows[1]["dport"]], [7009, 7010]);

    let lines = read("logemu");
    assert!(!lines.chars().any(|c| c.is_control() && c != '\n'), "{lines:?}");
    // The date has 15 characters (`Dec  1 00:04:00`), the host's name follows.
    let after_host = |line: &str| line[16..].split_once(' ').unwrap().1.to_owned();
    let prefix_in = |line: &str| without_hex(after_host(line).rsplit_once(" IN= OUT=lo ").unwrap().0);
    assert_eq!(lines.lines().map(prefix_in).collect::<Vec<_>>(), [&bytes[..], text.as_bytes()]);

    for expected in [&bytes[..], text.as_bytes()] {
        let mut message = [0; 4096];
        let length = receiver.recv(&mut message).unwrap();
        let message = std::str::from_utf8(&message[..length]).unwrap();
        assert!(!message.chars().any(char::is_control), "{message:?}");
        let value = param_value(message.split_once(" prefix=\"").unwrap().1);
        assert_eq!(unescaped(&value), expected, "{message}");
    }

    let comments = comments(&std::fs::read(file("pcapng")).unwrap());
    assert_eq!(comments.iter().map(|comment| unescaped(comment)).collect::<Vec<_>>(), [&bytes[..], text.as_bytes()]);
    assert!(!comments.concat().chars().any(char::is_control), "{comments:?}");
}

/// Logs the first 0 to 60 bytes of TCP packets and of ICMP errors for UDP, for IPv4 and IPv6. The prefix is `KIND
/// BYTES`, and the last two digits of the port are the number of bytes.
fn cutting(lab: &Lab) {
    let mut rules = String::new();
    for bytes in 0..=60 {
        for (kind, is_it) in [
            ("tcp4", format!("ip daddr 127.0.0.1 tcp dport {}", 9000 + bytes)),
            ("tcp6", format!("ip6 daddr ::1 tcp dport {}", 9000 + bytes)),
            // The port is in the packet quoted by ICMP, after 8 bytes of ICMP header and an IP header.
            ("icmp4", format!("ip protocol icmp @th,240,16 {}", 9100 + bytes)),
            ("icmp6", format!("ip6 nexthdr icmpv6 @th,400,16 {}", 9100 + bytes)),
        ] {
            rules += &format!("{is_it} log prefix \"{kind} {bytes}\" group 5 snaplen {bytes}\n");
        }
    }
    lab.nft(&format!("table inet t {{ chain o {{ type filter hook output priority 0\n{rules}}}\n}}"));
}

fn send_to_be_cut(lab: &Lab) {
    lab.run_inside(|| {
        for bytes in 0..=60 {
            for host in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
                let refused = TcpStream::connect(SocketAddr::new(host, 9000 + bytes)).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
                let socket = UdpSocket::bind(SocketAddr::new(host, 0)).unwrap();
                socket.send_to(&[b'x'; 64], SocketAddr::new(host, 9100 + bytes)).unwrap();
            }
        }
    });
}

/// The captured and the original length of each record in a pcap file.
fn pcap_lengths(file: &Path) -> Vec<(usize, usize)> {
    let bytes = std::fs::read(file).unwrap();
    let (mut rest, mut lengths) = (&bytes[24..], Vec::new());
    while let Some((head, behind)) = rest.split_at_checked(16) {
        let at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap()) as usize;
        lengths.push((at(8), at(12)));
        rest = &behind[at(8)..];
    }
    assert!(rest.is_empty(), "torn");
    lengths
}

/// Checks that the columns of a packet of this kind show exactly the fields contained in its first `bytes` bytes.
fn check_cut(row: &Value, kind: &str, bytes: usize, whole: usize) {
    let ip = if kind.ends_with('4') { 20 } else { 40 };
    let there = |column: &str, from: usize| {
        assert_eq!(!row[column].is_null(), bytes >= from, "{column} of {kind} {bytes}: {row}");
    };
    for column in ["src", "dst", "proto", "len", "ttl"] {
        there(column, ip);
    }
    if kind.starts_with("tcp") {
        ["sport", "dport"].iter().for_each(|column| there(column, ip + 4));
        ["tcp_flags", "tcp_seq", "tcp_window"].iter().for_each(|column| there(column, ip + 16));
    } else {
        ["icmp_type", "icmp_code"].iter().for_each(|column| there(column, ip + 2));
        assert!(row["sport"].is_null() && row["dport"].is_null(), "{row}");
    }
    if bytes >= ip {
        assert_eq!((row["len"].as_u64(), row["ttl"].is_u64()), (Some(whole as u64), true), "{row}");
    }
}

#[test]
fn root_issue_12_packets_cut_anywhere_show_what_is_there() {
    testkit::require_root!();
    testkit::require_tool!("nft");
    let lab = Lab::new("badcut");
    cutting(&lab);
    let file = |name: &str| lab.dir().join(name);
    let names = ["json", "logemu", "pcap", "pcapng", "gprint", "oprint", "xml", "json-v0", "json-v1"];
    let to = names.map(|name| format!("{name}:{}", file(name).display()));
    let to: Vec<&str> = to.iter().flat_map(|to| ["--to", to]).collect();
    let words = ["--group", "5", "--latency", "10ms", "--columns", OWN_COLUMNS];
    let run = going(&lab, 1, &[&words[..], &to].concat());
    send_to_be_cut(&lab);
    run.end().1.ok();
    let rows = std::fs::read_to_string(file("json")).unwrap();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lengths = pcap_lengths(&file("pcap"));
    assert_eq!((rows.len(), lengths.len()), (4 * 61, 4 * 61));
    let what = |row: &Value| {
        let prefix = row["prefix"].as_str().unwrap();
        let (kind, bytes) = prefix.split_once(' ').unwrap();
        (kind.to_owned(), bytes.parse::<usize>().unwrap())
    };
    // All packets of a kind have the same original length, which is read from the longest capture.
    let last = rows.iter().zip(&lengths).filter(|(row, _)| what(row).1 == 60);
    let wholes: BTreeMap<String, usize> = last.map(|(row, (_, whole))| (what(row).0, *whole)).collect();
    assert_eq!(wholes.len(), 4);
    for (row, lengths) in rows.iter().zip(&lengths) {
        let ((kind, bytes), whole) = (what(row), wholes[&what(row).0]);
        check_cut(row, &kind, bytes, whole);
        // If the length field was not captured, the original length is at least the captured length or the header's
        // length.
        let original = match (kind.ends_with('4'), bytes) {
            (true, ..4) | (false, 0) => bytes,
            (false, ..6) => 40,
            _ => whole,
        };
        assert_eq!(lengths, &(bytes, original), "{kind} {bytes}");
    }
    assert_eq!(rows.iter().map(what).collect::<BTreeSet<_>>().len(), 4 * 61, "each once");
}
