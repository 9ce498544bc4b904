//! Writes packets to a file, prints them with tcpdump and with netwren, and compares line by line.

use faces::tcpdump::output::{CapturedBytes, Dump, PacketType, Stamp, Tcpdump, TcpdumpOptions};
use record::rows::LinkType;
use sinks::LocalTime;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A packet: its captured bytes, and its original length.
pub(crate) type Packet = (Vec<u8>, usize);

/// Length of a time of day.
const STAMP: usize = "12:00:00.000000".len();
/// The switches that change lines; each is compared.
pub(crate) const SWITCHES: &[&str] =
    &["", "-e", "-v", "-vv", "-q", "-S", "-x", "-X", "-A", "-xx", "-XX", "-ve", "-vvv", "-qe", "-K", "-vK"];

/// Each packet whole, and cut after each of its bytes.
pub(crate) fn cut_at_each_byte(packets: &[Vec<u8>]) -> Vec<Packet> {
    let mut all: Vec<Packet> = packets.iter().map(|packet| (packet.clone(), packet.len())).collect();
    for packet in packets {
        all.extend((1..packet.len()).map(|len| (packet[..len].to_vec(), packet.len())));
    }
    all
}

/// Compares the lines of packets that begin at the IP header, whole and cut, with every switch.
pub(crate) fn check_ip(packets: &[Vec<u8>]) {
    check(LinkType::RAW, &cut_at_each_byte(packets), SWITCHES);
}

/// The packets with each byte from `from` to `end` changed: wrong lengths, counts and types.
pub(crate) fn damaged(packets: &[Vec<u8>], from: usize, end: usize) -> Vec<Packet> {
    let mut all = Vec::new();
    for (packet, at) in packets.iter().flat_map(|packet| (from..end.min(packet.len())).map(move |at| (packet, at))) {
        for damage in [0x00, 0xff, packet[at] ^ 0x01, packet[at] ^ 0x80, packet[at].wrapping_add(7)] {
            let mut damaged = packet.clone();
            damaged[at] = damage;
            all.push((damaged, packet.len()));
        }
    }
    all
}

/// Compares the lines of packets that begin at the IP header, also with each byte from `from` to `end` changed.
pub(crate) fn check_ip_and_damaged(packets: &[Vec<u8>], from: usize, end: usize) {
    check_ip(packets);
    check(LinkType::RAW, &damaged(packets, from, end), &["", "-v", "-vv", "-e", "-q", "-X"]);
}

/// Compares the output of tcpdump and netwren, once for each of `switches`.
pub(crate) fn check(link_type: LinkType, packets: &[Packet], switches: &[&str]) {
    testkit::require_version!("tcpdump", testkit::tool::TCPDUMP);
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let name = format!("netwren-text-{}-{}.pcap", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let file = std::env::temp_dir().join(name);
    fs::write(&file, pcap(link_type, packets)).unwrap();
    let mut wrong = Vec::new();
    for switch in switches {
        let mut command = Command::new("tcpdump");
        command.env("TZ", "UTC").env("LC_ALL", "C").arg("-nn").arg("-r").arg(&file);
        let theirs = command.args(switch.split(' ').filter(|word| !word.is_empty())).output().unwrap();
        let ours = print(link_type, packets, switch);
        wrong.extend(differences(switch, &theirs.stdout, &ours, packets));
    }
    fs::remove_file(&file).unwrap();
    let shown: Vec<_> = wrong.iter().step_by(1 + wrong.len() / 8).cloned().collect();
    assert!(wrong.is_empty(), "{} lines differ, the first:\n{}", wrong.len(), shown.join("\n"));
}

fn pcap(link_type: LinkType, packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, u32::from(link_type.0)] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (nth, (bytes, len)) in packets.iter().enumerate() {
        for word in [time(nth).0, time(nth).1, bytes.len() as u32, *len as u32] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(bytes);
    }
    file
}

/// Seconds and microseconds of the packet.
fn time(nth: usize) -> (u32, u32) {
    (1_700_000_000 + nth as u32 * 3, nth as u32 % 7 * 100_001)
}

/// Converts the switches to netwren's options.
fn options(switch: &str) -> TcpdumpOptions {
    let mut options = TcpdumpOptions::new(utc);
    let mut stamps = 0;
    let (letters, packet_type) = switch.split_once("-T ").unwrap_or((switch, ""));
    options.packet_type = match packet_type {
        "domain" => Some(PacketType::Domain),
        "vxlan" => Some(PacketType::Vxlan),
        _ => None,
    };
    for letter in letters.chars() {
        match letter {
            'e' => options.link_header = true,
            'v' => options.verbose += 1,
            'q' => options.quiet += 1,
            'S' => options.absolute_sequence = true,
            'K' => options.no_checksums = true,
            '#' => options.numbers = true,
            't' => stamps += 1,
            'x' | 'X' | 'A' => {
                options.dump_link_header = options.dump != Dump::None;
                options.dump = match letter {
                    'x' => Dump::Hex,
                    'X' => Dump::HexAndText,
                    _ => Dump::Text,
                };
            }
            _ => {}
        }
    }
    options.stamp =
        [Stamp::TimeOfDay, Stamp::None, Stamp::Epoch, Stamp::SincePrevious, Stamp::Date, Stamp::SinceFirst][stamps];
    options
}

fn utc(seconds: i64) -> Option<LocalTime> {
    let of_day = seconds % 86_400;
    let (hour, minute, second) = ((of_day / 3600) as u8, (of_day / 60 % 60) as u8, (of_day % 60) as u8);
    // 1 700 000 000 is 2023-11-14.
    let day = 14 + (seconds / 86_400 - 19_675) as u8;
    Some(LocalTime { year: 2023, month: 11, day, hour, minute, second, weekday: 2, utc_offset_s: 0 })
}

/// Returns netwren's output, one text for each packet.
pub(crate) fn print(link_type: LinkType, packets: &[Packet], switch: &str) -> Vec<Vec<u8>> {
    let mut printer = Tcpdump::new(options(switch));
    let line = |(nth, (bytes, len)): (usize, &Packet)| {
        let (seconds, us) = time(nth);
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(us) * 1000;
        let mut out = Vec::new();
        let frame = CapturedBytes { link_type, bytes, len: *len as u32, time_ns, far: None };
        printer.print(&frame, &|number| (number == 1).then_some("lo"), &mut out);
        out
    };
    packets.iter().enumerate().map(line).collect()
}

/// Returns the packets whose text differs from tcpdump's. After a difference, the comparison continues at the next
/// packet's time.
fn differences(switch: &str, theirs: &[u8], ours: &[Vec<u8>], packets: &[Packet]) -> Vec<String> {
    let (mut rest, mut wrong) = (theirs, Vec::new());
    for (nth, text) in ours.iter().enumerate() {
        if let Some(behind) = rest.strip_prefix(&text[..]) {
            rest = behind;
            continue;
        }
        let next = ours.get(nth + 1).map_or(&[][..], |next| &next[..next.len().min(STAMP)]);
        let end =
            rest.windows(STAMP + 1).position(|at| at[0] == b'\n' && at[1..] == *next).map_or(rest.len(), |at| at + 1);
        wrong.push(format!(
            "{switch:4} packet {nth} of {}, {} of {} bytes\n  theirs: {}\n  ours:   {}\n  {}",
            packets.len(),
            packets[nth].0.len(),
            packets[nth].1,
            String::from_utf8_lossy(&rest[..end]).trim_end(),
            String::from_utf8_lossy(text).trim_end(),
            packets[nth].0.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        ));
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        wrong.push(format!("{switch}: more: {}", String::from_utf8_lossy(rest)));
    }
    wrong
}
